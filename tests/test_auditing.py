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
import pytest
from scipy.stats import binom

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
    "reference-pulled": {"reference 4 against 2"},
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
    assert read.tags.count("img") == 5
    assert all(read.alts)
    plain = re.sub(r"<[^>]+>", " ", text)
    assert "What should change in what you do" in plain
    for sentence in table.sentence:
        assert sentence in plain
    first, second = plain.index("What should change"), plain.index("Where an option stands", 2)
    assert first < second  # the verdicts stand on top
    assert table[table.verdict == "found"].question.tolist().count("letters") == 1


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
    planted = "The judge likes or avoids what stands at position 1: +80.00 percentage points"
    assert planted in done.stdout
    assert planted in page


def test_what_cannot_be_said_says_why(items, tmp_path, capsys):
    one = items.head(3)
    table = rb.audit("simulated:unbiased", one, tmp_path / "a.html")
    assert (table.verdict == "cannot say").all()
    assert table.sentence.str.startswith("Cannot say").all()
    assert table.reason.str.contains("cluster").any()
    assert "nan" not in re.sub(r"base64,[^\"]+", "", (tmp_path / "a.html").read_text()).split(
        "<tbody>")[1].split("</tbody>")[0]  # fmt: skip


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
