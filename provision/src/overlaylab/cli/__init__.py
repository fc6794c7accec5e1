"""What is typed: options, commands, help. Parses, calls what is below, prints.

Not here: anything that another package could want."""
