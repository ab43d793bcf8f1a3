"""An audit names what was planted, and nothing else;
its page needs nothing and trusts no text.
"""

import json
import re
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from endpoint import completion, endpoint
from scipy.stats import binom, t
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.auditing.draw import drawn
from rubricnb.auditing.drift import beside
from rubricnb.auditing.halo import correlation_of_criteria, criteria_sums
from rubricnb.auditing.html import page
from rubricnb.auditing.looks import audit_cost
from rubricnb.auditing.parts import sha256_of
from rubricnb.auditing.plan import audit_requests
from rubricnb.auditing.record import read_audit
from rubricnb.auditing.results import findings
from rubricnb.auditing.terms import ADVERSE, MEASURES
from rubricnb.cli.commands import app
from rubricnb.core.estimates.intervals import jackknife
from rubricnb.engines.profiles import open_profile
from rubricnb.engines.simulated import SimulatedJudge
from rubricnb.statistics.kappa import quadratic_weighted_kappa
from rubricnb.testing import assert_judge

SEEDS = 6
PLANTED = {
    # what stands first pulls a direction with it
    "first-biased": {"position 1", "descending"},
    "letter-strict": {"letters"},
    "reference-pulled": {"reference 4 against 2", "full-mark reference"},
    "criterion-biased": {"accuracy", "helpfulness", "clarity"},
    "unbiased": set(),
}


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


@pytest.fixture(scope="module")
def few(items):
    """Two texts of each prompt, on one criterion: what an endpoint is asked about."""
    one = items[items.criterion == "clarity"].reset_index(drop=True)
    one.rubrics = items.rubrics
    return drawn(one, 24)


def turned(answers, items):
    """What an audit says about what moves scores, by question."""
    rows = findings(answers, items).rows
    return rows[~rows.section.isin(["texts", "noise"])].set_index(
        "question", drop=False
    )


def on_all(found):
    """The rows about all criteria together, by measure."""
    return found.rows[found.rows.criterion == ""].set_index("measure")


def simulated(items, profile="unbiased", seed=0, **settings):
    return [
        rb.simulate(part, items, profile, seed)
        for part in audit_requests(items, **settings)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANTED)
def test_an_audit_names_the_planted_effect_and_no_other(name, items):
    named, wrong, rows = 0, 0, 0
    for seed in range(SEEDS if PLANTED[name] else 2 * SEEDS):
        table = turned(simulated(items, name, seed, readout="logprobs"), items)
        found = set(table.index[table.verdict == "found"])
        others = (
            set(table.index[~table.index.str.startswith("position")]) - PLANTED[name]
        )
        named += (PLANTED[name] - {"descending"}) <= found
        wrong += len(found & others)
        rows += len(others)
    if PLANTED[name]:
        assert named == SEEDS
    assert wrong <= binom.ppf(0.999, rows, 0.05)


@pytest.fixture(scope="module")
def first(items, tmp_path_factory):
    """An audit of one judge, and the page that it wrote, its numbers beside it."""
    path = tmp_path_factory.mktemp("audit") / "a.html"
    return rb.audit("simulated:first-biased", items, path, store=":memory:"), path


@pytest.mark.in_turn
def test_the_unbiased_judge_is_cleared_where_there_is_enough_to_say_so(items):
    table = turned(simulated(items), items)
    assert table.verdict["letters"] == table.verdict["Roman numerals"] == "not found"
    assert table.sentence["letters"].startswith("Not found")


@pytest.mark.in_turn
def test_a_rewording_that_shifts_everything_is_charged_to_the_placebo(items):
    """Letters and placebo both cost half a point: nothing is special about letters."""
    shifted = replace(
        open_profile("unbiased"), label_shift=(("letter", -0.5),), wording_noise=0.0
    )
    requests = audit_requests(items, readout="logprobs")[0]
    judgments = rb.simulate(requests, items, shifted)
    assert turned([judgments], items).verdict["letters"] == "found"
    placebo = (judgments.design == "placebo").to_numpy()
    letters = judgments.copy()
    letters.loc[placebo, "expected_score"] -= 0.5
    row = turned([letters], items).loc["letters"]
    assert row.placebo == pytest.approx(-0.5, abs=0.01)
    assert abs(row.effect) < 0.15


@pytest.mark.in_turn
def test_the_page_is_whole_and_loads_nothing(first):
    found, path = first
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    assert page.select("[src], [href], script") == []
    assert not re.search(r"@import|url\(|http", str(page))
    labels = [drawing["aria-label"] for drawing in page.select("svg")]
    assert len(labels) > len(found.rows[found.rows.effect.notna()])
    assert all(labels)
    plain = " ".join(page.get_text(" ").split())
    said = found.rows[(found.rows.criterion == "") | found.rows.verdict.isin(ADVERSE)]
    for sentence in (found.sentence, *said.sentence):
        assert sentence in plain
    places = [
        plain.index(s) for s in (found.sentence, "What matters", "The position of an")
    ]
    assert places == sorted(places)
    assert "Effects are those of expected scores" in plain
    assert "nobody rated them" in plain
    assert not re.search(r"\bnan\b", plain)


@pytest.mark.in_turn
def test_texts_of_judge_and_data_are_escaped(few, tmp_path, capsys):
    hostile = SimulatedJudge(
        replace(open_profile("unbiased"), name="<script>alert(1)</script>")
    )
    bad = few.assign(dataset="<img src=x onerror=alert(2)>")
    bad.rubrics = few.rubrics
    rb.audit(hostile, bad, tmp_path / "a.html", readout="score")
    page = BeautifulSoup((tmp_path / "a.html").read_text("utf-8"), "html.parser")
    assert page.select("script, img") == []
    assert "Effects are those of expected scores" not in page.get_text()


