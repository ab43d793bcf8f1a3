"""Eight judges of known kind, asked as a user would:
the audit says of each what it is.
"""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import rubricnb as rb
from rubricnb.auditing.plan import audit_requests
from rubricnb.auditing.results import findings
from rubricnb.auditing.terms import VERDICTS
from rubricnb.auditing.verdicts import with_verdicts
from rubricnb.core.estimates.reasons import Reason
from rubricnb.engines.profiles import open_profile

RUBRIC = """\
- {rubric_id: a, criterion: quality, definition: "Is it good?", levels:
   {1: Bad., 2: Poor., 3: Fair., 4: Good., 5: Great.}}
"""
PROMPTS, TEXTS = 40, 3


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """Forty prompts with three rated texts each;
    longer texts are rated a little higher.
    """
    folder = tmp_path_factory.mktemp("known")
    rng = np.random.default_rng(0)
    human = rng.permutation(np.resize(range(1, 6), PROMPTS * TEXTS))
    words = np.argsort(np.argsort(0.23 * human + rng.normal(0, 1.3, len(human))))
    pd.DataFrame(
        {
            "instruction": [f"Question {i // TEXTS}?" for i in range(len(human))],
            "response": [f"Text {i}." + " word" * n for i, n in enumerate(words)],
            "human": human,
        }
    ).to_csv(folder / "d.csv", index=False)
    (folder / "r.yml").write_text(RUBRIC)
    return rb.load("csv", path=folder / "d.csv", rubric=folder / "r.yml")


def named(prompt, score):
    """The score as this prompt calls it."""
    if "Score A:" in prompt:
        return "EDCBA"[score - 1]
    return (
        ["i", "ii", "iii", "iv", "v"][score - 1]
        if "Score ii:" in prompt
        else str(score)
    )


def judge_of(kind, items):
    """A function from messages to an answer, of one of the eight kinds."""
    human = dict(enumerate(items.human.astype(int)))
    length = {i: len(text) for i, text in enumerate(items.response)}
    fifths = np.quantile(list(length.values()), [0.2, 0.4, 0.6, 0.8])
    rng = np.random.default_rng(1)
    one_off = {
        i: int(k)
        for i, k in enumerate(rng.choice([-1, 0, 1], len(human), p=[0.1, 0.8, 0.1]))
    }

    def score(prompt):
        i = int(re.search(r"Text (\d+)\.", prompt)[1])
        if kind == "near-truth":
            return human[i] + (rng.random() < 0.05) - (rng.random() < 0.05)
        if kind == "noisy":
            return round(human[i] + rng.normal(0, 2.4))
        if kind == "generous":
            return human[i] + 1
        if kind == "constant":
            return 3
        if kind == "length":
            return 1 + int(np.searchsorted(fifths, length[i]))
        if kind == "hash":
            return 1 + int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 5
        if kind == "reversed":
            return 6 - human[i] + (rng.random() < 0.05)
        return human[i] + one_off[i]  # never changes its mind

    def judge(messages):
        prompt = messages[-1]["content"]
        return f"[RESULT] {named(prompt, int(np.clip(score(prompt), 1, 5)))}"

    return judge


EXPECTED = {
    # kind: verdicts on agreement, level, bias, telling apart,
    # neutral edits, being asked again
    "near-truth": ("strong", "strong", "not found", "strong", "not found", "not found"),
    "noisy": ("moderate", "moderate", "inconclusive", "inconclusive", "found", "found"),
    "generous": ("strong", "strong", "found", "strong", "not found", "not found"),
    "constant": ("fails", "fails", "inconclusive", "fails", "not found", "not found"),
    "length": (
        "inconclusive",
        "inconclusive",
        "inconclusive",
        "strong",
        "not found",
        "not found",
    ),
    "hash": ("weak", "weak", "inconclusive", "weak", "found", "not found"),
    "reversed": (
        "reversed",
        "reversed",
        "inconclusive",
        "strong",
        "not found",
        "not found",
    ),
    "unchanging": ("strong", "strong", "not found", "strong", "not found", "not found"),
}
HEADLINES = {
    "near-truth": r"^\S+ ranks texts alike when the prompt is reworded, agrees "
    r"strongly with people \(r \+0.9\d\) and moves with nothing that was varied by "
    r"more than matters\.$",
    "noisy": r" (?:but|and) changes \d\d % of its scores under neutral edits; "
    r"inconclusive: 4 of 4 questions about what moves its scores\.$",
    "generous": (
        r"agrees strongly with people .*, but scores 0\.80 points higher than "
        r"people\.$"
    ),
    "constant": r"^\S+ fails: every text with a score gets the same one \(3\)",
    "length": (
        r", but was not shown to agree at least moderately with people \(r "
        r"\+0\.23\)\.$"
    ),
    "hash": r"^\S+ hardly ranks texts alike when the prompt is reworded "
    r"\(r [+−]0\.0\d\), agrees at best weakly with people",
    "reversed": r", but gives low scores where people would give high ones \(r "
    r"−(?:1\.00|0\.99): the scale seems to run the other way\)\.$",
    "unchanging": (
        r"agrees strongly with people .* and moves with nothing that was "
        r"varied"
    ),
}
MEASURED = ["agreement", "kappa", "bias", "discrimination", "edits", "reask"]


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", EXPECTED)
def test_a_judge_of_known_kind_gets_the_verdicts_that_it_deserves(kind, items, capsys):
    judge = rb.open_judge(judge_of(kind, items), name=kind)
    found = rb.audit(judge, items, readout="feedback", store=":memory:")
    rows = found.rows.set_index("measure")
    assert tuple(rows.verdict[MEASURED]) == EXPECTED[kind]
    assert re.search(HEADLINES[kind], found.sentence), found.sentence
    moved = set(rows.verdict[["position", "order", "labels"]])
    # which of the two is chance for a judge that wavers
    small = {"not found", "negligible"}
    assert moved <= ({"inconclusive"} if kind in ("noisy", "hash") else small)
    worst = found.top.iloc[-1]
    noise = {"edits", "reask"}  # one read of each: which is larger is chance
    assert worst.measure in {
        "generous": {"bias"},
        "noisy": noise,
        "hash": {"edits"},
    }.get(kind, {worst.measure})
    # 0.95 ** (1 / 40) of the prompts, and no spread is not certainty
    if kind == "unchanging":
        assert (
            "in 40 clusters, so one changes in fewer than 7.2 %"
            in rows.sentence["order"]
        )
        assert rows.low["discrimination"] == pytest.approx(0.05 ** (1 / 40))
    if kind == "length":
        assert rows.low["agreement"] > 0
        assert (
            "above zero, but not shown to reach the +0.30" in rows.sentence["agreement"]
        )
    if kind == "reversed":
        assert "which end is best" in rows.advice["agreement"]


