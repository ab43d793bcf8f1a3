"""What lost reads could at worst have hidden."""

import numpy as np
import pytest
from planted import make_judgments

import rubricnb as rb


def some_lost(item, read, score, ordering, rng):
    return rng.random(len(read)) < np.where(read == 3, 0.5, 0.1)


def test_worst_cases_hold_the_loss():
    judgments = make_judgments(60, lost=some_lost)
    row = rb.position_bias(judgments).iloc[0]
    lost = judgments["score"].isna().sum()
    for p in range(1, 6):
        count = (judgments["position"] == p).sum()
        assert row[f"share_{p}_least"] == pytest.approx(count / 600)
        assert row[f"share_{p}_most"] == pytest.approx((count + lost) / 600)
        assert row[f"share_{p}_least"] <= row[f"share_{p}"] <= row[f"share_{p}_most"]
