"""A run: what was asked, its plan, carrying it out, and the proof around every trial.

Not here: which provider the nodes are of, and what the results say."""
