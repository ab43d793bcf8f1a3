"""Judges and their answers, by the names that readers use: ``rb.judging.read``.

The code is in the rooms ``core`` and ``engines``.
"""

from typing import Any

from rubricnb.core.support import lazy

_HOMES = {
    "rubricnb.core.contract": "Reply",
    "rubricnb.core.cost": "estimate_cost",
    "rubricnb.core.judge": "configured open_judge",
    "rubricnb.core.plan": "plan",
    "rubricnb.core.parsing": "read",
    "rubricnb.core.results": "judges recorded results_folder",
    "rubricnb.core.run": "RunInterrupted rendered run",
    "rubricnb.engines.batch": "export_batch import_batch",
    "rubricnb.engines.fitting": "STAND_INS stand_in",
    "rubricnb.engines.profiles": "Profile open_profile",
    "rubricnb.engines.simulated": "simulate",
}

__all__ = lazy.offered(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOMES, name)
