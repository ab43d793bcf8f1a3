"""Two looks: fewer calls for the same verdicts,
and no more errors than one look makes.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, t

import rubricnb as rb
from rubricnb.auditing.draw import FIRST_LOOK, first_look
from rubricnb.auditing.drift import beside
from rubricnb.auditing.html import page
from rubricnb.auditing.looks import ask_in_looks, audit_cost
from rubricnb.auditing.plan import audit_requests, edit_reads
from rubricnb.auditing.results import findings
from rubricnb.core.support.folders import results_folder
from studies import looks as study

PROMPTS = 84
RUBRIC = """\
- {rubric_id: a, criterion: quality, definition: "Is it good?", levels:
   {1: Bad., 2: Poor., 3: Fair., 4: Good., 5: Great.}}
"""


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """A text for each of 84 prompts: forty for the first look,
    and as many for the second.
    """
    folder = tmp_path_factory.mktemp("looks")
    rng = np.random.default_rng(0)
    pd.DataFrame(
        {
            "instruction": [f"Question {i}?" for i in range(PROMPTS)],
            "response": [f"Text {i}." for i in range(PROMPTS)],
            "human": rng.permutation(np.resize(range(1, 6), PROMPTS)),
        }
    ).to_csv(folder / "d.csv", index=False)
    (folder / "r.yml").write_text(RUBRIC)
    return rb.load("csv", path=folder / "d.csv", rubric=folder / "r.yml")


class Clerk:
    """Knows the ratings; with letters it errs by a point either way.
    Keeps what it was asked.
    """

    def __init__(self, items):
        self.human = dict(enumerate(items.human.astype(int)))
        self.asked = []

    def __call__(self, messages):
        prompt = messages[-1]["content"]
        self.asked.append(prompt)
        i = int(re.search(r"Text (\d+)\.", prompt)[1])
        score = self.human[i]
        if "Score A:" in prompt:
            off = (0, 0, 0, 1, -1)[(7 * i + i // 9) % 5]
            return "[RESULT] " + "EDCBA"[int(np.clip(score + off, 1, 5)) - 1]
        if "Score ii:" in prompt:
            return "[RESULT] " + ["i", "ii", "iii", "iv", "v"][score - 1]
        return f"[RESULT] {score}"

    def texts(self, mark):
        """The texts that a prompt with a mark was asked about."""
        return {re.search(r"Text \d+\.", p)[0] for p in self.asked if mark in p}


@pytest.mark.in_turn
def test_the_second_look_asks_only_what_the_first_left_open(items, tmp_path, capsys):
    clerk, costs = Clerk(items), []
    judge = rb.open_judge(clerk, name="clerk", concurrency=1)
    how = {"readout": "feedback", "store": tmp_path / "s.sqlite"}
    found = rb.audit(judge, items, tmp_path / "a.html", on_cost=costs.append, **how)
    rows = found.rows.set_index("question")
    assert rows.verdict[["Roman numerals", "descending"]].tolist() == ["not found"] * 2
    assert (
        len(clerk.texts("Score ii:")) == FIRST_LOOK == rows.n_clusters["Roman numerals"]
    )
    assert len(clerk.texts("Score A:")) == PROMPTS == rows.n_clusters["letters"]
    assert found.design["looks"] == 2
    assert set(found.design["calls"]["second"]) == {"letters", "neutral edits"}
    # the plain prompt is asked about all
    assert rows.n_clusters["agreement"] == PROMPTS
    by_look = costs[0].groupby("look").calls.sum()
    assert by_look[1] == sum(found.design["calls"]["first"].values())
    assert sum(found.design["calls"]["second"].values()) < by_look[2]
    said = (tmp_path / "a.html").read_text("utf-8")
    assert "for a second look (" in said
    assert "These intervals are at 97.5 %" in said
    n = len(clerk.asked)
    again = rb.audit(judge, items, **how)
    assert len(clerk.asked) == n  # an audit that was stopped would go on here
    assert again.rows.equals(found.rows)
    drift = beside(again, found).rows
    assert (drift[drift.measure == "drift_effect"].looks == 2).all()


@pytest.mark.in_turn
def test_a_budget_spans_both_looks_and_a_stopped_audit_goes_on(items, tmp_path, capsys):
    clerk = Clerk(items)
    judge = rb.open_judge(clerk, name="clerk", concurrency=1)
    how = {"readout": "feedback", "store": tmp_path / "s.sqlite"}
    first = int(
        audit_cost(judge, items, readout="feedback").query("look == 1").calls.sum()
    )
    with pytest.raises(rb.judging.RunInterrupted):
        rb.audit(judge, items, max_calls=first + 5, **how)
    assert len(clerk.asked) == first + 5
    found = rb.audit(judge, items, **how)
    calls = found.design["calls"]
    assert len(clerk.asked) == sum(calls["first"].values()) + sum(
        calls["second"].values()
    )


@pytest.mark.in_turn
def test_several_criteria_and_references_have_two_looks_as_well():
    """The planted effect of the criteria's position is found at once,
    and not asked again.
    """
    quality = np.random.default_rng(0).integers(1, 6, PROMPTS)
    rows = [
        {
            "instruction": f"Question {i}?",
            "response": f"Text {i}.",
            "human_tone": int(quality[i]),
            "human_depth": int(quality[-1 - i]),
            "reference": "Best.",
            "reference_2": "Poor.",
            "reference_4": "Good.",
            "reference_5": "Great.",
        }
        for i in range(PROMPTS)
    ]
    levels = {1: "Bad.", 2: "Poor.", 3: "Fair.", 4: "Good.", 5: "Great."}
    rubric = [
        {"criterion": c, "definition": "?", "levels": levels} for c in ("tone", "depth")
    ]
    items = rb.load("csv", path=rows, rubric=rubric)
    asked = ask_in_looks(
        audit_requests(items, readout="score"),
        first_look(items),
        lambda requests: rb.simulate(requests, items, "criterion-biased"),
        lambda answers, of: findings(answers, of, settings={}, looks=2).rows,
    )
    table = findings(asked.answers, items, settings={}, looks=2).rows
    rows = table[table.criterion == ""].set_index("question")
    assert rows.verdict[["tone", "depth"]].tolist() == ["found"] * 2
    assert rows.n_clusters[["tone", "depth"]].tolist() == [FIRST_LOOK] * 2
    assert "several criteria in a call" not in asked.second
    assert asked.first["references"] == 2 * 2 * FIRST_LOOK
    again = rows.n_clusters == PROMPTS
    for question, purpose in (
        ("letters", "letters"),
        ("reference 4 against 2", "references"),
    ):
        assert again[question] == (purpose in asked.second)


def test_one_look_asks_everything_about_every_text(items):
    whole = first_look(items, looks=1)
    assert whole is items
    assert first_look(items, 2).cluster_id.nunique() == FIRST_LOOK
    with pytest.raises(ValueError, match="looks = 3: give 1 or 2"):
        first_look(items, 3)
    assert set(audit_cost("simulated:unbiased", items, looks=1).look) == {1}


def test_few_prompts_have_one_look():
    items = rb.load("minibench")
    assert first_look(items) is items
    assert set(audit_cost("simulated:unbiased", items).look) == {1}


def test_an_edit_is_dealt_to_every_item_and_each_edit_equally_often(items):
    requests = audit_requests(items)[0]
    edits = requests[requests.design == "placebo"]
    per_item = edits.groupby("item_id", observed=True).size()
    n_first = FIRST_LOOK
    assert (per_item == edit_reads(n_first, [1, 2, 3, 4, 5], 5)).all()
    assert edits.ordering_index.value_counts().min() > 0.6 * len(edits) / 5
    every = audit_requests(items, edits=5)[0]
    assert set(requests.request_id) < set(every.request_id)


def test_edits_have_a_standard_error_of_half_the_margin():
    """The rule is that of its docstring: a quarter of the scores moves by one step."""
    for scale in ([1, 2, 3, 4, 5], [0, 1, 2, 3], list(range(1, 11))):
        margin = 0.1 * (scale[-1] - scale[0]) / 4
        for n in (10, 25, 60, 500):
            k = edit_reads(n, scale, 5)
            error = np.sqrt(0.25) / np.sqrt(n * k)
            assert error <= margin / 2 + 1e-9 or k == 5
            assert k == 1 or np.sqrt(0.25) / np.sqrt(n * (k - 1)) > margin / 2


@pytest.mark.in_turn
def test_two_looks_widen_intervals_and_double_p_and_change_no_estimate(items):
    answers = [
        study.answered(part, items, "strict with letters", 0)
        for part in audit_requests(items, readout="score")
    ]
    one, two = (
        findings(answers, items, looks=n).rows.set_index("question") for n in (1, 2)
    )
    assert one.effect.equals(two.effect)
    plain = ["agreement", "agreement in level", "mean score", "asked again"]
    assert one.loc[plain, ["low", "high"]].equals(two.loc[plain, ["low", "high"]])
    for name in ("letters", "descending"):
        df = one.df[name]
        wider = t.isf(0.0125, df) / t.isf(0.025, df)
        assert two.high[name] - two.effect[name] == pytest.approx(
            wider * (one.high[name] - one.effect[name])
        )
        assert two.p[name] == pytest.approx(min(1, 2 * one.p[name]))
        assert two.p_equivalent[name] == pytest.approx(
            min(1, 2 * one.p_equivalent[name])
        )
    for name in ("neutral edits", "retest after rewording"):
        assert two.low[name] < one.low[name]
        assert two.high[name] > one.high[name]


def recorded(name):
    return pd.read_csv(results_folder() / "validity" / f"{name}.csv")


def test_both_looks_together_miss_as_rarely_as_one_should():
    """A few replications fit the recorded counts; unshared looks miss more than 5 %."""
    whole, few = recorded("looks-misses"), study.misses(400, seed=1)
    for row, found in zip(whole.itertuples(), few.itertuples(), strict=True):
        rate = row.missed / row.n
        assert (
            binom.ppf(0.0005, 400, rate) <= found.missed <= binom.ppf(0.9995, 400, rate)
        )
    worst = (whole.missed / whole.n).groupby(whole.intervals).max()
    assert worst["shared"] <= 0.05 < worst["naive"]


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", ["near-truth", "strict with letters"])
def test_recorded_audits_are_those_of_the_code(kind):
    rows = recorded("looks")
    own = rows[(rows.kind == kind) & (rows.draw == 0)]
    items = study.texts(0)
    for plan in (study.BEFORE, study.AFTER):
        found = pd.DataFrame(study.audited(plan, kind, items, 0))
        expected = own[own.plan == plan].reset_index(drop=True)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False, atol=1e-3)


def test_the_page_on_audits_has_the_recorded_calls_and_alarms():
    text = (Path(__file__).parents[2] / "book/audit.md").read_text("utf-8")
    rows = recorded("looks")
    assert study.in_total(rows) in text
    alarms = study.summary(rows).groupby("plan").false_alarms.sum()
    assert alarms[study.AFTER] <= alarms[study.BEFORE]


def test_the_page_says_nothing_of_calls_that_nobody_made(items):
    answers = [rb.simulate(p, items, "unbiased") for p in audit_requests(items)]
    found = findings(answers, items, settings={})
    assert "different prompts" not in page(found)
    told = replace(
        found, design=found.design | {"calls": {"first": {"letters": 5}, "second": {}}}
    )
    assert "5 different prompts: 5 for letters." in page(told)
