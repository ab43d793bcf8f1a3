"""Answers are lost where they would have differed,
and every comparison says what it lost.

Each statistic gets judgments in which one side has no score for the texts that the
other side scores highest. A new statistic must be listed, with such judgments or among
those without sides. The same losses come in two more forms: without the rows of failed
answers, and as some of the reads of a text, so that every text still has a score.
"""

import sys

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb import auditing, statistics
from rubricnb.core.estimates.losses import difference_bounds, lost_scores, share_lost
from rubricnb.rulers.agreement import label_contrast

N = 80
NAMES = np.array([f"t{i:02d}" for i in range(N)])
RNG = np.random.default_rng(0)
QUALITY = RNG.uniform(1, 5, N)
BASE = np.clip(np.round(QUALITY), 1, 5)
HIGH = BASE >= 4
RATINGS = np.clip(np.round(QUALITY + RNG.normal(0, 0.7, (3, N))), 1, 5)
HUMAN = pd.DataFrame(
    {
        "item_id": NAMES,
        "human": np.clip(QUALITY + RNG.normal(0, 0.5, N), 1, 5),
        "human_ratings": [*zip(*RATINGS, strict=True)],
    }
)


def reads(score, ordering="1-2-3-4-5", index=1, **columns):
    """One read of each text; NaN is an answer without a score."""
    score = np.asarray(score, float)
    return pd.DataFrame(
        {
            "item_id": NAMES,
            "cluster_id": np.arange(N) // 4,
            "group_id": np.arange(N) // 4,
            "candidate": np.arange(N) % 4,
            "ordering_index": index,
            "ordering": ordering,
            "n_options": 5,
            "score": score,
            "status": np.where(np.isnan(score), "unparsed", "ok"),
            **columns,
        }
    )


def moved():
    return np.clip(BASE - (np.arange(N) % 5 > 0), 1, 5)


def two(column, base, other, lost=HIGH):
    """Two conditions, of which the other has no score for the lost texts."""
    after = np.where(lost, np.nan, moved())
    return pd.concat([reads(BASE, **{column: base}), reads(after, **{column: other})])


def several(lost=HIGH, **columns):
    """Ten balanced reads of each text, of which two are lost where the text is good."""
    rng = np.random.default_rng(1)
    frames = []
    for k, order in enumerate(rb.balanced(5).orderings()):
        score = np.clip(np.round(QUALITY + rng.normal(0, 0.8, N)), 1, 5)
        score = np.where(lost & (k < 2), np.nan, score)
        name = "-".join(map(str, order))
        frames.append(reads(score, name, k + 1, design="balanced", **columns))
    return pd.concat(frames)


def criteria_in_places():
    frames = [
        reads(
            np.where(HIGH & (place == 2), np.nan, BASE),
            index=place,
            design="balanced",
            criterion="tone",
            criterion_position=place,
        )
        for place in (1, 2)
    ]
    return pd.concat(frames)


def blocks():
    """Three orders and their mirrors, edits and repeats; the edits lose good texts."""
    orders = list(rb.balanced(5).orderings())
    rng = np.random.default_rng(2)
    frames = []
    for design in ("balanced", "placebo", "fixed"):
        for k, order in enumerate(orders):
            score = np.clip(np.round(QUALITY + rng.normal(0, 0.5, N)), 1, 5)
            if design == "placebo":
                score = np.where(HIGH, np.nan, score)
            name = "-".join(map(str, order)) if design == "balanced" else "1-2-3-4-5"
            frames.append(reads(score, name, k + 1, design=design))
    return pd.concat(frames)


def unscored(**columns):
    return reads(np.where(HIGH, np.nan, BASE), **columns)


def rulers_sides():
    frames = [
        reads(BASE, method="one").assign(trait_1=BASE),
        reads(np.where(HIGH, np.nan, BASE), method="two").assign(trait_1=BASE),
    ]
    table = pd.concat(frames).drop(columns=["ordering"])
    sides = ({"method": m, "calibration": "none"} for m in ("one", "two"))
    return pd.DataFrame([label_contrast(table, HUMAN, *sides)])


