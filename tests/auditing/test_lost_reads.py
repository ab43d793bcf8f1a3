"""What an audit says where answers were lost, and that each sentence fits its data."""

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.auditing.plan import audit_requests
from rubricnb.auditing.results import findings
from rubricnb.auditing.terms import MEASURES
from rubricnb.auditing.verdicts import with_verdicts
from rubricnb.core.estimates.losses import share_lost

ASCENDING = "1-2-3-4-5"
ROTATIONS = ["-".join(map(str, np.roll(range(1, 6), -k))) for k in range(5)]


def log(reads=((ASCENDING, 1),), n=120, seed=0, sd=0.5, **columns):
    """A log of n texts, three a prompt: a read for each order and number given."""
    rng = np.random.default_rng(seed)
    true = np.clip(np.round(rng.normal(3, 1.2, n)), 1, 5)
    parts = [
        pd.DataFrame(
            {
                "item_id": [f"t{i}" for i in range(n)],
                "group_id": [f"p{i // 3}" for i in range(n)],
                "ordering": order,
                "read": read,
                "score": np.clip(np.round(true + rng.normal(0, sd, n)), 1, 5),
                "human": true,
                **columns,
            }
        )
        for order, read in reads
    ]
    return pd.concat(parts, ignore_index=True)


def lose(table, where, share=1.0, seed=1):
    gone = where & (np.random.default_rng(seed).random(len(table)) < share)
    return table.assign(score=table["score"].mask(gone))


def row_of(found, measure):
    [row] = found.rows[found.rows["measure"] == measure].to_dict("records")
    return row


@pytest.fixture(scope="module")
def answers():
    items = rb.load("minibench")
    return items, [rb.simulate(p, items, "unbiased") for p in audit_requests(items)]


def test_no_row_of_an_audit_praises_or_clears_what_lost_a_fifth(answers):
    items, parts = answers
    rng = np.random.default_rng(0)
    lost = []
    for part in parts:
        gone = rng.random(len(part)) < 0.2
        status = part["status"].astype("object").mask(gone, "unparsed")
        kept = {name: part[name].mask(gone) for name in ("score", "position")}
        lost.append(part.assign(status=status, **kept))
    rows = findings(lost, items).rows
    # neighbouring systems of minibench are too close to be ranked
    others = ["parsed", "ceiling", "calibration", "systems"]
    compared = rows[~rows["measure"].isin(others)]
    assert {*compared["measure"]} >= {
        *("agreement", "kappa", "bias", "discrimination", "edits"),
        *("reask", "position", "order", "labels", "reference", "criteria"),
    }
    for row in compared.to_dict("records"):
        assert share_lost(row["codes"]) > 0.05, row["question"]
        assert row["verdict"] in ("inconclusive", "found", "fails"), row["question"]
        if row["verdict"] == "inconclusive":
            assert "answers that were lost" in row["advice"], row["sentence"]


def test_nothing_is_said_to_be_lost_where_nothing_is(answers):
    items, parts = answers
    rows = findings(parts, items).rows
    assert not rows["codes"].map(share_lost).any()
    assert not rows["sentence"].str.contains("no score|lost").any()


def test_a_level_that_lost_answers_may_have_made_is_not_found():
    table = log(sd=0.6)
    shifted = lose(table, table["score"] < table["human"], 0.9)
    row = row_of(rb.audit(judgments=shifted, scale=(1, 5)), "bias")
    assert row["p_adjusted"] < 0.05
    assert row["verdict"] == "inconclusive"
    assert "as the lost scores could turn it" in row["sentence"]
    assert "between 1 and 5" in row["sentence"]
    gap = shifted["score"] - shifted["human"]
    least = gap.fillna(1 - shifted["human"]).mean()
    [code] = [c for c in row["codes"] if c == "open_sign"]
    moved = row["low"] + least - gap.mean()
    assert code.numbers["low"] == pytest.approx(moved)


@pytest.mark.parametrize("shift", [0, 1])
def test_the_ends_are_those_of_the_scale_also_from_0(shift):
    table = log(labels="numeric").drop(columns="ordering")
    letters = table.assign(labels="letter", score=(table["score"] - 1).clip(1))
    both = pd.concat([table, lose(letters, letters["score"] <= 2, 0.6)])
    both[["score", "human"]] += shift - 1
    found = rb.audit(judgments=both, scale=(shift, shift + 4))
    [code] = [c for c in row_of(found, "labels")["codes"] if c == "open_sign"]
    assert (code.numbers["lowest"], code.numbers["highest"]) == (shift, shift + 4)


def test_a_log_in_several_orders_is_not_praised_where_being_scored_changes():
    table = log([(order, 1) for order in ROTATIONS])
    first = table["ordering"].str[0].astype(float)
    whole = rb.audit(judgments=table, scale=(1, 5))
    assert "ranks texts alike when the options are reordered" in whole.sentence
    found = rb.audit(judgments=lose(table, table["score"] == first, 0.5), scale=(1, 5))
    assert row_of(found, "discrimination")["verdict"] == "inconclusive"
    assert ", ranks" not in found.sentence
    assert "agrees strongly" not in found.sentence


