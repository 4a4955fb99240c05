"""Classifiers: token scores to steer by, word judges to check with."""

from redraft.classifiers.base import Classifier, InvalidClassifierError
from redraft.classifiers.corpus import Passage, read_corpus
from redraft.classifiers.labelled import read_labelled
from redraft.classifiers.measure import Figures, measure
from redraft.classifiers.noise_aware import NoiseAware
from redraft.classifiers.own import fit, load_classifier
from redraft.classifiers.sentence_head import SentenceHead
from redraft.classifiers.shipped import SHIPPED, Shipped, shipped
from redraft.classifiers.token_scores import TokenScores
from redraft.classifiers.training import train_shipped
from redraft.classifiers.words import Evidence, WordScores

__all__ = [
    "SHIPPED",
    "Classifier",
    "Evidence",
    "Figures",
    "InvalidClassifierError",
    "NoiseAware",
    "Passage",
    "SentenceHead",
    "Shipped",
    "TokenScores",
    "WordScores",
    "fit",
    "load_classifier",
    "measure",
    "read_corpus",
    "read_labelled",
    "shipped",
    "train_shipped",
]
