"""The datasets there are, and the one function that loads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path

import numpy as np
import pandas as pd

from rubricnb.data import asap, biggen, dress, flask, hanna, minibench, prometheus, summeval, summhf
from rubricnb.data.fetch import source_url
from rubricnb.data.own import load_csv
from rubricnb.data.rubrics import read_rubrics
from rubricnb.data.validate import nearest
from rubricnb.frames import Items
from rubricnb.hashing import hash64, mix64


@dataclass(frozen=True)
class _Dataset:
    """What `datasets` says about a dataset, and how it is loaded."""

    loader: Callable[..., Items]
    n_items: int
    composition: str
    human: str
    gold: str
    reference: str
    licence: str
    source: str
    needs: str
    own_rubric: bool = False
    own_file: bool = False
    met_real_data: bool = True


_HOW = ("loader", "own_rubric", "own_file")  # how a dataset is loaded, not what it is
_GPT4 = "three scores by GPT-4, shipped with the data, and their majority"
_OURS = "12 prompts × 5 candidates"
_EXPERTS = "mean of 3 experts; their ratings apart"
_ARTICLES = "upstream SummEval MIT; articles are CNN/DailyMail's"
_RATERS = "two raters; their ratings apart"
_KAGGLE = "terms of Kaggle's competition asap-aes"
_DATASETS = {
    "minibench": _Dataset(
        loader=lambda: minibench.load_minibench("minibench"),
        n_items=180,
        composition=f"{_OURS} × 3 criteria",
        human="designed quality: the level each text was written to deserve",
        gold="none",
        reference="a text for every level",
        licence="CC0-1.0",
        source="rubricnb, our own texts",
        needs="nothing: bundled",
    ),
    "minibench-7": _Dataset(
        loader=lambda: minibench.load_minibench("minibench-7"),
        n_items=60,
        composition=f"{_OURS}, one criterion with seven levels",
        human="designed quality, mapped to 1, 2.5, 4, 5.5, 7",
        gold="none",
        reference="a text for the levels 1, 4 and 7",
        licence="CC0-1.0",
        source="rubricnb, our own texts",
        needs="nothing: bundled",
    ),
    "mt-bench": _Dataset(
        loader=lambda: prometheus.load_prometheus("mt-bench"),
        n_items=320,
        composition="80 prompts × 4 candidates",
        human="none",
        gold=_GPT4,
        reference="full mark",
        licence="Apache-2.0",
        source=source_url(prometheus.FILES["mt-bench"][0]),
        needs="download, 2.5 MB",
    ),
    "vicuna": _Dataset(
        loader=lambda: prometheus.load_prometheus("vicuna"),
        n_items=320,
        composition="80 prompts × 4 candidates",
        human="none",
        gold=_GPT4,
        reference="full mark",
        licence="Apache-2.0",
        source=source_url(prometheus.FILES["vicuna"][0]),
        needs="download, 2.3 MB",
    ),
    "hanna": _Dataset(
        loader=hanna.load_hanna,
        n_items=576,
        composition="96 stories × 6 criteria",
        human="mean of 3 raters",
        gold="none",
        reference="none",
        licence="MIT",
        source=source_url(hanna.FOLDER),
        needs="download, 6.6 MB",
        own_rubric=True,
    ),
    "summeval": _Dataset(
        loader=lambda rubrics=None: summeval.load_summeval("summeval", rubrics),
        n_items=1600,
        composition="100 articles × 4 candidates × 4 criteria",
        human=_EXPERTS,
        gold="none",
        reference="none",
        licence=_ARTICLES,
        source=source_url(summeval.FOLDER),
        needs="download, 2.3 MB",
        own_rubric=True,
    ),
    "summeval-all": _Dataset(
        loader=lambda rubrics=None: summeval.load_summeval("summeval-all", rubrics),
        n_items=4800,
        composition="100 articles × 12 candidates × 4 criteria",
        human=_EXPERTS,
        gold="none",
        reference="none",
        licence=_ARTICLES,
        source=source_url(summeval.FOLDER),
        needs="download, 6.9 MB",
        own_rubric=True,
    ),
    "asap-2": _Dataset(
        loader=lambda: asap.load_asap("asap-2"),
        n_items=1800,
        composition="1,800 essays, rated as a whole",
        human=f"the resolved score; {_RATERS}",
        gold="none",
        reference="none",
        licence=_KAGGLE,
        source=source_url(asap.FOLDER),
        needs="download, 3.9 MB",
    ),
    "asap-7": _Dataset(
        loader=lambda: asap.load_asap("asap-7"),
        n_items=6276,
        composition="1,569 essays × 4 traits",
        human=f"mean of {_RATERS}",
        gold="none",
        reference="none",
        licence=_KAGGLE,
        source=source_url(asap.FOLDER),
        needs="download, 1.4 MB",
    ),
    "asap-8": _Dataset(
        loader=lambda: asap.load_asap("asap-8"),
        n_items=4338,
        composition="723 essays × 6 traits",
        human=f"mean of {_RATERS}",
        gold="none",
        reference="none",
        licence=_KAGGLE,
        source=source_url(asap.FOLDER),
        needs="download, 2.3 MB",
    ),
    "asap-2.0": _Dataset(
        loader=asap.load_asap_2_0,
        n_items=0,
        composition="one essay per row, rated as a whole",
        human="the score",
        gold="none",
        reference="none",
        licence="CC BY 4.0",
        source="https://github.com/scrosseye/ASAP_2.0",
        needs="path=",
        own_file=True,
        met_real_data=False,
    ),
    "summhf": _Dataset(
        loader=summhf.load_summhf,
        n_items=0,
        composition="one summary per post and system",
        human="mean of the workers; their ratings apart",
        gold="none",
        reference="none",
        licence="MIT",
        source="https://github.com/openai/summarize-from-feedback",
        needs="path=",
        own_file=True,
        met_real_data=False,
    ),
    "dress": _Dataset(
        loader=dress.load_dress,
        n_items=0,
        composition="one essay per row × 3 traits",
        human="the experts' score",
        gold="none",
        reference="none",
        licence="on request from its authors",
        source="https://haneul-yoo.github.io/dress",
        needs="path=",
        own_file=True,
        met_real_data=False,
    ),
    "biggen": _Dataset(
        loader=biggen.load_biggen,
        n_items=0,
        composition="4 candidates per instance, a rubric for each instance",
        human="one rating per response",
        gold="a score by GPT-4, shipped with the data",
        reference="full mark",
        licence="CC BY-SA 4.0",
        source="https://huggingface.co/datasets/prometheus-eval/BiGGen-Bench-Results",
        needs="path=",
        own_file=True,
        met_real_data=False,
    ),
    "flask": _Dataset(
        loader=flask.load_flask,
        n_items=0,
        composition="200 prompts, several candidates and skills each",
        human="mean of the raters; their ratings apart",
        gold="scores by GPT-4, shipped with the data, and their median",
        reference="full mark",
        licence="Apache-2.0",
        source="https://github.com/prometheus-eval/prometheus-eval (flask_eval.json)",
        needs="path=",
        own_file=True,
        met_real_data=False,
    ),
    "csv": _Dataset(
        loader=load_csv,
        n_items=0,
        composition="as given",
        human="where given",
        gold="where given",
        reference="where given",
        licence="yours",
        source="your own file",
        needs="path= and rubric=",
    ),
}


def load(
    name: str,
    n_items: int | None = None,
    seed: int = 0,
    path: str | Path | None = None,
    rubric: str | Path | None = None,
) -> Items:
    """Load a dataset.

    Parameters
    ----------
    name
        One of `datasets`, or ``csv`` for own data.
    n_items
        Draw this many items: whole clusters (what shares a text), and only the last one drawn is
        cut. Default: all.
    seed
        Seed of that draw. A larger draw with the same seed contains a smaller one.
    path
        ``csv``: the file, as `rubricnb.data.own.load_csv` reads it. ``asap-2.0``, ``summhf`` and
        ``dress``: the file one has got from its authors.
    rubric
        ``csv``: the file of rubrics. For ``hanna`` and ``summeval``: rubrics to use instead of
        ours, for the criteria they name.

    Returns
    -------
    Items
        The items frame, with its rubrics as ``.rubrics``.

    Raises
    ------
    ValueError
        An unknown name; `path` or `rubric` missing or out of place; bad data.
    ConnectionError, FileNotFoundError
        The data cannot be had; the message says what to do.

    Examples
    --------
    >>> items = load("minibench", n_items=20)
    >>> len(items), items.cluster_id.nunique(), items.rubrics.rubric_id.nunique()
    (20, 2, 3)
    >>> load("mini-bench")
    Traceback (most recent call last):
    ...
    ValueError: unknown dataset 'mini-bench'; did you mean 'minibench' or 'minibench-7'? \
