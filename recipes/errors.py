"""What can be wrong with a recipe or a plugin."""

from __future__ import annotations

from redraft.denoiser.errors import InvalidGuideError, RedraftError


class InvalidRecipeError(InvalidGuideError):
    """A recipe that cannot be read, or a value in it that cannot be meant."""


class PluginError(RedraftError):
    """A guide of another distribution that cannot be used, named with where it comes from."""
