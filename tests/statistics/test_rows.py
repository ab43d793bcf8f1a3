"""What must not matter: the order of rows, their index, and what other rows hold."""

import numpy as np
import pandas as pd
import pytest
from planted import make_criterion_judgments, make_judgments, plain
from scipy import stats

import rubricnb as rb
from rubricnb.core.permutation import balanced, code, shuffled, williams
from rubricnb.statistics.probabilities import at_temperature, position_prior


def additive(n=30):
    """A log in which text and ordering add up exactly,
    in the order in which it was asked.
    """
    quality = np.random.default_rng(7).uniform(2, 4, n)
    orders = code(balanced(5).orderings())
    return pd.DataFrame(
        [
            (f"t{t}", o, q + s)
            for t, q in enumerate(quality)
            for o, s in zip(orders, np.linspace(-1, 1, 10), strict=True)
        ],
        columns=["item_id", "ordering", "score"],
    )


@pytest.mark.parametrize("lost", [0, 3])
def test_a_log_in_order_of_completion_says_what_a_sorted_one_says(lost):
    """Ordering and text add up, so reads differ by nothing
    that averaging could remove.
    """
    log = additive().drop(index=range(lost))
    mixed = rb.judgments(log.sample(frac=1, random_state=0), scale=(1, 5))
    assert mixed.groupby("ordering_index").ordering.nunique().tolist() == [1] * 10
    (found,) = rb.will_permuting_help(mixed).phi
    assert found == pytest.approx(0, abs=1e-9)
    pd.testing.assert_frame_equal(
        rb.variance_components(mixed),
        rb.variance_components(rb.judgments(log, scale=(1, 5))),
    )


@pytest.mark.parametrize("design", [balanced(5), williams(5), shuffled(5, 4)])
def test_reads_are_numbered_by_their_ordering_in_frames_without_numbers_too(design):
    judgments = make_judgments(30, 1, design, gamma=(0.8, 0, 0, 0, -0.8), seed=2)
    judgments = judgments.drop(columns="ordering_index")
    mixed = judgments.sample(frac=1, random_state=1)
    sides = [
        frame.sort_values("item_id", kind="stable") for frame in (judgments, mixed)
    ]
    results = [rb.will_permuting_help(frame) for frame in sides]
    pd.testing.assert_frame_equal(*results)


@pytest.mark.parametrize("design", [balanced(5), shuffled(5, 10)])
def test_the_position_test_does_not_depend_on_the_order_of_items(design):
    gamma = 0.35 * np.array((0.4, 0.1, -0.1, -0.2, -0.2))
    judgments = make_judgments(30, 4, design, gamma=gamma, seed=4)
    number = judgments["item_id"].astype("category").cat.codes.to_numpy().astype(int)
    by_system = judgments.iloc[np.argsort(number % 4 * 10_000 + number, kind="stable")]
    one, other = (rb.position_bias(frame).iloc[0] for frame in (judgments, by_system))
    for name in ("p_within", "q", "v2_unbiased", "share_2_low", "log_preference_3"):
        assert one[name] == pytest.approx(other[name], rel=1e-6)


@pytest.mark.parametrize("text", [str, "category"])
def test_p_values_that_are_drawn_do_not_depend_on_the_order_of_rows(text):
    judgments = make_judgments(40, seed=1).astype({"item_id": text, "ordering": text})
    mixed = judgments.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(*map(rb.order_effect, (judgments, mixed)))
    texts = make_criterion_judgments(20, 2, effect=[0.3, 0, 0], text_noise=0.3)
    frames = (
        rb.criterion_order(f) for f in (texts, texts.sample(frac=1, random_state=4))
    )
    one, other = (f.sort_values("criterion").reset_index(drop=True) for f in frames)
    pd.testing.assert_series_equal(one["delta_pos_null"], other["delta_pos_null"])


def test_copies_are_known_by_their_key_and_reads_without_one_are_none():
    rng = np.random.default_rng(0)

    def of(judge, key):
        return pd.DataFrame(
            {
                "judge": judge,
                "item_id": np.repeat(range(20), 10),
                "ordering": "1-2-3-4-5",
                "cluster_id": np.repeat(range(20), 10),
                "ordering_index": np.tile(range(1, 11), 20),
                "score": rng.integers(1, 6, 200),
                "key": key,
            }
        )

    own, live = of("own", ""), of("live", [str(k) for k in range(200)])
    alone = rb.error_budget(own).query("judge == 'own'").reset_index(drop=True)
    both = (
        rb.error_budget(pd.concat([live, own]))
        .query("judge == 'own'")
        .reset_index(drop=True)
    )
    assert alone.n_reads.iloc[0] == 200
    pd.testing.assert_frame_equal(alone, both, check_like=True)


