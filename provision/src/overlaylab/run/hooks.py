"""What a run lets others do around its trials."""

from __future__ import annotations

from collections.abc import Sequence

from overlaylab.core.model import PlannedTrial, TrialResult
from overlaylab.run.proof import Ends


class Hooks:
    """Does nothing; whoever wants something done defines the methods that do it.

    A NodeError in one counts as the cell's: its variant is entered again.
    """

    async def entered(self, cell: Sequence[PlannedTrial]) -> None:
        """The nodes are in the variant's state, and no profile is in force yet; cell: all trials planned in it."""

    async def before_trial(self, trial: PlannedTrial, ends: Ends) -> bool:
        """Whether the nodes' counters have moved, so that they have to be read again: the trial counts from then on."""
        return False

    async def after_trial(self, trial: PlannedTrial, result: TrialResult) -> None:
        """The trial is stored, and is not taken again whatever follows."""
