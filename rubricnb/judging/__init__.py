"""Judges and their answers: contract, engines, readout, store, run."""

from rubricnb.judging.batch import export_batch, import_batch
from rubricnb.judging.contract import Reply
from rubricnb.judging.cost import estimate_cost
from rubricnb.judging.fitting import STAND_INS, stand_in
from rubricnb.judging.judge import open_judge
from rubricnb.judging.plan import plan
from rubricnb.judging.profiles import Profile, open_profile
from rubricnb.judging.readout import read
from rubricnb.judging.results import judges, recorded, results_folder
from rubricnb.judging.run import RunInterrupted, rendered, run
from rubricnb.judging.simulated import simulate

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
