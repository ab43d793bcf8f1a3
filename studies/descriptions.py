"""Descriptions of the datasets in ``results/datasets``, for pages without the texts.

``python -m studies.descriptions`` writes the descriptions of the datasets that can be
loaded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rubricnb.cli.commands import errors
from rubricnb.core.results import results_folder
from rubricnb.sets.catalogue import load
from rubricnb.sets.describe import describe

RECORDED = ("minibench", "mt-bench", "vicuna", "hanna", "summeval")


def record_descriptions(names: Sequence[str] = RECORDED) -> list[Path]:
    """Describe datasets and write ``results/datasets/NAME.csv``."""
    folder = results_folder() / "datasets"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.csv" for name in names]
    for name, path in zip(names, paths, strict=True):
        describe(load(name)).round(4).to_csv(path, index=False, na_rep="nan")
    return paths


if __name__ == "__main__":
    with errors():
        for written in record_descriptions():
            print(f"written: {written}")
