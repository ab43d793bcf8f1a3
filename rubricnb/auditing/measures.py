"""Rows about the judge itself: what changes its scores, and by how much.

Every effect has an interval and a test, and is given beside the effects of neutral
edits and of asking again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.auditing.answers import (
    FULL_MARK,
    ITEM,
    KEYS,
    Answers,
    distinct_reads,
    lost_to_both,
    mean_values,
    share_changed,
)
from rubricnb.auditing.people import same_score, within_criterion
from rubricnb.auditing.rows import (
    correlation_row,
    level_of,
    mean_row,
    new_row,
    of_largest,
    with_sign_test,
)
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.losses import losses_of
from rubricnb.core.estimates.reasons import Reason, Reasons, without
from rubricnb.core.support.naming import check_answered, condition_names
from rubricnb.statistics.criterion import criterion_order
from rubricnb.statistics.position import position_bias
from rubricnb.statistics.scoring_bias import stability


def parsed_row(status: pd.Series, unread: Reasons = ()) -> dict[str, Any]:
    """Share of answers with a score, and the commonest reason for one without.

    `unread`: texts that the judge did not read to their end.
    """
    errors = status.drop("ok", errors="ignore")
    why = [Reason("commonest_error", status=k, n=n) for k, n in errors.head(1).items()]
    why += [Reason("right_scale")] * ([*errors.index[:1]] == ["out_of_range"])
    why += unread
    return new_row(
        "parsed", "answers with a score", 0, status.get("ok", 0) / status.sum(), why=why
    )


def on_each_criterion(
    ask: Callable[..., list[dict[str, Any]]], answers: Answers
) -> list[dict[str, Any]]:
    """Rows about all criteria together and, if there are several, about each."""
    rows = ask(answers)
    for name, own in answers.criteria.items():
        rows += [
            {**r, "criterion": name, "question": f"{r['question']}: {name}"}
            for r in ask(own)
        ]
    return rows


def discrimination_rows(answers: Answers) -> list[dict[str, Any]]:
    """Correlation of two answers about a text: to a prompt, and to a reworded one.

    The pairs are an item's first answer and each of its answers to other prompts. So r
    is that of single answers, however many there are of a text.
    """
    judgments, plain = answers.judgments, answers.usual
    other = judgments[
        ~judgments.index.isin(plain.index) & (judgments["design"] != "fixed")
    ]
    edited = other[other["design"] == "placebo"]
    asked = edited if len(edited) else other
    reads = _with_prompts(distinct_reads(pd.concat([plain, asked])))
    values = reads.groupby(KEYS)["value"]
    first = values.first()
    if first.index.get_level_values("criterion").nunique() == len(first):
        return []
    if why := same_score(values.mean()):
        row = new_row("discrimination", _RETEST, 0, 0.0, why=why, constant=True)
        return [row | {"looks": answers.looks}]
    others = reads[reads["prompt"] != reads.groupby(KEYS)["prompt"].transform("first")]
    repeated = others.empty
    others = reads[reads.duplicated(ITEM)] if repeated else others
    second = others.set_index(KEYS)["value"]
    if second.index.nunique() < 3:
        return []
    sides = [
        within_criterion(side).to_numpy()
        for side in (first.reindex(second.index), second)
    ]
    cluster = second.index.get_level_values("cluster_id")
    level = level_of(answers.looks)
    r = inference.jackknife(
        inference.moments(*sides),
        cluster,
        inference.correlation,
        partial(inference.fisher_jackknife_t, level=level),
    )
    n = cluster.nunique()
    row = correlation_row(
        "discrimination", _RETEST, n, r.value, r.ends, looks=answers.looks
    )
    row["codes"] += lost_to_both(
        mean_values(plain), mean_values(asked), ("the plain prompt", "other prompts")
    )
    if repeated:
        row |= {"low": np.nan, "codes": (Reason("same_words"),)}
    return [row]


def _with_prompts(reads: pd.DataFrame) -> pd.DataFrame:
    """Add what tells prompts apart: the order of the options, and the neutral edit."""
    edit = reads["ordering_index"].where(reads["design"] == "placebo", 0)
    order = reads["ordering"].astype("object").fillna("unknown").astype("str")
    return reads.assign(prompt=order + " " + edit.astype("str"))


_RETEST = "retest after rewording"


def noise_rows(answers: Answers) -> list[dict[str, Any]]:
    """Share of scores that change although nothing relevant changed."""
    names = {"edits": "neutral edits", "reask": "asked again"}
    looks = {"edits": answers.looks}  # repeats are of the plain prompt: one look
    rows = {
        m: mean_row(m, names[m], rates, (0.0, 1.0), looks=looks.get(m, 1))
        for m, rates in answers.changes.items()
    }
    if "edits" in rows:
        edited = answers.judgments[answers.judgments["condition"] == "placebo"]
        sides = mean_values(answers.usual), mean_values(edited)
        rows["edits"]["codes"] += lost_to_both(
            *sides, ("the plain prompt", "neutral edits")
        )
    if (
        "reask" in rows
        and len(distinct_reads(answers.usual)) < answers.usual["value"].notna().sum()
    ):
        rows["reask"] |= {"low": np.nan, "high": np.nan, "codes": (Reason("repeats"),)}
    return list(rows.values())


def moved_rows(answers: Answers) -> list[dict[str, Any]]:
    """How far an order, a label or a reference moves scores, beyond neutral edits."""
    judgments, cells, looks = answers.judgments, answers.cells, answers.looks
    moves = {
        "descending": "order",
        "letters": "labels",
        "Roman numerals": "labels",
        FULL_MARK: "full_mark",
    }
    reads_of = {
        name: judgments[judgments["condition"] == name]
        for name in moves
        if name in cells
    }
    rows = []
    if reads_of:
        table = stability(judgments.assign(ordering=np.nan), by=[], value=answers.value)
        row_of = dict(
            zip(condition_names(table), table.to_dict("records"), strict=True)
        )
        name = "shift_excess" if table["shift_excess"].notna().any() else "shift"
    for condition, reads in reads_of.items():
        moved = row_of[condition]
        shift = Estimate(
            moved[name], **{k: moved[f"{name}_{k}"] for k in inference.PARTS}
        )
        question = "full-mark reference" if condition == FULL_MARK else condition
        row = new_row(
            moves[condition],
            question,
            moved["n_clusters"],
            inference.largest(shift, looks) if looks > 1 else shift,
            looks=looks,
        )
        row["codes"] += losses_of(moved["codes"], name)
        rows.append(
            with_sign_test(row)
            | {"placebo": moved["shift_placebo"]}
            | answers.flips(reads)
        )
    for _, reads in judgments.groupby("top"):  # each scale by itself
        rows += _pulled(reads, looks)
    return rows


def _pulled(judgments: pd.DataFrame, looks: int) -> list[dict[str, Any]]:
    """How far scores follow the reference's: the highest against the lowest."""
    top = judgments["top"].iloc[0]
    names = {
        top if c == FULL_MARK else float(c.split()[1]): c
        for c in judgments["condition"].unique()
        if re.fullmatch(r"reference (\d+|of full mark)", c)
    }
    if len(names) > 2:
        names.pop(top, None)
    if len(names) < 2:
        return []
    low, high = min(names), max(names)
    one, two = (judgments[judgments["condition"] == names[k]] for k in (low, high))
    means = [reads.groupby(KEYS)["value"].mean() for reads in (one, two)]
    pulled = (means[1] - means[0]) / (high - low)
    question = f"reference {high:g} against {low:g}"
    row = mean_row("reference", question, pulled, looks=looks)
    shown = (f"a reference of {high:g}", f"a reference of {low:g}")
    row["codes"] += lost_to_both(means[1], means[0], shown, row, high - low)
    return [row | {"flips": share_changed(one, two).mean()}]