def test_the_page_is_the_same_from_its_numbers_alone(first, items, tmp_path):
    found, path = first
    stored = read_audit(path.with_suffix(".json"))
    assert page(stored) == page(found) == path.read_text("utf-8")
    content = json.loads(path.with_suffix(".json").read_text("utf-8"))
    assert content["schema"] == "rubricnb-audit/1"
    assert content["sentence"] == found.sentence
    texts = {*items.instruction, *items.response}
    assert not any(text in json.dumps(content, ensure_ascii=False) for text in texts)
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(ValueError, match=r"b.json: give the .json that an audit wrote"):
        read_audit(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c["rows"][1].update(effect="0.9"), "rows: effect is '0.9', and not"),
        (lambda c: c["rows"][1].update(measure="charm"), "unknown measure: {'charm'}"),
        (
            lambda c: c["cells"][0].update(baseline=[3]),
            "cells: baseline is [3], and not",
        ),
        (lambda c: c["design"].update(span="4"), "design: span is '4', and not"),
        (lambda c: c["status"].update(ok="all"), "status is 'all', and not a number"),
        (lambda c: c["charts"]["ties"].update(n={}), "charts: ties is {}, and not"),
        (lambda c: c["parts"]["parser"].update(x=1), "a part of the judge is not a"),
        (lambda c: c["parts"]["model"].update(m=[]), "a part of the judge is not a"),
        (lambda c: c.update(asked="today"), "asked is 'today', and not a number"),
        (lambda c: c.update(rows="none"), "give the .json that an audit wrote"),
    ],
)
def test_a_number_that_was_made_a_text_and_signed_again_is_refused_by_name(
    first, tmp_path, change, said
):
    content = json.loads(first[1].with_suffix(".json").read_text("utf-8"))
    del content["checksum"]
    change(content)
    content["checksum"] = sha256_of(content)
    (tmp_path / "b.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=re.escape(said)):
        read_audit(tmp_path / "b.json")


def places_in(value, place=()):
    """Where a document has values, one of each list."""
    if isinstance(value, dict | list) and value:
        parts = value.items() if isinstance(value, dict) else enumerate(value[:1])
        for key, part in parts:
            yield from places_in(part, (*place, key))
    if place:
        yield place


@pytest.mark.slow
def test_an_audit_that_is_read_can_be_shown_whatever_was_forged_in_it(first, tmp_path):
    """Each value becomes a text, a list or nothing, and the file is signed again."""
    whole = json.loads(first[1].with_suffix(".json").read_text("utf-8"))
    whole["rows"], whole["cells"] = whole["rows"][:3], whole["cells"][:3]
    del whole["checksum"]
    # numbers of its tables are refused by name, above
    places = [place for place in places_in(whole) if place[0] == "charts"]
    read, refused = 0, 0
    for place in places:
        for forged in ("<b>", []):
            content = json.loads(json.dumps(whole))
            inner = content
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = forged
            content["checksum"] = sha256_of(content)
            (tmp_path / "b.json").write_text(json.dumps(content))
            try:
                found = read_audit(tmp_path / "b.json")
            except ValueError as error:
                assert "give the .json that an audit wrote" in str(error)  # noqa: PT017
                refused += 1
                continue
            shown = page(found) + page(found, datasheet=True)
            assert "<b>" not in shown
            read += 1
    assert min(read, refused) > 5


def test_the_page_and_the_numbers_have_limits_for_a_gate(first):
    found, path = first
    stored = json.loads(path.with_suffix(".json").read_text("utf-8"))
    limits = {r["measure"] for r in stored["rows"] if r["steady_limit"] is not None}
    assert limits == set(found.steady_limits)
    order = found.steady_limits["order"]
    assert (
        f"order>{order:.3g}"
        in BeautifulSoup(path.read_text("utf-8"), "html.parser").text
    )
    said, unknown = found.false_alarms(f"order>{order}, parsed<0.5")
    assert unknown.startswith("parsed<0.5: not known how often")
    assert said.endswith("and " + f"{order:.3g} in at most 5 %")
    share = int(re.search(r"crosses it in about (\d+) %", said)[1])
    assert 2 <= share <= 5


def by_length(lost=()):
    """A judge that grades by length,
    less a point for each in `lost` and for letters.
    """

    def answer(payload, headers):
        prompt = payload["messages"][0]["content"]
        response = prompt.split("###Response to evaluate:\n")[1].split("\n\n###")[0]
        score = min(5, 2 + len(response) // 90) - len(lost)
        label = "EDCBA"[max(0, score - 2)] if "Score A:" in prompt else str(score)
        roman = ["i", "ii", "iii", "iv", "v"][score - 1]
        return (
            200,
            completion(f"Fine. [RESULT] {roman if 'Score ii:' in prompt else label}"),
            {},
        )

    return answer


@pytest.mark.slow
def test_an_audit_resumes_and_says_its_cost_beforehand(few, tmp_path, capsys):
    with endpoint(by_length()) as (url, received):
        judge = rb.open_judge(f"openai:m@{url}")
        cost = audit_cost(judge, few, readout="feedback")
        assert len(received) == 0
        store = tmp_path / "s.sqlite"
        found = rb.audit(
            judge, few, tmp_path / "a.html", readout="feedback", store=store
        )
        asked = len(received)
        assert asked == cost.calls.sum()
        again = rb.audit(
            judge, few, tmp_path / "b.html", readout="feedback", store=store
        )
        assert len(received) == asked
    assert again.rows.equals(found.rows)
    rows = found.rows.set_index("question")
    assert rows.verdict["letters"] == "found"
    assert rows.effect["letters"] == pytest.approx(-1)
    assert rows.effect["Roman numerals"] == 0
    assert (rows.verdict.drop("letters") != "found").all()
    assert not (rows.section == "criteria").any()  # one criterion has no order


@pytest.mark.in_turn
def test_below_five_clusters_nobody_is_asked_and_nothing_is_said(
    items, tmp_path, capsys
):
    one = items.head(3)
    with pytest.raises(
        ValueError, match=r"1.0 effective clusters .*n_prompts, --n-prompts"
    ):
        rb.audit("simulated:unbiased", one, tmp_path / "a.html")
    assert not (tmp_path / "a.html").exists()
    found = rb.audit("simulated:unbiased", one, tmp_path / "a.html", force=True)
    rows = found.rows[found.rows.verdict != "measured"].iloc[1:]
    assert (rows.verdict == "inconclusive").all()
    said = rows.sentence.str.contains("^Inconclusive|too few clusters to say")
    assert said.all()
    assert rows.reason.str.contains("cluster").all()
    assert "few to show it" in found.failures("order>0.2")[0]
    assert not re.search(r"\bnan\b", (tmp_path / "a.html").read_text("utf-8"))


@pytest.mark.in_turn
def test_below_twenty_clusters_a_reason_stands_beside_every_number(items):
    found = findings(simulated(items), items)
    beyond = found.rows[found.rows.measure != "parsed"]
    assert beyond.reason.str.contains("12 effective clusters").all()
    assert (
        "A first look: 12 effective clusters (texts that share a prompt or a"
        in found.sentence
    )


@pytest.mark.in_turn
def test_every_question_has_its_share_of_changed_scores_and_its_controls(items):
    """A loop is the oracle."""
    parts = audit_requests(items, readout="score", temperature=1.0)
    answers = [rb.simulate(part, items, "unbiased") for part in parts]
    table = findings(answers, items).rows.set_index("question")
    assert table.flips[~table.section.isin(["texts", "noise"])].notna().all()
    read = ["design", "labels", "reference_score", "ordering_index"]
    wide = (
        answers[0].pivot(index="item_id", columns=read, values="score").astype("Int64")
    )
    one = wide["fixed", "numeric", "none", 1]
    again = (one != wide["fixed", "numeric", "none", 2]).mean()
    # one of five for each item
    edited = wide.sort_index(axis=1)["placebo", "numeric", "none"]
    edits = edited.ne(one, axis=0)[edited.notna()].stack().mean()
    letters = (wide["fixed", "letter", "none", 1] != one).mean()
    own = answers[1][answers[1].criterion == "clarity"].pivot(
        index="item_id", columns=["design", "ordering_index"], values="score"
    )
    rates = [(own["balanced", k] != own["fixed", 1]).mean() for k in range(1, 7)]
    assert table.effect[["asked again", "neutral edits"]].tolist() == pytest.approx(
        [again, edits]
    )
    assert table.flips[["letters", "clarity"]].tolist() == pytest.approx(
        [letters, np.mean(rates)]
    )
    said = (
        f"{100 * letters:.0f} % of the scores change, {100 * edits:.0f} % under "
        "neutral edits."
    )
    assert said in table.sentence["letters"]


@pytest.mark.in_turn
@pytest.mark.parametrize("lost", [0, 0.1])
def test_effects_are_those_of_the_statistics_that_the_chapters_use(items, lost):
    answers = simulated(items, "letter-strict")
    away = np.random.default_rng(0).random(len(answers[0])) < lost
    answers[0] = answers[0].assign(status=np.where(away, "unparsed", answers[0].status))
    table = findings(answers, items).rows.set_index("question")
    moved = rb.stability(answers[0], value="expected_score")
    moved = moved[moved.reference_score == "none"].set_index(["design", "labels"])
    plain = answers[0].query("design == 'fixed' and labels == 'numeric'")
    plain = plain[plain.reference_score == "none"]
    bias = rb.statistics.judge_bias(plain, items, value="expected_score").iloc[0]
    for question, own, columns in (
        ("letters", moved.loc["fixed", "letter"], "shift_excess{}"),
        ("Roman numerals", moved.loc["fixed", "roman"], "shift_excess{}"),
        ("descending", moved.loc["descending", "numeric"], "shift_excess{}"),
        (
            "mean score",
            bias.rename({"bias": "", "low": "_low", "high": "_high", "p": "_p"}),
            "{}",
        ),
    ):
        for name, end in (
            ("effect", ""),
            ("low", "_low"),
            ("high", "_high"),
            ("p", "_p"),
        ):
            assert table[name][question] == pytest.approx(own[columns.format(end)])


@pytest.mark.in_turn
def test_a_criterion_is_measured_by_what_is_tested(items):
    """Its effect is the gap between places that the test,
    the control and the margin are about.
    """
    middle = replace(open_profile("unbiased"), criterion_position=(0.0, 0.4, 0.0))
    answers = simulated(items, middle)
    table = turned(answers, items)
    rotated = answers[1][answers[1].design == "balanced"]
    for row in rb.criterion_order(rotated).itertuples():
        found = table.loc[row.criterion]
        assert found.effect == pytest.approx(row.delta_pos)
        assert (found.placebo, found.p_equivalent) == (
            row.delta_pos_null,
            row.p_equivalent,
        )
        assert found.low < found.effect < found.high
        assert (found.p < 0.05) == (found.low > 0)


@pytest.mark.in_turn
def test_the_interval_of_the_most_extreme_position_holds_for_all(items):
    answers = simulated(items, "first-biased")
    row = turned(answers, items).loc["position 1"]
    single = rb.position_bias(
        answers[0][answers[0].design == "balanced"], value="expected_score"
    ).iloc[0]
    n = int(single.n_clusters)
    wider = t.isf(0.005, n - 1) / t.isf(0.025, n - 1)
    half = (single.share_1_high - single.share_1_low) / 2
    assert row.effect == pytest.approx(100 * (single.share_1 - 0.2))
    assert row.high - row.effect == pytest.approx(100 * wider * half)
    assert row.p == pytest.approx(
        5 * 2 * t.sf((single.share_1 - 0.2) * t.isf(0.025, n - 1) / half, n - 1)
    )
    assert row.sentence.startswith("The judge prefers position 1: +")


@pytest.mark.in_turn
def test_without_graded_answers_the_full_mark_is_asked_about(items):
    plain = items.drop(columns=[c for c in items if c.startswith("reference_")])
    plain.rubrics = items.rubrics
    none = findings(simulated(plain), plain)
    assert "reference" not in set(none.rows.section)
    assert {"reference", "full_mark"} <= set(none.unseen)
    full = plain.assign(reference="The best answer.")
    full.rubrics = items.rubrics
    row = (
        turned(simulated(full, "reference-pulled"), full)
        .set_index("section")
        .loc["reference"]
    )
    assert row.question == "full-mark reference"
    assert row.effect > 0.5
    assert np.isfinite(row.placebo)


def test_reads_that_differ_in_their_order_only_say_nothing_about_references(items):
    """What was recorded with `reference="auto"`,
    which shows none where an item has none.
    """
    plan = rb.plan(items, [rb.balanced(5), rb.fixed(5, 2)], readout="score")
    assert set(plan.reference_score) == {"auto"}
    found = findings([rb.simulate(plan, items, "first-biased")], items)
    assert {"full_mark", "reference"} <= set(found.unseen)
    rows = on_all(found)
    assert rows.verdict["position"] == "found"
    # among orders, as there are no other edits
    assert rows.verdict["discrimination"] == "strong"
    assert found.cells.baseline.notna().all()


@pytest.mark.in_turn
def test_agreement_in_level_is_the_mean_of_its_criteria(items):
    found = findings(simulated(items), items)
    kappas = [
        quadratic_weighted_kappa(own.baseline, own.human)
        for _, own in found.cells.groupby("criterion")
    ]
    assert len(kappas) == 3
    assert on_all(found).effect["kappa"] == pytest.approx(np.mean(kappas))


@pytest.mark.in_turn
def test_a_judge_that_tells_no_text_from_another_fails(items):
    of = {"accuracy": 2.0, "helpfulness": 3.0, "clarity": 4.0}
    answers = [
        a.assign(score=a.criterion.astype("str").map(of), expected_score=np.nan)
        for a in simulated(items)
    ]
    found = findings(answers, items, "flat")
    rows = on_all(found)
    assert {"agreement", "kappa", "discrimination"} == set(
        rows.index[rows.verdict == "fails"]
    )
    assert not {"strong", "moderate", "found"} & set(rows.verdict)
    assert found.failures() == [
        "flat: every text with a score gets the same one (2, 3, 4)"
    ]
    assert found.failures("agreement<0.5")[-1] == (
        "agreement: not known: every text with a score gets the same one (2, 3, 4)"
    )


def test_a_draw_takes_whole_texts_from_as_many_prompts_as_it_can(items):
    few = drawn(items, 36, None, seed=3)
    assert few.cluster_id.nunique() == 12
    assert (few.groupby("text_id").size() == 3).all()
    assert few.cluster_id.value_counts().tolist() == [3] * 12
    assert drawn(items, None, 7).cluster_id.nunique() == 7
    assert set(drawn(items, 20, None, 3).item_id) < set(few.item_id)


def test_thresholds_never_pass_on_what_is_not_known(first):
    found, path = first
    assert found.failures("position>20, agreement<0.5") == []
    [why] = found.failures("position>5", "agreement>0.5")
    size = found.rows.set_index("measure").effect["position"]
    assert why.startswith(f"position (position 1) is {size:+.2f} percentage points [+")
    assert why.endswith("]: fails at > 5")
    [unseen] = found.failures(require="drift_score<0.5")
    assert (
        unseen == "drift_score: this design cannot see it: no other audit was compared"
    )
    with pytest.raises(
        ValueError, match=r"'ordr>1' is not a threshold.*parsed, agreement, kappa"
    ):
        found.failures("ordr>1")
    worst = found.rows[found.rows.measure == "criteria"].effect.abs().max()
    assert found.failures(f"criteria>{worst - 0.001}")
    assert not found.failures(f"criteria>{worst + 0.001}")
    assert_judge(found, "agreement>0.5, labels<0.2")
    with pytest.raises(AssertionError, match=r"position .* must be < 5") as raised:
        assert_judge(path.with_suffix(".json"), "position<5, agreement>0.99, kappa>-1")
    assert str(raised.value).count("\n") == 1


def test_every_measure_says_what_it_is_and_is_on_the_page_about_audits():
    text = (Path(__file__).parents[2] / "book/audit.md").read_text("utf-8")
    for name, known in MEASURES.items():
        assert f"| `{name}` | {known['means']} | {known['unit']} |" in text, name


@pytest.mark.in_turn
def test_two_judges_are_compared_text_by_text(items):
    """The difference of two means is that of a loop;
    one that is another judge's copy is not.
    """
    one, two = (
        findings(simulated(items, name), items, name)
        for name in ("unbiased", "letter-strict")
    )
    rows = (
        beside(one, two).rows.set_index("measure").loc[["drift_score", "drift_effect"]]
    )
    wide = [a.cells.set_index("item_id") for a in (one, two)]
    gap = (wide[1].baseline - wide[0].baseline).mean()
    assert rows.effect["drift_score"] == pytest.approx(gap)
    letters = rows.set_index("question").loc["letters"]
    effect = [(w.letters - w.placebo).mean() for w in wide]
    assert (letters.a, letters.b) == (
        pytest.approx(effect[0]),
        pytest.approx(effect[1]),
    )
    assert letters.verdict == "found"
    same = beside(one, one).rows.set_index("measure")
    assert same.effect[
        ["drift_score", "drift_changed", "drift_agreement"]
    ].tolist() == [0, 0, 0]
    assert not (same.verdict[same.section == "against"] == "found").any()
    moved = one.cells.assign(item_id="other/" + one.cells.item_id)
    with pytest.raises(ValueError, match="no item in common"):
        beside(replace(one, cells=moved), two)


def of_systems(shifts, rng, n=30, named=True):
    """Two audits of the same texts by systems,
    each of which the second judge shifts.
    """
    k = len(shifts)
    quality, system = rng.uniform(2, 4, (n, k)), np.tile([*range(k)], n)
    sides = [
        quality + rng.normal(0, 0.3, (n, k)),
        quality + shifts + rng.normal(0, 0.3, (n, k)),
    ]
    return [
        rb.audit(
            judgments=pd.DataFrame(
                {
                    "item_id": [
                        f"{t}/{s}"
                        for t, s in zip(np.repeat(range(n), k), system, strict=True)
                    ],
                    "cluster_id": np.repeat(range(n), k),
                    "score": side.ravel(),
                    **({"candidate": system} if named else {}),
                }
            ),
            scale=(1, 5),
        )
        for side in sides
    ]


@pytest.mark.in_turn
def test_two_judges_are_compared_by_systems(tmp_path):
    """The interval is for a further system,
    and is as wide however many texts there are.
    """
    shifts = np.array([0.5, -0.3, 0.1, 0.4])
    ends = []
    for n in (20, 200):
        then, now = of_systems(shifts, np.random.default_rng(3), n)
        then.save(tmp_path / f"{n}.html")
        found = beside(rb.auditing.read_audit(tmp_path / f"{n}.json"), now)
        row = found.rows.set_index("measure").loc["drift_systems"]
        assert row.effect == pytest.approx(shifts.mean(), abs=0.1)
        assert row.verdict == "measured"
        assert "score all of them with one judge" in row.advice
        numbers = row.codes[0].numbers
        assert numbers["lowest"] == pytest.approx(-0.3, abs=0.2)
        assert numbers["tau"] <= 1
        ends.append((row.low, row.high))
    reach = 3.182 * shifts.std(ddof=1) * np.sqrt(1.25)
    assert (ends[1][1] - ends[1][0]) / 2 == pytest.approx(reach, rel=0.15)
    assert ends[1][1] - ends[1][0] > 0.7 * (ends[0][1] - ends[0][0])


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("shifts", "named"), [((0.1, 0.3), True), ((0.1, 0.3, 0.2), False)]
)
def test_without_three_systems_the_comparison_says_that_it_cannot_see_them(
    shifts, named
):
    found = beside(*of_systems(np.array(shifts), np.random.default_rng(2), named=named))
    assert "drift_systems" not in set(found.rows["measure"])
    assert "three or more systems" in found.unseen["drift_systems"]


def noisy(quality, rng, shift=0.0, reads=2):
    """An audit of a judge whose answers to one prompt differ."""
    n = len(quality)
    score = np.clip(np.round(quality + shift + rng.normal(0, 0.6, (reads, n))), 1, 5)
    table = pd.DataFrame(
        {
            "item_id": np.tile([f"t{i}" for i in range(n)], reads),
            "score": score.ravel(),
            "read": np.repeat(range(reads), n),
        }
    )
    return rb.audit(judgments=table, scale=(1, 5))


@pytest.mark.in_turn
def test_an_unchanged_noisy_judge_has_not_drifted_and_a_changed_one_has():
    rng = np.random.default_rng(4)
    quality = rng.uniform(1, 5, 60)
    audits = [beside(noisy(quality, rng), noisy(quality, rng)) for _ in range(12)]
    rows = [found.rows.set_index("measure") for found in audits]
    text = (Path(__file__).parents[2] / "book/audit.md").read_text("utf-8")
    gate = re.search(r'--against .*--fail-on "([^"]+)"', text).group(1)
    assert "drift_changed" in gate
    assert sum(bool(found.failures(gate)) for found in audits) <= binom.ppf(
        0.999, 12, 0.05
    )
    changed = pd.DataFrame([found.loc["drift_changed"] for found in rows])
    # half of the answers differ, as when asked again
    assert (changed.flips > 0.4).all()
    assert abs(changed.effect.mean()) < 0.05
    assert not (changed.verdict == "found").any()
    moved = beside(noisy(quality, rng), noisy(quality, rng, shift=-2))
    row = moved.rows.set_index("measure").loc["drift_changed"]
    assert row.effect > 0.2
    assert row.low > 0
    once = beside(noisy(quality, rng, reads=1), noisy(quality, rng))
    row = once.rows.set_index("measure").loc["drift_changed"]
    assert np.isnan(row.effect)
    assert "asked twice" in row.reason
    assert (
        "not known: no prompt was asked twice" in once.failures("drift_changed>0.25")[0]
    )


def test_an_audit_of_before_answers_were_kept_says_why_it_cannot_compare_them(tmp_path):
    quality = np.random.default_rng(5).uniform(1, 5, 40)
    now = noisy(quality, np.random.default_rng(6))
    before = replace(
        now, cells=now.cells.drop(columns=["first_answer", "second_answer"])
    )
    row = beside(before, now).rows.set_index("measure").loc["drift_changed"]
    assert np.isnan(row.effect)
    assert row.reason


@pytest.mark.slow
def test_drift_asks_anew_and_refuses_another_judge_unannounced(few, tmp_path, capsys):
    """A point less than in the stored audit, by a judge whose name is the same."""
    lost = []
    with endpoint(by_length(lost)) as (url, received):
        how = {"readout": "feedback", "store": tmp_path / "s.sqlite"}
        spec = f"openai:m@{url}"
        rb.audit(spec, few, tmp_path / "then.html", **how)
        n = len(received)
        lost.append(1)
        now = rb.audit(spec, few, against=tmp_path / "then.json", **how)
        assert len(received) == 2 * n
        row = now.rows.set_index("measure").loc["drift_score"]
        assert row.effect == -1
        assert "drift_score" in now.failures("drift_score>0.2")[0]
        assert now.failures("drift_changed>0.5")
        # of today: not asked again
        rb.audit(spec, few, against=tmp_path / "then.json", **how)
        assert len(received) == 2 * n
        with pytest.raises(
            ValueError, match=r"the model has changed since .*--compare"
        ):
            rb.audit(f"openai:n@{url}", few, against=tmp_path / "then.json", **how)
        with pytest.raises(
            ValueError, match=r"the model has changed .* temperature was"
        ):
            rb.audit(spec, few, against=tmp_path / "then.json", temperature=1.0, **how)
        assert len(received) == 2 * n


LOG = pd.DataFrame(
    {
        "item_id": [f"t{i}" for i in range(30) for _ in range(2)],
        "read": [1, 2] * 30,
        "judge": "mine",
        "form": "short",
        "score": [1 + (i + r) % 5 for i in range(30) for r in (0, i % 3 == 0)],
        "human": [1 + i % 5 for i in range(30) for _ in range(2)],
    }
)


@pytest.mark.in_turn
def test_judgments_from_elsewhere_are_audited_without_asking_anyone(tmp_path):
    LOG.to_csv(tmp_path / "log.csv", index=False)
    found = rb.audit(judgments=tmp_path / "log.csv", scale=(1, 5))
    rows = found.rows.set_index("measure")
    assert rows.effect["reask"] == pytest.approx(1 / 3)
    assert rows.effect["agreement"] > 0.9
    assert rows.effect["discrimination"] > 0.5
    assert found.design["settings"] is None
    assert set(found.unseen) >= {"position", "order", "labels", "reference", "criteria"}
    [why] = found.failures("order>0.2")
    assert why == (
        "order: this design cannot see it: ascending and descending order were not "
        "compared by themselves; “position” is about balanced orders"
    )
    two = pd.concat([LOG, LOG.assign(form="long", score=6 - LOG.score)])
    with pytest.raises(ValueError, match=r"template long.*--compare A B"):
        rb.audit(judgments=two, scale=(1, 5))
    short, long = (
        rb.audit(name, judgments=two, scale=(1, 5)) for name in ("short", "long")
    )
    row = beside(short, long).rows.set_index("measure").loc["drift_agreement"]
    assert row.effect < -1.5


def log_of(score, human, scale=(1, 5), **columns):
    """An audit of one read a text, each of a question of its own."""
    names = [f"t{i}" for i in range(len(score))]
    table = pd.DataFrame({"item_id": names, "score": score, "human": human, **columns})
    return rb.audit(judgments=table, scale=scale)


@pytest.fixture(scope="module")
def rated():
    """Ratings of 160 texts of 40 prompts on three criteria,
    and a judge that repeats them.
    """
    rng = np.random.default_rng(3)
    quality = rng.normal(3, 1.2, 160)
    table = pd.DataFrame(
        {"item_id": [f"t{i}" for i in range(160)], "group_id": np.arange(160) // 4}
    )
    for name in ("tone", "accuracy", "depth"):
        ratings = np.clip(np.round(quality + rng.normal(0, 0.5, 160)), 1, 5)
        table[name] = table[f"human_{name}"] = ratings
    return table


CRITERIA = ["tone", "accuracy", "depth"]


def of_criteria(table):
    return rb.audit(judgments=rb.judgments(table, scale=(1, 5), scores=CRITERIA))


def test_a_reversed_criterion_is_named_first_and_decides_at_the_gate(rated, tmp_path):
    """The mean over criteria of r = 1, −1 and 1 is +0.33, which hides it."""
    found = of_criteria(rated.assign(accuracy=6 - rated.accuracy))
    rows = found.rows[found.rows.measure == "agreement"].set_index("criterion")
    assert rows.effect.to_dict() == pytest.approx(
        {"": 1 / 3, "tone": 1, "accuracy": -1, "depth": 1}
    )
    assert rows.verdict[["tone", "accuracy", "depth"]].tolist() == [
        "strong",
        "reversed",
        "strong",
    ]
    assert "gives low scores on accuracy where people would give high" in found.sentence
    assert (
        "agrees strongly with people on tone and depth (r +1.00, +1.00)"
        in found.sentence
    )
    assert "accuracy) is r −1.00" in found.failures("agreement<0.3")[0]
    with pytest.raises(AssertionError, match="agreement: accuracy"):
        assert_judge(found, "agreement>0.3")
    assert "agreement: accuracy" in [*found.top.question]
    level = found.rows[found.rows.measure == "bias"].set_index("criterion")
    assert np.isnan(level.effect["accuracy"])
    assert "reversed" in level.reason["accuracy"]
    found.save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "the opposite of “Its scores rise with the ratings (accuracy)” holds" in page
    assert read_audit(tmp_path / "a.json").sentence == found.sentence


@pytest.mark.in_turn
def test_a_constant_criterion_fails_and_r_is_the_mean_of_the_others(rated):
    noisy = np.clip(rated.tone + np.tile([0, 1, -1, 0], 40), 1, 5)
    found = of_criteria(rated.assign(tone=noisy, depth=3))
    rows = found.rows[found.rows.measure == "agreement"].set_index("criterion")
    r = [np.corrcoef(noisy, rated.human_tone)[0, 1], 1.0]
    assert rows.effect[["tone", "accuracy"]].tolist() == pytest.approx(r)
    assert rows.effect[""] == pytest.approx(np.mean(r))
    assert rows.reason[""] == "without depth"
    assert rows.verdict["depth"] == "fails"
    assert "but never varies its score on depth" in found.sentence
    assert found.failures() == [
        "the judge: depth: every text with a score gets the same one (3)"
    ]
    assert "not known" in found.failures(require="agreement>0.5")[1]
    one = log_of(np.full(40, 4), np.tile([1, 3, 4, 5], 10)).rows.set_index("measure")
    assert one.verdict[["agreement", "kappa"]].tolist() == ["fails", "fails"]


@pytest.mark.in_turn
def test_a_shift_on_one_criterion_is_not_spread_over_all(rated):
    found = of_criteria(rated.assign(depth=np.minimum(5, rated.depth + 1)))
    gap = (np.minimum(5, rated.depth + 1) - rated.depth).mean()
    assert f"scores {gap:.2f} points higher than people on depth" in found.sentence
    higher = rated.assign(**{c: np.minimum(5, rated[c] + 1) for c in ("tone", "depth")})
    gaps = [(higher[c] - rated[c]).mean() for c in ("tone", "depth")]
    said = (
        f"scores {gaps[0]:.2f}, {gaps[1]:.2f} points higher than people on tone and "
        "depth"
    )
    assert said in of_criteria(higher).sentence


def criteria_of_raters(truth, scores, rng, noise=0.9):
    """A log: three raters err on their own, and the judge gives these scores, asked
    twice. Shapes (texts, criteria) and (texts, criteria, reads).
    """
    raters = np.clip(
        np.round(truth[..., None] + rng.normal(0, noise, (*truth.shape, 3))), 1, 5
    )
    return pd.concat(
        pd.DataFrame(
            {
                "item_id": [f"t{i}" for i in range(len(truth))],
                "group_id": np.arange(len(truth)) // 2,
                "criterion": f"c{c}",
                "score": scores[:, c, read],
                "read": read + 1,
                "human": raters[:, c].mean(axis=1),
                "human_ratings": [*map(tuple, raters[:, c])],
            }
        )
        for c in range(truth.shape[1])
        for read in range(scores.shape[2])
    )


def planted_truth(rng, shared, n=120):
    """True scores of three criteria that share a part of their variance."""
    own = rng.normal(size=(n, 3)) * np.sqrt(1 - shared)
    return np.clip(
        np.round(3 + 1.2 * (np.sqrt(shared) * rng.normal(size=(n, 1)) + own)), 1, 5
    )


def asked_twice(scores, rng):
    """An answer in ten is off by one when asked again."""
    off = rng.choice([-1, 0, 1], (*scores.shape, 2), p=[0.05, 0.9, 0.05])
    return np.clip(scores[..., None] + off, 1, 5)


def halo_of(log):
    found = rb.audit(judgments=log, scale=(1, 5))
    return found, found.rows.set_index("measure").loc["halo"]


def test_raters_who_err_are_no_halo_of_a_judge_that_does_not():
    rng = np.random.default_rng(0)
    truth = planted_truth(rng, 0.95)
    log = criteria_of_raters(truth, asked_twice(truth, rng), rng)
    found, row = halo_of(log)
    means = log.drop_duplicates(["item_id", "criterion"])
    people = means.pivot(index="item_id", columns="criterion", values="human")
    uncorrected = people.corr().to_numpy()[np.triu_indices(3, 1)].mean()
    assert uncorrected < 0.8  # the same texts are said to differ more by people
    assert abs(row.effect) < 0.1
    assert row.verdict != "found"
    assert "less apart" not in found.sentence


def test_one_impression_on_all_criteria_is_a_halo():
    rng = np.random.default_rng(0)
    truth = planted_truth(rng, 0.4)
    impression = np.round(truth.mean(axis=1, keepdims=True)) + np.zeros((1, 3))
    found, row = halo_of(criteria_of_raters(truth, asked_twice(impression, rng), rng))
    assert row.low < row.effect < row.high
    assert row.verdict == "found"
    assert "tells criteria less apart than people do (r +0." in found.sentence
    assert row.advice == MEASURES["halo"]["act"]
    assert "both corrected for reliability" in row.reason


def test_a_halo_needs_the_reliability_of_both_sides_and_ratings_of_people(rated, items):
    rng = np.random.default_rng(0)
    truth = planted_truth(rng, 0.5)
    log = criteria_of_raters(truth, asked_twice(truth, rng), rng)
    once = log.drop_duplicates(["item_id", "criterion"])
    for lacking, side in (
        (once, "its scores have no known reliability"),
        (log.drop(columns="human_ratings"), "the ratings have no known reliability"),
    ):
        found = rb.audit(judgments=lacking, scale=(1, 5))
        assert side in found.unseen["halo"]
        assert "halo" not in set(found.rows.measure)
    designed = findings(simulated(items), items)
    assert "designed" in designed.unseen["halo"]
    assert "halo" not in set(designed.rows.measure)


def side_of(reads):
    """Means and the variances of their errors, of (texts, criteria, reads)."""
    k = reads.shape[2]
    return np.hstack(
        [reads.mean(axis=2) - reads.mean(axis=(0, 2)), reads.var(axis=2, ddof=1) / k]
    )


def test_corrected_correlations_are_spearmans():
    rng = np.random.default_rng(1)
    truth = planted_truth(rng, 0.5)
    reads = truth[..., None] + rng.normal(0, 0.8, (120, 3, 4))
    r, reliability = correlation_of_criteria(
        criteria_sums(side_of(reads), 3).sum(axis=0), 3
    )
    means = reads.mean(axis=2)
    error = reads.var(axis=2, ddof=1).mean(axis=0) / 4
    kept = 1 - error / means.var(axis=0, ddof=1)
    corrected = np.corrcoef(means.T) / np.sqrt(np.outer(kept, kept))
    assert r == pytest.approx(corrected[np.triu_indices(3, 1)].mean())
    assert reliability == pytest.approx(kept.mean())


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.3, 0.95])
def test_noisy_raters_make_a_halo_in_at_most_a_twentieth_of_studies(shared):
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        truth = planted_truth(rng, shared)
        raters = np.clip(
            np.round(truth[..., None] + rng.normal(0, 0.9, (120, 3, 3))), 1, 5
        )
        sides = [asked_twice(truth, rng), raters]
        sums = np.stack([criteria_sums(side_of(side), 3) for side in sides], axis=1)
        gap = jackknife(
            sums,
            np.arange(120) // 2,
            lambda one: -np.diff(correlation_of_criteria(one, 3)[0])[..., 0],
        )
        found.append(gap.low > 0.1)
    assert binom.cdf(sum(found) - 1, 400, 0.05) < 0.999


