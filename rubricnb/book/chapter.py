"""The steps that chapters share: load items, ask the judge, compare with the papers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.book import tables
from rubricnb.book.replication import recorded_replication
from rubricnb.core.estimates.intervals import jackknife_t
from rubricnb.core.frames import Items
from rubricnb.core.judge import configured
from rubricnb.core.run import run
from rubricnb.core.support.folders import results_folder
from rubricnb.core.support.types import Mask
from rubricnb.sets.catalogue import load
from rubricnb.sets.identities import recompute
from rubricnb.sets.papers import check_paper_judge, claims, paper_judges, verdicts

_ASKED_WITH = ("readout", "seed", "temperature")
Estimate = float | Sequence[float]  # a value, or a value with the ends of its interval
OfSets = Mapping[str, Estimate]  # by dataset


class Chapter:
    """A chapter with its parameters: items, judge, and the statements that it checks.

    Parameters
    ----------
    number
        Of the chapter (``05``), or its stem.
    parameters
        Its parameters by name, as ``globals()`` has them: dataset, path, rubric,
        n_items, seed, judge, judge_options, readout, temperature, fresh, paper_judge.
        Others are ignored, and a chapter may lack some.

    Attributes
    ----------
    judge
        What `rubricnb.run` takes: opened if its engine has options, else as it was
        given.
    asking
        For `rubricnb.plan`: readout, seed, temperature and the options of requests.
    said
        The papers' statements that this chapter checks, as from `rubricnb.data.claims`.
    recomputed
        Series: the value of every statement about the papers' own tables, by
        ``claim_id``.
    needs
        For `say` and `tell`: "`logprobs`" if the judge is not asked for probabilities,
        else empty.
    who
        The name in a statement's id: that of `paper_judge`, else ``your judge``.

    Examples
    --------
    >>> import rubricnb as rb
    >>> dataset, n_items = "minibench", 30
    >>> judge, readout = "simulated:first-biased", "score"
    >>> chapter = Chapter("05", globals())
    >>> items = chapter.load()
    >>> judgments = chapter.run(rb.plan(items, rb.balanced(5), **chapter.asking))
    simulated:first-biased: 300 of 300 in ...
    >>> len(judgments), int(chapter.recomputed["v2/significant/all"])
    (300, 20)
    """

    def __init__(
        self, number: str, parameters: Mapping[str, Any] | None = None
    ) -> None:
        self._given = given = dict(parameters or {})
        options = given.get("judge_options", {})
        self.judge, settings = configured(given.get("judge", ""), options)
        self.asking = {
            name: given[name] for name in _ASKED_WITH if name in given
        } | settings
        self.said = claims(number)
        self.recomputed = recompute(self.said).set_index("claim_id")["value"]
        self.needs = (
            "`logprobs`" if given.get("readout", "logprobs") != "logprobs" else ""
        )
        judge = check_paper_judge(
            given.get("paper_judge", ""), self.said["paper"].unique()
        )
        self.who = judge.lower() or "your judge"

    def load(self, dataset: str | None = None, n_items: int | None = None) -> Items:
        """Load the chapter's dataset, or another with the same parameters."""
        given = self._given
        return load(
            dataset or given["dataset"],
            n_items=(given.get("n_items", 0) if n_items is None else n_items) or None,
            seed=given.get("seed", 0),
            path=given.get("path") or None,
            rubric=given.get("rubric") or None,
        )

    def load_each(self, criterion: str = "") -> dict[str, Items]:
        """Load every dataset of ``a+b``, or of each the items of one criterion."""
        loaded = {name: self.load(name) for name in self._given["dataset"].split("+")}
        if not criterion:
            return loaded
        offered = pd.concat(loaded.values())["criterion"].unique()
        if criterion not in offered:
            raise ValueError(
                f"{'+'.join(loaded)} has no criterion {criterion!r}, but "
                f"{', '.join(offered)}"
            )
        return {
            name: own[own["criterion"] == criterion] for name, own in loaded.items()
        }

    def run(self, requests: pd.DataFrame) -> pd.DataFrame:
        """Return the judge's answers; recorded ones if they exist, unless ``fresh``."""
        return run(requests, self.judge, fresh=self._given.get("fresh", False))

    def verdicts(
        self,
        own: Mapping[str, Estimate | OfSets],
        judgments: pd.DataFrame | None = None,
        unmeasured: bool = False,
    ) -> pd.DataFrame:
        """Show the papers' claims beside our results; glue how many were not measured.

        Parameters
        ----------
        own
            claim_id → value, or value with the ends of its interval. A statement about
            every dataset takes these by dataset: it is held against the one that fits
            it least, which its row names, and is not known unless all are. What is no
            statement of this chapter is left out.
        judgments
            What they were computed from: a simulated judge replicates nothing.
        unmeasured
            As of `rubricnb.book.tables.says_finds`.

        Returns
        -------
        DataFrame
            As from `rubricnb.data.verdicts`. ``unmeasured`` and ``n-claims`` are glued.
        """
        simulated = judgments is not None and judgments["source"].iloc[0] == "simulated"
        found = {**self.recomputed, **({} if simulated else own)}
        said = self.said.set_index("claim_id", drop=False)
        rows = []
        for claim in said.index.intersection(list(found)):
            value = found[claim]
            if isinstance(value, Mapping):
                said.loc[claim, "dataset"], value = _least_fitting(
                    value, said.loc[claim]
                )
            rows.append((claim, *_with_ends(value)))
        table = pd.DataFrame(rows, columns=["claim_id", "value", "low", "high"])
        judged = verdicts(said.reset_index(drop=True), table)
        tables.show("tab-verdicts", tables.says_finds(judged, unmeasured))
        missing = judged["value"].isna() & (judged["judge"] != "")
        tables.say(unmeasured=int(missing.sum()), n_claims=len(judged))
        return judged

    def beside_paper(
        self,
        name: str,
        table: str,
        own: Mapping[str, Estimate],
        columns: Mapping[str, str],
        printed: Mapping[str, Estimate] | None = None,
        theirs: Mapping[str, Estimate] | None = None,
    ) -> None:
        """Show the reader's judge on top of a paper's table, in its rows and columns.

        Below it come the rows of `paper_judge`, then those of the other judges. Our
        readings of words, which the paper does not print, have no row; a row of ours
        names its dataset.

        Parameters
        ----------
        name
            Of the shown table.
        table
            How the ids of its statements begin: ``v2/table-2``. An id goes on with the
            judge and what else names the row, and ends in the column:
            ``v2/table-2/JUDGE/hanna/chi2``. Where it names none, the row is that of the
            statement's judge.
        own
            As for `verdicts`; rows are those of `who`.
        columns
            The end of an id → the head of its column.
        printed
            What the paper prints there and no statement has: intervals, say. Ids
            likewise.
        theirs
            As `own`, with intervals computed as the paper computes its own: further
            rows.
        """
        said = self.said.query("basis == 'printed'").set_index("claim_id")
        here = str(self._given.get("dataset", ""))
        # own data are called as their file
        sets = {*here.split("+"), Path(self._given.get("path", "")).stem}
        spelled = {judge.lower(): judge for judge in paper_judges()}
        rows = []
        for source, found in (
            ("here, our interval" if theirs else "here", own),
            ("here, the paper's interval", theirs or {}),
            ("paper", dict(said["published"]) | dict(printed or {})),
        ):
            for claim, value in found.items():
                *row, end = claim.removeprefix(table + "/").split("/")
                if claim.startswith(table + "/") and end in columns:
                    judge, *rest = row or [
                        said["judge"][claim].lower() if source == "paper" else self.who
                    ]
                    whose, words = source, " ".join([judge, *rest]).lower().split()
                    if source != "paper" and here and sets.isdisjoint([*rest, *words]):
                        whose += f", {here.replace('+', ' + ')}"
                    rows.append(
                        {
                            "judge": judge,
                            "": " ".join(rest),
                            "from": whose,
                            columns[end]: _cell(value, printed=source == "paper"),
                        }
                    )
        if rows[0]["from"] == "paper":  # ours would be first
            rows.insert(0, {"judge": self.who, "": "", "from": "not known here"})
        keys = ["judge", "", "from"]
        cells = pd.DataFrame(rows, columns=[*keys, *dict.fromkeys(columns.values())])
        shown = cells.groupby(keys, sort=False, as_index=False).first()
        places = [self.who, *shown["judge"]]
        shown = shown.sort_values(
            "judge",
            key=lambda judge: judge.map(places.index),
            kind="stable",
            ignore_index=True,
        ).replace({"judge": spelled, "": {"": None}})
        tables.show(name, shown.dropna(axis="columns", how="all"))

    def replicated(self, *findings: str, name: str = "tab-real") -> pd.DataFrame:
        """Show whether the papers' findings replicate with recorded judges."""
        held = recorded_replication(*findings).dropna(subset="estimate")
        tables.show(name, tables.replicated(held))
        verdict = held["verdict"]
        tables.say(
            n_real=len(held),
            n_holds=int((verdict == "replicates").sum()),
            n_fails=int((verdict == "does not").sum()),
        )
        return held