def position_rows(answers: Answers) -> list[dict[str, Any]]:
    """The position with the share farthest from even, and the shares of all."""
    judgments = answers.judgments
    rotated = judgments[judgments["design"].isin(["balanced", "williams"])]
    if rotated.empty:
        return []
    rows = []
    table = position_bias(rotated, by=["n_options"], value=answers.value)
    for bias in table.to_dict("records"):
        n, clusters = int(bias["n_options"]), int(bias["n_clusters"])
        shares = np.array([bias.get(f"share_{p}", np.nan) for p in range(1, n + 1)])
        most = (
            int(np.nanargmax(np.abs(shares - 1 / n))) + 1
            if np.isfinite(shares).any()
            else 1
        )
        share, se, df = (
            bias.get(f"share_{most}{e}", np.nan) for e in ("", "_se", "_df")
        )
        points = Estimate(100 * (share - 1 / n), se=100 * se, df=df)
        bounds = (-100 / n, 100 - 100 / n)
        rows.append(
            new_row(
                "position",
                f"position {most}{f' of {n}' if len(table) > 1 else ''}",
                clusters,
                of_largest(points, clusters, n, bounds, answers.looks),
                why=without(bias["codes"], "chi2", "log_preference"),
                p_equivalent=bias.get("p_equivalent", np.nan),
                places=shares.tolist(),
                looks=answers.looks,
                **answers.flips(rotated[rotated["n_options"] == n]),
            )
        )
    return rows


def criteria_rows(answers: Answers) -> list[dict[str, Any]]:
    """How far the position of a criterion moves its scores: its best minus its worst.

    Scores, not expected scores: at later positions the probabilities are read after the
    first label is written, and are sharper for that alone (chapter 10).
    """
    check_answered(answers.judgments)
    rotated = answers.judgments[answers.judgments["design"] == "balanced"]
    rows = []
    for effect in criterion_order(rotated).to_dict("records"):
        of_criterion = rotated[rotated["criterion"] == effect["criterion"]]
        cells = of_criterion.pivot_table(
            "score", KEYS, "criterion_position", observed=True
        ).dropna()
        means = cells.mean()
        gap = cells[means.idxmax()] - cells[means.idxmin()]
        row = mean_row("criteria", str(effect["criterion"]), gap, looks=answers.looks)
        pairs = len(means) * (len(means) - 1) // 2
        one = Estimate(row["effect"], se=row["se"], df=row["df"])
        whole = of_largest(one, row["n_clusters"], pairs, looks=answers.looks)
        rows.append(
            row
            | whole.columns("low", "high", "p")
            | {
                "p_equivalent": effect["p_equivalent"],
                "placebo": effect["delta_pos_null"],
                "codes": effect["codes"],
            }
            | answers.flips(of_criterion)
        )
    return rows
