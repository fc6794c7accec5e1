"""What every package shares: records, errors, documents against their schemas, paths, progress, locks.

Not here: anything that knows a node, a tool or a result."""
