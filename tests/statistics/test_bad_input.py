"""Every public statistic on data that it cannot, or not wholly, use.

What comes out is an error that says what to do, or numbers: then a NaN has its reason
beside it, nothing is infinite, and nothing warns.
"""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from planted import make_criterion_judgments, make_judgments

import rubricnb as rb
from rubricnb.core.permutation import balanced, fixed, placebo, shuffled, williams


@cache
def study():
    """Twelve prompts of four candidates under four designs, with ratings."""
    quality = np.random.default_rng(0).uniform(1, 5, 48)
    designs = [balanced(5), fixed(5, 10), placebo(5, 10), shuffled(5, 10)]
    parts = [
        make_judgments(
            12, 4, d, quality=quality, concentration=0.5, readout="logprobs", seed=i
        )
        for i, d in enumerate(designs)
    ]
    judgments = pd.concat(parts, ignore_index=True)
    for name in ("item_id", "design", "ordering", "cluster_id"):
        judgments[name] = judgments[name].astype("category")
    number = judgments["item_id"].cat.codes.to_numpy()
    judgments["group_id"] = judgments["cluster_id"].astype(str)
    judgments["candidate"] = pd.Categorical(np.array(list("abcd"))[number % 4])
    human = np.round(2 * quality) / 2
    return judgments, pd.DataFrame(
        {"item_id": judgments["item_id"].cat.categories, "human": human}
    )


@cache
def criteria():
    """Texts scored on three criteria in all orders."""
    judgments = make_criterion_judgments(12, 2, williams(3), effect=(0.5, 0.0, -0.5))
    judgments["request_id"] = judgments["item_id"].astype(str) + judgments[
        "ordering_index"
    ].map(str)
    return judgments, pd.DataFrame({"item_id": [], "human": []})


def balanced_only(judgments):
    return judgments[judgments["design"] == "balanced"]


STATISTICS = {
    "position_bias": lambda j, i, v: rb.position_bias(balanced_only(j), value=v),
    "score_position": lambda j, i, v: rb.score_position(balanced_only(j), value=v),
    "bias_cost": lambda j, i, v: rb.bias_cost(
        rb.score_position(balanced_only(j), value=v), balanced(5).orderings()
    ),
    "agreement": lambda j, i, v: rb.agreement(j, i, value=v),
    "strategy_contrast": lambda j, i, v: rb.strategy_contrast(j, i, value=v),
    "budget_curve": lambda j, i, v: rb.budget_curve(j, i, value=v),
    "within_item_sd": lambda j, i, v: rb.within_item_sd(j, value=v),
    "order_effect": lambda j, i, v: rb.order_effect(balanced_only(j), value=v),
    "variance_components": lambda j, i, v: rb.variance_components(j, value=v),
    "rank_reversal": lambda j, i, v: rb.rank_reversal(j, value=v),
    "rank_reversal of halves": lambda j, i, v: rb.rank_reversal(
        j, "fixed/half-1", "placebo/half-2", value=v
    ),
    "reversal_effect": lambda j, i, v: rb.statistics.reversal_effect(j, value=v),
    "criterion_order": lambda j, i, v: rb.criterion_order(j),
}
OF_VALUES = pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name in STATISTICS
        for value in ("score", "expected_score")
        if (name, value) != ("criterion_order", "expected_score")
    ],
)


def given(name):
    return criteria() if name == "criterion_order" else study()


def constant_scores(judgments, items):
    return judgments.assign(score=3, expected_score=3.0), items


def constant_ratings(judgments, items):
    return judgments, items.assign(human=3.0)


def no_ratings(judgments, items):
    return judgments, items.assign(human=np.nan)


def one_item(judgments, items):
    return judgments[judgments["item_id"] == judgments["item_id"].iloc[0]], items


def one_cluster(judgments, items):
    return judgments[judgments["cluster_id"] == judgments["cluster_id"].iloc[0]], items


def two_clusters(judgments, items):
    return judgments[
        judgments["cluster_id"].isin(judgments["cluster_id"].unique()[:2])
    ], items


def missing_cells(judgments, items):
    return judgments[np.random.default_rng(0).random(len(judgments)) < 0.8], items


def unequal_reads(judgments, items):
    first = judgments["item_id"].isin(judgments["item_id"].unique()[::2])
    return judgments[first | (judgments["ordering_index"] <= 2)], items


def lost(judgments, gone):
    judgments = judgments.copy()
    numbers = [
        c
        for c in judgments
        if c.startswith(("score", "expected", "position", "probab"))
    ]
    for name in numbers:
        judgments[name] = judgments[name].mask(gone)
    return judgments


