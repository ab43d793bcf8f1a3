"""What is judged: items, rubrics, dataset loaders and the papers' published tables."""

from rubricnb.data import identities
from rubricnb.data.catalogue import datasets, load
from rubricnb.data.describe import describe, described
from rubricnb.data.elsewhere import judgments
from rubricnb.data.others import load_recording, recordings
from rubricnb.data.pairing import pairs
from rubricnb.data.papers import VERDICTS, claims, published, verdicts
from rubricnb.rubrics import resample

__all__ = [
    "VERDICTS",
    "claims",
    "datasets",
    "describe",
    "described",
    "identities",
    "judgments",
    "load",
    "load_recording",
    "pairs",
    "published",
    "recordings",
    "resample",
    "verdicts",
]