def reads(score, human, **columns):
    """An audit of several reads a text: `score` has the shape (reads, texts)."""
    k, n = np.shape(score)
    table = pd.DataFrame(
        {
            "item_id": np.tile([f"t{i}" for i in range(n)], k),
            "read": np.repeat(range(k), n),
            "score": np.ravel(score),
            "human": np.tile(human, k),
        }
    )
    return rb.audit(judgments=table.assign(**columns), scale=(1, 5))


def test_agreement_of_a_mean_of_reads_says_what_one_read_reaches():
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 80)
    score = np.clip(human + rng.integers(-2, 3, (6, 80)), 1, 5)
    found = reads(score, human).rows.set_index("measure").loc["agreement"]
    one = np.corrcoef(score.ravel(), np.tile(human, 6))[0, 1]
    assert found.effect > one + 0.1
    assert f"is the mean of 6 reads; of a single read r is +{one:.2f}" in found.reason
    assert found.reason.split(".")[0] in found.sentence


def test_nearly_constant_scores_and_ratings_are_said():
    human = np.tile([1, 2, 3, 4, 5], 32)
    score = np.where(np.arange(160) == 5, 5, 4)
    systems = {"candidate": np.tile([*"abcd"], 40), "group_id": np.repeat(range(40), 4)}
    one, two = (log_of(*pair, **systems) for pair in ((score, human), (human, score)))
    assert (
        "99.4 % of the scores are 4"
        in one.rows.set_index("measure").reason["agreement"]
    )
    rows = two.rows.set_index("measure")
    assert "99.4 % of the ratings are 4" in rows.reason["agreement"]
    assert np.isnan(rows.effect["systems"])  # one rating decides this ranking
    assert "systems lie less than 0.1 points apart" in rows.reason["systems"]


