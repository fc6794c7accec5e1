"""A profile in force: sizes, tc, CPU, reading back, proving by sending and counting.

Not here: the profile as it is written, which is specs'."""
