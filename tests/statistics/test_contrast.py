import numpy as np
import pandas as pd
import pytest
from people import jackknifed, macro, pearson, rated, spearman, two, wide
from scipy import stats

import rubricnb as rb
from rubricnb.core.permutation import balanced, fixed
from rubricnb.statistics.human_agreement import papers_interval, strategy_contrast
from rubricnb.statistics.variation import within_item_sd


def one(*args, **options):
    result = strategy_contrast(*args, **options)
    assert len(result) == 1
    return result.iloc[0]


@pytest.mark.parametrize(
    ("statistic", "names"),
    [
        (pearson, ["delta_r", "low", "high", "p"]),
        (spearman, ["delta_rho", "delta_rho_low", "delta_rho_high", "delta_rho_p"]),
        (
            macro(pearson),
            [f"delta_r_macro{end}" for end in ("", "_low", "_high", "_p")],
        ),
    ],
)
def test_differences_and_their_jackknife_equal_a_loop(statistic, names):
    judgments, items = two(criteria=["a", "b"])
    sides = [
        wide(judgments[judgments["design"] == d], items) for d in ("balanced", "fixed")
    ]
    assert tuple(one(judgments, items)[names]) == pytest.approx(
        jackknifed(statistic, *sides)
    )


def test_the_papers_interval_is_scipys_paired_bootstrap():
    judgments, items = two(60, 5)
    a, b = (
        wide(judgments[judgments["design"] == d], items) for d in ("balanced", "fixed")
    )
    assert (a["item_id"] == b["item_id"]).all()

    def difference(x, y, h, axis):
        r = [stats.pearsonr(side, h, axis=axis).statistic for side in (x, y)]
        return r[0] - r[1]

    expected = stats.bootstrap(
        (a["score"], b["score"], a["human"]),
        difference,
        paired=True,
        method="percentile",
        n_resamples=2000,
        rng=0,
    ).confidence_interval
    low, high = papers_interval(
        np.stack([a["score"], b["score"]]),
        a["human"].to_numpy(),
        resamples=2000,
        seed=0,
    )
    width = expected.high - expected.low
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=0.1 * width)
    row = one(judgments, items)
    assert (row.paper_low, row.paper_high) == pytest.approx(
        (low, high), abs=0.05 * width
    )


def test_single_read_correlations_equal_a_loop():
    judgments, items = two(greedy=False)
    singles = {}
    for design, part in judgments.groupby("design", observed=True):
        r = [pearson(wide(own, items)) for _, own in part.groupby("ordering_index")]
        singles[design] = np.mean(r)
    row = one(judgments, items)
    assert row.r_single_a == pytest.approx(singles["balanced"])
    assert row.r_single_b == pytest.approx(singles["fixed"])
    assert row.delta_single == pytest.approx(singles["balanced"] - singles["fixed"])
    assert row.delta_single_low < row.delta_single < row.delta_single_high


@pytest.mark.parametrize(("greedy", "expected"), [(True, 1), (False, 10)])
def test_effective_reads(greedy, expected):
    judgments, items = two(600, 1, greedy=greedy, concentration=0.3)
    row = one(judgments, items)
    assert row.k_effective_a == pytest.approx(10)
    assert row.k_effective_b == pytest.approx(expected, rel=0.25)
    assert (
        row.k_effective_b
        == one(judgments, items, a="fixed", b="balanced").k_effective_a
    )


def test_effective_reads_of_partly_shared_noise():
    """Reads of one ordering share half of the variance:
    K_eff = 1 / (1/2 + 1/2K) = 1.8.
    """
    judgments, items = two(200, 1)
    rng = np.random.default_rng(0)
    n = len(judgments)
    fixed_rows = (judgments["design"] == "fixed").to_numpy()
    own = rng.normal(size=n)
    shared = rng.normal(size=200)[judgments["item_id"].cat.codes]
    judgments["score"] = np.where(
        fixed_rows, (own + shared) / np.sqrt(2), rng.normal(size=n)
    )
    row = one(judgments, items)
    assert row.k_effective_b == pytest.approx(1 / (0.5 + 0.05), rel=0.12)


def reordered_criteria(**how):
    items = rb.load("minibench")
    asked = rb.plan(
        items, [balanced(3), fixed(3, 6)], readout="score", **how, template="criteria"
    )
    return rb.simulate(asked, items, "criterion-biased"), items


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_effective_reads_of_reordered_criteria(temperature):
    """In Setting 2 every prompt lists the scores 1…n;
    what differs is the order of the criteria.
    """
    judgments, items = reordered_criteria(temperature=temperature)
    row = one(judgments, items)
    single, within = (
        within_item_sd(judgments)
        .set_index("design")["variance"]
        .loc[["balanced", "fixed"]]
    )
    assert row.k_effective_a == pytest.approx(6)
    assert row.k_effective_b == pytest.approx(single / (single - within + within / 6))
    assert (row.k_effective_b > 1.01) == (temperature > 0)
    with pytest.raises(ValueError, match="no forward rotations"):
        strategy_contrast(judgments, items, "balanced/forward", "fixed")


def test_the_papers_interval_of_the_macro_difference_draws_texts():
    judgments, items = reordered_criteria()
    row = one(judgments, items)
    keys = ["item_id", "criterion"]
    means = judgments.astype({"score": float}).groupby([*keys, "design"], observed=True)
    table = means["score"].mean().unstack("design")
    rated = items.set_index(["text_id", "criterion"])["human"]
    table["human"] = rated.reindex(
        table.index.set_names(["text_id", "criterion"])
    ).to_numpy()
    # text × criterion × (balanced, fixed, human)
    cube = table.to_numpy().reshape(-1, 3, 3)
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(500):
        drawn = cube[rng.integers(0, len(cube), len(cube))]
        r = [np.corrcoef(drawn[:, c].T)[2, :2] for c in range(3)]
        draws.append(np.mean([a - b for a, b in r]))
    low, high = np.quantile(draws, [0.025, 0.975])
    assert table.columns.tolist() == ["balanced", "fixed", "human"]
    assert (row.paper_macro_low, row.paper_macro_high) == pytest.approx(
        (low, high), abs=0.2 * (high - low)
    )
    assert "paper_macro_low" not in one(*two())


def test_any_condition_can_be_compared():
    judgments, items = rated()
    hot = judgments.assign(temperature=1.0, score=6 - judgments["score"])
    both = pd.concat([judgments.assign(temperature=0.0), hot])
    row = one(both, items, a=0.0, b=1.0)
    assert row.delta_r == pytest.approx(2 * row.r_a)
    assert row["design"] == "balanced"


def test_parts_of_a_design_can_be_compared():
    judgments, items = rated()
    row = one(judgments, items, a="balanced/forward", b="balanced/reverse")
    halves = [
        judgments[judgments["ordering_index"] <= 5],
        judgments[judgments["ordering_index"] > 5],
    ]
    r = [pearson(wide(half, items)) for half in halves]
    assert (row.r_a, row.r_b) == pytest.approx(tuple(r))
    same = one(judgments, items, a="balanced/half-1", b="balanced/half-2")
    assert same.delta_r == pytest.approx(row.delta_r)


def test_only_items_scored_on_both_sides_count():
    judgments, items = two()
    gone = (judgments["item_id"] == "i0003") & (judgments["design"] == "fixed")
    assert one(judgments[~gone], items).n_items == 59
    judgments.loc[gone, "score"] = pd.NA
    assert one(judgments, items).n_items == 59