def with_probabilities(n=30):
    items = rb.load("minibench", n_items=n)
    return rb.simulate(
        rb.plan(items, rb.balanced(5), readout="logprobs"), items, "first-biased"
    )


def test_removing_the_prior_keeps_rows_and_takes_judgments_from_elsewhere():
    judgments = with_probabilities()
    prior = position_prior(judgments)
    whole = rb.remove_prior(judgments, prior)
    again = pd.concat(
        [judgments.iloc[:150], judgments.iloc[150:].reset_index(drop=True)]
    )
    other = rb.remove_prior(again, prior)
    assert other.index.equals(again.index)
    np.testing.assert_allclose(other.expected_score, whole.expected_score)
    columns = [
        "item_id",
        "ordering",
        "score",
        "expected_score",
        "criterion",
        "cluster_id",
    ]
    columns += [c for c in judgments if c.startswith("probability_")]
    mine = rb.judgments(pd.DataFrame(judgments)[columns], scale=(1, 5))
    cleared = rb.remove_prior(mine, position_prior(mine))
    np.testing.assert_allclose(cleared.expected_score, whole.expected_score, atol=1e-5)


def test_a_read_without_its_probabilities_is_no_read():
    judgments = with_probabilities().copy()
    names = [c for c in judgments if c.startswith("probability_")]
    lost = judgments.index[:1]
    judgments.loc[lost, names] = np.nan
    dropped = judgments.assign(
        status=judgments["status"].where(~judgments.index.isin(lost), "unparsed")
    )
    found = [
        rb.position_bias(f, value="expected_score").n_reads.item()
        for f in (judgments, dropped)
    ]
    assert found == [len(judgments) - 1] * 2
    prior = position_prior(judgments)
    assert np.isfinite(prior.log_preference).all()
    assert prior.n_reads.tolist() == [len(judgments) - 1] * 5


@pytest.mark.parametrize(
    "statistic",
    [
        rb.option_probabilities,
        position_prior,
        lambda j: at_temperature(j, 1),
        lambda j: rb.remove_prior(j, position_prior(with_probabilities())),
    ],
)
@pytest.mark.parametrize("known", [0, 1])
def test_probabilities_of_places_need_to_know_what_stood_there(statistic, known):
    judgments = pd.DataFrame(with_probabilities())
    orders = judgments["ordering"].astype(object)
    orders.iloc[known:] = None
    with pytest.raises(ValueError, match="judgments have no ordering"):
        statistic(judgments.assign(ordering=orders))


@pytest.mark.parametrize("orderings", [{"ordering": "1-2-3"}, {}])
@pytest.mark.parametrize("step", [1, 0.5])
def test_a_moved_distribution_is_measured_for_half_points_and_without_orderings(
    orderings, step
):
    """Oracle: scipy's distance, for one read an item."""
    before = 1 + step * np.random.default_rng(3).integers(0, 3, 40)
    after = before[::-1] + step

    def of(labels, score):
        return pd.DataFrame(
            {"item_id": range(40), "score": score, "labels": labels, **orderings}
        )

    table = pd.concat([of("numeric", before), of("letter", after)])
    (found,) = rb.statistics.tendency_shift(
        rb.judgments(table, scale=(1, 5)), {"labels": "numeric"}
    ).itertuples()
    assert found.moved == pytest.approx(stats.wasserstein_distance(before, after))
    assert found.n_items == 40


def test_the_papers_bootstrap_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(4)
    judgments = plain(rng.integers(1, 6, 40))
    items = judgments[["item_id"]].assign(human=rng.integers(1, 6, 40).astype(float))
    ends = ["r_paper_low", "r_paper_high"]
    one = rb.agreement(judgments, items)[ends]
    pd.testing.assert_frame_equal(rb.agreement(judgments[::-1], items)[ends], one)


@pytest.mark.parametrize("value", [np.inf, True])
@pytest.mark.parametrize("of", ["score", "human"])
@pytest.mark.parametrize(
    "statistic", [rb.agreement, rb.statistics.judge_bias, rb.mean_with_labels]
)
def test_what_is_not_a_number_is_not_taken_for_one(statistic, of, value):
    frame = plain([1, 2, 3] * 4, ordering="1-2-3", human=[1, 3, 2, 2] * 3).astype(
        {of: object}
    )
    frame.loc[0, of] = value
    with pytest.raises(ValueError, match=r"infinite|not a number"):
        statistic(frame.drop(columns="human"), frame[["item_id", "human"]][:8])
