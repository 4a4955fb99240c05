"""Selection policies: which open positions to commit at a step."""

from redraft.denoiser.selection.base import Proposal, Selection, highest
from redraft.denoiser.selection.confidence import Confidence
from redraft.denoiser.selection.entropy_bound import EntropyBound
from redraft.denoiser.selection.left_to_right import LeftToRight
from redraft.denoiser.selection.margin import Margin
from redraft.denoiser.selection.random import Random

SELECTIONS: dict[str, type[Selection]] = {
    policy.name: policy for policy in (Confidence, EntropyBound, LeftToRight, Margin, Random)
}

__all__ = [
    "SELECTIONS",
    "Confidence",
    "EntropyBound",
    "LeftToRight",
    "Margin",
    "Proposal",
    "Random",
    "Selection",
    "highest",
]
