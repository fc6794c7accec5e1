"""The measuring tools: one file each for its command line and its duration, and a parser for what it prints.

Not here: who runs them, and what their samples mean for an overlay."""
