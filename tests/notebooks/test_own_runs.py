"""Chapters with their parameters combined: several knobs at once,
several datasets in a figure.
"""

import re
from itertools import product

import pytest

from rubricnb.book import notebooks as book

JUDGE = {"judge": "simulated:first-biased"}
FEW = JUDGE | {"n_items": 12, "draws": 2, "studies": 2}
ROWS = {
    "10_criterion_order": "fig-10_criterion_order-own-effects",
    "11_rank_reversal": "fig-ours",
}


def _svg(done, name):
    return "".join(book.glued(done)[name]["image/svg+xml"])


@pytest.mark.in_turn
@pytest.mark.parametrize("readout", ["logprobs", "score", "feedback"])
def test_efforts_and_thinkings_are_told_apart_in_every_readout(readout, warnings_of):
    """With probabilities, reads at one temperature are those
    of one effort and one thinking.
    """
    several = {"readout": readout, "efforts": "low high", "thinkings": "off on"}
    if readout != "logprobs":
        several["temperatures"] = "0 1"
    done = book.execute("12_temperature_and_effort", FEW | several, cell_seconds=300)
    assert warnings_of(done) == []
    varied = ("low", "high") if readout == "logprobs" else ("0.0", "1.0")
    lines = {
        f"{design}, {first}, {thinking}"
        for design, first, thinking in product(
            ("balanced", "fixed"), varied, ("off", "on")
        )
    }
    drawn = set(re.findall("<!-- (.*?) -->", _svg(done, "fig-ours")))
    assert lines <= drawn
    rows = book.glued(done)["tab-asked"]["text/html"].count("<tr>") - 1
    assert rows == 2 * 2 * 2 * (1 if readout == "logprobs" else 2)


def test_temperatures_of_probabilities_are_refused():
    """They were read before any sampling: each temperature would have the same row."""
    with pytest.raises(
        RuntimeError, match="every temperature would give the same rows"
    ):
        book.execute("12_temperature_and_effort", FEW | {"temperatures": "0 0.3 0.6 1"})


def test_designs_without_balanced_are_refused_before_any_call():
    with pytest.raises(RuntimeError, match="designs needs 'balanced'"):
        book.execute("10_criterion_order", JUDGE | {"designs": ["fixed"]})


@pytest.mark.slow
@pytest.mark.parametrize("datasets", ["hanna+summeval", "minibench+summeval+mt-bench"])
@pytest.mark.parametrize("stem", ROWS)
def test_a_figure_of_several_datasets_keeps_its_width(
    stem, datasets, mirror, warnings_of
):
    if stem.startswith("11"):
        # whose stories do not compete
        datasets = datasets.replace("hanna", "minibench")
    else:
        datasets = datasets.replace("mt-bench", "hanna")  # which has one criterion only
    several = JUDGE | {"dataset": datasets, "n_items": 48}
    done = book.execute(stem, several, cell_seconds=300)
    assert warnings_of(done) == []
    svg = _svg(done, ROWS[stem])
    (width,) = re.findall(r'<svg[^>]* width="([\d.]+)pt"', svg)
    assert float(width) < 600
    axes = max(
        map(float, re.findall(r'<rect x="[^"]*" y="[^"]*" width="([\d.]+)"', svg))
    )
    assert axes > float(width) / 2
