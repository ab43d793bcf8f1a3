"""The landing page: guess a score,
then see the recorded one under each of the 120 orders.
"""

import re

import pytest

from rubricnb.book import notebooks as book
from rubricnb.core.results import recorded

PAGE = book.find_root() / "_build" / "html" / "book" / "index.html"
NAMED = {
    "the usual order": 4,
    "the last two lines swapped": 3,
    "the first line moved to the end": 5,
}


@pytest.fixture(params=[("desktop", "light"), ("phone", "dark")], ids="-".join)
def experiment(readers, request):
    page = readers[request.param].open(PAGE.as_uri())
    return page, page.locator(".explorable.landing")


@pytest.fixture(scope="module")
def reads():
    judgments = recorded(
        "embedded:qwen2.5-coder-1.5b-instruct", "minibench", study="every-order"
    )
    return judgments.query("candidate == 'C'").set_index("ordering")


def order(box):
    lines = box.locator("ol.lines li b").all_inner_texts()
    return "-".join(re.findall(r"\d", " ".join(lines)))


def score(box):
    return int(box.locator(".score").inner_text())


def check_shown(box, reads):
    """Lines, probabilities, score and sentence
    are those recorded under the order shown.
    """
    read = reads.loc[order(box)]
    assert score(box) == read.score
    shares = [int(text.split()[0]) for text in box.locator(".share").all_inner_texts()]
    assert shares == [round(100 * read[f"probability_{k}"]) for k in range(1, 6)]
    assert box.locator("li.most b").inner_text() == f"Score {read.score}:"
    said = box.locator("output").inner_text()
    assert f"Under {order(box)}" in said
    assert f"gives {read.score}, its most probable score at {max(shares)} %" in said


def guess(box, value):
    box.get_by_role("button", name=f"Guess {value}").press("Enter")


def test_nothing_is_given_away_before_the_guess(experiment):
    _, box = experiment
    assert order(box) == "1-2-3-4-5"
    assert not box.locator(".score").is_visible()
    assert not box.locator(".strip").is_visible()
    assert "%" not in box.inner_text()
    assert box.locator("output").inner_text() == ""


@pytest.mark.parametrize("value", [3, 4])
def test_a_guess_is_answered_and_three_orders_give_three_scores(
    experiment, reads, value
):
    page, box = experiment
    guess(box, value)
    said = box.locator("output").inner_text()
    assert f"You guessed {value}{', correctly' * (value == 4)}." in said
    check_shown(box, reads)
    assert page.evaluate("document.activeElement.innerText") == "4 the usual order"
    for name, given in NAMED.items():
        button = box.get_by_role("button", name=f"{given} {name}")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert score(box) == given
        check_shown(box, reads)


def test_the_strip_has_every_order_once_with_its_recorded_score(experiment, reads):
    _, box = experiment
    guess(box, 5)
    labels = box.locator(".cells button").evaluate_all(
        "all => all.map(e => e.ariaLabel)"
    )
    cells = dict(label.split(": score ") for label in labels)
    assert len(labels) == len(cells) == 120
    assert {
        order: int(given) for order, given in cells.items()
    } == reads.score.to_dict()
    texts = box.locator(".cells button").all_inner_texts()
    # a digit in each, not only a colour
    assert texts == sorted(texts) == list(cells.values())
    counts = reads.score.value_counts()
    for given, count in counts.items():
        assert f"Score {given} {count} orders" in box.locator(".strip").inner_text()


def test_arrow_keys_travel_through_the_strip(experiment, reads):
    page, box = experiment
    guess(box, 5)
    for _ in range(3):  # past the three named orders
        page.keyboard.press("Tab")
    cells = box.locator(".cells button")
    focused = "all => all.indexOf(document.activeElement)"
    assert (
        cells.nth(cells.evaluate_all(focused))
        .get_attribute("aria-label")
        .startswith("1-2-3-4-5")
    )
    page.keyboard.press("Home")
    places = [cells.evaluate_all(focused)]
    for key in (
        "ArrowLeft",
        "ArrowRight",
        "ArrowDown",
        "ArrowDown",
        "ArrowUp",
        "ArrowUp",
        "End",
    ):
        page.keyboard.press(key)
        places.append(cells.evaluate_all(focused))
        check_shown(box, reads)
    first, stay, right, below, lower, back, again, last = places
    assert (first, stay, right, last) == (0, 0, 1, 119)
    # the cell under it, in the next score's row
    assert (below, back, again) == (8, below, right)
    assert lower > below
    ring = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(ring) == "solid"
    page.keyboard.press("Tab")  # the strip is one stop
    assert cells.evaluate_all(focused) == -1


def test_a_cell_is_tried_by_pointing_and_kept_by_a_click(experiment, reads):
    page, box = experiment
    guess(box, 5)
    pointed, clicked = (box.locator(".cells button").nth(k) for k in (0, 110))
    pointed.hover()
    assert order(box) == pointed.get_attribute("aria-label").split(":")[0]
    check_shown(box, reads)
    clicked.click()
    pointed.hover()
    page.mouse.move(2, 2)
    assert order(box) == clicked.get_attribute("aria-label").split(":")[0]
    check_shown(box, reads)


def test_a_finger_guesses_and_taps_a_cell(touch, reads):
    page = touch(PAGE)
    size = page.viewport_size
    box = page.locator(".explorable.landing")
    box.get_by_role("button", name="Guess 2").tap()
    cell = box.locator(".cells button").first
    cell.tap()
    assert order(box) == cell.get_attribute("aria-label").split(":")[0]
    check_shown(box, reads)
    seen = box.locator(".verdict").bounding_box()  # with the finger on the strip
    assert 0 <= seen["y"] <= size["height"] - seen["height"] + 1
    assert min(cell.bounding_box()[side] for side in ("width", "height")) >= 24
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]


def test_the_guess_is_on_the_first_screen(window):
    box = window(PAGE, viewport={"width": 1440, "height": 900}).locator(
        ".explorable.landing"
    )
    for part in (box.locator(".ask"), box.locator("ol.lines")):
        frame = part.bounding_box()
        assert frame["y"] + frame["height"] <= 900, part


def test_without_scripts_the_page_shows_a_table_of_the_same_scores(
    without_scripts, reads
):
    page = without_scripts(PAGE)
    rows = page.locator(".explorable .fallback tbody tr").all_inner_texts()
    shown = dict(re.match(r"([\d-]+), .*\t(\d)$", row).groups() for row in rows)
    assert {key: int(value) for key, value in shown.items()} == {
        key: reads.score[key] for key in ("1-2-3-4-5", "1-2-3-5-4", "2-3-4-5-1")
    }
    counts = reads.score.value_counts().sort_index()
    said = ", ".join(f"{k} under {n}" for k, n in counts.items())
    assert f"score {said} of them" in page.locator(".fallback").inner_text()
