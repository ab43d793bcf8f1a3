"""Judges and their answers: contract, engines, readout, store, run.

What needs an engine or a simulated judge is loaded when it is first used (PEP 562): an
audit of scores needs neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rubricnb.judging.contract import Reply
from rubricnb.judging.cost import estimate_cost
from rubricnb.judging.judge import open_judge
from rubricnb.judging.plan import plan
from rubricnb.judging.readout import read
from rubricnb.judging.results import judges, recorded, results_folder
from rubricnb.judging.run import RunInterrupted, rendered, run

if TYPE_CHECKING:
    from rubricnb.judging.batch import export_batch, import_batch
    from rubricnb.judging.fitting import STAND_INS, stand_in
    from rubricnb.judging.profiles import Profile, open_profile
    from rubricnb.judging.simulated import simulate

_LATER = {
    "export_batch": "batch",
    "import_batch": "batch",
    "STAND_INS": "fitting",
    "stand_in": "fitting",
    "Profile": "profiles",
    "open_profile": "profiles",
    "simulate": "simulated",
}

__all__ = [
    "STAND_INS",
    "Profile",
    "Reply",
    "RunInterrupted",
    "estimate_cost",
    "export_batch",
    "import_batch",
    "judges",
    "open_judge",
    "open_profile",
    "plan",
    "read",
    "recorded",
    "rendered",
    "results_folder",
    "run",
    "simulate",
    "stand_in",
]


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"rubricnb.judging.{_LATER[name]}"), name)
    raise AttributeError(f"module 'rubricnb.judging' has no attribute {name!r}")
