"""The folder of recorded results."""

import os
from pathlib import Path


def results_folder() -> Path:
    """Return the folder of recorded runs: ``$RUBRICNB_RESULTS`` or the clone's.

    Examples
    --------
    >>> results_folder().is_dir()
    True
    """
    if path := os.environ.get("RUBRICNB_RESULTS"):
        return Path(path)
    return Path(__file__).resolve().parents[3] / "results"
