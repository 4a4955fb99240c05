"""The guides that ship with Redraft."""

from redraft.denoiser.algebra import All, Any, During, Not, Scaled, during
from redraft.guidance.bias import Bias
from redraft.guidance.classifier import Classifier
from redraft.guidance.forbid import Forbid
from redraft.guidance.infill import Infill
from redraft.guidance.keywords import Keywords
from redraft.guidance.pattern import Pattern
from redraft.guidance.repetition import Repetition
from redraft.guidance.reward import Reward
from redraft.guidance.sentences import Sentences
from redraft.guidance.sentiment import Sentiment
from redraft.guidance.similar import Similar, Topic
from redraft.guidance.style import Style
from redraft.guidance.tokens import Tokens
from redraft.guidance.words import Words

__all__ = [
    "All",
    "Any",
    "Bias",
    "Classifier",
    "During",
    "Forbid",
    "Infill",
    "Keywords",
    "Not",
    "Pattern",
    "Repetition",
    "Reward",
    "Scaled",
    "Sentences",
    "Sentiment",
    "Similar",
    "Style",
    "Tokens",
    "Topic",
    "Words",
    "during",
]