def test_two_scales_are_not_taken_for_severity():
    human = np.tile([1, 2, 3, 4, 5, 3], 20)
    found = log_of(20 * human, human, scale=(0, 100))
    row = found.rows.set_index("measure").loc["bias"]
    assert (
        "Are both on one scale? The scores are 20 to 100, the ratings 1 to 5"
        in row.sentence
    )
    assert "higher than people (are both on one scale?)" in found.sentence
    assert "one scale" not in log_of(np.minimum(human + 1, 5), human).sentence


def test_a_judge_of_prompts_is_said_not_to_separate_their_answers():
    human = np.tile([1, 2, 3, 4, 5, 3, 2, 4], 20)
    group = np.repeat(range(40), 4)
    found = log_of(np.array([2, 4])[group % 2], human, group_id=group)
    assert (
        "gives the same score to 100 % of the pairs of texts of one cluster"
        in found.sentence
    )


def test_too_few_effective_clusters_show_no_interval():
    human = np.tile([1, 2, 3, 4, 5], 32)
    names = np.where(np.arange(160) < 120, "big", [f"c{i}" for i in range(160)])
    row = (
        log_of(human, human[::-1], cluster_id=names)
        .rows.set_index("measure")
        .loc["agreement"]
    )
    assert row[["low", "high"]].isna().all()
    assert row.sentence.endswith(
        "; 2 effective clusters: too few to say anything about other texts."
    )


