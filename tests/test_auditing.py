"""An audit names what was planted, and nothing else; its page needs nothing and trusts no text."""

import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, t

import rubricnb as rb
from rubricnb.auditing import audit_cost, audit_requests, findings
from rubricnb.cli import app
from rubricnb.judging.profiles import open_profile
from rubricnb.judging.simulated import SimulatedJudge

_spec = spec_from_file_location(
    "rubricnb_test_endpoint", Path(__file__).parent / "judging" / "endpoint.py"
)
_module = module_from_spec(_spec)
_spec.loader.exec_module(_module)

SEEDS = 12
PLANTED = {
    "first-biased": {"position 1", "descending"},  # what stands first pulls a direction with it
    "letter-strict": {"letters"},
    "reference-pulled": {"reference 4 against 2", "full-mark reference"},
    "criterion-biased": {"accuracy", "helpfulness", "clarity"},
    "unbiased": set(),
}


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


class Tags(HTMLParser):
    """What a page would load, and the tags it opens."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.loads, self.alts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        attrs = dict(attrs)
        self.loads += [attrs[a] for a in ("src", "href") if a in attrs]
        if tag == "img":
            self.alts.append(attrs.get("alt", ""))


@pytest.mark.parametrize("name", PLANTED)
def test_an_audit_names_the_planted_effect_and_no_other(items, name):
    requests, criteria = audit_requests(items, readout="logprobs")
    named, wrong, rows = 0, 0, 0
    for seed in range(SEEDS):
        answers = [rb.simulate(part, items, name, seed) for part in (requests, criteria)]
        table = findings(*answers).set_index("question")
        found = set(table.index[table.verdict == "found"])
        others = set(table.index[~table.index.str.startswith("position")]) - PLANTED[name]
        named += (PLANTED[name] - {"descending"}) <= found
        wrong += len(found & others)
        rows += len(others)
    if PLANTED[name]:
        assert named == SEEDS
    assert wrong <= binom.ppf(0.999, rows, 0.05)


def test_the_unbiased_judge_is_cleared_where_there_is_enough_to_say_so(items):
    answers = [rb.simulate(part, items, "unbiased") for part in audit_requests(items)]
    table = findings(*answers).set_index("question")
    assert table.verdict["letters"] == table.verdict["Roman numerals"] == "not found"
    assert table.sentence["letters"].startswith("Not found")


def test_a_rewording_that_shifts_everything_is_charged_to_the_placebo(items):
    """Letters and placebo both cost half a point: nothing is special about letters."""
    shifted = replace(open_profile("unbiased"), label_shift=(("letter", -0.5),), wording_noise=0.0)
    requests = audit_requests(items, readout="logprobs")[0]
    judgments = rb.simulate(requests, items, shifted)
    assert findings(judgments).set_index("question").verdict["letters"] == "found"
    placebo = (judgments.design == "placebo").to_numpy()
    letters = judgments.copy()
    letters.loc[placebo, "expected_score"] -= 0.5
    row = findings(letters).set_index("question").loc["letters"]
    assert row.placebo == pytest.approx(-0.5, abs=0.01)
    assert abs(row.effect) < 0.15


def test_the_page_is_whole_and_loads_nothing(items, tmp_path, capsys):
    path = tmp_path / "audit.html"
    table = rb.audit("simulated:letter-strict", items, path)
    text = path.read_text("utf-8")
    read = Tags(text)
    assert all(address.startswith("data:image/png;base64,") for address in read.loads)
    assert not re.search(r"@import|url\(|<script|http", text)
    assert read.tags.count("img") == 6
    assert all(read.alts)
    assert read.alts[-1].startswith("Share of each score, from the lowest: designed 20 %, 20 %")
    plain = re.sub(r"<[^>]+>", " ", text)
    assert "What should change in what you do" in plain
    for sentence in table.sentence:
        assert sentence in plain
    first, second = plain.index("What should change"), plain.index("Where an option stands", 2)
    assert first < second  # the verdicts stand on top
    assert table[table.verdict == "found"].question.tolist().count("letters") == 1
    assert "Effects are those of expected scores" in plain
    rb.audit("simulated:letter-strict", items, path, readout="score", store=":memory:")
    assert "Effects are those of expected scores" not in path.read_text("utf-8")


def test_the_figures_are_the_same_whatever_style_the_reader_has(items, tmp_path, capsys):
    import matplotlib as mpl

    pages = []
    for style in ({}, {"font.size": 20, "axes.grid": False, "figure.figsize": (3, 3)}):
        with mpl.rc_context(style):
            rb.audit("simulated:first-biased", items, tmp_path / "a.html", store=":memory:")
        pages.append((tmp_path / "a.html").read_text())
    images = [re.findall(r'src="data:image[^"]+"', page) for page in pages]
    assert images[0] == images[1] != []


def test_texts_of_judge_and_data_are_escaped(items, tmp_path, capsys):
    hostile = SimulatedJudge(replace(open_profile("unbiased"), name="<script>alert(1)</script>"))
    bad = items.assign(dataset="<img src=x onerror=alert(2)>")
    bad.rubrics = items.rubrics
    rb.audit(hostile, bad, tmp_path / "a.html")
    read = Tags((tmp_path / "a.html").read_text("utf-8"))
    assert "script" not in read.tags
    assert "x" not in read.loads


def test_an_audit_resumes_and_says_its_cost_beforehand(items, tmp_path, capsys):
    """A judge behind an endpoint on loopback: it grades by length, and letters one point lower."""
    few = items[items.criterion == "clarity"].reset_index(drop=True)

    def answer(payload, headers):
        prompt = payload["messages"][0]["content"]
        response = prompt.split("###Response to evaluate:\n")[1].split("\n\n###")[0]
        score = min(5, 2 + len(response) // 90)
        label = (
            "EDCBA"[score - 2]
            if "Score A:" in prompt
            else (["i", "ii", "iii", "iv", "v"][score - 1] if "Score ii:" in prompt else str(score))
        )
        return 200, _module.completion(f"Fine. [RESULT] {label}"), {}

    with _module.endpoint(answer) as (url, received):
        judge = rb.open_judge(f"openai:m@{url}")
        cost = audit_cost(judge, few, readout="feedback")
        assert len(received) == 0
        store = tmp_path / "s.sqlite"
        table = rb.audit(judge, few, tmp_path / "a.html", readout="feedback", store=store)
        asked = len(received)
        assert asked == cost.calls.sum()
        again = rb.audit(judge, few, tmp_path / "b.html", readout="feedback", store=store)
        assert len(received) == asked
    assert again.equals(table)
    rows = table.set_index("question")
    assert rows.verdict["letters"] == "found"
    assert rows.effect["letters"] == pytest.approx(-1)
    assert rows.effect["Roman numerals"] == 0
    assert (rows.verdict.drop("letters") != "found").all()
    assert not (rows.section == "criteria").any()  # one criterion has no order


def test_from_nothing_to_a_page_about_an_endpoint(tmp_path):
    """As a new user: an empty folder, an empty store, one command, ten minutes at most."""

    def answer(payload, headers):
        time.sleep(0.05)
        prompt = payload["messages"][0]["content"]
        first = re.search(r"\nScore (\w+):", prompt)  # it takes whatever stands first
        chosen = first[1] if first else "3"
        return 200, _module.completion(f"Well done. [RESULT] {chosen}"), {}

    with _module.endpoint(answer) as (url, received):
        done = subprocess.run(
            [sys.executable, "-m", "rubricnb", "audit", "--judge", f"openai:m@{url}",
             "--readout", "feedback", "--n-items", "60"],
            cwd=tmp_path, capture_output=True, text=True, timeout=600,
            env=os.environ | {"RUBRICNB_STORE": str(tmp_path / "s.sqlite")},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    calls = int(re.match(r"([\d,]+) calls", done.stdout)[1].replace(",", ""))
    assert len(received) == calls
    page = re.sub(r"<[^>]+>", " ", (tmp_path / "audit.html").read_text("utf-8"))
    planted = "The judge likes what stands at position 1: +80.00 percentage points"
    assert planted in done.stdout
    assert planted in page


def test_what_cannot_be_said_says_why(items, tmp_path, capsys):
    one = items.head(3)
    table = rb.audit("simulated:unbiased", one, tmp_path / "a.html")
    assert (table.verdict == "cannot say").all()
    assert table.sentence.str.startswith("Cannot say").all()
    assert table.reason.str.contains("cluster").any()
    page = re.sub(r"base64,[^\"]+", "", (tmp_path / "a.html").read_text("utf-8"))
    assert not re.search(r"\bnan\b", page)


def test_every_question_stands_beside_the_placebo_and_the_re_ask(items):
    """Scores that change, for each kind of question; a loop is the oracle of two of them."""
    parts = audit_requests(items, readout="score", temperature=1.0)
    answers = [rb.simulate(part, items, "unbiased") for part in parts]
    table = findings(*answers).set_index("question")
    assert {"order", "labels", "reference", "criteria"} == set(table.section)
    assert table[["flips", "flips_placebo", "flips_reask"]].notna().all().all()
    wide = answers[0].pivot(
        index="item_id", columns=["design", "labels", "reference_score", "ordering_index"],
        values="score",
    ).astype("Int64")  # fmt: skip
    one, two = (wide["fixed", "numeric", "none", k] for k in (1, 2))
    letters = wide["fixed", "letter", "none", 1]
    assert table.flips_reask["letters"] == pytest.approx((one != two).mean())
    assert table.flips["letters"] == pytest.approx(
        ((letters != one).mean() + (letters != two).mean()) / 2
    )
    own = answers[1][answers[1].criterion == "clarity"]
    wide = own.pivot(index="item_id", columns=["design", "ordering_index"], values="score")
    base = [wide["fixed", k].astype(int) for k in (1, 2)]
    edited = [wide["placebo", k].astype(int) for k in (1, 2, 3)]
    turned = [wide["balanced", k].astype(int) for k in (2, 3, 4, 5, 6)]
    assert table.flips_reask["clarity"] == pytest.approx((base[0] != base[1]).mean())
    for name, others in (("flips_placebo", edited), ("flips", turned)):
        rates = [(a != b).mean() for a in others for b in base]
        assert table[name]["clarity"] == pytest.approx(np.mean(rates))
    row = table.loc["letters"]
    assert f"{100 * row.flips:.0f} % of the scores change, against" in row.sentence
    assert row.sentence.endswith(f"and {100 * row.flips_reask:.0f} % when asked again.")


def test_a_criterion_is_measured_by_what_is_tested(items):
    """Its effect is the gap between places that the test, the control and the margin are about."""
    middle = replace(open_profile("unbiased"), criterion_position=(0.0, 0.4, 0.0))
    answers = [rb.simulate(part, items, middle) for part in audit_requests(items)]
    table = findings(*answers).set_index("question")
    rotated = answers[1][answers[1].design == "balanced"]
    for row in rb.criterion_order(rotated, value="expected_score").itertuples():
        found = table.loc[row.criterion]
        assert found.effect == pytest.approx(row.delta_pos)
        assert (found.p, found.placebo) == (row.p_within, row.delta_pos_null)
        assert found.low < found.effect < found.high


def test_the_interval_of_the_most_extreme_position_holds_for_all(items):
    answers = [rb.simulate(part, items, "first-biased") for part in audit_requests(items)]
    row = findings(*answers).set_index("question").loc["position 1"]
    single = rb.position_bias(
        answers[0][answers[0].design == "balanced"], value="expected_score"
    ).iloc[0]
    n = int(single.n_clusters)
    wider = t.isf(0.005, n - 1) / t.isf(0.025, n - 1)
    half = (single.share_1_high - single.share_1_low) / 2
    assert row.effect == pytest.approx(100 * (single.share_1 - 0.2))
    assert row.high - row.effect == pytest.approx(100 * wider * half)
    assert row.sentence.startswith("The judge likes what stands at position 1: +")


def test_a_sentence_gives_no_reason_that_is_no_matter_of_it(items):
    few = items[items.cluster_id.isin(items.cluster_id.unique()[:3])].reset_index(drop=True)
    answers = [rb.simulate(part, few, "unbiased") for part in audit_requests(few)]
    table = findings(*answers)
    assert (table.verdict == "cannot say").any()
    assert not table.sentence.str.contains("chi2|never tie|no placebo").any()


def test_an_effect_that_is_there_and_too_small_to_matter_is_called_negligible(items):
    faint = replace(open_profile("unbiased"), label_shift=(("letter", -0.03),), wording_noise=0.0)
    answers = [rb.simulate(part, items, faint) for part in audit_requests(items)]
    row = findings(*answers).set_index("question").loc["letters"]
    assert row.p_adjusted < 0.05
    assert row.verdict == "negligible"
    assert "but too little to matter" in row.sentence
    assert row.advice == "Choose one kind of label and keep it."


def test_without_graded_answers_the_full_mark_is_asked_about(items):
    plain = items.drop(columns=[c for c in items if c.startswith("reference_")])
    none = findings(*[rb.simulate(p, plain, "unbiased") for p in audit_requests(plain)])
    assert "reference" not in set(none.section)
    full = plain.assign(reference="The best answer.")
    pulled = [rb.simulate(p, full, "reference-pulled") for p in audit_requests(full)]
    row = findings(*pulled).set_index("section").loc["reference"]
    assert row.question == "full-mark reference"
    assert row.effect > 0.5
    assert np.isfinite(row.placebo)


def test_the_command_writes_the_page(tmp_path):
    from typer.testing import CliRunner

    target = tmp_path / "page.html"
    arguments = ["audit", "--judge", "simulated:first-biased", "--n-items", "60"]
    done = CliRunner().invoke(app, [*arguments, "--output", str(target)])
    assert done.exit_code == 0, done.output
    assert done.output.index("calls, about") < done.output.index("position 1")
    assert "<h1>Audit of simulated:first-biased</h1>" in target.read_text("utf-8")
    priced = CliRunner().invoke(app, ["audit", "--judge", "openai:gpt-4.1", "--cost"])
    assert "US dollars" in priced.output
    assert CliRunner().invoke(app, ["audit", "--judge", "opnai:x"]).exit_code == 1


def test_a_judge_that_always_says_3_is_not_cleared(items):
    answers = [
        rb.simulate(part, items, "unbiased").assign(score=3.0, expected_score=np.nan)
        for part in audit_requests(items)
    ]
    table = findings(*answers)
    assert (table.verdict == "cannot say").all()
    assert table[["low", "high", "p_equivalent"]].isna().all(axis=None)
    assert (table.reason != "").all()
    assert table.sentence.str.contains("alike|no answer changes|no block's score").all()


def test_a_doubt_does_not_deny_its_own_interval(items):
    """Some intervals leave out zero, and yet p is not small beside the page's other questions."""
    doubts = []
    for seed in range(12):
        answers = [rb.simulate(part, items, "unbiased", seed) for part in audit_requests(items)]
        table = findings(*answers)
        doubts.append(table[(table.verdict == "cannot say") & table.low.notna()])
    table = pd.concat(doubts)
    outside = (table.low > 0) | (table.high < 0)
    assert outside.any()
    assert outside.sum() < len(table)
    assert (
        table.sentence.str.contains("the interval leaves out zero, but the p-value") == outside
    ).all()
    assert (table.sentence.str.contains("allows for nothing") == ~outside).all()
