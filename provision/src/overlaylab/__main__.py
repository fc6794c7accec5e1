"""``python -m overlaylab``."""

from overlaylab.cli.main import main

main()
