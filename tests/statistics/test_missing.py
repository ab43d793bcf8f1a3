import numpy as np
import pandas as pd
import pytest
from planted import make_judgments
from statsmodels.stats.contingency_tables import cochrans_q

import rubricnb as rb
from rubricnb.permutation import balanced, fixed, shuffled
from rubricnb.statistics.position import missing_reads


def some_lost(item, read, score, ordering, rng):
    return rng.random(len(read)) < np.where(read == 3, 0.5, 0.1)


def test_rates_and_cochrans_q():
    judgments = make_judgments(60, lost=some_lost)
    report = missing_reads(judgments)
    parsed = judgments.assign(ok=judgments["score"].notna()).pivot(
        index="item_id", columns="ordering", values="ok"
    )
    expected = cochrans_q(parsed.astype(int).to_numpy())
    assert report["cochran_q"].to_numpy() == pytest.approx(np.full(10, expected.statistic))
    assert report["p"].to_numpy() == pytest.approx(np.full(10, expected.pvalue))
    rates = report.set_index("ordering")["parse_rate"]
    assert rates.to_dict() == pytest.approx(parsed.mean().to_dict())
    assert rates.idxmin() == "4-5-1-2-3"
    assert (report["p_adjusted"] == report["p"]).all()


def test_worst_cases_hold_the_loss():
    judgments = make_judgments(60, lost=some_lost)
    row = rb.position_bias(judgments).iloc[0]
    lost = judgments["score"].isna().sum()
    for p in range(1, 6):
        count = (judgments["position"] == p).sum()
        assert row[f"share_{p}_least"] == pytest.approx(count / 600)
        assert row[f"share_{p}_most"] == pytest.approx((count + lost) / 600)
        assert row[f"share_{p}_least"] <= row[f"share_{p}"] <= row[f"share_{p}_most"]


def test_repeats_of_an_ordering_are_pooled():
    report = missing_reads(make_judgments(20, design=balanced(2)))
    assert report["n_asked"].tolist() == [40, 40]


def test_groups_are_one_family():
    judgments = make_judgments(60, lost=some_lost)
    calm = make_judgments(60, lost=lambda i, r, s, o, rng: rng.random(len(r)) < 0.1, seed=1)
    report = missing_reads(pd.concat([judgments, calm.assign(judge="calm")]))
    p = report.groupby("judge")["p"].first()
    adjusted = report.groupby("judge")["p_adjusted"].first()
    assert adjusted["calm"] == pytest.approx(p["calm"])
    assert adjusted["simulated"] == pytest.approx(min(2 * p["simulated"], p["calm"]))


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        (balanced(5), "no item lost reads"),
        (fixed(5, 3), "one ordering"),
        (shuffled(5, 3), "different orderings"),
    ],
)
def test_what_cannot_be_tested_is_named(design, reason):
    report = missing_reads(make_judgments(30, design=design))
    assert report["cochran_q"].isna().all()
    assert report["reason"].str.contains(reason).all()
    assert (report["parse_rate"] == 1).all()


def test_nothing_parsed_is_a_rate_of_zero():
    judgments = make_judgments(10)
    judgments["score"] = pd.array([pd.NA] * len(judgments), dtype="Int8")
    assert (missing_reads(judgments)["parse_rate"] == 0).all()