def named_systems(table):
    """Give each text one of ten systems."""
    return table.assign(candidate=table["item_id"].astype(str).str[-1])


LABELS = {"labels": "numeric"}
TWO_SIDED = {
    "stability": lambda: statistics.stability(
        two("labels", "numeric", "letter"), LABELS
    ),
    "tendency_shift": lambda: statistics.tendency_shift(
        two("labels", "numeric", "letter"), LABELS
    ),
    "reference_pull": lambda: statistics.reference_pull(
        two("reference_score", "none", "2"), {"reference_score": "none"}
    ),
    "strategy_contrast": lambda: statistics.strategy_contrast(
        two("design", "balanced", "fixed"), HUMAN
    ),
    "rank_reversal": lambda: statistics.rank_reversal(
        two("design", "balanced", "fixed")
    ),
    "reversal_effect": lambda: statistics.reversal_effect(blocks()),
    "budget_curve": lambda: statistics.budget_curve(several(), HUMAN),
    "will_permuting_help": lambda: statistics.will_permuting_help(several()),
    "order_effect": lambda: statistics.order_effect(several()),
    "variance_components": lambda: statistics.variance_components(several()),
    "within_item_sd": lambda: statistics.within_item_sd(
        pd.concat([reads(BASE, index=1), reads(np.where(HIGH, np.nan, BASE), index=2)])
    ),
    "criterion_order": lambda: statistics.criterion_order(criteria_in_places()),
    "label_contrast": rulers_sides,
    # People are the other side.
    "agreement": lambda: statistics.agreement(unscored(), HUMAN),
    "judge_bias": lambda: statistics.judge_bias(unscored(), HUMAN),
    "system_agreement": lambda: statistics.system_agreement(unscored(), HUMAN),
    "system_shift": lambda: statistics.system_shift(
        *(named_systems(reads(of)) for of in (np.where(HIGH, np.nan, BASE), BASE))
    ),
    "alternative_annotator": lambda: statistics.alternative_annotator(
        unscored(), HUMAN
    ),
    "mean_with_labels": lambda: statistics.mean_with_labels(unscored(), HUMAN),
    "systems_with_labels": lambda: statistics.systems_with_labels(unscored(), HUMAN),
    "score_tendency": lambda: statistics.score_tendency(unscored(), HUMAN),
}
ONE_SIDED = {
    "repeats",
    *(
        "BASELINE",
        "advise",
        "design_for",
        "gold",
        "labels_needed",
        "noncentrality",
        "overall",
    ),
    *(
        "at_reads",
        "at_temperature",
        "bias_cost",
        "counting_along",
        "option_probabilities",
    ),
    *("position_bias", "position_prior", "prompt_measures", "quadratic_weighted_kappa"),
    # reads, each by itself; or arrays without losses
    *("remove_prior", "score_position"),
    "error_budget",  # takes incomplete designs as they are, and leaves nothing out
}


def test_every_statistic_is_known_to_have_two_sides_or_not():
    public = {*statistics.__all__, "label_contrast"}
    assert public == {*TWO_SIDED} | ONE_SIDED
    assert not {*TWO_SIDED} & ONE_SIDED


@pytest.mark.parametrize("name", TWO_SIDED)
def test_a_statistic_says_how_many_it_lost_and_what_the_other_side_says_of_them(name):
    row = TWO_SIDED[name]().iloc[0]
    found = [code for code in row.codes if code in ("lost", "left_out", "unscored")]
    assert found, row.reason
    numbers = found[0].numbers
    assert numbers["lost"] == HIGH.sum()
    kept = numbers.get("kept_mean", numbers.get("scored_mean"))
    assert numbers["lost_mean"] > kept + 1
    assert found[0].sentence in row.reason


