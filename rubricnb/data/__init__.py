"""What is judged: items, rubrics, dataset loaders and the papers' published tables."""

from rubricnb.data.catalogue import datasets, load
from rubricnb.data.elsewhere import judgments
from rubricnb.data.others import load_recording, recordings
from rubricnb.data.pairing import pairs
from rubricnb.data.papers import claims, published, verdicts

__all__ = [
    "claims",
    "datasets",
    "judgments",
    "load",
    "load_recording",
    "pairs",
    "published",
    "recordings",
    "verdicts",
]
