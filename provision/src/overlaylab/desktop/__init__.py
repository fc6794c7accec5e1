"""How the viewer is started, packaged and given a screen.

Not here: the viewer, which is TypeScript, and what it shows."""
