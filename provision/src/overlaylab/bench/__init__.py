"""The lab measured: profiles proven, ratios held against publications, tiers taken from real hosts, scale.

Not here: measuring overlays, which is run's."""