ASKED_APART = (
    *(
        "stability",
        "tendency_shift",
        "reference_pull",
        "strategy_contrast",
        "rank_reversal",
    ),
    *("reversal_effect", "system_shift"),
)
"""What compares items of two prompts, and so cannot see a row that is not there."""


@pytest.mark.parametrize("name", ASKED_APART)
def test_rows_that_were_dropped_are_said_as_well(name, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "reads", scored_reads)
    row = TWO_SIDED[name]().iloc[0]
    # of each pair of blocks
    absent, *_ = [code for code in row.codes if code == "absent"]
    assert absent.numbers["n"] == HIGH.sum()
    assert absent.numbers["lost_mean"] > absent.numbers["kept_mean"] + 1
    assert absent.sentence in row.reason
    assert share_lost(row.codes) == 0  # perhaps nobody asked: no verdict depends on it


def scored_reads(*args, reads=reads, **columns):
    """Reads without the rows of those that have no score,
    as whoever drops them hands them on.
    """
    table = reads(*args, **columns)
    return table[table["score"].notna()]


def with_low_reads_lost(name, value, base="numeric", **columns):
    """The same four reads of each text under two conditions;
    one loses some of 1 and 2.
    """
    noise = np.random.default_rng(5).normal(0, 1.2, (4, N))
    frames = []
    for condition in (base, value):
        for k in range(4):
            score = np.clip(np.round(QUALITY + noise[k]), 1, 5)
            if condition == value:
                score = np.where((score <= 2) & (k > 1), np.nan, score)
            more = {name: condition, **columns}
            frames.append(reads(score, index=1, replicate=k + 1, **more))
    return pd.concat(frames)


def lacking_reads():
    return with_low_reads_lost("labels", "letter").query("labels == 'letter'")


def repeated(design="balanced"):
    """Two orders of four reads each; low ones are lost,
    but no order of a text is without any.
    """
    frames = [
        lacking_reads().assign(design=design, ordering=order, ordering_index=k)
        for k, order in enumerate(("1-2-3-4-5", "5-4-3-2-1"), 1)
    ]
    return pd.concat(frames)


LOST_READS = {
    "stability": lambda: statistics.stability(
        with_low_reads_lost("labels", "letter"), LABELS
    ),
    "tendency_shift": lambda: statistics.tendency_shift(
        with_low_reads_lost("labels", "letter"), LABELS
    ),
    "reference_pull": lambda: statistics.reference_pull(
        with_low_reads_lost("reference_score", "2", "none"), {"reference_score": "none"}
    ),
    "strategy_contrast": lambda: statistics.strategy_contrast(
        with_low_reads_lost("labels", "letter"), HUMAN, "numeric", "letter"
    ),
    "rank_reversal": lambda: statistics.rank_reversal(
        with_low_reads_lost("labels", "letter"), "numeric", "letter"
    ),
    "system_shift": lambda: statistics.system_shift(
        *(
            named_systems(table)
            for _, table in with_low_reads_lost("labels", "letter").groupby(
                "labels", sort=False
            )
        )
    ),
    "order_effect": lambda: statistics.order_effect(repeated()),
    "variance_components": lambda: statistics.variance_components(repeated()),
    "within_item_sd": lambda: statistics.within_item_sd(lacking_reads()),
    "criterion_order": lambda: statistics.criterion_order(
        pd.concat(
            [
                lacking_reads().assign(
                    design="balanced",
                    criterion="tone",
                    criterion_position=place,
                    ordering_index=place,
                )
                for place in (1, 2)
            ]
        )
    ),
    **{
        name: lambda name=name: getattr(statistics, name)(lacking_reads(), HUMAN)
        for name in (
            *("agreement", "judge_bias", "system_agreement", "alternative_annotator"),
            *("mean_with_labels", "systems_with_labels", "score_tendency"),
        )
    },
}
# of an item: its lost reads lose it
NEEDS_ALL_READS = {"budget_curve", "will_permuting_help"}
ANSWERED_ONCE = {"label_contrast"}
# says what `rank_reversal` says of each pair of blocks
OF_TWO_PARTS = {"reversal_effect"}


