"""The landing page: what its experiment says was recorded, and every way to move a line works."""

import pytest

from rubricnb import book
from rubricnb.judging.results import recorded

PAGE = book.find_root() / "_build" / "html" / "book" / "index.html"


@pytest.fixture(params=[("desktop", "light"), ("phone", "dark")], ids="-".join)
def opened(readers, request):
    page = readers[request.param].open(PAGE.as_uri())
    return page, page.locator(".explorable.landing")


@pytest.fixture
def experiment(opened):
    """After the guess: everything can be moved."""
    page, box = opened
    box.get_by_role("button", name="Guess 4").click()
    return page, box


@pytest.fixture(scope="module")
def scores():
    judgments = recorded("embedded:qwen2.5-coder-1.5b-instruct", "minibench", study="every-order")
    return judgments.set_index(["candidate", "ordering"]).score


def order(box):
    lines = box.locator("ol.lines li b").all_inner_texts()
    return "-".join(line.removeprefix("Score ").removesuffix(":") for line in lines)


def score(box):
    return int(box.locator(".score").inner_text())


def test_it_opens_on_a_guess_and_then_shows_that_the_score_changed(opened, scores):
    page, box = opened
    assert order(box) == "2-3-4-5-1"
    assert f"gives this answer a {scores['C', '1-2-3-4-5']}" in box.locator("output").inner_text()
    assert box.locator(".score").inner_text() == "?"
    assert not box.locator("select").is_visible()
    box.get_by_role("button", name="Guess 4").focus()
    page.keyboard.press("Enter")
    assert score(box) == scores["C", "2-3-4-5-1"] != scores["C", "1-2-3-4-5"]
    assert box.locator("output").inner_text().startswith("You guessed 4.")
    assert box.get_by_role("button", name="Guess 4").count() == 0


def test_the_strip_of_all_orders_is_read_with_arrow_keys_and_by_pointing(experiment, scores):
    page, box = experiment
    bars = box.locator("svg rect")
    assert bars.count() == len(scores["C"]) == 120
    page.keyboard.press("Home")  # the guess left the focus on the slider
    assert order(box) == "1-2-3-4-5"
    page.keyboard.press("ArrowRight")
    assert order(box) == "1-2-3-5-4"
    assert score(box) == scores["C", "1-2-3-5-4"]
    page.keyboard.press("End")
    assert order(box) == "5-4-3-2-1"
    strip = box.locator("svg")
    wide = strip.bounding_box()["width"]
    point = strip.tap if page.evaluate("'ontouchstart' in window") else strip.click
    point(position={"x": 30.5 / 120 * wide, "y": 20})
    assert order(box) == sorted(scores["C"].index)[30]
    assert score(box) == scores["C", order(box)]


def test_score_shown_is_the_recorded_one_under_every_order_tried(experiment, scores):
    page, box = experiment
    box.get_by_role("button", name="1-2-3-4-5").click()
    assert score(box) == scores["C", "1-2-3-4-5"]
    box.get_by_label("Move score 5 up").press("Enter")
    assert order(box) == "1-2-3-5-4"
    assert score(box) == scores["C", "1-2-3-5-4"] != scores["C", "1-2-3-4-5"]
    page.keyboard.press("ArrowUp")  # the line keeps the focus
    assert order(box) == "1-2-5-3-4"
    assert score(box) == scores["C", "1-2-5-3-4"]
    for pressed, given in (("1-2-3-4-5", 4), ("1-2-3-5-4", 3), ("2-3-4-5-1", 5)):
        box.get_by_role("button", name=pressed).click()
        assert score(box) == scores["C", pressed] == given
    for _ in range(5):
        before = score(box)
        box.get_by_role("button", name="An order with another score").click()
        assert score(box) == scores["C", order(box)] != before


def test_an_other_answer_has_its_own_scores(experiment, scores):
    _, box = experiment
    for place, name in enumerate("ACD"):
        box.locator("select").select_option(index=place)
        assert score(box) == scores[name, order(box)]
        said = box.locator("output").inner_text()
        for given, count in scores[name].value_counts().items():
            assert f"a {given} under {count if count < 120 else 'all 120 orders'}" in said


def test_a_line_is_dragged_to_another_place(experiment, scores):
    page, box = experiment
    box.get_by_role("button", name="1-2-3-4-5").click()
    lines = box.locator("ol.lines li")
    lines.first.scroll_into_view_if_needed()
    start, end = (lines.nth(n).bounding_box() for n in (0, 3))
    page.mouse.move(start["x"] + 20, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(end["x"] + 20, end["y"] + 8, steps=12)
    page.mouse.up()
    assert order(box) == "2-3-4-1-5"
    assert score(box) == scores["C", "2-3-4-1-5"]
    page.mouse.move(start["x"] + 20, start["y"] + 8, steps=6)  # let go: nothing moves any more
    assert order(box) == "2-3-4-1-5"


def test_one_finding_is_learned_without_scrolling(readers):
    page = readers["desktop", "light"].open(PAGE.as_uri())
    box = page.locator(".explorable.landing")
    for part in (box.locator(".score"), box.locator("output"), box.locator("ol.lines")):
        frame = part.bounding_box()
        assert frame["y"] + frame["height"] <= 900, part


def test_without_scripts_the_page_shows_a_picture_of_the_same_scores(readers, scores):
    raw = PAGE.read_text("utf-8")
    assert f"score 3 under {(scores['C'] == 3).sum()}, 4 under {(scores['C'] == 4).sum()}" in raw
