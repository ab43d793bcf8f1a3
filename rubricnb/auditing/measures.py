"""Rows about the judge itself: what changes its scores, and by how much.

Every effect has an interval and a test, and is given beside the effects of neutral
edits and of asking again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from rubricnb.auditing.answers import (
    ITEM,
    KEYS,
    PLAIN,
    Answers,
    counted,
    distinct_reads,
    lost_by_order,
    lost_to_both,
    lost_within,
    open_to_losses,
    share_changed,
)
from rubricnb.auditing.people import same_score, within_criterion
from rubricnb.auditing.plan import FULL_MARK
from rubricnb.auditing.rows import (
    correlation_row,
    level_of,
    mean_row,
    new_row,
    of_largest,
    p_moved,
)
from rubricnb.auditing.terms import MARGINS
from rubricnb.auditing.words import retest_of
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.losses import are_closed
from rubricnb.core.estimates.reasons import Reason, Reasons, without
from rubricnb.core.support.naming import check_answered
from rubricnb.core.support.types import FloatArray, Records, Row
from rubricnb.statistics.criterion import criterion_order
from rubricnb.statistics.position import position_sizes

_TOLD = ["ordering", "labels", "reference_score"]


def parsed_row(status: pd.Series, unread: Reasons = ()) -> Row:
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


def on_each_criterion(ask: Callable[..., Records], answers: Answers) -> Records:
    """Rows about all criteria together and, if there are several, about each."""
    rows = ask(answers)
    for name, own in answers.criteria.items():
        rows += [
            {**r, "criterion": name, "question": f"{r['question']}: {name}"}
            for r in ask(own)
        ]
    return rows


def discrimination_rows(answers: Answers) -> Records:
    """Correlation of two answers about a text: to a prompt, and to a reworded one.

    The pairs are an item's first answer and each of its answers to other prompts. So r
    is that of single answers, however many there are of a text.
    """
    judgments, plain = answers.judgments, answers.usual
    is_plain = (judgments["condition"] == PLAIN) | (len(plain) == len(judgments))
    other = judgments[~is_plain]
    edited = other[other["design"] == "placebo"]
    ordered = other[other["design"] != "fixed"]
    asked = next((part for part in (edited, ordered) if len(part)), other)
    edits = "blanks" if len(edited) and are_closed(edited) else "edits"
    names = [*KEYS, "value", "key", "design", "ordering_index", *_TOLD]
    every = pd.concat([plain[names], asked[names]])
    reads = _with_prompts(distinct_reads(every))
    values = reads.groupby(KEYS)["value"]
    first, why = values.first(), same_score(values.mean())
    of_one = first.index.get_level_values("criterion").nunique() == len(first)
    if of_one or (why and same_score(answers.cells["human"])):
        return []  # or people see no difference, either
    if why:
        row = new_row("discrimination", "retest", 0, np.nan, why=why, constant=True)
        return [row | {"looks": answers.looks}]
    others = reads[reads["prompt"] != reads.groupby(KEYS)["prompt"].transform("first")]
    repeated = others.empty
    others = reads[reads.duplicated(ITEM)] if repeated else others
    how = ["repeat"] if repeated else _what_differs(reads, edits)
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
        "discrimination", retest_of(how), n, r.value, r.ends, looks=answers.looks
    )
    row["varied"] = " ".join(how)
    if every["value"].isna().any():
        pair = counted(plain), counted(asked)
        sides_of = "the plain prompt", "another prompt"
        row["codes"] += lost_to_both(*pair, sides_of) or lost_within(plain)
    if repeated:
        row |= {"low": np.nan, "codes": (Reason("same_words"),)}
    elif how == ["blanks"] and answers.unmoved:
        row |= {"low": np.nan, "codes": (Reason("unmoved"),)}
    return [row]


def _with_prompts(reads: pd.DataFrame) -> pd.DataFrame:
    """Add what tells prompts apart: order, neutral edit, labels and reference."""
    edit = reads["ordering_index"].where(reads["design"] == "placebo", 0)
    reads = reads.assign(edit=edit)
    own = reads.groupby([*_TOLD, "edit"], dropna=False, observed=True, sort=False)
    return reads.assign(prompt=own.ngroup())


def _what_differs(reads: pd.DataFrame, edits: str) -> list[str]:
    """What differs between the prompts of an item: keys of `words.VARIED`."""
    columns = {
        edits: "edit",
        "order": "ordering",
        "labels": "labels",
        "reference": "reference_score",
    }
    of_item = reads.groupby(KEYS)[[*columns.values()]].nunique().max()
    return [name for name, column in columns.items() if of_item[column] > 1]


def noise_rows(answers: Answers) -> Records:
    """Share of scores that change although nothing relevant changed."""
    rows, usual, edited = [], answers.usual, answers.edited
    for measure, rates in answers.changes.items():
        if measure == "edits":
            sides = counted(usual, "whole"), counted(edited, "whole")
            lost = lost_to_both(*sides, ("the plain prompt", "a neutral edit"))
            question, looks = "neutral edits", answers.looks
            lost += (Reason("unmoved"),) * answers.unmoved
        else:  # repeats are of the plain prompt: one look
            lost = lost_within(usual, "whole")
            question, looks = "asked again", 1
        row = mean_row(measure, question, rates, (0.0, 1.0), looks=looks)
        row["codes"] += lost
        if measure == "reask" and len(distinct_reads(usual)) < usual["value"].count():
            row |= {"low": np.nan, "high": np.nan, "codes": (Reason("repeats"),)}
        rows.append(row)
    return rows


def moved_rows(answers: Answers) -> Records:
    """How far an order, a label or a reference moves scores, beyond neutral edits."""
    plain, rows = answers.under(PLAIN), []
    moves = {
        "descending": ("order", "descending"),
        "letters": ("labels", "letters"),
        "Roman numerals": ("labels", "Roman numerals"),
        FULL_MARK: ("full_mark", "full-mark reference"),
    }
    if "descending" not in answers.cells and answers.mirrored:
        name, base, turned = answers.mirrored
        rows.append(_moved(answers, "order", name, base, turned))
    for condition, named in moves.items():
        reads = answers.under(condition)
        if len(plain) and len(reads):
            rows.append(_moved(answers, *named, plain, reads))
    for _, reads in answers.judgments.groupby("top"):  # each scale by itself
        rows += _pulled(reads, answers)
    return rows


def _moved(
    answers: Answers,
    measure: str,
    question: str,
    base: pd.DataFrame,
    reads: pd.DataFrame,
) -> Row:
    """A row about the reads of a condition against those of a base."""
    own, plain, edited = map(counted, (reads, base, answers.edited))
    shift, edits = (side["mean"] - plain["mean"] for side in (own, edited))
    beyond, other = (shift - edits).dropna(), plain
    if len(beyond):
        shift, other = beyond, edited
    row = mean_row(measure, question, shift, looks=answers.looks)
    for side, called in ((plain, "the plain prompt"), (edited, "a neutral edit")):
        row["codes"] += lost_to_both(own, side, ("this condition", called))
    row = open_to_losses(row, own, other, answers.ends)
    return row | {"placebo": edits.mean()} | answers.flips(reads, base)


def _pulled(reads: pd.DataFrame, answers: Answers) -> Records:
    """How far scores follow the reference's: the highest against the lowest."""
    top = reads["top"].iloc[0]
    names = {
        top if c == FULL_MARK else float(c.split()[1]): c
        for c in reads["condition"].unique()
        if re.fullmatch(r"reference (\d+|of full mark)", c)
    }
    if len(names) > 2:
        names.pop(top, None)
    if len(names) < 2:
        return []
    low, high = min(names), max(names)
    one, two = (reads[reads["condition"] == names[k]] for k in (low, high))
    sides = counted(two), counted(one)
    pulled = (sides[0]["mean"] - sides[1]["mean"]) / (high - low)
    question = f"reference {high:g} against {low:g}"
    row = mean_row("reference", question, pulled, looks=answers.looks)
    row["codes"] += lost_to_both(
        *sides, (f"a reference of {high:g}", f"a reference of {low:g}")
    )
    row = open_to_losses(row, *sides, answers.ends, per=high - low)
    return [row | {"flips": share_changed(one, two).mean()}]


