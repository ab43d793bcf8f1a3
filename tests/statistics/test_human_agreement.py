import io

import numpy as np
import pandas as pd
import pingouin as pg
import pytest
from people import jackknifed, judged, labelled, macro, pearson, rated, spearman, wide
from planted import make_judgments
from scipy import stats

import rubricnb as rb
from rubricnb.core.permutation import balanced, fixed


def one(judgments, items, **options):
    result = rb.agreement(judgments, items, **options)
    assert len(result) == 1
    return result.iloc[0]


@pytest.mark.parametrize(
    ("statistic", "names"),
    [
        (pearson, ["r", "r_low", "r_high", "p"]),
        (spearman, ["rho", "rho_low", "rho_high", "rho_p"]),
        (macro(pearson), ["r_macro", "r_macro_low", "r_macro_high", "r_macro_p"]),
    ],
)
def test_correlations_and_their_jackknife_equal_a_loop(statistic, names):
    judgments, items = rated(criteria=["a", "b", "c", "d"])
    table, row = wide(judgments, items), one(judgments, items)
    expected = jackknifed(statistic, table, scale=np.arctanh, back=np.tanh)
    assert tuple(row[names]) == pytest.approx(expected)
    assert row.n_criteria == 4


def test_the_papers_interval_is_scipys_percentile_bootstrap():
    judgments, items = rated(60, 4)
    table = wide(judgments, items)
    expected = stats.bootstrap(
        (table["score"], table["human"]),
        lambda x, y, axis: stats.pearsonr(x, y, axis=axis).statistic,
        paired=True,
        method="percentile",
        n_resamples=1000,
        rng=1,
    ).confidence_interval
    row = one(judgments, items)
    width = expected.high - expected.low
    assert (row.r_paper_low, row.r_paper_high) == pytest.approx(
        tuple(expected), abs=0.12 * width
    )


def test_expected_scores_are_used_when_asked_for():
    judgments, items = rated(readout="logprobs")
    judgments["score"] = judgments["score"].where(judgments["item_id"] != "i0001")
    row = one(judgments, items, value="expected_score")
    table = wide(
        judgments.assign(score=judgments["expected_score"].astype(float)), items
    )
    assert row.n_items == 60
    assert row.r == pytest.approx(pearson(table))


def test_unparsed_reads_and_unrated_items_are_left_out():
    judgments, items = rated()
    gone = (judgments["item_id"] == "i0001") | (judgments["ordering_index"] == 3)
    judgments.loc[gone, "score"] = pd.NA
    items.loc[items["item_id"] == "i0002", "human"] = np.nan
    row = one(judgments, items)
    table = wide(judgments, items).dropna()
    assert row.n_items == 58
    assert row.n_reads == 58 * 9
    assert row.r == pytest.approx(pearson(table))


def two_criteria_of_each_text():
    """A judge that says exactly what people say;
    item_id is the text, under two criteria.
    """
    texts = np.repeat([f"t{i}" for i in range(20)], 2)
    human = np.random.default_rng(0).integers(1, 6, 40).astype(float)
    judgments = judged(human, texts, criterion=["style", "wit"] * 20).assign(
        item_id=texts
    )
    items = labelled(judgments, human, slice(None))
    return judgments.drop(columns=["judge", "design"]), items.sample(
        frac=1, random_state=0
    )


def test_a_text_under_two_criteria_is_matched_with_its_criterion():
    judgments, items = two_criteria_of_each_text()
    assert one(judgments, items).r == pytest.approx(1)
    budget = rb.budget_curve(judgments, items)
    assert budget.r_mean.item() == pytest.approx(1)
    tendency = rb.score_tendency(judgments, items).iloc[0]
    assert tendency.wasserstein == 0
    both = pd.concat(
        [judgments.assign(design="fixed"), judgments.assign(design="balanced")]
    )
    contrast = rb.strategy_contrast(both, items).iloc[0]
    assert (contrast.r_a, contrast.r_b) == pytest.approx((1, 1))


def test_datasets_that_share_names_of_items_do_not_mix():
    judgments, items = two_criteria_of_each_text()
    other = judgments.assign(dataset="b", score=6 - judgments["score"])
    people = items.assign(dataset="b", human=6 - items["human"])
    judgments = pd.concat([judgments.assign(dataset="a"), other])
    items = pd.concat([items.assign(dataset="a"), people])
    found = rb.agreement(judgments, items)
    assert found.r.tolist() == pytest.approx([1, 1])
    with pytest.raises(
        ValueError, match=r"item_id 't\d+', criterion '\w+' 2 times .*dataset"
    ):
        rb.agreement(
            judgments[judgments["dataset"] == "a"].drop(columns="dataset"), items
        )
    with pytest.raises(
        ValueError, match=r"the same read 2 times .*\(dataset, criterion\)"
    ):
        rb.agreement(judgments.drop(columns="dataset"), items)
    with pytest.raises(
        ValueError, match=r"dataset 'c'.* is among the items, matched by item_id"
    ):
        rb.agreement(judgments[judgments["dataset"] == "a"].assign(dataset="c"), items)


