"""Whether two criteria correlate higher in a judge's scores than in people's."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.auditing.answers import KEYS, Answers, distinct_reads, lost_within
from rubricnb.auditing.rows import new_row
from rubricnb.auditing.terms import MARGINS
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.losses import left_out
from rubricnb.core.estimates.reasons import Reason
from rubricnb.core.support.naming import truth_of
from rubricnb.core.support.types import FloatArray, Records


def halo_rows(answers: Answers) -> Records:
    """How much higher two criteria correlate in the scores than in the ratings.

    Noise lowers a correlation, and raters are noisier than a judge that repeats its
    answers. So each is divided by what the reliability of its own side leaves of it
    (Spearman 1904, American Journal of Psychology 15): of the mean over raters, and of
    the mean over neutral edits and repeats.
    """
    rated = answers.cells["human"].dropna()
    k = rated.index.get_level_values("criterion").nunique()
    if k < 2:
        return []
    if truth_of(answers.items) == "designed":
        raise ValueError(
            "the ratings are designed, and a text was designed alike on all criteria"
        )
    text = answers.of_items(rated.index, "text_id")
    judge, people = (
        _by_criterion(side, text) for side in (_scores(answers), _ratings(answers))
    )
    whole = pd.concat([judge["mean"], people["mean"]], axis=1).notna().all(axis=1)
    if not whole.any():
        return []
    cluster = judge.index.get_level_values("cluster_id")[whole]
    sums = [criteria_sums(side[whole].to_numpy(), k) for side in (judge, people)]
    of_texts = np.stack(sums, axis=1)
    r, reliability = correlation_of_criteria(of_texts.sum(axis=0), k)
    for unknown, advice in zip(np.isnan(r), _UNRELIABLE, strict=True):
        if unknown:
            raise ValueError(advice)
    found = inference.jackknife(
        of_texts,
        pd.factorize(cluster)[0],
        lambda one: correlation_of_criteria(one, k)[0] @ np.array([1.0, -1.0]),
    )
    of_judge, of_people = np.clip(r, -1, 1)
    correlated = Reason(
        "criteria_correlate",
        judge=of_judge,
        people=of_people,
        judge_reliability=reliability[0],
        people_reliability=reliability[1],
    )
    lost = left_out(judge["mean"].to_numpy(), whole.to_numpy(), "texts")
    reads = pd.concat([answers.usual, answers.edited])
    why = (correlated, *lost, *lost_within(reads))
    row = new_row("halo", "correlation of criteria", cluster.nunique(), found, why)
    same = inference.equivalence(
        max(found.value, 0.0), found.se, found.df + 1, MARGINS["points of r"]
    )
    templates = set(answers.judgments["template"].astype("str"))
    apart = "act_apart" if answers.asked or templates == {"rubric"} else "act"
    return [row | {"p_equivalent": same, "act": apart}]


_UNRELIABLE = (
    "its scores have no known reliability above 0: reword the prompt, or ask again",
    "the ratings have no known reliability above 0: give each rater's (human_ratings)",
)


def _scores(answers: Answers) -> pd.DataFrame:
    """Reads of the plain prompt, reworded and repeated: a row for each item."""
    reads = distinct_reads(pd.concat([answers.usual, answers.edited]))
    wide = reads.assign(read=reads.groupby(KEYS).cumcount())
    wide = wide.set_index([*KEYS, "read"])["value"].unstack()
    # A model that does not see an edit is not shown to be reliable.
    return wide.iloc[:, :1] if answers.unmoved else wide


def _ratings(answers: Answers) -> pd.DataFrame:
    """Ratings of each person, a row for each item; only the mean if that is all."""
    index = answers.cells["human"].dropna().index
    name = "human_ratings" if "human_ratings" in answers.items else "human"
    rows = [
        one if isinstance(one, tuple | list) else (one,)
        for one in answers.of_items(index, name)
    ]
    wide = pd.DataFrame(rows, index, dtype="float64")
    # A strict rater is as reliable as a lenient one.
    return wide - wide.groupby(level="criterion").transform("mean")


def _by_criterion(side: pd.DataFrame, text: pd.Series) -> pd.DataFrame:
    """Mean of each text on each criterion, and the variance of its error."""
    side = side.reindex(text.index)
    error = side.var(axis=1) / side.count(axis=1)
    means = pd.DataFrame({"mean": side.mean(axis=1), "error": error, "text": text})
    keys = ["dataset", "cluster_id", "text", "criterion"]
    return means.reset_index().set_index(keys)[["mean", "error"]].unstack()


def criteria_sums(side: FloatArray, k: int) -> FloatArray:
    """Summands of `correlation_of_criteria`: shape (texts, 1 + 3 k + k²).

    `side`: (texts, 2 k), the means on k criteria, and the variances of their errors.
    """
    mean, error = side[:, :k], side[:, k:]
    products = (mean[:, :, None] * mean[:, None]).reshape(len(side), -1)
    parts = [mean, np.nan_to_num(error), ~np.isnan(error), products]
    return np.hstack([np.ones((len(side), 1)), *parts])


def correlation_of_criteria(sums: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Correlation of two of k criteria, corrected for reliability, and reliability.

    Both are means, over pairs and over criteria; NaN where the reliability of one is
    not known, or not above 0.
    """
    n = np.maximum(sums[..., :1], 2)
    mean, error, known = np.split(sums[..., 1 : 1 + 3 * k], 3, axis=-1)
    products = sums[..., 1 + 3 * k :].reshape(*sums.shape[:-1], k, k)
    outer = mean[..., None] * mean[..., None, :]
    covariance = (products - outer / n[..., None]) / (n[..., None] - 1)
    given = np.diagonal(covariance, axis1=-2, axis2=-1)
    true = given - error / np.maximum(known, 1)
    sd = np.sqrt(np.where((known > 0) & (true > 1e-9), true, np.nan))
    pair = np.triu_indices(k, 1)
    r = (covariance / (sd[..., None] * sd[..., None, :]))[..., *pair].mean(axis=-1)
    return r, (sd**2 / np.where(given > 0, given, 1.0)).mean(axis=-1)
