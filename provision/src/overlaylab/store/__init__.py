"""The results database: file, rows, removal, files of other programs.

Not here: what results say."""