def all_unparsed(judgments, items):
    return lost(judgments, np.ones(len(judgments), bool)), items


def an_item_unparsed(judgments, items):
    return lost(
        judgments, (judgments["item_id"] == judgments["item_id"].iloc[0]).to_numpy()
    ), items


def an_ordering_unparsed(judgments, items):
    return lost(judgments, (judgments["ordering_index"] == 3).to_numpy()), items


def one_read_each(judgments, items):
    return judgments[judgments["ordering_index"] == 1], items


BAD = [
    constant_scores,
    constant_ratings,
    no_ratings,
    one_item,
    one_cluster,
    two_clusters,
    missing_cells,
    unequal_reads,
    all_unparsed,
    an_item_unparsed,
    an_ordering_unparsed,
    one_read_each,
]


def check(table):
    """A NaN has a reason, and nothing is infinite."""
    assert len(table)
    # The ceiling needs ratings of several people; its docstring says so.
    numbers = table.select_dtypes("number").drop(columns="ceiling", errors="ignore")
    assert not np.isinf(numbers.to_numpy(dtype=float, na_value=np.nan)).any()
    unknown = numbers.isna().any(axis=1)
    assert "reason" in table or not unknown.any(), numbers.isna().any()
    silent = table[unknown & (table.get("reason", "") == "")]
    assert silent.empty, list(numbers.columns[numbers.loc[silent.index].isna().any()])


@pytest.mark.in_turn
@pytest.mark.parametrize("spoil", BAD, ids=lambda f: f.__name__)
@OF_VALUES
def test_named_nan_or_a_clear_error(name, value, spoil):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            table, refused = STATISTICS[name](*spoil(*given(name)), value), ""
        except ValueError as error:
            table, refused = None, str(error)
    if table is None:
        assert any(
            way_out in refused for way_out in ("pass ", "use ", "add ", "needs ")
        ), refused
    else:
        check(table)


# --- rows that hold what they should not
# ---------------------------------------------------------


@OF_VALUES
def test_a_score_beside_a_status_that_is_not_ok_does_not_count(name, value):
    judgments, items = given(name)
    gone = np.random.default_rng(1).random(len(judgments)) < 0.1
    status = np.where(gone, "truncated", "ok")
    blank = lost(judgments, gone).assign(status=status)
    unread = STATISTICS[name](judgments.assign(status=status), items, value)
    pd.testing.assert_frame_equal(unread, STATISTICS[name](blank, items, value))


@pytest.mark.parametrize("name", STATISTICS)
def test_a_missing_cluster_is_an_error_that_names_an_item(name):
    judgments, items = given(name)
    first = judgments["item_id"] == judgments["item_id"].iloc[0]
    without = judgments.assign(cluster_id=judgments["cluster_id"].mask(first))
    with pytest.raises(ValueError, match=r"no cluster_id \(the first: item .*add what"):
        STATISTICS[name](without, items, "score")


def test_halves_and_a_scale_from_0_are_kept_where_no_place_is_needed():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 7, (30, 3)) / 2
    plain = pd.DataFrame(
        {
            "item_id": np.repeat(np.arange(30), 3),
            "cluster_id": np.repeat(np.arange(30), 3),
            "score": score.ravel(),
        }
    )
    assert rb.within_item_sd(plain).sd.item() == pytest.approx(score.std(axis=1).mean())
    items = pd.DataFrame({"item_id": np.arange(30), "human": rng.normal(size=30)})
    oracle = np.corrcoef(score.mean(axis=1), items["human"])[0, 1]
    for frame in (plain, plain.assign(ordering=np.nan)):
        assert rb.agreement(frame, items).r.item() == pytest.approx(oracle)
    assert rb.statistics.gold(plain)["gold_ratings"].tolist() == [
        tuple(row) for row in score.tolist()
    ]


# --- designs that a statistic cannot use
# ---------------------------------------------------------


@pytest.mark.parametrize("name", STATISTICS)
def test_nothing_at_all_is_an_error(name):
    judgments, items = given(name)
    with pytest.raises(ValueError, match=r"empty|no column of the judgments holds"):
        STATISTICS[name](judgments.iloc[:0], items, "score")


@OF_VALUES
def test_columns_of_objects_give_what_columns_of_numbers_give(name, value):
    """As a row turned into a table, or a table of mixed cells, has them."""
    judgments, items = given(name)
    judgments = judgments.copy()
    judgments.loc[judgments.index[::7], value] = np.nan
    numbers = STATISTICS[name](judgments, items, value)
    objects = STATISTICS[name](judgments.astype(object), items.astype(object), value)
    pd.testing.assert_frame_equal(objects, numbers, check_dtype=False)
