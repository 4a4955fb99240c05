"""The page that explains a run: the canvas over steps, who committed what, what each guide pushed."""

from redraft.recipes.page.build import page
from redraft.recipes.page.recorder import Frame, Reason, Recorder

__all__ = ["Frame", "Reason", "Recorder", "page"]