def recorded_tables(prefix: str) -> dict[str, pd.DataFrame]:
    """Read the tables of a study in ``results/``.

    Parameters
    ----------
    prefix
        Path below ``results/`` without the end that tells the tables apart:
        ``recordings/readouts_``.

    Returns
    -------
    dict
        The end of a table's name → the table.

    Examples
    --------
    >>> sorted(recorded_tables("recordings/readouts_"))
    ['missing', 'pairs', 'position', 'status']
    """
    paths = sorted(results_folder().glob(f"{prefix}*.csv"))
    start = prefix.rpartition("/")[2]
    return {path.stem.removeprefix(start): pd.read_csv(path) for path in paths}


def jackknifed(
    estimate: Callable[[Mask], float], cluster: NDArray[Any]
) -> tuple[float, float, float]:
    """Return an estimate and its 95 % interval from leaving out every cluster in turn.

    Parameters
    ----------
    estimate
        Of the kept items, which a mask names.
    cluster
        The cluster of every item; with one cluster the ends are NaN.

    Examples
    --------
    >>> values, cluster = np.array([1.0, 2.0, 4.0, 5.0]), np.array(["a", "a", "b", "b"])
    >>> [round(x, 1) for x in jackknifed(lambda kept: values[kept].mean(), cluster)]
    [3.0, -16.1, 22.1]
    """
    whole = float(estimate(np.ones(len(cluster), dtype=bool)))
    names = np.unique(cluster)
    if len(names) < 2:
        return whole, np.nan, np.nan
    left = np.array([estimate(cluster != name) for name in names])
    return whole, *jackknife_t(whole, left).ends


