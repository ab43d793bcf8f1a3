"""Whether a judge gives one score on all criteria more often than one rater does."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rubricnb.auditing import words
from rubricnb.auditing.answers import ITEM, KEYS, Answers, rounded, span_and_step
from rubricnb.auditing.rows import new_row, p_mostly_changed
from rubricnb.auditing.terms import MEASURES
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.losses import left_out
from rubricnb.core.estimates.reads import matched
from rubricnb.core.estimates.reasons import Reason, Reasons
from rubricnb.core.support.naming import truth_of
from rubricnb.core.support.types import FloatArray, Records


def halo_rows(answers: Answers) -> Records:
    """More texts with one score on all criteria than a rater gives, beyond chance.

    Chance: the same shares of scores on every criterion, but independent criteria.
    Where 90 % of the scores on each of two criteria are alike, 81 % of the texts get
    one score by chance.
    """
    rated = answers.cells["human"].dropna()
    n_criteria = rated.index.get_level_values("criterion").nunique()
    if n_criteria < 2 or answers.judgments["n_options"].nunique() > 1:
        return []
    if truth_of(answers.items) == "designed":
        raise ValueError(
            "the ratings are designed, and a text was designed alike on all criteria"
        )
    scores, clusters, lost = _whole_texts(answers, rated, n_criteria)
    # A text counts if some rater rated it on all criteria.
    by_rater = np.asarray(~np.isnan(scores[:, 1:]).any(axis=2))
    is_rated = by_rater.any(axis=1)
    scores, cluster = scores[is_rated], clusters[is_rated]
    if not len(scores):
        return []
    alike, chance = alike_and_chance(alike_sums(scores).sum(axis=0), n_criteria)
    found = inference.jackknife(
        alike_sums(scores),
        pd.factorize(cluster)[0],
        lambda sums: (
            np.subtract(*alike_and_chance(sums, n_criteria)) @ np.array([1.0, -1.0])
        ),
    )
    names = ("judge", "rater", "judge_chance", "rater_chance")
    shares = (words.percent(share) for share in (*alike, *chance))
    why = (Reason("beyond_chance", **dict(zip(names, shares, strict=True))), *lost)
    row = new_row("halo", "one score on all criteria", cluster.nunique(), found, why)
    same = p_mostly_changed(found, row["n_clusters"])
    templates = set(answers.judgments["template"].astype("str"))
    apart = "act_apart" if answers.asked or templates == {"rubric"} else "act"
    return [row | {"p_equivalent": same, "own_act": MEASURES["halo"][apart]}]


def _whole_texts(
    answers: Answers, rated: pd.Series, n_criteria: int
) -> tuple[FloatArray, pd.Index, Reasons]:
    """Scores of the texts that are judged on all criteria, and which are left out.

    Shape (texts, sides, criteria): first the judge's, then each rater's. With the
    cluster of every text.
    """
    step = span_and_step(answers.judgments)[1]
    known = answers.usual.dropna(subset=["whole"]).drop_duplicates(ITEM)
    first = known.set_index(KEYS)["whole"]
    raters = _single_raters(rated.index, answers.items, step)
    text = matched(rated.index.to_frame(), answers.items, "text_id")
    text = text.set_axis(rated.index)
    wide = [
        _by_criterion(rounded(side, step), text[side.index])
        for side in (first[first.index.isin(rated.index)], *raters)
    ]
    is_whole = wide[0].notna().all(axis=1).to_numpy()
    lost = left_out(wide[0].to_numpy(), is_whole, "texts")
    judged = wide[0].dropna() if wide[0].shape[1] == n_criteria else wide[0].head(0)
    people = [side.reindex(judged.index).to_numpy() for side in wide[1:]]
    scores = np.stack([judged.to_numpy(), *people], axis=1)
    return scores, judged.index.get_level_values("cluster_id"), lost


def _by_criterion(scores: pd.Series, text: pd.Series) -> pd.DataFrame:
    """Put the scores of a text in a row, with a column for each criterion."""
    keys = scores.index.to_frame(index=False)[["cluster_id", "criterion"]]
    keys = keys.assign(text=text.to_numpy())
    return scores.set_axis(pd.MultiIndex.from_frame(keys)).unstack("criterion")


def _single_raters(
    index: pd.MultiIndex, items: pd.DataFrame, step: float
) -> list[pd.Series]:
    """Ratings of single people: one series for each rater's place in the list."""
    if "human_ratings" in items:
        ratings = matched(index.to_frame(), items, "human_ratings")
        known = [one if isinstance(one, tuple | list) else () for one in ratings]
        wide = pd.DataFrame(known, index=index, dtype="float64")
        return [wide[place] for place in wide]
    human = pd.Series(
        matched(index.to_frame(), items, "human").to_numpy("float64"), index
    )
    if not np.allclose(human, rounded(human, step)):
        raise ValueError(
            "the ratings are means, which are alike less often than one person's "
            "ratings: give the single ones (a column human_ratings)"
        )
    return [human]


def alike_sums(scores: FloatArray) -> FloatArray:
    """Summands of `alike_and_chance`: shape (texts, sides, 2 + criteria × levels).

    Of each side that scored the whole text: 1, whether all criteria are alike, and
    which level each criterion has. `scores`: (texts, sides, criteria).
    """
    whole = np.asarray(~np.isnan(scores).any(axis=2))
    alike = whole & (scores == scores[:, :, :1]).all(axis=2)
    levels = np.unique(scores[~np.isnan(scores)])
    given = (scores[..., None] == levels) & whole[:, :, None, None]
    flat = given.reshape(*whole.shape, -1)
    return np.concatenate([whole[..., None], alike[..., None], flat], axis=2).astype(
        np.float64
    )


def alike_and_chance(
    sums: FloatArray, n_criteria: int
) -> tuple[FloatArray, FloatArray]:
    """Share of texts with one score on all criteria, and by chance: shape (…, 2) each.

    First the judge's, then the raters', weighted by the texts that each rated whole.
    """
    n = sums[..., 0]
    size = np.maximum(n, 1.0)
    share = sums[..., 2:].reshape(*n.shape, n_criteria, -1) / size[..., None, None]
    both = np.stack([sums[..., 1] / size, share.prod(axis=-2).sum(axis=-1)])
    people = (both[..., 1:] * n[..., 1:]).sum(axis=-1) / np.maximum(
        n[..., 1:].sum(axis=-1), 1.0
    )
    alike, chance = np.stack([both[..., 0], people], axis=-1)
    return alike, chance
