"""What is judged, by the names that readers use: ``rb.data.claims``.

The code is in the rooms ``sets`` and ``files``.
"""

from typing import Any

from rubricnb.core.support import lazy

_HOMES = {
    "rubricnb.sets.catalogue": "datasets load",
    "rubricnb.sets.describe": "describe described",
    "rubricnb.files.elsewhere": "judgments reading",
    "rubricnb.sets.others": "load_recording recordings",
    "rubricnb.sets.pairing": "pairs",
    "rubricnb.sets.papers": "VERDICTS claims published verdicts",
    "rubricnb.core.rubrics": "resample",
    "rubricnb.sets.identities": "",
}

__all__ = lazy.offered(_HOMES)


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _HOMES, name)
