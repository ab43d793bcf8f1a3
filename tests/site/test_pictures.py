"""The pictures that a reader changes: mouse, keyboard and touch;
a static figure without scripts.

Numbers shown are compared with what the package or the recorded tables give.
"""

import json
import re

import numpy as np
import pytest

import rubricnb as rb
from rubricnb.book import notebooks as book
from rubricnb.book.replication import recorded_replication

HTML = book.find_root() / "_build" / "html" / "notebooks"
PAGES = {
    "02_balanced_permutation": "fig-02-balanced-permutation-planted",
    "22_may_a_judge_replace_people": "fig-22-may-a-judge-replace-people-replace",
    "27_results": "fig-27-results-verdicts",
}
SQUARE, PANEL, MATRIX = PAGES
TOO_WIDE = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(params=[("desktop", "light"), ("phone", "dark")], ids="-".join)
def open_picture(readers, request):
    def at(stem):
        page = readers[request.param].open((HTML / f"{stem}.html").as_uri())
        return page, page.locator(f"#{PAGES[stem]} .picture")

    return at


@pytest.fixture
def touched(touch):
    """The picture of a chapter, with its folds open, under a finger."""

    def at(stem):
        page = touch(HTML / f"{stem}.html")
        page.evaluate(
            "() => document.querySelectorAll('details').forEach(d => d.open = true)"
        )
        return page.locator(".picture")

    return at


def said(box):
    return box.locator("output").inner_text().replace("−", "-").replace("\u00a0", " ")


def press(box, name):
    box.get_by_role("button", name=name, exact=True).press("Enter")


@pytest.mark.parametrize("stem", PAGES)
def test_picture_takes_the_place_of_its_static_figure(open_picture, stem):
    page, box = open_picture(stem)
    assert box.locator("output").is_visible()
    static = page.locator(f"#{PAGES[stem]} img")
    assert static.count() == 1
    assert not static.is_visible()
    assert page.evaluate(TOO_WIDE) <= 1
    page.emulate_media(media="print")
    assert static.is_visible()
    assert not box.is_visible()
    page.emulate_media(media="screen")


@pytest.mark.parametrize("stem", PAGES)
def test_without_scripts_the_static_figure_is_there(without_scripts, stem):
    page = without_scripts(HTML / f"{stem}.html")
    figure = page.locator(f"#{PAGES[stem]} img")
    figure.scroll_into_view_if_needed()
    assert figure.is_visible()
    assert page.locator(".picture").bounding_box() is None


@pytest.mark.parametrize("stem", PAGES)
def test_tab_shows_a_ring_around_the_button_that_has_the_focus(open_picture, stem):
    page, box = open_picture(stem)
    box.evaluate("e => { e.tabIndex = -1; e.focus(); }")
    page.keyboard.press("Tab")
    ring = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert box.evaluate("e => e.contains(document.activeElement)")
    assert ring == "solid"


@pytest.mark.parametrize("stem", PAGES)
def test_buttons_are_large_enough_for_a_finger(touched, stem):
    box = touched(stem)
    sizes = [button.bounding_box() for button in box.get_by_role("button").all()]
    assert min(min(s["width"], s["height"]) for s in sizes) >= 24


# ---- chapter 02
# --------------------------------------------------------------------------------------


def shown_counts(box):
    """The table of counts, score by position."""
    texts = box.locator("svg").nth(1).locator("rect + text").all_text_contents()
    return np.reshape([int(text) for text in texts], (5, 5))


def test_ten_rotations_added_by_keyboard_balance_the_square(open_picture):
    page, box = open_picture(SQUARE)
    asked = [[1, 2, 3, 4, 5]]
    rotate = box.get_by_role("button", name="Rotate")
    assert "cannot tell them apart" in said(box)
    for step in range(1, 10):
        rotate.focus()
        if step == 5:  # all forward ones are asked
            assert "each score has been in each position once" in said(box)
            page.keyboard.press("ArrowRight")  # to "Reverse"
        page.keyboard.press("Enter")
        press(box, "Add this order")
        asked.append([int(tile) for tile in box.locator(".tiles b").all_inner_texts()])
        assert (shown_counts(box) == rb.position_counts(np.array(asked))).all()
    assert sorted(asked) == sorted(rb.balanced(5).orderings().tolist())
    assert "Balanced: each score has been in each position 2 times" in said(box)
    assert "in 20 % of reads" not in said(box).split("first position,")[0]
    assert "in 20 % by the judge that prefers the lowest score" in said(box)
    assert box.get_by_role("button", name="Add this order").is_disabled()
    press(box, "Remove the last")
    assert "Not balanced" in said(box)


def test_square_is_filled_by_touch(touched):
    box = touched(SQUARE)
    box.get_by_role("button", name="All 10").tap()
    assert (shown_counts(box) == 2).all()
    box.get_by_role("button", name="Start again").tap()
    assert (shown_counts(box) == np.eye(5)).all()


