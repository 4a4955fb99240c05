"""The guides that ship with Redraft."""

from redraft.denoiser.algebra import All, Any, During, Not, Scaled, during
from redraft.guidance.acrostic import Acrostic
from redraft.guidance.alliteration import Alliteration
from redraft.guidance.bias import Bias
from redraft.guidance.characters import Characters
from redraft.guidance.classifier import Classifier
from redraft.guidance.ends_with import EndsWith
from redraft.guidance.forbid import Forbid
from redraft.guidance.in_sentence import InSentence
from redraft.guidance.infill import Infill
from redraft.guidance.json import Json, JsonSchema
from redraft.guidance.keywords import Keywords
from redraft.guidance.lines import Lines
from redraft.guidance.lipogram import Lipogram
from redraft.guidance.near import Near
from redraft.guidance.occurrences import Occurrences
from redraft.guidance.one_of import OneOf
from redraft.guidance.ordered import Ordered
from redraft.guidance.paragraphs import Paragraphs
from redraft.guidance.pattern import Pattern
from redraft.guidance.reading_level import ReadingLevel
from redraft.guidance.repetition import Repetition
from redraft.guidance.reward import Reward
from redraft.guidance.rhyme import Rhyme
from redraft.guidance.sentences import Sentences
from redraft.guidance.sentiment import Sentiment
from redraft.guidance.similar import Similar, Topic
from redraft.guidance.starts_with import StartsWith
from redraft.guidance.style import Style
from redraft.guidance.syllables import Syllables
from redraft.guidance.tidy import Tidy
from redraft.guidance.tokens import Tokens
from redraft.guidance.words import Words

__all__ = [
    "Acrostic",
    "All",
    "Alliteration",
    "Any",
    "Bias",
    "Characters",
    "Classifier",
    "During",
    "EndsWith",
    "Forbid",
    "InSentence",
    "Infill",
    "Json",
    "JsonSchema",
    "Keywords",
    "Lines",
    "Lipogram",
    "Near",
    "Not",
    "Occurrences",
    "OneOf",
    "Ordered",
    "Paragraphs",
    "Pattern",
    "ReadingLevel",
    "Repetition",
    "Reward",
    "Rhyme",
    "Scaled",
    "Sentences",
    "Sentiment",
    "Similar",
    "StartsWith",
    "Style",
    "Syllables",
    "Tidy",
    "Tokens",
    "Topic",
    "Words",
    "during",
]
