"""Programs that run on the nodes, with their own python3 (3.7 or newer) and nothing else."""