def test_people_among_themselves_stand_beside_the_judge():
    rng = np.random.default_rng(0)
    true = rng.integers(1, 6, 200)
    raters = np.clip(np.round(true + rng.normal(0, 1, (3, 200))), 1, 5)
    table = pd.DataFrame(raters.T, columns=["a", "b", "c"]).assign(
        score=true, item_id=range(200)
    )
    log = rb.judgments(
        table, scale=(1, 5), columns=dict.fromkeys("abc", "human_ratings")
    )
    row = rb.audit(judgments=log).rows.set_index("measure").loc["ceiling"]
    assert row.verdict == "measured"
    assert row.effect == pytest.approx(
        np.corrcoef(true, raters.mean(axis=0))[0, 1], abs=0.03
    )


def test_a_few_rated_texts_give_no_verdict_and_are_counted(tmp_path):
    rng = np.random.default_rng(0)
    human = np.full(120, np.nan)
    score = rng.integers(1, 6, 120)
    score[:3] = human[:3] = [1, 3, 5]
    found = log_of(score, human)
    row = found.rows.set_index("measure").loc["agreement"]
    assert row.effect == pytest.approx(1)
    assert row.verdict == "inconclusive"
    assert "3 effective clusters: too few" in row.reason
    assert found.failures("agreement<0.5") == [
        "agreement: 3 effective clusters: too few to show it"
    ]
    found.save(tmp_path / "few.html")
    assert "3 of the items are rated" in (tmp_path / "few.html").read_text()


