"""``python -m overlaylab``."""

from overlaylab.cli import main

main()