@pytest.mark.in_turn
def test_letters_that_scramble_the_scores_are_found_though_the_mean_stays(
    items, capsys
):
    human = dict(enumerate(items.human.astype(int)))
    other = dict(
        zip(
            human,
            np.random.default_rng(2).permutation(list(human.values())),
            strict=True,
        )
    )

    def scrambles(messages):
        prompt = messages[-1]["content"]
        scores = other if "Score A:" in prompt else human
        text = int(re.search(r"Text (\d+)", prompt)[1])
        return f"[RESULT] {named(prompt, scores[text])}"

    found = rb.audit(scrambles, items, readout="feedback", store=":memory:")
    row = found.rows.set_index("question").loc["letters"]
    assert row.effect == pytest.approx(0, abs=0.05)
    assert row.flips > 0.6
    assert row.verdict == "found"
    assert row.sentence.startswith("With letters, more scores change than matter")
    assert found.sentence.endswith("but moves with letters.")
    assert found.top.question.iloc[-1] == "letters"
    assert found.rows.set_index("question").verdict["Roman numerals"] == "not found"


def verdict_of(measure, few=40.0, **row):
    """The verdict on one row of an audit, on a scale of five levels."""
    row = {"question": measure, "n_clusters": 40, "effect": 0.0, "reason": ""} | row
    if "low" in row:  # as every row with an interval: what it was computed from
        se = (row["high"] - row["low"]) / 2 / stats.t.isf(0.025, 39)
        row = {"se": se, "df": 39.0} | row
    return with_verdicts([row | {"measure": measure}], few, 4.0).verdict.iloc[0]


LARGE = {"low": 0.05, "high": 0.2, "p": 0.01}
BORDERS = {
    ("the share of answers with a score", "shown"): ("parsed", {"effect": 0.95}),
    ("the share of answers with a score", "weak"): ("parsed", {"effect": 0.949}),
    ("a correlation", "strong"): (
        "agreement",
        {"effect": 0.9, "low": 0.61, "high": 0.95},
    ),
    ("a correlation", "moderate"): (
        "kappa",
        {"effect": 0.9, "low": 0.59, "high": 0.95},
    ),
    ("a correlation", "reversed"): (
        "systems",
        {"effect": -0.31, "low": -0.5, "high": -0.01},
    ),
    ("a correlation", "weak"): (
        "agreement",
        {"effect": -0.29, "low": -0.5, "high": -0.01},
    ),
    ("a correlation", "fails"): ("discrimination", {"constant": True}),
    ("a correlation", "inconclusive"): (
        "agreement",
        {"effect": 0.6, "low": 0.29, "high": 0.9},
    ),
    ("an effect", "found"): ("order", {"effect": 0.11, **LARGE}),
    ("an effect", "negligible"): (
        "order",
        {"effect": 0.03, "low": 0.01, "high": 0.05, "p": 0.01},
    ),
    ("an effect", "not found"): ("order", {"low": -0.05, "high": 0.05, "p": 1.0}),
    ("an effect", "inconclusive"): ("order", {"effect": 0.09, **LARGE}),
    ("a share of scores, or halo", "found"): (
        "edits",
        {"effect": 0.5, "low": 0.26, "high": 0.7, "p_equivalent": 1.0},
    ),
    ("a share of scores, or halo", "not found"): (
        "edits",
        {"effect": 0.1, "low": 0.05, "high": 0.2, "p_equivalent": 0.04},
    ),
    ("a share of scores, or halo", "inconclusive"): (
        "edits",
        {"effect": 0.3, "low": 0.24, "high": 0.4, "p_equivalent": 1.0},
    ),
    ("a share of scores, or halo", "measured"): (
        "reask",
        {"codes": (Reason("repeats"),)},
    ),
    ("the agreement of people", "measured"): ("ceiling", {"effect": 0.9}),
    ("the calibration of expected scores", "measured"): ("calibration", {"effect": 0}),
}


