"""The denoiser, the loop and the contracts that guides are written against."""

from redraft.denoiser.algebra import All, Any, During, Not, Scaled, during
from redraft.denoiser.automaton import Automaton
from redraft.denoiser.base import Denoiser
from redraft.denoiser.canvas import Canvas
from redraft.denoiser.errors import (
    InvalidGuideError,
    RedraftError,
    UnsatisfiableError,
    UnsupportedModelError,
    UnwritableTextError,
)
from redraft.denoiser.guide import Bound, Guide, HardGuide, SoftGuide, Span, Verdict
from redraft.denoiser.load import load
from redraft.denoiser.noise import Absorbing, Noise, Uniform
from redraft.denoiser.particles import BestOf, Drafts, Particles
from redraft.denoiser.processor import as_logits_processor
from redraft.denoiser.refine import Refinement, refine
from redraft.denoiser.result import Population, Result
from redraft.denoiser.revision import Reconsider, ReMDM, Uncertain
from redraft.denoiser.rewrite import Rewriting, rewrite
from redraft.denoiser.selection import Confidence, EntropyBound, LeftToRight, Margin, Random
from redraft.denoiser.settings import Settings
from redraft.denoiser.steering import Steering
from redraft.denoiser.step import Prompt, Scene, Step
from redraft.denoiser.stopping import Patience
from redraft.denoiser.vocabulary import Vocabulary
from redraft.denoiser.write import write

__all__ = [
    "Absorbing",
    "All",
    "Any",
    "Automaton",
    "BestOf",
    "Bound",
    "Canvas",
    "Confidence",
    "Denoiser",
    "Drafts",
    "During",
    "EntropyBound",
    "Guide",
    "HardGuide",
    "InvalidGuideError",
    "LeftToRight",
    "Margin",
    "Noise",
    "Not",
    "Particles",
    "Patience",
    "Population",
    "Prompt",
    "Random",
    "ReMDM",
    "Reconsider",
    "RedraftError",
    "Refinement",
    "Result",
    "Rewriting",
    "Scaled",
    "Scene",
    "Settings",
    "SoftGuide",
    "Span",
    "Steering",
    "Step",
    "Uncertain",
    "Uniform",
    "UnsatisfiableError",
    "UnsupportedModelError",
    "UnwritableTextError",
    "Verdict",
    "Vocabulary",
    "as_logits_processor",
    "during",
    "load",
    "refine",
    "rewrite",
    "write",
]
