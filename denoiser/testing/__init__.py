"""The contracts of guides and denoisers as checks to run: `check_guide`, `check_denoiser`, and for pytest.

Needs hypothesis and pytest (`pip install 'redraft[test]'`); nothing else in Redraft imports this.
"""

from redraft.denoiser.testing.denoisers import DENOISER_CHECKS, check_denoiser
from redraft.denoiser.testing.examination import Check, CheckResult, ContractError
from redraft.denoiser.testing.facts import Bench
from redraft.denoiser.testing.guides import GUIDE_CHECKS, check_guide, parametrize_with_checks
from redraft.denoiser.testing.toys import ToyDenoiser, toy_vocabulary

__all__ = [
    "DENOISER_CHECKS",
    "GUIDE_CHECKS",
    "Bench",
    "Check",
    "CheckResult",
    "ContractError",
    "ToyDenoiser",
    "check_denoiser",
    "check_guide",
    "parametrize_with_checks",
    "toy_vocabulary",
]
