"""overlaylab: plan, run, parse and store measurements of container overlay networks."""