@pytest.mark.in_turn
def test_a_perfect_ranking_is_shown_only_if_its_interval_says_so():
    """Judges of pure noise rank three systems as people do in one study out of six."""
    rng = np.random.default_rng(0)
    verdicts = []
    for _ in range(40):
        human, score = rng.integers(1, 6, (2, 45))
        systems = {"candidate": list("abc") * 15, "group_id": np.repeat(range(15), 3)}
        row = log_of(score, human, **systems).rows.set_index("measure").loc["systems"]
        verdicts.append((row.effect, row.verdict))
        assert (row.verdict in ("strong", "moderate")) == (row.low > 0.3)
    assert sum(effect == 1 for effect, _ in verdicts) > 2
    assert sum(verdict in ("strong", "moderate") for _, verdict in verdicts) <= 4


@pytest.mark.parametrize("scale", [(0, 1), (1, 5), (0, 10)])
def test_what_is_too_little_to_matter_is_a_part_of_the_scale(scale):
    """The same scores on three scales have the same verdict:
    a bias of an eighth of the span.
    """
    rng = np.random.default_rng(1)
    human = rng.uniform(0.1, 0.8, 80)
    score = human + 0.08 + rng.normal(0, 0.01, 80)
    low, span = scale[0], scale[1] - scale[0]
    row = log_of(low + span * score, low + span * human, scale).rows.set_index(
        "measure"
    )
    assert row.verdict["bias"] == "found"


