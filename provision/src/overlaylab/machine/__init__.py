"""The machine that runs the lab: its packages, services, groups, kernel, and the bundle that lies beside the checkout.

Not here: what is built on it."""
