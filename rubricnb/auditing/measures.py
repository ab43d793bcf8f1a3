"""Rows about the judge itself: what changes its scores, and by how much.

Every effect has an interval and a test, and is given beside the effects of neutral
edits and of asking again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from rubricnb.auditing.answers import (
    FULL_MARK,
    ITEM,
    KEYS,
    PLAIN,
    Answers,
    distinct_reads,
    lost_by_order,
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
from rubricnb.auditing.terms import MARGINS
from rubricnb.auditing.words import retest_of
from rubricnb.core.estimates import intervals as inference
from rubricnb.core.estimates.intervals import Estimate
from rubricnb.core.estimates.losses import are_closed, losses_of
from rubricnb.core.estimates.reasons import Reason, Reasons, without
from rubricnb.core.support.naming import check_answered, condition_names
from rubricnb.core.support.types import Records, Row
from rubricnb.statistics.criterion import criterion_order
from rubricnb.statistics.position import position_sizes
from rubricnb.statistics.scoring_bias import stability

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
    reads = _with_prompts(distinct_reads(pd.concat([plain[names], asked[names]])))
    values = reads.groupby(KEYS)["value"]
    first, why = values.first(), same_score(values.mean())
    of_one = first.index.get_level_values("criterion").nunique() == len(first)
    if of_one or (why and same_score(answers.cells["human"])):
        return []  # or people see no difference, either
    if why:
        question = retest_of([edits])
        row = new_row("discrimination", question, 0, 0.0, why=why, constant=True)
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
    row["codes"] += lost_to_both(
        mean_values(plain), mean_values(asked), ("the plain prompt", "another prompt")
    )
    if repeated:
        row |= {"low": np.nan, "codes": (Reason("same_words"),)}
    elif how == ["blanks"] and np.ptp(sides, axis=0).max() < 1e-9:
        row |= {"low": np.nan, "codes": (Reason("unmoved"),)}
    return [row]


def _with_prompts(reads: pd.DataFrame) -> pd.DataFrame:
    """Add what tells prompts apart: order, neutral edit, labels and reference."""
    edit = reads["ordering_index"].where(reads["design"] == "placebo", 0)
    reads = reads.assign(edit=edit)
    own = reads.groupby([*_TOLD, "edit"], dropna=False, observed=True, sort=False)
    return reads.assign(prompt=own.ngroup())


def _what_differs(reads: pd.DataFrame, edits: str) -> list[str]:
    """What differs between the prompts of an item: keys of VARIED."""
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
    names = {"edits": "neutral edits", "reask": "asked again"}
    looks = {"edits": answers.looks}  # repeats are of the plain prompt: one look
    rows = {
        m: mean_row(m, names[m], rates, (0.0, 1.0), looks=looks.get(m, 1))
        for m, rates in answers.changes.items()
    }
    if "edits" in rows:
        rows["edits"]["codes"] += lost_to_both(
            mean_values(answers.usual),
            mean_values(answers.edited),
            ("the plain prompt", "a neutral edit"),
        )
    if (
        "reask" in rows
        and len(distinct_reads(answers.usual)) < answers.usual["value"].notna().sum()
    ):
        rows["reask"] |= {"low": np.nan, "high": np.nan, "codes": (Reason("repeats"),)}
    return list(rows.values())


def moved_rows(answers: Answers) -> Records:
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
    rows = _moved(answers, judgments, reads_of, moves)
    if "descending" not in reads_of and answers.mirrored:
        name, base, turned = answers.mirrored
        turned = turned.assign(design="descending", condition="descending")
        both = pd.concat([base.assign(design="fixed"), turned, answers.edited])
        rows = _moved(answers, both, {name: turned}, {name: "order"}, base) + rows
    for _, reads in judgments.groupby("top"):  # each scale by itself
        rows += _pulled(reads, looks)
    return rows


def _moved(
    answers: Answers,
    judgments: pd.DataFrame,
    reads_of: Mapping[str, pd.DataFrame],
    moves: Mapping[str, str],
    base: pd.DataFrame | None = None,
) -> Records:
    """Rows about these conditions against the plain one, or against reads `base`."""
    rows, looks = [], answers.looks
    if reads_of:
        table = stability(judgments.assign(ordering=np.nan), by=[], value=answers.value)
        row_of = dict(
            zip(condition_names(table), table.to_dict("records"), strict=True)
        )
        name = "shift_excess" if table["shift_excess"].notna().any() else "shift"
    for condition, reads in reads_of.items():
        moved = row_of[condition if base is None else "descending"]
        shift = Estimate(
            moved[name], **{k: moved[f"{name}_{k}"] for k in inference.PARTS}
        )
        question = "full-mark reference" if condition == FULL_MARK else condition
        row = new_row(
            moves[condition],
            question,
            moved["n_clusters"],
            inference.largest(shift, looks),
            looks=looks,
        )
        lost = losses_of(moved["codes"], name)
        named = {"of": question}
        row["codes"] += tuple(Reason(code, **code.numbers | named) for code in lost)
        rows.append(
            with_sign_test(row)
            | {"placebo": moved["shift_placebo"]}
            | answers.flips(reads, base)
        )
    return rows


def _pulled(judgments: pd.DataFrame, looks: int) -> Records:
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
    means = [mean_values(reads) for reads in (one, two)]
    pulled = (means[1] - means[0]) / (high - low)
    question = f"reference {high:g} against {low:g}"
    row = mean_row("reference", question, pulled, looks=looks)
    shown = (f"a reference of {high:g}", f"a reference of {low:g}")
    row["codes"] += lost_to_both(means[1], means[0], shown, row, high - low)
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
        shares = np.array([bias.get(f"share_{p}", np.nan) for p in range(1, n + 1)])
        most = int(np.argmax(np.nan_to_num(np.abs(shares - 1 / n)))) + 1
        share, se, df = (
            bias.get(f"share_{most}{e}", np.nan) for e in ("", "_se", "_df")
        )
        points = Estimate(100 * (share - 1 / n), se=100 * se, df=df)
        bounds = (-100 / n, 100 - 100 / n)
        found = of_largest(points, clusters, n, bounds, answers.looks)
        reads = rotated[rotated["n_options"] == n]
        lost = lost_by_order(reads, answers.items)
        equal = bias.get("p_equivalent", np.nan)
        if lost:
            # The interval is moved to both ends between which they put the share.
            least, greatest = (bias[f"share_{most}{e}"] for e in ("_least", "_most"))
            low = found.low - 100 * (share - least)
            high = found.high + 100 * (greatest - share)
            if not (low > 0 or high < 0):
                lost += (Reason("open_share", low=least, high=greatest),)
            # Some share could be uneven by what matters, as lost reads may lie.
            places = product(range(1, n + 1), ("least", "most"))
            ends = [bias[f"share_{place}_{end}"] for place, end in places]
            away = 100 * np.abs(np.subtract(ends, 1 / n)).max()
            equal = 1.0 if away >= MARGINS["percentage points"] else equal
        rows.append(
            new_row(
                "position",
                f"position {most}{f' of {n}' if len(table) > 1 else ''}",
                clusters,
                found,
                why=(*without(bias["codes"], "chi2", "mde"), *lost),
                p_equivalent=equal,
                places=shares.tolist(),
                looks=answers.looks,
                **answers.flips(reads),
            )
        )
    return rows


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
