"""A file for each provider, found by being here: its class, and what it can, as PROVIDER (`capabilities.Kind`).

Not here: what several of them share, which is beside this folder.
"""
