"""Who judges and how the answers are kept: contract, engines, readout, store, run."""

from rubricnb.judging.batch import export_batch, import_batch
from rubricnb.judging.cost import estimate
from rubricnb.judging.plan import plan, plan_criteria
from rubricnb.judging.registry import ENGINES, open_judge
from rubricnb.judging.results import judges, recorded
from rubricnb.judging.run import RunInterrupted, run
from rubricnb.judging.simulated import simulate
from rubricnb.judging.store import Store, StoreError

__all__ = [
    "ENGINES",
    "RunInterrupted",
    "Store",
    "StoreError",
    "estimate",
    "export_batch",
    "import_batch",
    "judges",
    "open_judge",
    "plan",
    "plan_criteria",
    "recorded",
    "run",
    "simulate",
]