def position_rows(answers: Answers) -> Records:
    """The position with the share farthest from even, and the shares of all."""
    rotated = answers.rotated
    if rotated.empty:
        return []
    rows = []
    table = position_sizes(rotated, by=["n_options"], value=answers.value)
    for bias in table:
        n, clusters = int(bias["n_options"]), int(bias["n_clusters"])
        shares, *ends = np.array(
            [
                [bias.get(f"share_{place}{end}", np.nan) for place in range(1, n + 1)]
                for end in ("", "_least", "_most")
            ]
        )
        most = int(np.argmax(np.nan_to_num(np.abs(shares - 1 / n)))) + 1
        share, se, df = (
            bias.get(f"share_{most}{e}", np.nan) for e in ("", "_se", "_df")
        )
        points = Estimate(100 * (share - 1 / n), se=100 * se, df=df)
        bounds = (-100 / n, 100 - 100 / n)
        found = of_largest(points, clusters, n, bounds, answers.looks)
        reads = rotated[rotated["n_options"] == n]
        lost = lost_by_order(reads, answers.items)
        row = new_row(
            "position",
            f"position {most}{f' of {n}' if len(table) > 1 else ''}",
            clusters,
            found,
            p_equivalent=bias.get("p_equivalent", np.nan),
            places=shares.tolist(),
            looks=answers.looks,
            **answers.flips(reads),
        )
        row["codes"] = without(bias["codes"], "chi2", "mde") + lost
        rows.append(_with_lost_reads(row, np.array(ends).T, most) if lost else row)
    return rows


def _with_lost_reads(row: Row, ends: FloatArray, most: int) -> Row:
    """A row about position `most`, and between which `ends` the lost reads put each."""
    n = len(ends)
    away = 100 * (ends - 1 / n)
    moved = away[most - 1] - row["effect"]
    low, high = np.add((row["low"], row["high"]), moved)
    row["p_open"] = p_moved(row, away[most - 1], n)
    if not (low > 0 or high < 0):
        least, greatest = ends[most - 1]
        row["codes"] += (Reason("open_share", low=least, high=greatest),)
    # Some share could be uneven by what matters, as lost reads may lie.
    if np.abs(away).max() >= MARGINS["percentage points"]:
        row["p_equivalent"] = 1.0
    return row


def criteria_rows(answers: Answers) -> Records:
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
        best, worst = means.idxmax(), means.idxmin()
        gap = cells[best] - cells[worst]
        row = mean_row("criteria", str(effect["criterion"]), gap, looks=answers.looks)
        pairs = len(means) * (len(means) - 1) // 2
        one = Estimate(row["effect"], se=row["se"], df=row["df"])
        whole = of_largest(one, row["n_clusters"], pairs, looks=answers.looks)
        row |= whole.columns("low", "high", "p") | answers.flips(of_criterion)
        row["p_equivalent"] = effect["p_equivalent"]
        row["placebo"] = effect["delta_pos_null"]
        place = of_criterion["criterion_position"]
        highest, lowest = (
            counted(of_criterion[place == p], "whole") for p in (best, worst)
        )
        row["codes"] = effect["codes"]
        rows.append(open_to_losses(row, highest, lowest, answers.ends, pairs))
    return rows