def test_every_verdict_has_its_rule_on_the_page_about_audits_and_in_the_code():
    text = (Path(__file__).parents[2] / "book/audit.md").read_text("utf-8")
    for rule in VERDICTS:
        assert f"| {rule['about']} | *{rule['verdict']}* | {rule['rule']} |" in text
    assert {(rule["about"], rule["verdict"]) for rule in VERDICTS} == set(BORDERS)
    for (_, verdict), (measure, row) in BORDERS.items():
        assert verdict_of(measure, **row) == verdict, (measure, row)
        if verdict not in ("shown", "fails", "measured") and measure != "parsed":
            assert verdict_of(measure, few=4.9, **row) == "inconclusive"


def test_an_effect_is_not_cleared_while_scores_may_change_in_both_directions():
    still = {"effect": 0.0, "low": -0.05, "high": 0.05, "p": 1.0}
    assert verdict_of("order", **still, p_steady=0.04) == "not found"
    assert verdict_of("order", **still, p_steady=0.06) == "inconclusive"
    assert verdict_of("order", **still, p_steady=1.0, scrambled=True) == "found"


def test_no_change_is_cleared_by_the_number_of_clusters_alone():
    """Of ten prompts none would change one time in eighteen if a quarter did;
    of twelve, less.
    """
    none = {"effect": 0.0, "p": 1.0}
    for n, verdict in ((6, "inconclusive"), (10, "inconclusive"), (12, "not found")):
        assert verdict_of("order", few=n, n_clusters=n, **none) == verdict
        assert (0.75**n < 0.05) == (verdict == "not found")


def log(rng, score, human, reads=1):
    names = [f"t{i}" for i in range(len(human))]
    return pd.DataFrame(
        {
            "item_id": np.repeat(names, reads),
            "read": np.tile(range(1, reads + 1), len(human)),
            "score": score,
            "human": np.repeat(human, reads),
        }
    )


def test_repeats_of_one_prompt_never_show_that_texts_are_told_apart():
    """A judge that repeats itself passes them whatever its scores mean;
    noise fails them.
    """
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 60)
    copies = np.repeat(rng.integers(1, 6, 60), 2)
    row = rb.audit(judgments=log(rng, copies, human, 2), scale=(1, 5)).rows.set_index(
        "measure"
    )
    assert row.effect["discrimination"] == pytest.approx(1)
    assert row.verdict["discrimination"] == "inconclusive"
    assert "reword the prompt" in row.reason["discrimination"]
    noise = rng.integers(1, 6, 120)
    row = rb.audit(judgments=log(rng, noise, human, 2), scale=(1, 5)).rows.set_index(
        "measure"
    )
    assert row.verdict["discrimination"] == "weak"


@pytest.mark.in_turn
def test_position_is_found_only_if_as_large_as_matters_and_p_fits_its_interval():
    """A faint preference for the first position:
    p and interval are of one calculation.
    """
    items = rb.load("minibench")
    faint = replace(open_profile("unbiased"), position_preference=(0.3, 0, 0, 0, 0))
    for seed in range(3):
        answers = [
            rb.simulate(part, items, faint, seed) for part in audit_requests(items)
        ]
        rows = findings(answers, items).rows.set_index("measure")
        row = rows.loc["position"]
        assert (row.p < 0.05) == (row.low > 0 or row.high < 0)
        if row.verdict == "found":
            assert abs(row.effect) >= row.margin == 2.0


SHIFT = 0


def shifted(messages):
    return f"[RESULT] {3 + SHIFT}"


@pytest.mark.in_turn
def test_answers_from_the_store_are_said_to_be(items, tmp_path, capsys, monkeypatch):
    store = tmp_path / "s.sqlite"
    one = rb.audit(shifted, items, tmp_path / "a.html", store=store)
    assert one.design["n_asked"] > 0
    assert "all answers came from the store" not in capsys.readouterr().out
    two = rb.audit(shifted, items, tmp_path / "b.html", store=store)
    assert two.design["n_asked"] == 0
    assert "all answers came from the store" in capsys.readouterr().out
    assert "all answers came from the store" in (tmp_path / "b.html").read_text("utf-8")
    monkeypatch.setitem(globals(), "SHIFT", 1)
    three = rb.audit(shifted, items, store=store)
    assert three.design["n_asked"] > 0
    assert three.sentence.startswith(
        "shifted fails: every text with a score gets the same one (4)"
    )
