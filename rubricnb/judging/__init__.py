"""Who judges and how the answers are kept: contract, engines, readout, store, run."""

from rubricnb.judging.batch import export_batch, import_batch
from rubricnb.judging.cost import estimate
from rubricnb.judging.judge import open_judge
from rubricnb.judging.plan import plan, plan_criteria
from rubricnb.judging.results import recorded
from rubricnb.judging.run import RunInterrupted, run
from rubricnb.judging.simulated import simulate

__all__ = [
    "RunInterrupted",
    "estimate",
    "export_batch",
    "import_batch",
    "open_judge",
    "plan",
    "plan_criteria",
    "recorded",
    "run",
    "simulate",
]
