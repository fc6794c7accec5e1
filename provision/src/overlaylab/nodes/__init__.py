"""One node, reached over SSH: commands, servers of tools, Ansible, the state of its daemons.

Not here: how it came to be, which is providers'."""