There are: minibench, minibench-7, mt-bench, vicuna, hanna, summeval, summeval-all, asap-2, \
asap-7, asap-8, asap-2.0, summhf, dress, biggen, flask, csv
    """
    if name not in _DATASETS:
        raise ValueError(
            f"unknown dataset {name!r}{nearest(name, _DATASETS)} There are: {', '.join(_DATASETS)}"
        )
    if n_items is not None and not (isinstance(n_items, Integral) and n_items >= 1):
        raise ValueError(f"n_items is {n_items!r}; give a whole number from 1 on, or None for all")
    return _drawn(_load(name, path, rubric).reset_index(drop=True), n_items, seed)


def datasets() -> pd.DataFrame:
    """List the datasets there are.

    Returns
    -------
    DataFrame
        name, n_items (0: as given), composition, human (ratings by people), gold (scores of a
        stronger judge), reference, licence, source, needs (what it takes to load it), and
        met_real_data: whether its loader has read the real files.

    Examples
    --------
    >>> datasets().set_index("name").n_items[["mt-bench", "vicuna", "hanna", "summeval"]].tolist()
    [320, 320, 576, 1600]
    """
    columns = [f for f in _Dataset.__dataclass_fields__ if f not in _HOW]
    rows = [
        {"name": name} | {c: getattr(dataset, c) for c in columns}
        for name, dataset in _DATASETS.items()
    ]
    return pd.DataFrame(rows)


def _load(name: str, path: str | Path | None, rubric: str | Path | None) -> Items:
    dataset = _DATASETS[name]
    if name == "csv":
        if path is None or rubric is None:
            raise ValueError(
                "own data needs both files: load('csv', path='my_data.csv', rubric='my_rubric.yml')"
            )
        return dataset.loader(path, rubric)
    if dataset.own_file:
        if path is None or rubric is not None:
            raise ValueError(
                f"{name!r} is read from a file of yours: load({name!r}, path='…'); get it from "
                f"{dataset.source}"
            )
        return dataset.loader(path)
    if path is not None:
        raise ValueError(f"path= is for own data (load('csv', …)); {name!r} knows its own files")
    if rubric is None:
        return dataset.loader()
    if not dataset.own_rubric:
        raise ValueError(
            f"{name!r} comes with its rubrics; rubric= is for own data, hanna and summeval"
        )
    return dataset.loader(read_rubrics(rubric))


def _drawn(items: Items, n_items: int | None, seed: int) -> Items:
    if n_items is None or n_items >= len(items):
        return items
    clusters = items["cluster_id"].unique()
    rank = np.argsort(np.argsort(mix64(hash64(clusters), seed), kind="stable"))
    place = items["cluster_id"].map(dict(zip(clusters, rank, strict=True))).to_numpy()
    drawn = np.argsort(place, kind="stable")[:n_items]
    out = items.iloc[np.sort(drawn)].reset_index(drop=True)
    used = out.rubrics["rubric_id"].isin(out["rubric_id"])
    out.rubrics = out.rubrics[used].reset_index(drop=True)
    return out
