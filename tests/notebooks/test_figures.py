"""Figures of recorded data: a new recording cannot change a picture unseen."""

import re
import shutil

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from cells import code_of

import rubricnb as rb
from rubricnb.book import notebooks as book
from rubricnb.book import summary
from rubricnb.book.summary import SUMMARIES, recorded_summary
from rubricnb.core.results import results_folder

NOTEBOOKS = book.find_root() / "notebooks"
STEMS = sorted(path.stem for path in NOTEBOOKS.glob("*.md"))
FIGURE = re.compile(r"^```\{glue:figure\} (fig\S*)\n(.*?)^```", re.M | re.S)
DRAWS_A_SUMMARY = {
    "02_balanced_permutation": ("position", "fig-cancelled"),
    "05_position_bias": ("position", "fig-places"),
    "08_how_many_orderings": ("components", "fig-enough"),
    "11_rank_reversal": ("ranking", "fig-winners"),
    "12_temperature_and_effort": ("temperature", "fig-knob"),
}


def figures_of_recorded_data(text):
    """The first figure of a page whose badge says so, and those whose caption does."""
    badge = re.search(r"^\*(\w+)", text, re.M)
    for k, (name, caption) in enumerate(FIGURE.findall(text)):
        recorded = re.search(r"\*[Rr]ecorded\*|<\.\./results/|^Recorded", caption, re.M)
        if (k == 0 and badge and badge[1] == "Recorded") or recorded:
            yield name


@pytest.mark.parametrize("stem", STEMS)
def test_a_figure_of_recorded_data_checks_what_it_is_drawn_from(stem):
    text = (NOTEBOOKS / f"{stem}.md").read_text("utf-8")
    checked = set(re.findall(r'check_drawn\(\s*"(fig\S*)"', text))
    # asked by its own plan
    assert checked >= set(figures_of_recorded_data(text)) - {"fig-five"}


@pytest.mark.parametrize("stem", DRAWS_A_SUMMARY)
def test_a_new_recording_stops_the_chapter_with_the_figures_name(
    stem, tmp_path, monkeypatch
):
    """One more judge on a dataset that is drawn,
    as `python -m studies.replication` adds it.
    """
    table, figure = DRAWS_A_SUMMARY[stem]
    for name in SUMMARIES:
        shutil.copy(results_folder() / f"{name}.csv", tmp_path)
    known = recorded_summary(table)
    hanna = known[
        known["dataset"] == ("hanna" if "hanna" in set(known["dataset"]) else "vicuna")
    ]
    added = hanna[hanna["judge"] == hanna["judge"].iloc[0]].assign(judge="a-new-judge")
    pd.concat([known, added]).to_csv(tmp_path / f"{table}.csv", index=False)
    monkeypatch.setattr(summary, "results_folder", lambda: tmp_path)
    monkeypatch.setattr(rb.pages, "show", lambda *_, **__: None)
    monkeypatch.setattr(rb.pages, "say", lambda *_, **__: None)
    cells = code_of(stem)
    last = next(k for k, source in enumerate(cells) if f'"{figure}"' in source)
    until_drawn = "\n".join(cells[: last + 1])
    with pytest.raises(
        ValueError, match=f"figure {figure} describes other data .*a-new-judge"
    ):
        exec(until_drawn, {})


def test_no_label_of_the_results_figure_lies_on_an_interval(monkeypatch):
    """Chapter 27 writes what was found above a row,
    so that the marks have a phone's width.
    """
    kept = []
    monkeypatch.setattr(
        rb.pages, "show", lambda name, what, *_, **__: kept.append((name, what))
    )
    monkeypatch.setattr(rb.pages, "say", lambda *_, **__: None)
    scope = {}
    for code in code_of("27_results"):
        exec(code, scope)
        if kept:
            break
    ((name, figure),) = kept
    figure.set_size_inches(6.6, 10.5)
    figure.draw_without_rendering()
    assert name == "fig-effects"
    n_labels = 0
    for ax in figure.axes:
        points = [
            ax.transData.transform(point)
            for collection in ax.collections[:-1]  # the last is the line at zero
            for segment in collection.get_segments()
            if len(segment)
            for point in np.linspace(*segment, 50)
        ]
        points += [
            ax.transData.transform(xy) for line in ax.lines for xy in line.get_xydata()
        ]
        for label in ax.texts:
            n_labels += 1
            box = label.get_window_extent()
            assert not any(box.contains(x, y) for x, y in points), label.get_text()
            assert box.x1 < figure.bbox.x1, f"cut: {label.get_text()}"
    assert n_labels == 10
    plt.close(figure)
