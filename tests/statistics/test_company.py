"""The same question again: an engine that answers by its company is found out."""

import numpy as np
import pytest

import rubricnb as rb
from rubricnb.core.contract import Reply
from rubricnb.statistics.company import repeats


class ByCompany:
    """Gives every fourth item another score where many are in the engine at once."""

    slug, source, identity, deterministic = "company", "live", "company 1", False
    readouts, concurrency = ("logprobs",), 64
    control_tokens = ()

    def answer(self, requests):
        asked = list(requests)
        for request in reversed(asked):
            many = len(asked) > 8 and request.request_id // 7 % 3 == 0
            shares = (0.5, 0.3, 0.2) if many else (0.3, 0.5, 0.2)
            place = int(np.argmax(shares))
            text = f"[RESULT] {request.choices[place]}"
            yield Reply(request.request_id, text, "stop", (shares,), 9, 0, 1, 0.0, None)

    def close(self):
        pass


def plan(n_items=20, design=None):
    items = rb.load("minibench", n_items=n_items)
    return rb.plan(items, design or rb.fixed(5, 1), readout="logprobs")


def test_answers_that_depend_on_company_are_found_where_company_differs():
    requests = plan()
    found = repeats(requests, ByCompany(), alone=12).set_index("way")
    moved = (requests.request_id // 7 % 3 == 0).mean()
    assert 0 < moved < 1
    for way in ("again", "shuffled"):
        row = found.loc[way]
        assert (row.identical, row.changed, row.largest) == (1, 0, 0)
    few = found.loc["few at once"]
    assert few.changed == pytest.approx(moved)
    assert few.identical == pytest.approx(1 - moved)
    assert few.identical_low < few.identical < few.identical_high
    # from the first place to the second one: a level down the ascending list
    assert few["shift"] == pytest.approx(moved * 0.2)
    assert few.largest == pytest.approx(0.2)
    assert found.n_items.tolist() == [20, 20, 20, 12]


def test_one_cluster_has_no_interval_and_says_why():
    items = rb.load("minibench")
    one = items[items.cluster_id == items.cluster_id[0]].reset_index(drop=True)
    requests = rb.plan(one, rb.fixed(5, 1), readout="logprobs")
    row = repeats(requests, ByCompany()).iloc[0]
    assert np.isnan(row.shift_low)
    assert "one cluster" in row.reason
