"""Intervals and verdicts over blocks, by themselves: numbers in, numbers out.

Not here: where the numbers come from, and how they are printed."""
