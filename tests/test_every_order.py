"""The landing page's experiment: each of its buttons shows another recorded score."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "_ext"))
import every_order


def test_the_page_opens_on_a_change():
    data = every_order.experiment()
    shown = [data["scores"][order][data["shown"]] for order in data["orders"]]
    assert data["answers"][data["shown"]].startswith("An hour before bed")
    assert data["orders"][0] == "12345"
    assert shown == [4, 3, 5]


def test_buttons_that_would_change_nothing_stop_the_build(monkeypatch):
    """Another recording may answer alike under two of them."""
    monkeypatch.setattr(every_order, "ORDERS", ("12345", "54321"))
    with pytest.raises(ValueError, match="answer C does not get different scores under 12345"):
        every_order.experiment()
