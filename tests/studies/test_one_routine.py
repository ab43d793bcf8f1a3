"""Recordings by llama.cpp before every read had one routine of attention.

Where the recorded answer has one criterion, the order of the levels must not decide by
which routine a read was computed, or the share of the others is named.
"""

import re
from pathlib import Path

import pandas as pd
import pytest

from rubricnb.core.results import identity_in, recorded, results_folder
from studies.one_routine import FEWEST, short
from studies.recording import read_table

QWEN = "qwen2.5-coder-1.5b-instruct-embedded"
# By study, judge and levels: the share of reads that left fewer than 64 tokens. Only
# the first recording has some; book/execution.md names them.
LEFT = {
    ("two-routines", "smollm2-135m-instruct-embedded", 2): 0.833,
    ("two-routines", "smollm2-135m-instruct-embedded", 3): 0.831,
    ("two-routines", "smollm2-135m-instruct-embedded", 5): 0.009,
    ("two-routines", "gemma-3-270m-embedded", 5): 0.148,
    ("two-routines", "qwen2.5-coder-0.5b-instruct-embedded", 5): 0.083,
    ("two-routines", QWEN, 2): 0.775,
    ("two-routines", QWEN, 3): 0.875,
    ("two-routines", QWEN, 5): 0.119,
}
STUDIES = (
    *("minibench", "two-routines", "every-order", "scales", "scoring", "reference"),
    *("qwen-1.5b", "written"),
)


def short_reads():
    for path in sorted(results_folder().glob("*/*-embedded/*.parquet")):
        if (study := path.parent.parent.name) not in STUDIES:
            continue
        reads = recorded(path.parent.name, path.stem, study)
        reads = reads[reads["template"].astype(str) == "rubric"]
        for levels, part in reads.groupby("n_options"):
            yield (study, path.parent.name, int(levels)), short(part).mean()


def test_recorded_reads_had_one_routine_or_their_share_is_named():
    found = dict(short_reads())
    assert len(found) > len(LEFT)
    assert {k: v for k, v in found.items() if v} == pytest.approx(LEFT, abs=0.001)


def test_a_recording_has_one_routine_by_its_identity_or_by_its_counts():
    """Micro-batches below 64 are one routine; without them, no read may be short."""
    for (study, judge, levels), share in short_reads():
        identity = identity_in(results_folder() / study / judge)
        bound = (
            int(identity.partition("micro-batch ")[2].split()[0])
            if ("micro-batch" in identity)
            else FEWEST
        )
        one = bound < FEWEST or share == 0
        assert one or (study, judge, levels) in LEFT, (study, judge, levels, identity)


def test_what_was_asked_again_is_what_had_the_other_routine():
    for slug in {judge for study, judge, _ in LEFT if study == "two-routines"}:
        before, after = (
            recorded(slug, "minibench", study).set_index(["request_id", "criterion"])
            for study in ("two-routines", "minibench")
        )
        assert before.index.equals(after.index)
        other = before["expected_score"] != after["expected_score"]
        # and a text that was asked whole, to compare machines: a few of its reads had
        # begun from another cache
        assert (other & ~short(before)).sum() <= 40
        assert (before["score"] != after["score"])[other].mean() < 0.1


def test_no_statistic_moved_by_more_than_its_page_says():
    table = read_table("one_routine")
    before, after = (
        table[table.study == study].set_index(["judge", "levels"])
        for study in ("two-routines", "minibench")
    )
    moved = (after.drop(columns="study") - before.drop(columns="study")).abs()
    assert moved["v2_unbiased"].max() == pytest.approx(0.009, abs=0.0005)
    assert moved["ascending_minus_descending"].max() == pytest.approx(0.006, abs=0.0005)
    assert isinstance(moved, pd.DataFrame)
    for name in ("v2_unbiased", "ascending_minus_descending"):
        held = [
            (side[f"{name}_low"] <= 0) & (side[f"{name}_high"] >= 0)
            for side in (before, after)
        ]
        assert held[0].equals(held[1])


def test_the_page_says_how_many_labels_changed_and_how_far_a_probability():
    number, labels, largest = 0, [], {}
    for slug in {judge for study, judge, _ in LEFT if study == "two-routines"}:
        before, after = (
            recorded(slug, "minibench", study)
            .query("template == 'rubric'")
            .set_index(["request_id", "criterion"])
            for study in ("two-routines", "minibench")
        )
        asked = short(before)
        changed = (before["score"] != after["score"])[asked]
        labels += [*changed.groupby(before["n_options"][asked]).mean()]
        shares = [
            side.filter(regex=r"probability_\d+")[asked] for side in (before, after)
        ]
        largest[slug] = (shares[0] - shares[1]).abs().max().max()
        number += int(asked.sum())
    page = (Path(__file__).parents[2] / "book/execution.md").read_text("utf-8")
    low, high = 100 * min(labels), 100 * max(labels)
    gemma = largest.pop("gemma-3-270m-embedded")
    for said in (
        f"Of these reads, {number:,} have both answers here. "
        f"{low:.0f} to {high:.0f} % of their labels changed",
        f"is {max(largest.values()):.2f} (Gemma: {gemma:.2f})".replace("0.", "."),
    ):
        assert said in page


# What the page calls a way of asking, and what the file does, with the readout.
WAYS = {
    "one label, 2,080 requests: the same order again": (
        "logprobs",
        "again, same order",
    ),
    "all prefixes in the cache": ("logprobs", "again, all in the cache"),
    "shuffled": ("logprobs", "shuffled"),
    "64 at once": ("logprobs", "64 at once"),
    "one at a time, 300 requests": ("logprobs", "one at a time"),
    "written, 520 answers of at most 256 tokens: the same order again": (
        "feedback",
        "again, same order",
    ),
    "written, shuffled": ("feedback", "shuffled"),
}


def test_the_page_says_of_a_greedy_judge_what_its_file_has():
    page = (Path(__file__).parents[2] / "book/execution.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d][^|]*\| 100 %) \|$", page, re.M))
    assert rows.keys() == WAYS.keys()
    found = pd.read_csv(results_folder() / "gpu" / "repeats.csv")
    assert found.loc[found["mode"] == "batch-invariant", "identical"].eq(1).all()
    default = found[found["mode"] == "default"].set_index(["readout", "against"])
    assert len(default) == len(WAYS)
    for way, key in WAYS.items():
        one = default.loc[key]
        changed = f"{100 * one.changed:.1f} %" if one.changed else "0"
        said = f"{100 * one.identical:.0f} %, {changed}"
        if one.one_sided and way == "written, shuffled":
            said += f"; {one.one_sided:.0f} have a score on one side only"
        assert rows[way] == f"{said} | 100 %"
    assert default["shift"].abs().max() < 0.001