# ---- chapter 22
# --------------------------------------------------------------------------------------


def recorded_worth(names, constant=False):
    table = rb.recorded_tables("recordings/replace_")["subsets"]
    members = table.iloc[:, :11]
    (row,) = table[(members == members.columns.isin(names)).all(axis=1)].to_dict(
        "records"
    )
    worth = row["constant" if constant else "worth"]
    return float(np.round(worth, 2)), float(np.round(row["r"], 2))


def told_worth(box):
    worth = re.search(r"worth (\d\.\d\d)", said(box))[1]
    return float(worth), float(re.search(r"r = (-?\d\.\d\d)", said(box))[1])


def test_panel_shows_what_is_on_record_for_the_judges_added(open_picture):
    page, box = open_picture(PANEL)
    toggles = box.locator(".toggles button")
    toggles.first.focus()
    page.keyboard.press("ArrowDown")  # two columns: GPT-4o is below Gemini Flash
    page.keyboard.press("Enter")
    assert "GPT-4o (" in page.evaluate("() => document.activeElement.textContent")
    assert told_worth(box) == (1.0, recorded_worth(["GPT-4o"])[1])
    box.get_by_role("button", name="always the same score").click()
    assert told_worth(box) == recorded_worth(["GPT-4o"], constant=True)
    assert "cannot change r" in said(box)
    box.get_by_role("button", name="always the same score").click()
    box.get_by_role("button", name="Mistral v0.3").click()
    assert told_worth(box) == recorded_worth(["GPT-4o", "Mistral v0.3"])
    press(box, "All 11")
    assert box.locator("[aria-pressed=true]").count() == 11
    names = rb.recorded_tables("recordings/replace_")["subsets"].columns[:11]
    assert told_worth(box) == recorded_worth([*names])
    press(box, "Start again")
    assert "Guess first" in said(box)


def test_judges_are_added_by_touch(touched):
    box = touched(PANEL)
    box.get_by_role("button", name="Gemini Pro").tap()
    box.get_by_role("button", name="GPT-4-0314").tap()
    assert told_worth(box) == recorded_worth(["Gemini Pro", "GPT-4-0314"])


# ---- chapter 27
# --------------------------------------------------------------------------------------


def test_matrix_has_a_cell_for_each_recorded_verdict(open_picture):
    _, box = open_picture(MATRIX)
    recorded = recorded_replication().dropna(subset="estimate")
    assert box.locator("td button").count() == len(recorded)
    verdicts = (
        recorded.verdict.astype(str)
        .replace("cannot say", "inconclusive")
        .value_counts()
    )
    for verdict, n in verdicts.items():
        assert box.locator(f'td [data-verdict="{verdict}"]').count() == n


def test_a_cell_shows_its_evidence_by_mouse_and_by_arrows(open_picture):
    page, box = open_picture(MATRIX)
    row = recorded_replication().set_index(["judge", "dataset", "finding"])
    row = row.loc["qwen2.5-coder-0.5b-instruct-vllm", "vicuna", "descending"]
    box.get_by_label("descending, Qwen 0.5B, Vicuna: does not").click()
    told = f"{row.estimate:.2f} score points [{row.low:.2f}, {row.high:.2f}]"
    assert told in said(box)
    assert "Verdict: does not (p" in said(box)
    assert "simulated judge without preferences" in said(box)
    assert f"{row.n_items:.0f} items, {row.n_clusters:.0f} prompts" in said(box)
    assert box.locator("output a").get_attribute("href").startswith("13_score_ids")
    page.keyboard.press("ArrowLeft")
    assert said(box).startswith("first: Qwen 0.5B on Vicuna")
    page.keyboard.press("ArrowUp")
    assert said(box).startswith("first: Qwen 0.5B on SummEval")
    assert box.locator("td [aria-pressed=true]").count() == 1


def test_large_judges_have_a_matrix_of_their_own_by_touch(touched):
    box = touched(MATRIX)
    box.get_by_role("button", name="Other changes, large judges").tap()
    box.get_by_label("asked again, GPT-5.4, RewardBench 2: replicates").tap()
    assert "28 % of pairs [28, 29]" in said(box)
    box.locator("output").scroll_into_view_if_needed()
    assert box.locator("output a").get_attribute("href") == "19_how_noisy.html"


def test_links_of_the_matrix_lead_to_chapters():
    text = (HTML / f"{MATRIX}.html").read_text("utf-8")
    carried = re.search(
        r'<div class="picture".*?<script[^>]*>(.*?)</script>', text, re.S
    )[1]
    links = {
        f["href"] for view in json.loads(carried)["views"] for f in view["findings"]
    }
    assert len(links) > 6
    assert [link for link in links if not (HTML / link).is_file()] == []
