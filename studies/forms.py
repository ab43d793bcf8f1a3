"""Effect of a prompt's form on others' recordings: ``-m studies.forms``.

GPT-3.5 was asked about the same summaries in five forms, and about pairs of them in
both orders; five judges about the same stories in four. What is written to
``results/recordings/`` are statistics, never a row per item.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import rubricnb as rb
from rubricnb.core.estimates.intervals import (
    benjamini_hochberg,
    correlation,
    fisher_jackknife_t,
    jackknife_t,
)
from rubricnb.core.estimates.losses import left_out, lost_scores
from rubricnb.core.estimates.reads import by_cluster, item_means
from rubricnb.core.support.types import FloatArray, IntArray
from rubricnb.statistics.human_agreement import per_criterion
from studies.intervals import ENDS, bounded, loss_row, mean_row
from studies.recording import write_tables

ALL = "all forms"  # the mean of an item's scores over the forms
SOURCES = ("item", "form", "item × form")
GPT = "gpt-3.5-turbo-0301"


def recordings() -> dict[str, pd.DataFrame]:
    """Load the three recordings, with people's ratings as ``.rated``."""
    return {
        n: rb.load_recording(n) for n in ("summeval-gpt", "hanna-llm", "summeval-pairs")
    }


def tables(loaded: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Compute every table of the chapter, by the name of its file."""
    pieces: dict[str, list[pd.DataFrame]] = {}
    for name in ("summeval-gpt", "hanna-llm"):
        # by name: what was read first would decide their order otherwise
        frame, items = loaded[name].astype({"judge": "str"}), loaded[name].rated
        pieces.setdefault("status", []).append(statuses(frame).assign(recording=name))
        for judge, of_judge in frame.groupby("judge", observed=True):
            first = first_reads(of_judge)
            if first["template"].nunique() < 2:
                continue
            names = {"recording": name, "judge": judge}
            with_people, contrasts = agreement(first, items)
            for kind, table_of_judge in (
                ("lost", losses(first)),
                ("components", components(first)),
                ("spread", spread(first)),
                ("agreement", with_people),
                ("contrasts", contrasts),
                ("systems", systems(first)),
                ("ranks", ranks(first, items)),
            ):
                pieces.setdefault(kind, []).append(table_of_judge.assign(**names))
    gpt = loaded["summeval-gpt"]
    joined = {
        k: _identifiers_first(pd.concat(v, ignore_index=True))
        for k, v in pieces.items()
    }
    joined["reask"] = reask(gpt[gpt["judge"] == GPT])
    joined["pairs"] = swapped(loaded["summeval-pairs"])
    return joined


def _identifiers_first(table: pd.DataFrame) -> pd.DataFrame:
    identifiers = [c for c in ("recording", "judge") if c in table]
    return table[[*identifiers, *(c for c in table if c not in identifiers)]]


def statuses(judgments: pd.DataFrame) -> pd.DataFrame:
    """Count each answer's status by judge and form; second reads apart."""
    keys = ["judge", "template", "replicate", "status", "reason"]
    counts = judgments.groupby(keys, observed=True).size().rename("n").reset_index()
    counts = counts.astype(
        dict.fromkeys(["judge", "template", "status", "reason"], str)
    )
    return counts.rename(columns={"template": "form", "replicate": "read"})


def first_reads(judgments: pd.DataFrame) -> pd.DataFrame:
    """Leave out the cells that were asked twice by accident, the second time."""
    return judgments[judgments["replicate"] == 1]


def crossed(judgments: pd.DataFrame) -> tuple[pd.DataFrame, FloatArray, list[str]]:
    """Return items with a score in every form: keys, items × forms, forms."""
    wide = _in_forms(judgments).dropna()
    return (
        wide.index.to_frame(index=False),
        wide.to_numpy(np.float64),
        list(wide.columns),
    )


def _in_forms(judgments: pd.DataFrame) -> pd.DataFrame:
    keys = ["criterion", "cluster_id", "candidate", "item_id"]
    index = [k for k in keys if k in judgments]
    typed = judgments.astype(dict.fromkeys([*index, "template"], str))
    return typed.pivot(index=index, columns="template", values="score")


def losses(judgments: pd.DataFrame) -> pd.DataFrame:
    """Count the items that a form has no score for, and those left out for it.

    ``lost`` of ``asked``; ``lost_mean`` and ``kept_mean``: how the other forms score
    them.
    """
    wide = _in_forms(judgments)
    scores = wide.to_numpy(np.float64, na_value=np.nan)
    rows = [
        {
            "form": ALL,
            **loss_row(len(scores), *left_out(scores, ~np.isnan(scores).any(axis=1))),
        }
    ]
    for j, form in enumerate(wide.columns):
        other_means = item_means(np.delete(scores, j, axis=1))
        reasons = lost_scores(scores[:, j], other_means, (form, "the others"))
        of_form = [reason for reason in reasons if reason.numbers["lacking"] == form]
        rows.append({"form": form, **loss_row(len(scores), *of_form)})
    return pd.DataFrame(rows)


def components(judgments: pd.DataFrame) -> pd.DataFrame:
    """Split a score's variance into item, form and item × form, by criterion.

    Items × forms are crossed, one read a cell: two-way random-effects analysis of
    variance within each criterion, over the items with a score in every form.
    ``criterion`` "mean" averages the criteria's components. The intervals leave out one
    cluster at a time (95 % jackknife-t); they are for texts like these and these very
    forms. A second read of a cell is part of item × form.
    """
    keys, scores, _ = crossed(judgments)
    criteria = list(pd.unique(keys["criterion"]))
    n_forms = scores.shape[1]
    summands = np.zeros((len(scores), len(criteria), n_forms + 3))
    for k, name in enumerate(criteria):
        in_criterion = (keys["criterion"] == name).to_numpy()
        centred = scores[in_criterion] - scores[in_criterion].mean()
        means = centred.mean(axis=1)
        summands[in_criterion, k] = np.column_stack(
            [np.ones(len(centred)), means**2, (centred**2).sum(axis=1), centred]
        )
    sums = by_cluster(summands, _codes(keys["cluster_id"]))
    total = sums.sum(axis=0)
    estimates, jackknifed = _variances(total), _variances(total - sums)
    rows = []
    for k, name in enumerate([*criteria, "mean"]):
        variances, variances_without = (
            (estimates.mean(axis=0), jackknifed.mean(axis=1))
            if name == "mean"
            else (estimates[k], jackknifed[:, k])
        )
        n_items = total[:, 0].sum() if name == "mean" else total[k, 0]
        share, share_without = (
            _shares(values) for values in (variances, variances_without)
        )
        for column, source in enumerate(SOURCES):
            rows.append(
                {
                    "criterion": name,
                    "source": source,
                    **bounded(
                        "variance",
                        jackknife_t(
                            float(variances[column]), variances_without[:, column]
                        ),
                    ),
                    **jackknife_t(share[column], share_without[:, column]).named(
                        "share", *ENDS
                    ),
                    "n_items": int(n_items),
                    "n_clusters": len(sums),
                    "n_forms": n_forms,
                }
            )
    return pd.DataFrame(rows)


def _variances(sums: FloatArray) -> FloatArray:
    """Item, form and item × form, from summed 1, mean², Σ² and scores by form."""
    # Expected mean squares: k σ²_item + σ²_rest of items, σ²_rest of the rest.
    # The variance of the n-item form means estimates σ²_form + σ²_rest / n.
    n, sum_mean_sq, sum_sq = np.moveaxis(sums[..., :3], -1, 0)
    k = sums.shape[-1] - 3
    form_means = sums[..., 3:] / n[..., None]
    grand = form_means.mean(axis=-1)
    ms_item = k * (sum_mean_sq - n * grand**2) / (n - 1)
    ss_rest = (
        sum_sq - k * sum_mean_sq - n * (form_means**2).sum(axis=-1) + k * n * grand**2
    )
    ms_rest = ss_rest / ((n - 1) * (k - 1))
    var_forms = form_means.var(axis=-1, ddof=1)
    return np.stack(
        [(ms_item - ms_rest) / k, var_forms - ms_rest / n, ms_rest], axis=-1
    )


def _shares(variances: FloatArray) -> FloatArray:
    # A negative estimate counts as 0.
    nonnegative = np.maximum(variances, 0.0)
    return nonnegative / nonnegative.sum(axis=-1, keepdims=True)


def spread(judgments: pd.DataFrame) -> pd.DataFrame:
    """Measure how far forms differ on an item, and their means, with intervals."""
    keys, scores, forms = crossed(judgments)
    cluster = _codes(keys["cluster_id"])
    ranges = np.ptp(scores, axis=1)
    rows = [_quantity_row("range", ranges, cluster)]
    rows += [
        _quantity_row(f"range ≥ {k}", (ranges >= k).astype(float), cluster, share=True)
        for k in (1, 2, 3)
    ]
    rows += [
        _quantity_row(f"mean: {name}", scores[:, j], cluster)
        for j, name in enumerate(forms)
    ]
    return pd.DataFrame(rows)


def _codes(names: pd.Series) -> IntArray:
    return np.unique(names, return_inverse=True)[1]


def _quantity_row(
    quantity: str, values: FloatArray, cluster: IntArray, share: bool = False
) -> dict[str, Any]:
    row = mean_row(values, cluster, (0.0, 1.0) if share else None, "estimate")
    return {
        "quantity": quantity,
        **row,
        "n_items": len(values),
        "n_clusters": len(np.unique(cluster)),
    }


def agreement(
    judgments: pd.DataFrame, items: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Correlate every form, and the mean of all, with people; and compare every two.

    All over the items with a score in every form, so that forms are compared on the
    same items.

    Returns
    -------
    DataFrame
        Pearson's r by form and criterion, and its mean over criteria ("mean"), with 95
        % jackknife-t intervals over clusters on Fisher's z scale, as
        `rubricnb.agreement`.
    DataFrame
        ``delta``: the mean r of ``form_b`` minus that of ``form_a`` (the
        ``delta_r_macro`` of `rubricnb.strategy_contrast`); p adjusted
        (Benjamini–Hochberg) over the pairs of forms, and over the comparisons with the
        mean of all.
    """
    keys, scores, forms = crossed(judgments)
    forms, scores = [*forms, ALL], np.column_stack([scores, scores.mean(axis=1)])
    human = items.astype({"item_id": str}).set_index("item_id")["human"]
    ratings = human.loc[keys["item_id"]].to_numpy(np.float64)
    criterion_code, criteria = pd.factorize(keys["criterion"])
    cluster = _codes(keys["cluster_id"])
    # clusters, forms, criteria, moments
    sums = per_criterion(scores.T, ratings, criterion_code, cluster)
    total = sums.sum(axis=0)
    r_all, r_without = correlation(total), correlation(total - sums)
    counts = {"n_items": len(scores), "n_clusters": len(sums)}
    rows = []
    for j, form in enumerate(forms):
        for k, criterion in enumerate([*criteria, "mean"]):
            averaged = slice(None) if criterion == "mean" else slice(k, k + 1)
            mean_r = float(r_all[j, averaged].mean())
            row = bounded(
                "r", fisher_jackknife_t(mean_r, r_without[:, j, averaged].mean(axis=1))
            )
            n_items = len(scores) if criterion == "mean" else int(total[0, k, 0])
            rows.append(
                {
                    "criterion": criterion,
                    "form": form,
                    **row,
                    **counts,
                    "n_items": n_items,
                }
            )
    macro, macro_left = r_all.mean(axis=1), r_without.mean(axis=2)
    return pd.DataFrame(rows), _differences(forms, macro, macro_left, counts)


def _differences(
    forms: list[str], macro: FloatArray, macro_left: FloatArray, counts: dict[str, int]
) -> pd.DataFrame:
    """Differences of every two forms in their mean r over criteria.

    Shapes: `macro` (forms,); `macro_left`, each cluster left out, (clusters, forms).
    """
    pairs = []
    for first, second in combinations(range(len(forms)), 2):
        delta = float(macro[second] - macro[first])
        difference = jackknife_t(delta, macro_left[:, second] - macro_left[:, first])
        pairs.append(
            {
                "form_a": forms[first],
                "form_b": forms[second],
                **bounded("delta", difference),
                "p": difference.p,
                **counts,
            }
        )
    table = pd.DataFrame(pairs)
    is_between_forms = table["form_b"] != ALL
    for family in (is_between_forms, ~is_between_forms):
        table.loc[family, "p_adjusted"] = benjamini_hochberg(
            table.loc[family, "p"].to_numpy()
        )
    return table


def systems(judgments: pd.DataFrame) -> pd.DataFrame:
    """Rank the systems under every form by their mean over criteria.

    Where a score failed in one form it counts in none, so that forms are compared on
    one set.
    """
    sums, count, system_names, forms = _system_sums(judgments)
    mean = sums.sum(axis=0) / count.sum(axis=0)[:, None]
    table = pd.DataFrame(
        mean, index=pd.Index(system_names, name="system"), columns=forms
    )
    places = table.rank(ascending=False, method="min").astype(int)
    long = table.melt(
        ignore_index=False, var_name="form", value_name="mean"
    ).reset_index()
    place_column = places.melt(ignore_index=False, value_name="place")[
        "place"
    ].to_numpy()
    return long.assign(place=place_column)


def _system_sums(
    judgments: pd.DataFrame,
) -> tuple[FloatArray, FloatArray, list[str], list[str]]:
    """Sum the scores over criteria: (clusters, systems, forms), and their number."""
    keys, scores, forms = crossed(judgments)
    system_names, system = np.unique(keys["candidate"], return_inverse=True)
    membership = np.eye(len(system_names))[system]  # items, systems
    cluster = _codes(keys["cluster_id"])
    sums = by_cluster(membership[:, :, None] * scores[:, None], cluster)
    return sums, by_cluster(membership, cluster), list(system_names), forms


def ranks(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Compare the rankings of the systems under two forms, and under a form and people.

    ``tau`` with a 95 % bootstrap interval over clusters; of the pairs of systems, how
    many are in the opposite order (``reversed``), and of how many both forms are sure
    of opposite orders (``both_sure``: the 95 % t interval of the difference, over
    clusters, excludes 0 in both).
    """
    sums, count, system_names, forms = _system_sums(judgments)
    first, second = np.triu_indices(len(system_names), 1)
    mean = sums.sum(axis=0) / count.sum(axis=0)[:, None]
    differences = mean[first] - mean[second]  # pairs, forms
    with np.errstate(invalid="ignore"):
        cluster_means = sums / count[..., None]
    # a cluster without a scored text of one system: NaN
    cluster_differences = cluster_means[:, first] - cluster_means[:, second]
    n_clusters = (~np.isnan(cluster_differences)).sum(axis=0)
    se = np.nanstd(cluster_differences, axis=0, ddof=1) / np.sqrt(n_clusters)
    # The sign of a difference whose t interval excludes 0, otherwise 0.
    sure_sign = np.sign(differences) * (
        np.abs(differences) > stats.t.ppf(0.975, n_clusters - 1) * se
    )
    keys = crossed(judgments)[0]
    complete = judgments[judgments["item_id"].astype(str).isin(keys["item_id"])]
    rows = []
    for j, form_a in enumerate(forms):
        of_a = complete[complete["template"] == form_a]
        for k, form_b in enumerate(forms[j + 1 :], start=j + 1):
            scores_b = complete[complete["template"] == form_b].set_index("item_id")[
                "score"
            ]
            b_as_people = items.assign(
                human=items["item_id"].astype(str).map(_by_item_id(scores_b))
            )
            rows.append(
                {
                    "form_a": form_a,
                    "form_b": form_b,
                    **_tau(of_a, b_as_people),
                    "n_pairs": len(first),
                    "reversed": int((differences[:, j] * differences[:, k] < 0).sum()),
                    "both_sure": int((sure_sign[:, j] * sure_sign[:, k] < 0).sum()),
                }
            )
        rows.append({"form_a": form_a, "form_b": "people", **_tau(of_a, items)})
    counts = ["n_pairs", "reversed", "both_sure"]
    return pd.DataFrame(rows).astype(dict.fromkeys(counts, "Int64"))


def _by_item_id(scores: pd.Series) -> dict[str, float]:
    return dict(zip(scores.index.astype(str), scores.to_numpy(), strict=True))


def _tau(judgments: pd.DataFrame, items: pd.DataFrame) -> dict[str, float]:
    rated = items.dropna(subset=["human"])
    (row,) = rb.statistics.system_agreement(judgments, rated, by=[]).to_dict("records")
    return {
        column: row[column] for column in ("tau", "tau_low", "tau_high", "n_systems")
    }


def reask(judgments: pd.DataFrame) -> pd.DataFrame:
    """Compare a cell's accidental second read with the first and other forms.

    By form, the cells that were asked twice: share that differs between the two reads,
    and for every other form the share whose first read differs from this form's first.
    ``variance`` is half the mean squared difference: of the two reads it is the
    variance of re-asking.
    """
    first = first_reads(judgments).astype({"item_id": str, "template": str})
    wide = first.pivot(index="item_id", columns="template", values="score")
    cluster = (
        first.drop_duplicates("item_id").set_index("item_id")["cluster_id"].astype(str)
    )
    rereads = judgments[judgments["replicate"] == 2].astype(
        {"item_id": str, "template": str}
    )
    rows = []
    for form, reread in rereads.groupby("template"):
        first_scores = wide.loc[reread["item_id"]]
        groups = _codes(cluster.loc[reread["item_id"]])
        for other in ["asked again", *wide.columns.drop(form)]:
            compared = (
                reread["score"].to_numpy()
                if other == "asked again"
                else first_scores[other].to_numpy()
            )
            differences = first_scores[form].to_numpy() - compared
            differs = (differences != 0).astype(float)
            row = _quantity_row("share that differs", differs, groups, share=True)
            half_square = _quantity_row(
                "half of the square", differences**2 / 2, groups
            )
            row |= {"variance": half_square["estimate"]}
            row |= {f"variance_{end}": half_square[end] for end in ("low", "high")}
            rows.append(
                {"form": form, "against": other, "n_differ": int(differs.sum()), **row}
            )
    return pd.DataFrame(rows).drop(columns="quantity")


def swapped(pairs: pd.DataFrame) -> pd.DataFrame:
    """Measure how verdicts on two summaries change when they change places.

    By criterion and over all: ``kept`` (the same verdict), and of the others who
    profits: the summary shown ``first`` or the one shown ``second`` wins both times, or
    a verdict of equal is in ``tie`` once. ``right`` is the share of pairs of which the
    experts prefer one where the verdict names that one: in one order, in the other, and
    where both orders agree.
    """
    typed = pairs.astype(
        {"item_id": str, "cluster_id": str, "criterion": str, "ordering": str}
    )
    names = ["item_id", "criterion", "cluster_id"]
    wide = typed.pivot(index=names, columns="ordering", values="score").reset_index()
    human = pairs.rated.astype({"item_id": str}).set_index("item_id")["human"]
    preferred = human.reindex(wide["item_id"]).to_numpy(np.float64)
    verdict_12, verdict_21 = wide["1-2"].to_numpy(), wide["2-1"].to_numpy()
    outcome = {
        "kept": verdict_12 == verdict_21,
        "first": (verdict_12 == 1) & (verdict_21 == 2),
        "second": (verdict_12 == 2) & (verdict_21 == 1),
        "tie": (verdict_12 != verdict_21) & ((verdict_12 == 1.5) | (verdict_21 == 1.5)),
    }
    rows = []
    for criterion in ["all", *sorted(wide["criterion"].unique())]:
        in_criterion = (
            np.ones(len(wide), bool)
            if criterion == "all"
            else wide["criterion"] == criterion
        )
        groups = _codes(wide["cluster_id"])
        for name, hits in outcome.items():
            row = _quantity_row(
                name, hits[in_criterion].astype(float), groups[in_criterion], share=True
            )
            rows.append({"criterion": criterion, **row})
        rated = in_criterion & ~np.isnan(preferred)
        both_agree = rated & outcome["kept"] & (verdict_12 != 1.5)
        for name, used, verdict in (
            ("right, in the order given", rated, verdict_12),
            ("right, swapped", rated, verdict_21),
            ("right, where both agree on one", both_agree, verdict_12),
        ):
            hits = (verdict[used] == preferred[used]).astype(float)
            row = _quantity_row(name, hits, groups[used], share=True)
            rows.append({"criterion": criterion, **row})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    write_tables(tables(recordings()), "forms_")