def _least_fitting(by_set: OfSets, claim: pd.Series) -> tuple[str, Estimate]:
    """Find the dataset on which a statement holds least, or its value is unknown."""

    def misfit(name: str) -> float:
        gap = _with_ends(by_set[name])[0] - float(claim["published"])
        away = {"=": abs(gap), "<=": gap, ">=": -gap}[claim["relation"]]
        return np.inf if np.isnan(away) else away

    worst = max(by_set, key=misfit)
    return worst if np.isfinite(misfit(worst)) else "", by_set[worst]


def _with_ends(value: Estimate) -> tuple[float, float, float]:
    middle, low, high = [*np.atleast_1d(np.asarray(value, float)), np.nan, np.nan][:3]
    return middle, low, high


def _cell(value: Estimate, printed: bool) -> str:
    """Write a number of a table: a paper's with all its digits, ours rounded."""
    # no −0, no 1e−18
    middle, low, high = (round(x, 9) + 0.0 for x in _with_ends(value))
    if np.isfinite(low + high):
        written = f"{middle:.3g} [{low:.3g}, {high:.3g}]"
    elif printed:
        written = f"{middle:.10g}"
    else:
        written = f"{middle:.4g}" if abs(middle) < 1000 else f"{middle:.1f}"
    return written.replace("-", "−")