def test_scores_are_shown_as_they_were_given():
    share = np.random.default_rng(0).uniform(0.55, 0.95, 60)
    old, new = (log_of(s, np.round(share), (0, 1)) for s in (share, share - 0.25))
    (shares,) = old.charts["scores"].values()
    assert set(shares) <= {"0.5", "0.6", "0.7", "0.8", "0.9", "1"}
    changed = beside(old, new).rows.set_index("measure").loc["drift_changed"]
    assert changed.flips == pytest.approx(1)
    # read once: nothing says what asking again would change
    assert np.isnan(changed.effect)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"judgments": LOG, "n_items": 3, "max_cost": 1.0},
            "leave out n_items, max_cost",
        ),
        (
            {"judgments": LOG.assign(human=9)},
            r"column 'human': 9 is outside 1\.\.5; rescale",
        ),
        (
            {
                "judgments": pd.concat(
                    [
                        LOG.assign(ordering="1-2-3-4-5"),
                        LOG.assign(score=1 + LOG.score % 2, ordering="2-1"),
                    ]
                )
            },
            "one scale for each criterion, but the orderings of .* list 2, 5 options",
        ),
    ],
)
def test_judgments_that_do_not_fit_together_are_refused_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        rb.audit(scale=(1, 5), **given)


@pytest.mark.parametrize("name", ["n_items", "n_prompts"])
def test_a_draw_of_nothing_is_refused(items, name):
    with pytest.raises(ValueError, match=f"{name} is 0: give 1 or more"):
        rb.audit("simulated:unbiased", items, **{name: 0})


def command(folder, *arguments, **environment):
    """The command as typed in a folder, but in this process."""
    with chdir(folder):
        store = {"RUBRICNB_STORE": str(folder / "s.sqlite")}
        return CliRunner().invoke(app, ["audit", *arguments], env=store | environment)


