"""The landing page's experiment: each of its buttons shows another recorded score."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "_ext"))
import every_order


def test_the_page_opens_on_a_change():
    data = every_order.experiment()
    assert data["answer"].startswith("An hour before bed")
    assert next(iter(data["named"])) == "12345"
    assert [data["scores"][order] for order in data["named"]] == [4, 3, 5]


def test_the_score_under_every_order_is_its_most_probable_one():
    data = every_order.experiment()
    assert len(data["scores"]) == 120
    for order, shares in data["probabilities"].items():
        assert sum(shares) == pytest.approx(1, abs=3e-4)
        assert shares[data["scores"][order] - 1] == max(shares)


def test_buttons_that_would_change_nothing_stop_the_build(monkeypatch):
    """A different recording may answer alike under two of them."""
    monkeypatch.setattr(every_order, "ORDERS", {"12345": "usual", "54321": "reversed"})
    with pytest.raises(
        ValueError, match="answer C does not get different scores under 12345"
    ):
        every_order.experiment()
