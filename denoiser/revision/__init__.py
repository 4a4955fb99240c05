"""Revision policies: which committed positions to reopen at a step."""

from redraft.denoiser.revision.base import Revision
from redraft.denoiser.revision.reconsider import Reconsider
from redraft.denoiser.revision.uncertain import Uncertain

REVISIONS: dict[str, type[Revision]] = {policy.name: policy for policy in (Reconsider, Uncertain)}

__all__ = ["REVISIONS", "Reconsider", "Revision", "Uncertain"]