@pytest.mark.parametrize(
    "statistic", [rb.agreement, rb.budget_curve, rb.score_tendency]
)
def test_an_item_that_stands_twice_is_an_error_that_names_its_rows(statistic):
    judgments, items = two_criteria_of_each_text()
    twice = pd.concat([items, items.iloc[[4]].assign(human=1.0)])
    with pytest.raises(ValueError, match=r"2 times \(rows 5, 41\).*drop_duplicates"):
        statistic(judgments, twice)
    unasked = pd.concat([items, items.iloc[[4, 4]].assign(item_id="never judged")])
    statistic(judgments, unasked)
    without = items.drop(columns="criterion")
    with pytest.raises(
        ValueError, match="name the dataset and the criterion in both frames"
    ):
        statistic(judgments, without)


def test_setting_2_joins_on_text_and_criterion():
    judgments, items = rated(criteria=["a", "b"])
    text = {f"i{i:04d}": f"t{i // 2}" for i in range(60)}
    items = items.assign(
        text_id=items["item_id"].map(text), criterion=["a", "b"] * 30
    )  # items i, i + 1 are one text under two criteria
    by_text = judgments.assign(item_id=judgments["item_id"].astype(str).map(text))
    assert one(by_text, items).r == pytest.approx(one(judgments, items).r)


def reads(design, n=20, greedy=True, **columns):
    return make_judgments(n, design=design, greedy=greedy, concentration=5).assign(
        **columns
    )


def one_read_differs():
    judgments = reads(fixed(5, 10), 144)
    judgments.loc[77, "score"] = judgments.loc[77, "score"] % 5 + 1
    return judgments


@pytest.mark.parametrize(
    ("judgments", "expected"),
    [
        (reads(balanced(5)), 10),
        (reads(balanced(2)), 2),
        (reads(fixed(5, 10)), 1),
        (reads(fixed(5, 10), greedy=False), 10),
        # Keys decide where answers differ, and answers that never differ are one read.
        (
            reads(
                fixed(5, 4),
                score=[1, 2, 3, 4] * 20,
                key=[f"{i}{k % 2}" for i in range(20) for k in range(4)],
            ),
            2,
        ),
        (reads(fixed(5, 4), key=[str(k) for k in range(80)]), 1),
        (one_read_differs(), 1 + 9 / 144),
    ],
)
def test_effective_reads_leave_out_copies(judgments, expected):
    names = judgments["item_id"].cat.categories
    items = pd.DataFrame({"item_id": names, "human": np.arange(float(len(names)))})
    assert one(judgments, items).k_effective == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_the_ceiling_is_the_root_of_pingouins_reliability():
    judgments, items = rated(30, 1)
    rng = np.random.default_rng(0)
    raters = items["human"].to_numpy()[:, None] + rng.normal(0, 1, (30, 3))
    item, rater = (index.ravel() for index in np.indices((30, 3)))
    long = pd.DataFrame({"item": item, "rater": rater, "rating": raters.ravel()})
    table = pg.intraclass_corr(long, targets="item", raters="rater", ratings="rating")
    icc = table.loc[table["Type"].isin(["ICC3k", "ICC(C,k)"]), "ICC"].iloc[0]
    tuples = items.assign(human_ratings=[tuple(r) for r in raters])
    # A rater who is stricter with all texts takes nothing
    # from what a correlation can reach.
    strict = items.assign(
        human_ratings=[tuple(r) for r in raters + np.array([0, 1, -2])]
    )
    read = pd.read_csv(io.StringIO(tuples.to_csv(index=False)))
    typed = items.assign(human_ratings=[";".join(map(str, r)) for r in raters])
    for frame in (tuples, strict, read, typed):
        assert one(judgments, frame).ceiling == pytest.approx(np.sqrt(icc))
    with pytest.raises(ValueError, match="ratings '3 or 4' are not all numbers"):
        one(judgments, read.assign(human_ratings="3 or 4"))
    for lacking, why in (
        (
            items.assign(human_ratings=[(x,) for x in items["human"]]),
            "fewer than two items have",
        ),
        (items, "items have no single ratings"),
    ):
        row = one(judgments, lacking)
        assert np.isnan(row.ceiling)
        assert row.ceiling_reason.startswith(why)


def test_a_frame_concatenated_with_itself_is_an_error():
    judgments, items = rated()
    judgments["request_id"] = np.arange(len(judgments)).astype("uint64")
    with pytest.raises(
        ValueError, match=r"the same read 2 times .*item_id i0000, .*request_id 0, "
    ):
        rb.agreement(pd.concat([judgments, judgments]), items)
    other_seed = judgments.assign(request_id=judgments["request_id"] + 10_000)
    assert one(pd.concat([judgments, other_seed]), items).n_reads == 1200