def test_every_statistic_with_two_sides_is_tried_with_lost_reads():
    assert {*LOST_READS} | NEEDS_ALL_READS | ANSWERED_ONCE | OF_TWO_PARTS == {
        *TWO_SIDED
    }


@pytest.mark.parametrize("name", LOST_READS)
def test_a_statistic_says_how_many_reads_it_lost_of_the_texts_that_it_keeps(name):
    row = LOST_READS[name]().iloc[0]
    said = ("lost_reads", "left_out_reads", "unscored_reads")
    found = [code for code in row.codes if code in said]
    assert found, row.reason
    numbers = found[-1].numbers
    n_lost = int(lacking_reads()["score"].isna().sum())
    # the second, where both orders are asked
    assert numbers["lost"] in (n_lost, 2 * n_lost)
    assert numbers["lost_mean"] < numbers["kept_mean"] - 0.5
    assert found[-1].sentence in row.reason


def test_a_shift_that_lost_reads_could_turn_has_bounds():
    """Every text has a score on both sides, and the lost reads alone make the shift."""
    table = with_low_reads_lost("labels", "letter")
    row = statistics.stability(table, LABELS).iloc[0]
    assert row.n_items == N
    assert row.shift_low > 0
    [bounds] = [code.numbers for code in row.codes if code == "open_sign"]
    side = table[table.labels == "letter"]
    ends = []
    for end in (1, 5):
        filled = side["score"].fillna(end).groupby(side["item_id"]).mean()
        other = table[table.labels == "numeric"].groupby("item_id")["score"].mean()
        ends.append((filled - other).mean())
    # and as far beyond as the interval lies from the mean
    ends += row[["shift_low", "shift_high"]].to_numpy(float) - row["shift"]
    assert (bounds["low"], bounds["high"]) == pytest.approx(ends)


def test_a_shift_that_the_lost_texts_could_turn_has_bounds():
    """Lost low scores might have risen; lost high ones could not rise by enough."""
    truth = moved().mean() - BASE.mean()
    low = BASE <= 2
    for lost, is_open in ((low, True), (HIGH, False)):
        row = statistics.stability(
            two("labels", "numeric", "letter", lost), LABELS
        ).iloc[0]
        assert row.shift_high < 0
        bounds = [code.numbers for code in row.codes if code == "open_sign"]
        assert bool(bounds) == is_open
        ends = difference_bounds(np.where(lost, np.nan, moved()), BASE, (1, 5))
        assert ends[0] <= truth <= ends[1]
        if bounds:
            ends += row[["shift_low", "shift_high"]].to_numpy(float) - row["shift"]
            found = (bounds[0]["low"], bounds[0]["high"])
            assert found == pytest.approx(tuple(ends))


def test_bounds_are_the_least_and_the_most_that_any_lost_scores_give():
    rng = np.random.default_rng(3)
    a, b = rng.integers(1, 6, (2, 6)).astype(float)
    hidden_a, hidden_b = a.copy(), b.copy()
    hidden_a[0], hidden_b[[1, 2]] = np.nan, np.nan
    low, high = difference_bounds(hidden_a, hidden_b, (1, 5))
    every = []
    for x in range(1, 6):
        for y in range(1, 6):
            for z in range(1, 6):
                one, other = a.copy(), b.copy()
                one[0], other[1], other[2] = x, y, z
                every.append((one - other).mean())
    assert (low, high) == (pytest.approx(min(every)), pytest.approx(max(every)))