@pytest.mark.in_turn
def test_a_comparison_prints_its_differences_and_names_both_sides(tmp_path):
    pd.concat([LOG, LOG.assign(form="long", score=6 - LOG.score)]).to_csv(
        tmp_path / "l.csv"
    )
    done = command(
        tmp_path, "--judgments=l.csv", "--scale", "1", "5", "--compare", "short", "long"
    )
    assert "mine, short agrees" in done.stdout
    assert "mine, long gives low scores" in done.stdout
    assert "Agreement with people differs: r −" in done.stdout
    page = (tmp_path / "audit.html").read_text("utf-8")
    assert "Audit of mine, long and mine, short" in page
    assert "The effect of" not in page  # the log has one condition only


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--judge mien", r"nothing in the judgments is named 'mien'; .*judge mine"),
        ("--fail-on=", r"'' is not a threshold \(is a variable unset\?\)"),
        ("--output /proc/a.html", "/proc/a.html cannot be written: "),
        ("--rubric r.yml", "r.yml describes the texts in --path"),
        ("--against nope.json", "there is no nope.json: give the .json"),
    ],
)
def test_a_mistake_is_named_before_the_work(line, said, tmp_path):
    LOG.to_csv(tmp_path / "l.csv")
    done = command(tmp_path, *f"--judgments l.csv --scale 1 5 {line}".split())
    assert done.exit_code == 1
    assert re.search(said, done.stderr)
    assert done.stdout == ""
    assert not (tmp_path / "audit.html").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("simulated:nobody", "no simulated profile 'nobody'"),
        ("simulated:nobody --cost", "no simulated profile 'nobody'"),
        ("simulated:unbiased --n-items 3", "1.0 effective clusters"),
        ("simulated:unbiased --max-calls=-1", "max_calls = -1"),
        ("simulated:unbiased --template nope.jinja", "nope.jinja"),
    ],
)
def test_an_error_comes_alone_and_not_after_an_estimate(line, said, tmp_path):
    done = command(tmp_path, "--judge", *line.split())
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_empty_threshold_does_not_open_the_gate(tmp_path):
    found = rb.audit("short", judgments=LOG, scale=(1, 5))
    with pytest.raises(ValueError, match="is a variable unset"):
        assert_judge(found, "")
    with pytest.raises(ValueError, match=r"there is no .*nope.json"):
        assert_judge(tmp_path / "nope.json", "parsed>0.9")
    assert found.failures("agreement<=0.99")


def test_texts_without_a_prompt_are_said_to_be_clusters_of_their_own():
    said = "Each text counts as a cluster of its own"
    score = np.tile([1, 2, 3, 4], 10)
    assert said in log_of(score, score).sentence
    assert said not in log_of(score, score, group_id=np.repeat(range(20), 2)).sentence


def test_judges_in_columns_are_not_taken_for_criteria_in_silence(capsys):
    table = (
        LOG.drop_duplicates("item_id").rename(columns={"score": "gpt"}).assign(haiku=3)
    )
    rb.judgments(table.drop(columns="read"), scale=(1, 5), scores=["gpt", "haiku"])
    assert (
        "gpt, haiku are read as criteria, and 'human' rates them all"
        in capsys.readouterr().out
    )


@pytest.mark.slow
def test_a_team_s_gate(tmp_path):
    """A constant judge ends in 3 with one line,
    a silent one in 1 with one line and no page.
    """

    def constant(payload, headers):
        return 200, completion("Fine. [RESULT] 3"), {}

    with endpoint(constant) as (url, received):
        words = "--readout feedback --n-items 36 -o concurrency=8 --json"
        done = command(tmp_path, "--judge", f"openai:m@{url}", *words.split())
        assert done.exit_code == 3, done.stderr
        assert (
            done.stderr.splitlines()[-1]
            == "failed: m: every text with a score gets the same one (3)"
        )
        assert json.loads(done.stdout)["judge"] == "m"
        assert (tmp_path / "audit.html").exists()
        n = len(received)
        wrong = command(tmp_path, "--judge", f"openai:m@{url}", "--fail-on", "ordr>1")
        assert (wrong.exit_code, len(received)) == (1, n)
        over = command(
            tmp_path, "--judge", f"openai:m@{url}", "--against", "audit.json"
        )
        assert "would be overwritten" in over.stderr
    (tmp_path / "audit.html").unlink()

    def silent(payload, headers):
        return 200, completion("Bewertung: 3 von 4"), {}

    with endpoint(silent) as (url, received):
        done = command(
            tmp_path,
            "--judge",
            f"openai:m@{url}",
            "--readout",
            "feedback",
            RUBRICNB_STORE=str(tmp_path / "other.sqlite"),
        )
        assert done.exit_code == 1
        assert len(done.stderr.strip().splitlines()) == 1
        assert "gave no score in any of" in done.stderr
        assert "unparsed" in done.stderr
        assert len(received) < 30  # not asked everything
    assert not (tmp_path / "audit.html").exists()


@pytest.fixture
def own(thirty_rows):
    folder = thirty_rows()
    return rb.load("csv", path=folder / "my_data.csv", rubric=folder / "my_rubric.yml")


def test_what_one_s_own_prompt_cannot_ask_is_said(own, tmp_path, capsys):
    (tmp_path / "p.jinja").write_text("{{ criterion }}? {{ response }} Say: Score: N")

    def mine(messages):
        return f"Score: {min(3, messages[-1]['content'].count('thanks'))}"

    found = rb.audit(
        mine,
        own,
        template=tmp_path / "p.jinja",
        parser=r"Score: (\d)",
        store=":memory:",
    )
    assert found.judge == "mine-p"
    assert {"order", "labels", "criteria", "edits"} <= set(found.unseen)
    [why] = found.failures("order>0.2")
    assert (
        "p.jinja has no slot options: other orders of the options cannot be asked"
        in why
    )
    assert on_all(found).verdict["agreement"] in ("strong", "moderate")


def test_an_export_with_its_own_names_of_columns_is_audited(tmp_path):
    """The columns are renamed, a criterion has a column each,
    and -1 marks a lost answer.
    """
    kind = LOG.score.to_list()
    export = pd.DataFrame(
        {"traceId": LOG.item_id, "n": LOG.read, "kind": [-1, *kind[1:]], "useful": kind}
    )
    export.to_csv(tmp_path / "export.csv", index=False)
    names = [
        "--columns",
        "traceId=item_id,n=read",
        "--scores",
        "kind,useful",
        "--failed",
        "-1",
    ]
    line = ["--judgments", "export.csv", "--scale", "1", "5"]
    done = command(tmp_path, *line, *names)
    assert done.exit_code == 0, done.stderr
    found = read_audit(tmp_path / "audit.json")
    assert found.status == {"ok": 119, "unparsed": 1}
    assert found.rows.set_index("measure").n_clusters["reask"] == 30
    assert found.design["n_items"] == 60
    wrong = command(tmp_path, *line, "--columns", "traceId")
    assert "'traceId': columns are given as NAME=VALUE" in wrong.stderr
    alone = command(tmp_path, "--judge", "simulated:unbiased", "--failed", "-1")
    assert "describe --judgments FILE" in alone.stderr


@pytest.mark.parametrize(
    "door", [rb.audit, lambda items, judge: rb.plan(judge, rb.balanced(5))]
)
def test_a_judge_in_the_place_of_the_items_is_named(door):
    with pytest.raises(TypeError, match=r"items .* are a table, not this"):
        door(rb.load("minibench", n_items=5), "simulated:unbiased")
