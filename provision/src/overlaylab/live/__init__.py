"""The overlay that runs now: explained, its MTU, its policy; and the overlays' own pages.

Not here: measuring it in blocks."""