def test_lost_winners_are_counted_and_flips_have_bounds():
    row = TWO_SIDED["rank_reversal"]().iloc[0]
    [lost] = [code.numbers for code in row.codes if code == "lost_prompts"]
    group = np.arange(N) // 4
    best = pd.Series(BASE).groupby(group).transform("max").to_numpy()
    assert lost["lost"] == HIGH.sum()
    assert lost["prompts"] == len({*group[HIGH]})
    assert lost["winners"] == len({*group[HIGH & (best == BASE)]})
    [bounds] = [code.numbers for code in row.codes if code == "flip_strict.bounds"]
    assert bounds["low"] <= bounds["high"]
    assert bounds["high"] - bounds["low"] == pytest.approx(
        lost["prompts"] / lost["all"]
    )


def test_a_contrast_whose_lost_items_turn_the_sign_says_so_and_claims_no_equivalence():
    """One side cannot read good texts and says so;
    on the others it is the better one.
    """
    rng = np.random.default_rng(4)
    human = HUMAN.human.to_numpy()
    good = human > np.quantile(human, 0.5)
    # right about good texts alone
    wide = np.where(good, human, 3) + rng.normal(0, 0.1, N)
    narrow = np.where(good, np.nan, human + rng.normal(0, 0.8, N))
    table = pd.concat([reads(wide, design="balanced"), reads(narrow, design="fixed")])
    row = statistics.strategy_contrast(table, HUMAN).iloc[0]
    assert row.delta_r < 0
    assert "r_turned" in row.codes
    assert np.isnan(row.p_equivalent)
    [whole] = [code.numbers for code in row.codes if code == "r_of_all"]
    assert whole["a"] == pytest.approx(np.corrcoef(wide, human)[0, 1])


def test_nothing_lost_nothing_said():
    whole = two("labels", "numeric", "letter", np.zeros(N, bool))
    codes = statistics.stability(whole, LABELS).iloc[0].codes
    assert share_lost(codes) == 0
    assert lost_scores(BASE, BASE) == ()


# ---- audits
# --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def audited():
    """An audit whose letters have no score for good texts,
    and one that lost them altogether.
    """
    items = rb.load("minibench")
    best = items.human >= 4
    good = {*items.item_id[best], *items.text_id[best]}  # of both settings

    def answers(lost):
        parts = []
        for requests in auditing.audit_requests(items):
            part = rb.simulate(requests, items, "letter-strict", 0)
            gone = part.item_id.isin(good) & lost(part)
            part["status"] = part["status"].astype(str).mask(gone, "unparsed")
            part["score"] = part["score"].mask(gone)
            parts.append(part)
        return auditing.findings(parts, items)

    return {
        "whole": answers(lambda part: np.zeros(len(part), bool)),
        "letters": answers(lambda part: part.labels == "letter"),
        "edits": answers(lambda part: part.design == "placebo"),
        "all": answers(lambda part: np.ones(len(part), bool)),
        "criteria": answers(lambda part: part.get("criterion_position", 0) == 2),
    }


LOST_IN = {
    "labels": "letters",
    "order": "edits",
    "edits": "edits",
    "discrimination": "edits",
    "criteria": "criteria",
}


@pytest.mark.in_turn
@pytest.mark.parametrize("measure", LOST_IN)
def test_an_audit_says_what_a_comparison_lost(audited, measure):
    rows = audited[LOST_IN[measure]].rows
    row = rows[(rows.measure == measure) & (rows.criterion == "")].iloc[0]
    assert share_lost(row.codes) > 0.1, row.reason
    assert "are left out" in row.sentence
    assert row.verdict not in ("not found", "negligible")
    assert row.sentence.replace("&", "&amp;") in auditing.page(
        audited[LOST_IN[measure]]
    )


def test_a_comparison_of_audits_says_what_one_of_them_lost(audited):
    found = auditing.beside(audited["whole"], audited["all"]).rows
    found = found[found.section == "against"]
    assert set(found.measure) == {
        m for m in auditing.MEASURES if m.startswith("drift_")
    }
    for _, row in found.iterrows():
        assert share_lost(row.codes) > 0.1, row.measure
        assert row.verdict in ("inconclusive", "measured"), row.measure
