"""What the viewer computes of two runs is held to a file; here that file is held to overlaylab."""

import two_runs


def test_the_viewer_is_held_to_what_overlaylab_says(golden) -> None:
    golden(two_runs.GOLDEN, two_runs.text())
