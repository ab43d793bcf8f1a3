"""Effect of a prompt's form on judgments that others recorded:
``python -m studies.forms``.

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
from rubricnb.statistics.agreement import per_criterion
from rubricnb.statistics.intervals import (
    benjamini_hochberg,
    correlation,
    fisher_jackknife_t,
    jackknife_t,
)
from rubricnb.statistics.losses import left_out, lost_scores
from rubricnb.statistics.reads import FloatArray, IntArray, by_cluster, item_means
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
    parts: dict[str, list[pd.DataFrame]] = {}
    for name in ("summeval-gpt", "hanna-llm"):
        frame = loaded[name]
        items = frame.rated
        parts.setdefault("status", []).append(statuses(frame).assign(recording=name))
        for judge, own in frame.groupby("judge", observed=True):
            once = first_reads(own)
            if once["template"].nunique() < 2:
                continue
            who = {"recording": name, "judge": judge}
            with_people, contrasts = agreement(once, items)
            for table, found in (
                ("lost", losses(once)),
                ("components", components(once)),
                ("spread", spread(once)),
                ("agreement", with_people),
                ("contrasts", contrasts),
                ("systems", systems(once)),
                ("ranks", ranks(once, items)),
            ):
                parts.setdefault(table, []).append(found.assign(**who))
    gpt = loaded["summeval-gpt"]
    out = {k: _first(pd.concat(v, ignore_index=True)) for k, v in parts.items()}
    out["reask"] = reask(gpt[gpt["judge"] == GPT])
    out["pairs"] = swapped(loaded["summeval-pairs"])
    return out


def _first(table: pd.DataFrame) -> pd.DataFrame:
    names = [c for c in ("recording", "judge") if c in table]
    return table[[*names, *(c for c in table if c not in names)]]


def statuses(judgments: pd.DataFrame) -> pd.DataFrame:
    """Count the status of every answer, by judge and form;
    second reads are counted apart.
    """
    by = ["judge", "template", "replicate", "status", "reason"]
    counts = judgments.groupby(by, observed=True).size().rename("n").reset_index()
    counts = counts.astype(
        dict.fromkeys(["judge", "template", "status", "reason"], str)
    )
    return counts.rename(columns={"template": "form", "replicate": "read"})


def first_reads(judgments: pd.DataFrame) -> pd.DataFrame:
    """Leave out the cells that were asked twice by accident, the second time."""
    return judgments[judgments["replicate"] == 1]


def crossed(judgments: pd.DataFrame) -> tuple[pd.DataFrame, FloatArray, list[str]]:
    """Return items with a score in every form: their keys,
    items × forms, and the forms.
    """
    wide = _in_forms(judgments).dropna()
    return (
        wide.index.to_frame(index=False),
        wide.to_numpy(np.float64),
        list(wide.columns),
    )


def _in_forms(judgments: pd.DataFrame) -> pd.DataFrame:
    keys = ["criterion", "cluster_id", "candidate", "item_id"]
    names = [k for k in keys if k in judgments]
    text = judgments.astype(dict.fromkeys([*names, "template"], str))
    return text.pivot(index=names, columns="template", values="score")


def losses(judgments: pd.DataFrame) -> pd.DataFrame:
    """Count the items that a form has no score for,
    and those left out for want of any of them.

    ``lost`` of ``asked``; ``lost_mean`` and ``kept_mean``: how the other forms score
    them.
    """
    wide = _in_forms(judgments)
    x = wide.to_numpy(np.float64, na_value=np.nan)
    rows = [{"form": ALL, **loss_row(len(x), *left_out(x, ~np.isnan(x).any(axis=1)))}]
    for j, form in enumerate(wide.columns):
        others = item_means(np.delete(x, j, axis=1))
        why = lost_scores(x[:, j], others, (form, "the others"))
        own = [reason for reason in why if reason.numbers["lacking"] == form]
        rows.append({"form": form, **loss_row(len(x), *own)})
    return pd.DataFrame(rows)


def components(judgments: pd.DataFrame) -> pd.DataFrame:
    """Split the variance of a score into item,
    form and item × form, within a criterion.

    Items × forms are crossed, one read a cell: two-way random-effects analysis of
    variance within each criterion, over the items with a score in every form.
    ``criterion`` "mean" averages the criteria's components. The intervals leave out one
    cluster at a time (95 % jackknife-t); they are for texts like these and these very
    forms. A second read of a cell is part of item × form.
    """
    keys, x, _ = crossed(judgments)
    names = list(pd.unique(keys["criterion"]))
    n_forms = x.shape[1]
    each = np.zeros((len(x), len(names), n_forms + 3))
    for k, name in enumerate(names):
        own = (keys["criterion"] == name).to_numpy()
        y = x[own] - x[own].mean()
        mean = y.mean(axis=1)
        each[own, k] = np.column_stack(
            [np.ones(len(y)), mean**2, (y**2).sum(axis=1), y]
        )
    sums = by_cluster(each, _codes(keys["cluster_id"]))
    total = sums.sum(axis=0)
    found, left = _variances(total), _variances(total - sums)
    rows = []
    for k, name in enumerate([*names, "mean"]):
        one, without = (
            (found.mean(axis=0), left.mean(axis=1))
            if name == "mean"
            else (found[k], left[:, k])
        )
        n = total[:, 0].sum() if name == "mean" else total[k, 0]
        share, share_without = (_shares(v) for v in (one, without))
        for s, source in enumerate(SOURCES):
            rows.append(
                {
                    "criterion": name,
                    "source": source,
                    **bounded("variance", jackknife_t(float(one[s]), without[:, s])),
                    **jackknife_t(share[s], share_without[:, s]).named("share", *ENDS),
                    "n_items": int(n),
                    "n_clusters": len(sums),
                    "n_forms": n_forms,
                }
            )
    return pd.DataFrame(rows)


def _variances(sums: FloatArray) -> FloatArray:
    """Item, form and item × form, from summed 1, mean²,
    Σ² and scores by form (…, 3 + forms).
    """
    n, squared, every = np.moveaxis(sums[..., :3], -1, 0)
    k = sums.shape[-1] - 3
    form = sums[..., 3:] / n[..., None]
    grand = form.mean(axis=-1)
    ms_item = k * (squared - n * grand**2) / (n - 1)
    rest = every - k * squared - n * (form**2).sum(axis=-1) + k * n * grand**2
    ms_rest = rest / ((n - 1) * (k - 1))
    between = form.var(axis=-1, ddof=1)
    return np.stack([(ms_item - ms_rest) / k, between - ms_rest / n, ms_rest], axis=-1)


def _shares(variances: FloatArray) -> FloatArray:
    part = np.maximum(variances, 0.0)
    return part / part.sum(axis=-1, keepdims=True)


def spread(judgments: pd.DataFrame) -> pd.DataFrame:
    """Measure how far the forms differ on one item,
    and each form's mean score, with intervals.
    """
    keys, x, names = crossed(judgments)
    cluster = _codes(keys["cluster_id"])
    apart = np.ptp(x, axis=1)
    rows = [_mean("range", apart, cluster)]
    rows += [
        _mean(f"range ≥ {k}", (apart >= k).astype(float), cluster, share=True)
        for k in (1, 2, 3)
    ]
    rows += [_mean(f"mean: {name}", x[:, j], cluster) for j, name in enumerate(names)]
    return pd.DataFrame(rows)


def _codes(names: pd.Series) -> IntArray:
    return np.unique(names, return_inverse=True)[1]


def _mean(
    what: str, values: FloatArray, cluster: IntArray, share: bool = False
) -> dict[str, Any]:
    row = mean_row(values, cluster, (0.0, 1.0) if share else None, "estimate")
    return {
        "quantity": what,
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
    keys, x, names = crossed(judgments)
    names, x = [*names, ALL], np.column_stack([x, x.mean(axis=1)])
    human = items.astype({"item_id": str}).set_index("item_id")["human"]
    y = human.loc[keys["item_id"]].to_numpy(np.float64)
    code, criteria = pd.factorize(keys["criterion"])
    each = per_criterion(x.T, y, code)
    # clusters, forms, criteria, moments
    sums = by_cluster(each, _codes(keys["cluster_id"]))
    total = sums.sum(axis=0)
    found, left = correlation(total), correlation(total - sums)
    count = {"n_items": len(x), "n_clusters": len(sums)}
    rows = []
    for j, form in enumerate(names):
        for k, criterion in enumerate([*criteria, "mean"]):
            over = slice(None) if criterion == "mean" else slice(k, k + 1)
            r = float(found[j, over].mean())
            row = bounded("r", fisher_jackknife_t(r, left[:, j, over].mean(axis=1)))
            n = len(x) if criterion == "mean" else int(total[0, k, 0])
            rows.append(
                {"criterion": criterion, "form": form, **row, **count, "n_items": n}
            )
    macro, macro_left = found.mean(axis=1), left.mean(axis=2)
    pairs = []
    for a, b in combinations(range(len(names)), 2):
        delta = float(macro[b] - macro[a])
        more = jackknife_t(delta, macro_left[:, b] - macro_left[:, a])
        pairs.append(
            {
                "form_a": names[a],
                "form_b": names[b],
                **bounded("delta", more),
                "p": more.p,
                **count,
            }
        )
    table = pd.DataFrame(pairs)
    single = table["form_b"] != ALL
    for own in (single, ~single):
        table.loc[own, "p_adjusted"] = benjamini_hochberg(
            table.loc[own, "p"].to_numpy()
        )
    return pd.DataFrame(rows), table


def systems(judgments: pd.DataFrame) -> pd.DataFrame:
    """Rank the systems under every form by their mean over all criteria:
    mean and place.

    Where a score failed in one form it counts in none, so that forms are compared on
    one set.
    """
    sums, count, names, forms = _system_sums(judgments)
    mean = sums.sum(axis=0) / count.sum(axis=0)[:, None]
    table = pd.DataFrame(mean, index=pd.Index(names, name="system"), columns=forms)
    place = table.rank(ascending=False, method="min").astype(int)
    long = table.melt(
        ignore_index=False, var_name="form", value_name="mean"
    ).reset_index()
    ranks = place.melt(ignore_index=False, value_name="place")["place"].to_numpy()
    return long.assign(place=ranks)


def _system_sums(
    judgments: pd.DataFrame,
) -> tuple[FloatArray, FloatArray, list[str], list[str]]:
    """Sum the scores over criteria: (clusters, systems, forms),
    and count (clusters, systems).
    """
    keys, x, forms = crossed(judgments)
    names, system = np.unique(keys["candidate"], return_inverse=True)
    own = np.eye(len(names))[system]  # items, systems
    cluster = _codes(keys["cluster_id"])
    sums = by_cluster(own[:, :, None] * x[:, None], cluster)
    return sums, by_cluster(own, cluster), list(names), forms


def ranks(judgments: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Compare the rankings of the systems under two forms, and under a form and people.

    ``tau`` with a 95 % bootstrap interval over clusters; of the pairs of systems, how
    many are in the opposite order (``reversed``), and of how many both forms are sure
    of opposite orders (``both_sure``: the 95 % t interval of the difference, over
    clusters, excludes 0 in both).
    """
    sums, count, names, forms = _system_sums(judgments)
    first, second = np.triu_indices(len(names), 1)
    mean = sums.sum(axis=0) / count.sum(axis=0)[:, None]
    middle = mean[first] - mean[second]  # pairs, forms
    with np.errstate(invalid="ignore"):
        own = sums / count[..., None]
    # a cluster without a scored text of one system: NaN
    apart = own[:, first] - own[:, second]
    n = (~np.isnan(apart)).sum(axis=0)
    error = np.nanstd(apart, axis=0, ddof=1) / np.sqrt(n)
    sure = np.sign(middle) * (np.abs(middle) > stats.t.ppf(0.975, n - 1) * error)
    keys = crossed(judgments)[0]
    whole = judgments[judgments["item_id"].astype(str).isin(keys["item_id"])]
    rows = []
    for j, a in enumerate(forms):
        one = whole[whole["template"] == a]
        for k, b in enumerate(forms[j + 1 :], start=j + 1):
            other = whole[whole["template"] == b].set_index("item_id")["score"]
            as_people = items.assign(
                human=items["item_id"].astype(str).map(_named(other))
            )
            rows.append(
                {
                    "form_a": a,
                    "form_b": b,
                    **_tau(one, as_people),
                    "n_pairs": len(first),
                    "reversed": int((middle[:, j] * middle[:, k] < 0).sum()),
                    "both_sure": int((sure[:, j] * sure[:, k] < 0).sum()),
                }
            )
        rows.append({"form_a": a, "form_b": "people", **_tau(one, items)})
    counts = ["n_pairs", "reversed", "both_sure"]
    return pd.DataFrame(rows).astype(dict.fromkeys(counts, "Int64"))


