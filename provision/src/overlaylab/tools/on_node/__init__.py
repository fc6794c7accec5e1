"""Programs of tools that are copied to nodes and run there: the standard library alone."""
