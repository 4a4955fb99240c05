"""Two guides for Redraft."""

from redraft_example.brevity import Brevity
from redraft_example.tongue_twister import TongueTwister

__all__ = ["Brevity", "TongueTwister"]
