"""Reasons are told by code: their words can change without a change anywhere else."""

import copy
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planted import make_judgments, make_rated

import rubricnb as rb
from rubricnb import auditing
from rubricnb.core.estimates import reasons
from rubricnb.core.estimates.reasons import (
    Reason,
    because,
    collect,
    join,
    stored,
    unstored,
    without,
)

PACKAGE = Path(rb.__file__).parent
SOURCE = {
    p: p.read_text("utf-8") for p in PACKAGE.rglob("*.py") if p.name != "reasons.py"
}
FEW = Reason("few_clusters", n=7.0, unit="effective clusters")


def test_every_sentence_has_a_use_and_every_reason_a_sentence():
    used = set(re.findall(r'"([a-z_A-Z]\w*(?:\.\w+)?)"', "\n".join(SOURCE.values())))
    assert not set(reasons.SENTENCES) - used
    named = re.findall(r'Reason\(\s*"([\w.]+)"', "\n".join(SOURCE.values()))
    assert len(named) > 100
    assert not set(named) - set(reasons.SENTENCES)


def test_an_unknown_code_and_a_lacking_number_are_errors_that_name_them():
    with pytest.raises(
        ValueError, match="no sentence for the reason 'few': add it to SENTENCES"
    ):
        Reason("few")
    with pytest.raises(ValueError, match="'few_clusters' needs the number 'unit'"):
        Reason("few_clusters", n=3)


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda code: pickle.loads(pickle.dumps(code))]
)
def test_a_copy_keeps_the_numbers(again):
    code = again(FEW)
    assert (code, code.numbers, code.sentence) == (FEW, FEW.numbers, FEW.sentence)


def test_a_reason_is_said_once_and_reasons_that_differ_in_a_number_are_two():
    more = Reason("few_clusters", n=8.0, unit="effective clusters")
    assert collect(FEW, None, (FEW, more), iter([more])) == (FEW, more)
    found = because(iter([FEW, Reason("one_cluster")]))
    assert found["codes"] == ("few_clusters", "one_cluster")
    assert found["reason"] == join(found["codes"])
    assert without(collect(FEW, Reason("rho.untested")), "rho", "one_cluster") == (
        "few_clusters",
    )


def test_a_number_that_is_not_known_stays_so_in_json():
    """A mean of no items: JSON has a null for it, and the sentence a word."""
    numbers = {"lost": 2, "asked": 2, "what": "items", "name": "a", "lacking": "b"}
    why = Reason("lost", **numbers, lost_mean=3.0, kept_mean=float("nan"))
    assert why.sentence.endswith("(a scores them 3.00 on average, the others unknown)")
    kept = json.loads(json.dumps(stored([why])).replace("NaN", "null"))
    (read,) = unstored(kept, "")
    assert read.sentence == why.sentence


def test_reasons_survive_json_and_what_is_not_known_keeps_its_words():
    kept = json.loads(
        json.dumps(stored([Reason("few_clusters", n=np.float64(7), unit="labels")]))
    )
    (code,) = unstored(kept, "")
    assert code.sentence == "7 labels: intervals may be too narrow"
    (code,) = unstored([{"code": "of a later version"}], "words of a later version")
    assert code.sentence == "words of a later version"
    assert unstored(None, "") == unstored([], "") == ()


def test_codes_are_the_strings_that_pandas_sees():
    table = rb.agreement(*make_rated(12, 2), by=[])
    table = pd.concat([table, table.assign(codes=[()])])
    assert table["codes"].map(lambda codes: "few_clusters" in codes).tolist() == [
        True,
        False,
    ]
    assert table["codes"].explode().value_counts()["few_clusters"] == 1


# -- a reworded table
# ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def few():
    """Judgments of a judge that gives few texts few scores: many reasons."""
    items = rb.load("minibench", n_items=75)
    requests = rb.plan(
        items, [rb.balanced(5), rb.fixed(5, 2), rb.placebo(5, 2)], readout="score"
    )
    judgments = rb.simulate(requests, items, "first-biased")
    return judgments.assign(
        score=judgments["score"].mask(judgments["score"] < 4, 4)
    ), items


def told(judgments, items):
    audit = auditing.findings([judgments], items)
    budget = rb.error_budget(judgments, by=[])
    tables = [
        audit.rows,
        rb.design_for(budget, 0.2),
        rb.advise(judgments, items, by=[]),
    ]
    words = ["sentence", "reason", "advice"]
    return [
        table.drop(columns=words, errors="ignore") for table in tables
    ], audit.sentence


@pytest.mark.in_turn
def test_other_words_change_no_finding_and_no_number(few, monkeypatch):
    before, sentence = told(*few)
    monkeypatch.setattr(
        reasons, "SENTENCES", {code: f"<{code}>" for code in reasons.SENTENCES}
    )
    after, again = told(*few)
    for one, other in zip(before, after, strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert again == sentence
    for table in after:
        assert table["codes"].map(lambda codes: len(codes) == len(set(codes))).all()
    assert any("few_clusters" in codes for codes in after[0]["codes"])


@pytest.mark.in_turn
def test_the_audit_says_few_clusters_once(few):
    rows = auditing.findings([few[0]], few[1]).rows
    assert (rows["reason"].str.count("effective clusters") <= 1).all()
    assert (rows["reason"].str.count("effective clusters") == 1).any()


def test_score_position_tells_why_a_cell_has_no_share():
    judgments = make_judgments(20)
    never = rb.score_position(
        judgments.assign(score=judgments["score"].mask(judgments["score"] == 2, 3))
    )
    of_two = never.set_index("score").loc[2]
    assert of_two["codes"].tolist() == [("never_given",)] * 5
    assert of_two["reason"].unique().tolist() == ["this score was never given"]
