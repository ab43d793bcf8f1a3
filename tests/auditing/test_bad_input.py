"""Too little, too much of one kind, or nothing: an audit says of it what is true."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import rubricnb as rb
from rubricnb.core.contract import JudgeError
from rubricnb.core.support.naming import CannotShow

RUBRIC = """\
- {rubric_id: a, criterion: quality, definition: "Is it good?", levels:
   {1: Bad., 2: Poor., 3: Fair., 4: Good., 5: Great.}}
"""
FALSE = re.compile(r"\b1 (clusters|prompts|texts|items)\b|\bnan\b|None\b|\binf\b")


def items_of(folder, prompts, texts, human):
    """Texts of some prompts, with these ratings in turn."""
    n = prompts * texts
    table = {
        "instruction": [f"Question {i // texts}?" for i in range(n)],
        "response": [f"Text {i}." for i in range(n)],
    }
    if human:
        table["human"] = np.resize(human, n)
    pd.DataFrame(table).to_csv(folder / "i.csv", index=False)
    (folder / "r.yml").write_text(RUBRIC)
    return rb.load("csv", path=folder / "i.csv", rubric=folder / "r.yml")


def named(prompt, score):
    if "Score A:" in prompt:
        return "EDCBA"[score - 1]
    roman = ("i", "ii", "iii", "iv", "v")
    return roman[score - 1] if "Score ii:" in prompt else str(score)


def number_of(prompt):
    return int(re.search(r"Text (\d+)\.", prompt)[1])


def right(prompt):
    return f"[RESULT] {named(prompt, 1 + number_of(prompt) % 5)}"


def three(prompt):
    return f"[RESULT] {named(prompt, 3)}"


def every_second(prompt):
    return right(prompt) if number_of(prompt) % 2 else "I cannot say."


def silent(prompt):
    return ""


def audited(folder, judge, prompts, texts, human=(1, 2, 3, 4, 5)):
    items = items_of(folder, prompts, texts, human)

    def asked(messages):
        return judge(messages[-1]["content"])

    kept = {"store": ":memory:", "readout": "feedback", "force": True}
    found = rb.audit(asked, items, **kept)
    hold_what_can_be(found)
    return found


def log(score, human, **columns):
    names = [f"t{i}" for i in range(len(score))]
    return pd.DataFrame({"item_id": names, "score": score, "human": human, **columns})


def hold_what_can_be(found):
    """No impossible number, no interval without a width, no broken sentence."""
    most = {"r": 1, "κ": 1, "τ": 1, "share of scores": 1, "share of answers": 1}
    for row in found.rows.to_dict("records"):
        low, high = row["low"], row["high"]
        assert np.isnan(low) == np.isnan(high), row["measure"]
        assert np.isnan(low) or low < high, row["sentence"]
        limit = most.get(row["unit"], np.inf)
        for end in (row["effect"], low, high):
            assert not abs(end) > limit, row["sentence"]
        if row["unit"].startswith("share") and low == low:
            assert low >= 0
        assert not FALSE.search(row["sentence"] + row["advice"]), row["sentence"]
    assert not FALSE.search(found.sentence), found.sentence


def verdicts(found):
    return found.rows.groupby("measure")["verdict"].agg(set)


@pytest.mark.parametrize(("prompts", "texts"), [(1, 1), (2, 1), (2, 3), (4, 2)])
def test_of_fewer_than_five_prompts_nothing_is_said_of_others(prompts, texts, tmp_path):
    found = audited(tmp_path, right, prompts, texts)
    told = verdicts(found).drop(["parsed"])
    assert set.union(*told) == {"inconclusive"}, told
    assert f"A first look: {prompts} effective cluster" in found.sentence
    few = found.rows[found.rows["measure"] != "parsed"]
    assert few["reason"].str.contains("too few to say anything about other texts").all()
    assert few["advice"].str.startswith("Judge more texts").all()


def test_one_text_has_no_correlation_and_bounds_nothing(tmp_path):
    found = audited(tmp_path, right, 1, 1).rows.set_index("measure")
    assert "a correlation needs at least three" in found.sentence["agreement"]
    assert not found["sentence"].str.contains("No score changed").any()
    assert "discrimination" not in found.index


def test_texts_of_one_prompt_are_not_said_to_be_one(tmp_path):
    """Essays on one task: each is its own cluster."""
    found = audited(tmp_path, right, 1, 12)
    assert "A first look: 12 effective clusters." in found.sentence
    found = audited(tmp_path, right, 12, 2)
    assert (
        "12 effective clusters (texts that share a prompt or a source are one)"
        in found.sentence
    )


@pytest.mark.parametrize("judge", [silent, lambda prompt: "I cannot say."])
def test_a_judge_that_answers_nothing_has_no_page(judge, tmp_path, capsys):
    with pytest.raises(CannotShow, match="no score in any of 20 judgments"):
        audited(tmp_path, judge, 12, 2)
    assert "no score in any of 20 answers, such as" in capsys.readouterr().out


def test_a_judge_that_fails_whenever_it_is_asked_has_no_page(tmp_path):
    def broken(prompt):
        raise RuntimeError("no connection")

    with pytest.raises(JudgeError, match="all of the first 5 calls failed"):
        audited(tmp_path, broken, 12, 2)


def test_reads_that_are_lost_alike_in_all_orders_are_said_to_be(tmp_path):
    found = audited(tmp_path, every_second, 20, 2)
    row = found.rows.set_index("measure").loc["position"]
    assert row.verdict == "inconclusive"
    assert "reads have no score, 50 % of those in every order" in row.sentence
    assert "more texts do not help" in row.advice
    assert "gave a score in 50 % of its answers" in found.sentence


def test_one_score_for_all_fails_where_people_see_a_difference(tmp_path):
    found = audited(tmp_path, three, 20, 2)
    assert "fails: every text with a score gets the same one (3)" in found.sentence
    assert verdicts(found)["discrimination"] == {"fails"}
    found = audited(tmp_path, three, 20, 2, human=[5])
    assert verdicts(found)["agreement"] == {"inconclusive"}
    assert verdicts(found)["bias"] == {"found"}
    found = audited(tmp_path, three, 20, 2, human=None)
    assert verdicts(found)["discrimination"] == {"fails"}
    assert "agreement" not in verdicts(found)


@pytest.mark.parametrize(("n", "verdict"), [(6, "inconclusive"), (30, "not found")])
@pytest.mark.parametrize("labels", [[1], [0, 1]])
def test_where_every_label_agrees_the_others_are_bounded(labels, n, verdict):
    """Of n texts none differs with probability .05 if a share u of all do."""
    same = np.resize(labels, n)
    found = rb.audit(judgments=log(same, same), scale=(0, 1))
    hold_what_can_be(found)
    rows = found.rows.set_index("measure")
    assert rows.verdict["bias"] == verdict
    [code] = [c for c in rows.codes["bias"] if c == "no_exception.rated"]
    u = code.numbers["most"]
    assert (1 - u) ** n == pytest.approx(0.05)
    assert (
        f"in {n} clusters, so one does in fewer than {100 * u:.1f} % of others"
        in rows.sentence["bias"]
    )
    of_bias = [r for r in json.loads(found.to_json())["rows"] if r["measure"] == "bias"]
    assert "no_exception.rated" in str(of_bias[0]["codes"])
    assert f"{u:.12f}" in str(of_bias[0]["codes"])
    if len(labels) > 1:
        assert rows.low["agreement"] == pytest.approx(0.05 ** (1 / n))
    else:
        assert rows.verdict["agreement"] == "inconclusive"
        assert f"in fewer than {100 * u:.1f} % of others (95 %)" in found.sentence


def test_one_exception_takes_the_bound_away():
    same = np.resize([0, 1], 30)
    other = same.copy()
    other[0] = 1
    found = rb.audit(judgments=log(same, other), scale=(0, 1))
    assert "no_exception.rated" not in set(found.rows["codes"].explode())


def test_three_systems_that_tie_have_no_interval_without_a_width():
    prompt, system = np.repeat(np.arange(20), 3), np.tile([*"abc"], 20)
    human, score = np.tile([2.0, 3, 4], 20), np.tile([2, 3, 3], 20)
    table = log(score, human, candidate=system, group_id=prompt)
    found = rb.audit(judgments=table, scale=(1, 5))
    hold_what_can_be(found)
    row = found.rows.set_index("measure").loc["systems"]
    assert (row.verdict, round(row.effect, 2)) == ("inconclusive", 0.82)
    assert "no spread, not certainty" in row.sentence


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 30])
@pytest.mark.parametrize(
    "kind", ["right", "alike", "noise", "one rater", "unrated", "rated alike", "shared"]
)
def test_a_log_of_any_size_holds_what_can_be(n, kind):
    rng = np.random.default_rng(n)
    score, human = rng.integers(1, 6, n), rng.integers(1, 6, n)
    table = log(score if kind != "alike" else np.full(n, 4), human)
    if kind == "right":
        table["human"] = score
    if kind == "one rater":
        table["human_ratings"] = [f"{x}" for x in human]
    if kind == "unrated":
        table = table.drop(columns="human")
    if kind == "rated alike":
        table["human"] = 3
    if kind == "shared":
        table["group_id"] = np.arange(n) // 4
    found = rb.audit(judgments=table, scale=(1, 5))
    hold_what_can_be(found)
    if kind == "one rater":
        assert "several ratings" in found.unseen["ceiling"]


def test_what_texts_without_a_score_on_a_criterion_score_is_on_the_scale():
    rng = np.random.default_rng(0)
    parts = []
    for criterion in ("tone", "depth"):
        true = rng.integers(2, 5, 60)
        raters = np.clip(true[:, None] + rng.integers(-1, 2, (60, 3)), 1, 5)
        rated = {f"human_{k}": raters[:, k] for k in range(3)}
        for read in (1, 2):
            score = np.clip(true + rng.integers(-1, 2, 60), 1, 5)
            parts.append(log(score, raters.mean(axis=1), read=read, **rated))
            parts[-1]["criterion"] = criterion
    table = pd.concat(parts)
    is_lost = table["item_id"].isin(["t0", "t1"]) & (table["criterion"] == "tone")
    table["score"] = table["score"].mask(is_lost)
    found = rb.audit(judgments=table, scale=(1, 5))
    [row] = found.rows[found.rows["measure"] == "halo"].to_dict("records")
    [lost] = [code for code in row["codes"] if code == "left_out"]
    assert lost.numbers["lost"] == 2
    assert 1 <= lost.numbers["lost_mean"] <= 5
    assert 2 < lost.numbers["kept_mean"] < 4


@pytest.mark.parametrize("levels", [[0, 1], [1, 2, 3, 4, 5]])
@pytest.mark.parametrize("n", [30, 200])
def test_where_one_label_differs_the_others_are_bounded_as_well(levels, n):
    """Of n texts at most one differs with probability .05 if a share u of all do."""
    score = np.resize(levels, n)
    human = score.copy()
    human[0] = levels[1]
    found = rb.audit(judgments=log(score, human), scale=(levels[0], levels[-1]))
    hold_what_can_be(found)
    rows = found.rows.set_index("measure")
    for measure in ("agreement", "kappa"):
        u = 1 - rows.low[measure]
        assert binom.cdf(1, n, u) == pytest.approx(0.05)
        assert f"of {n} clusters one alone keeps it" in rows.sentence[measure]


def test_no_interval_is_printed_without_a_width_and_no_share_as_all_or_none():
    n = 2000
    score = np.resize([0, 1], n)
    found = rb.audit(judgments=log(score, score), scale=(0, 1))
    said = " ".join(found.rows["sentence"])
    assert "r +1.000 [+0.999, +1.000]" in said
    assert "one does in fewer than 0.1 % of others" in said
    twice = pd.concat([log(score, score).assign(read=read) for read in (1, 2)])
    said = " ".join(rb.audit(judgments=twice, scale=(0, 1)).rows["sentence"])
    assert "0 % of scores [0 %, 0.2 %]" in said
    most = np.r_[3, np.full(599, 4)]
    group = np.arange(600) // 6
    table = log(most, np.resize([1, 2, 3, 4, 5], 600), group_id=group)
    found = rb.audit(judgments=table, scale=(1, 5))
    assert "to 99.7 % of the pairs of texts of one cluster" in found.sentence
    assert "99.8 % of the scores are 4" in " ".join(found.rows["reason"])