def _named(scores: pd.Series) -> dict[str, float]:
    return dict(zip(scores.index.astype(str), scores.to_numpy(), strict=True))


def _tau(judgments: pd.DataFrame, items: pd.DataFrame) -> dict[str, float]:
    kept = items.dropna(subset=["human"])
    (row,) = rb.statistics.system_agreement(judgments, kept, by=[]).to_dict("records")
    return {k: row[k] for k in ("tau", "tau_low", "tau_high", "n_systems")}


def reask(judgments: pd.DataFrame) -> pd.DataFrame:
    """Compare the accidental second read of a cell with the first,
    and with the other forms.

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
    again = judgments[judgments["replicate"] == 2].astype(
        {"item_id": str, "template": str}
    )
    rows = []
    for form, own in again.groupby("template"):
        one = wide.loc[own["item_id"]]
        groups = _codes(cluster.loc[own["item_id"]])
        for other in ["asked again", *wide.columns.drop(form)]:
            second = (
                own["score"].to_numpy()
                if other == "asked again"
                else one[other].to_numpy()
            )
            apart = one[form].to_numpy() - second
            differs = (apart != 0).astype(float)
            row = _mean("share that differs", differs, groups, share=True)
            half = _mean("half of the square", apart**2 / 2, groups)
            row |= {"variance": half["estimate"]}
            row |= {f"variance_{end}": half[end] for end in ("low", "high")}
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
    text = pairs.astype(
        {"item_id": str, "cluster_id": str, "criterion": str, "ordering": str}
    )
    names = ["item_id", "criterion", "cluster_id"]
    wide = text.pivot(index=names, columns="ordering", values="score").reset_index()
    human = pairs.rated.astype({"item_id": str}).set_index("item_id")["human"]
    better = human.reindex(wide["item_id"]).to_numpy(np.float64)
    one, two = wide["1-2"].to_numpy(), wide["2-1"].to_numpy()
    outcome = {
        "kept": one == two,
        "first": (one == 1) & (two == 2),
        "second": (one == 2) & (two == 1),
        "tie": (one != two) & ((one == 1.5) | (two == 1.5)),
    }
    rows = []
    for criterion in ["all", *sorted(wide["criterion"].unique())]:
        own = (
            np.ones(len(wide), bool)
            if criterion == "all"
            else wide["criterion"] == criterion
        )
        groups = _codes(wide["cluster_id"])
        for name, hit in outcome.items():
            row = _mean(name, hit[own].astype(float), groups[own], share=True)
            rows.append({"criterion": criterion, **row})
        rated = own & ~np.isnan(better)
        same = rated & outcome["kept"] & (one != 1.5)
        for name, part, verdict in (
            ("right, in the order given", rated, one),
            ("right, swapped", rated, two),
            ("right, where both agree on one", same, one),
        ):
            hit = (verdict[part] == better[part]).astype(float)
            row = _mean(name, hit, groups[part], share=True)
            rows.append({"criterion": criterion, **row})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    write_tables(tables(recordings()), "forms_")
