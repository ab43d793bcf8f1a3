"""What is judged: items, rubrics, dataset loaders and the papers' published tables."""

from rubricnb.data.catalogue import datasets, load
from rubricnb.data.pairing import pairs
from rubricnb.data.rubrics import read_rubrics, resample
from rubricnb.data.validate import check_items, check_rubrics

__all__ = [
    "check_items",
    "check_rubrics",
    "datasets",
    "load",
    "pairs",
    "read_rubrics",
    "resample",
]