def test_repeats_that_were_lost_may_all_have_been_alike():
    table = log([(ASCENDING, 1), (ASCENDING, 2)], sd=0.6)
    whole = row_of(rb.audit(judgments=table, scale=(1, 5)), "reask")
    assert whole["verdict"] == "found"
    few = lose(table, table["score"] > 0, 0.45)
    row = row_of(rb.audit(judgments=few, scale=(1, 5)), "reask")
    assert row["low"] > 0.25
    assert row["verdict"] == "inconclusive"
    assert "too many are lost to say" in row["sentence"]


def test_a_criterion_s_position_that_losses_made_is_not_found(answers):
    items, parts = answers
    together = parts[1]
    is_first = together["criterion_position"].astype(float) == 1
    usual = together.groupby(["item_id", "criterion"], observed=True)["score"]
    low = is_first & (together["score"] < usual.transform("mean"))
    lost = together.assign(score=together["score"].mask(low))
    rows = findings([parts[0], lost], items).rows
    rows = rows[rows["measure"] == "criteria"]
    assert (rows["p_adjusted"] < 0.05).any()
    assert "found" not in set(rows["verdict"])
    high = np.clip(together["score"] + 2 * is_first, 1, 5)
    rows = findings([parts[0], together.assign(score=high)], items).rows
    assert "found" in set(rows["verdict"][rows["measure"] == "criteria"])


def test_lost_scores_decide_with_the_p_that_is_adjusted_for_all_questions():
    found = {"effect": 0.2, "se": 0.06, "df": 39.0, "low": 0.08, "high": 0.32}
    one = {"measure": "order", "question": "x", "n_clusters": 40, **found, "p": 0.002}
    others = [
        {"measure": "bias", "question": f"{k}", "n_clusters": 40, "p": 0.9}
        for k in range(3)
    ]

    def verdict(p_open):
        rows = [{**one, "p_open": p_open}, *others]
        return with_verdicts(rows, 40, 4.0).iloc[0]

    assert verdict(0.01).verdict == "found"
    row = verdict(0.02)  # below .05, and four times that is not
    assert row.verdict == "inconclusive"
    assert "its sign is not known, as the lost scores could turn it" in row.sentence


def test_scores_that_all_change_in_one_direction_are_not_said_to_change_in_both():
    table = log(labels="numeric").assign(
        score=lambda t: 10 * t["score"], human=lambda t: 10 * t["human"]
    )
    both = pd.concat([table, table.assign(score=table["score"] + 1, labels="letter")])
    edits = table.assign(design="placebo", ordering_index=1, labels="numeric")
    both = pd.concat([both.assign(design="fixed", ordering_index=1), edits])
    both = both.drop(columns=["ordering", "read"])
    row = row_of(rb.audit(judgments=both, scale=(0, 100)), "labels")
    assert row["verdict"] == "found"
    assert row["flips"] == 1
    assert "both directions" not in row["sentence"]
    assert "more scores change than matter" in row["sentence"]


def test_changes_are_compared_with_what_was_asked_again_and_not_with_edits():
    table = log([(order, read) for order in ROTATIONS for read in (1, 2)])
    found = rb.audit(judgments=table, scale=(1, 5))
    assert "edits" in found.unseen
    sentence = row_of(found, "position")["sentence"]
    assert "under neutral edits" not in sentence
    assert "% when asked again." in sentence


def test_advice_can_help():
    table = log([(ASCENDING, 1), (ASCENDING, 2)])
    row = row_of(rb.audit(judgments=table, scale=(1, 5)), "discrimination")
    assert row["advice"] == "Reword the prompt; more texts do not help."
    turned = table.assign(human=6 - table["human"])
    row = row_of(rb.audit(judgments=turned, scale=(1, 5)), "bias")
    assert "which end is best" in row["advice"]
    few = table[table["item_id"].isin(["t0", "t3", "t6"])]
    found = rb.audit(judgments=lose(few, few["read"] == 2), scale=(1, 5))
    texts = found.rows[found.rows["verdict"] == "inconclusive"]
    assert texts["codes"].map(lambda codes: "too_few" in codes).all()
    assert not texts["advice"].str.contains("more texts do not help").any()


def test_one_lost_answer_of_a_thousand_does_not_leave_all():
    table = log(n=999)
    found = rb.audit(judgments=lose(table, table["item_id"] == "t0"), scale=(1, 5))
    assert "gave a score in 99.9 % of its answers" in found.sentence


def test_a_judge_of_one_score_is_not_said_to_score_every_text():
    table = log().assign(score=4)
    table = lose(table, table["item_id"].str.endswith("3"))
    found = rb.audit(judgments=table, scale=(1, 5))
    assert "every text with a score gets the same one (4)" in found.sentence
    assert MEASURES["agreement"]["act"] in set(found.rows["advice"])


def test_clusters_that_are_alike_are_not_texts_that_are():
    table = log(n=60).assign(score=np.tile([2, 3, 3], 20), human=np.tile([2, 3, 4], 20))
    row = row_of(rb.audit(judgments=table, scale=(1, 5)), "bias")
    assert "moved_alike" in row["codes"]
    assert "every cluster moved alike" in row["reason"]
