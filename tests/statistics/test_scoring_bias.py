"""Stability under perturbed prompts: against loops, libraries and planted judges."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import plain, t_interval

import rubricnb as rb
from rubricnb.engines.profiles import open_profile
from rubricnb.statistics.scoring_bias import BASELINE, stability

DESCENDING = rb.Design("descending", 5)
LABELS = {"labels": "numeric"}
SCORES = st.lists(
    st.tuples(*[st.one_of(st.none(), st.integers(1, 5))] * 3), min_size=1, max_size=12
)


def judged(columns):
    """One read per item and label condition; None is a read that was not parsed."""
    sides = [pd.array([row[c] for row in columns], dtype="Int8") for c in range(3)]
    frames = [
        plain(scores, labels=label).drop(columns="design")
        for scores, label in zip(sides, ("numeric", "letter", "roman"), strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


@pytest.mark.in_turn
@given(SCORES)
@settings(max_examples=60, deadline=None)
def test_a_flip_rate_never_exceeds_the_mean_absolute_deviation(rows):
    found = stability(judged(rows), LABELS).set_index("labels")
    for c, label in ((1, "letter"), (2, "roman")):
        pairs = [(row[0], row[c]) for row in rows if None not in (row[0], row[c])]
        assert found.n_items[label] == len(pairs)
        if not pairs:
            assert found.loc[label, ["flip_rate", "mad", "shift"]].isna().all()
            assert found.reason[label].startswith("no item was parsed under both")
            continue
        a, b = np.array(pairs).T
        assert found.flip_rate[label] == pytest.approx((a != b).mean())
        assert found.mad[label] == pytest.approx(np.abs(a - b).mean())
        assert found["shift"][label] == pytest.approx((b - a).mean())
        assert found.flip_rate[label] <= found.mad[label] + 1e-12


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


def perturbed(items, profile, seed=0, **how):
    plans = [
        rb.plan(
            items,
            [rb.fixed(5, 1), DESCENDING, rb.shuffled(5, 1), rb.placebo(5, 5)],
            reference="none",
            **how,
        ),
        rb.plan(
            items, rb.fixed(5, 1), reference="none", labels=["letter", "roman"], **how
        ),
    ]
    return rb.simulate(pd.concat(plans, ignore_index=True), items, profile, seed)


def test_planted_label_shift_is_found_beyond_placebo_and_nothing_else_is(items):
    judgments = perturbed(items, open_profile("letter-strict"), readout="logprobs")
    found = stability(judgments, value="expected_score").set_index(["design", "labels"])
    assert found.shift_excess["fixed", "letter"] == pytest.approx(-0.6, abs=0.1)
    assert found.shift_excess_high["fixed", "letter"] < -0.4
    assert (
        found.shift_excess_low["fixed", "roman"]
        < 0
        < found.shift_excess_high["fixed", "roman"]
    )
    assert found.flip_rate.isna().all()
    assert "no flip rate" in found.reason.iloc[0]
    assert "this is the placebo" in found.reason["placebo", "numeric"]


def test_reask_is_zero_for_copies_and_measured_for_a_sampling_judge(items):
    requests = rb.plan(
        items, [rb.fixed(5, 4), DESCENDING], reference="none", readout="score"
    )
    greedy = stability(rb.run(requests, "simulated:unbiased", store=":memory:"))
    assert greedy.flip_rate_reask.item() == 0
    hot = rb.plan(
        items,
        [rb.fixed(5, 4), DESCENDING],
        reference="none",
        readout="score",
        temperature=1.0,
    )
    judgments = rb.simulate(hot, items, "unbiased")
    found = stability(judgments).iloc[0]
    wide = judgments[judgments.design == "fixed"].pivot(
        index="item_id", columns="ordering_index", values="score"
    )
    pairs = [(i, j) for i in range(4) for j in range(i)]
    flips = np.mean([(wide.iloc[:, i] != wide.iloc[:, j]).mean() for i, j in pairs])
    assert found.flip_rate_reask == pytest.approx(flips)
    assert found.shift_reask == 0
    once = stability(judgments[judgments.ordering_index == 1])
    assert once.flip_rate_reask.isna().all()
    assert once.flip_rate_excess_reask.isna().all()


def test_excess_over_the_re_ask_is_a_paired_difference_with_its_interval(items):
    hot = rb.plan(
        items,
        rb.fixed(5, 2),
        reference="none",
        readout="score",
        temperature=1.0,
        labels=["numeric", "letter"],
    )
    judgments = rb.simulate(hot, items, "unbiased")
    found = stability(judgments).iloc[0]
    wide = judgments.pivot(
        index="item_id", columns=["labels", "ordering_index"], values="score"
    ).astype(int)
    a, b, s, t = (wide[name, k] for name in ("numeric", "letter") for k in (1, 2))
    cluster = items.set_index("item_id").cluster_id.reindex(wide.index)
    for name, distance in (
        ("flip_rate", lambda x, y: 1.0 * (x != y)),
        ("mad", lambda x, y: 1.0 * (x - y).abs()),
    ):
        across = sum(distance(x, y) for x in (s, t) for y in (a, b)) / 4
        excess = across - (distance(a, b) + distance(s, t)) / 2
        columns = [f"{name}_excess_reask{end}" for end in ("", "_low", "_high", "_p")]
        expected = excess.mean(), *t_interval(excess.groupby(cluster).mean())
        assert found[columns].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("before", "after"), [(0.05, 0.55), (0.35, 0.05), (0.2, 0.2)])
def test_the_excess_over_re_asks_is_half_the_squared_distance_of_two_distributions(
    before, after
):
    """Each read of an item is one off with this probability, up or down alike."""
    rng = np.random.default_rng(3)
    quality = np.repeat(rng.integers(2, 5, 4000), 2)
    frames = []
    for label, rate in (("numeric", before), ("letter", after)):
        off = (rng.random(8000) < rate) * rng.choice([-1, 1], 8000)
        frames += [
            plain(score, labels=label, ordering_index=k)
            for k, score in enumerate((quality + off).reshape(4000, 2).T)
        ]
    found = stability(pd.concat(frames), {"labels": "numeric"}).iloc[0]
    p, q = (np.array([rate / 2, 1 - rate, rate / 2]) for rate in (before, after))
    truth = ((p - q) ** 2).sum() / 2
    assert (
        found.flip_rate_excess_reask_low <= truth <= found.flip_rate_excess_reask_high
    )
    # though nothing moved
    assert (found.flip_rate_excess_reask_low > 0) == (before != after)
    assert found.shift_p > 0.001


def test_one_read_has_no_excess_over_a_re_ask_unless_the_judge_repeats_itself(items):
    how = {"reference": "none", "readout": "score"}
    once = [rb.fixed(5, 2), DESCENDING, rb.placebo(5, 3)]
    hot = stability(
        rb.simulate(rb.plan(items, once, temperature=1.0, **how), items, "unbiased")
    )
    assert hot.flip_rate_excess_reask.isna().all()
    cold = stability(rb.simulate(rb.plan(items, once, **how), items, "unbiased"))
    assert cold.flip_rate_excess_reask.tolist() == cold.flip_rate.tolist()


def test_every_other_condition_has_a_baseline_of_its_own(items):
    both = perturbed(
        items, "unbiased", readout="score", layout=["rubric-last", "rubric-first"]
    )
    apart = stability(both)
    assert apart.groupby("layout", observed=True).size().to_dict() == {
        "rubric-last": 5,
        "rubric-first": 5,
    }
    own = stability(both[both.layout == "rubric-first"])
    pd.testing.assert_series_equal(
        apart.flip_rate[apart.layout == "rubric-first"].reset_index(drop=True),
        own.flip_rate,
    )
    across = stability(both, {**BASELINE, "layout": "rubric-last"})
    assert len(across) == 11


def test_scores_from_elsewhere_are_compared_with_the_defaults():
    """What a log does not say (references, examples)
    is the baseline's, and is not made up.
    """
    log = pd.DataFrame(
        {
            "item_id": [f"t{i}" for i in range(40)] * 2,
            "score": [*[1, 2, 3, 4] * 10, *[2, 2, 4, 5] * 10],
            "labels": ["numeric"] * 40 + ["letter"] * 40,
        }
    )
    row = stability(rb.judgments(log, scale=(1, 5))).iloc[0]
    assert (row.labels, row["shift"], row.flip_rate) == ("letter", 0.75, 0.75)
    assert row.reference_score == "unknown"
    with pytest.raises(ValueError, match="only the baseline was judged"):
        stability(rb.judgments(log[log.labels == "numeric"], scale=(1, 5)))
    with pytest.raises(ValueError, match="no judgments of the baseline"):
        stability(rb.judgments(log[log.labels == "letter"], scale=(1, 5)))
