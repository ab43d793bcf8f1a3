"""The experiments inside the pages: they answer the keyboard,
and what they say is right.
"""

import re

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.book import notebooks as book

HTML = book.find_root() / "_build" / "html" / "notebooks"
PAGES = sorted(
    p.stem for p in HTML.glob("*.html") if 'class="explorable"' in p.read_text("utf-8")
)


SLIDERS = [
    "08_how_many_orderings",
    "11_rank_reversal",
    "17_calibration",
    "24_how_many_labels",
]


ON_A_PHONE = pytest.param(("phone", "dark"), marks=pytest.mark.slow)


@pytest.fixture(params=[("desktop", "light"), ON_A_PHONE], ids="-".join)
def open_page(readers, request):
    reader = readers[request.param]

    def at(stem):
        page = reader.open((HTML / f"{stem}.html").as_uri())
        return page, page.locator(".explorable").first

    return at


def test_there_are_explorables():
    expected = {
        "08_how_many_orderings",
        "11_rank_reversal",
        "A_bias_cost",
        "17_calibration",
        "24_how_many_labels",
    }
    assert expected <= set(PAGES)


def shown(box):
    """What a reader sees and hears of an experiment: its plot and its sentence."""
    return box.locator("svg").inner_html() + box.locator("output").inner_text()


def work(page, control):
    """Use the control that has the focus; yield what it does, one change at a time."""
    kind = control.evaluate("e => e.type")
    if kind == "range":
        full = control.evaluate("e => +e.value + +e.step > +e.max")
        yield lambda: page.keyboard.press("ArrowLeft" if full else "ArrowRight")
    if kind == "select-one":
        yield lambda: page.keyboard.press("ArrowDown")
    # backwards: the last one is then the second, which may enable a button
    if kind == "radio":
        for _ in range(
            control.evaluate("e => document.getElementsByName(e.name).length") - 1
        ):
            yield lambda: page.keyboard.press("ArrowUp")


@pytest.mark.parametrize("stem", PAGES)
def test_every_control_is_reached_and_worked_by_keyboard(open_page, stem):
    page, box = open_page(stem)
    assert box.locator(".fallback").count() == 0
    controls = box.locator("input, button, select")
    box.evaluate("e => { e.tabIndex = -1; e.focus(); }")
    reached = set()
    for _ in range(controls.count()):
        page.keyboard.press("Tab")
        focus = "all => all.indexOf(document.activeElement)"
        if (index := controls.evaluate_all(focus)) < 0:
            break
        reached.add(index)
        for act in work(page, controls.nth(index)):
            before = shown(box)
            act()
            assert shown(box) != before, controls.nth(index).evaluate(
                "e => e.outerHTML"
            )
    # a group is one stop
    asked = "e => !e.disabled && (e.type !== 'radio' || e.checked)"
    stops = {i for i, control in enumerate(controls.all()) if control.evaluate(asked)}
    radios = {i for i in reached if controls.nth(i).get_attribute("type") == "radio"}
    assert len(stops) == len(reached)
    assert {
        i for i in stops if controls.nth(i).get_attribute("type") != "radio"
    } == reached - radios


@pytest.mark.parametrize("stem", PAGES)
def test_buttons_do_something(open_page, stem):
    _, box = open_page(stem)
    changed = []
    for button in box.locator("button:enabled").all():
        before = shown(box)
        button.press("Enter")
        changed.append(shown(box) != before)
    assert any(changed) == bool(changed)


@pytest.mark.parametrize("stem", SLIDERS)
def test_a_finger_on_its_track_moves_a_slider(touch, stem):
    page = touch(HTML / f"{stem}.html")
    page.evaluate(
        "() => document.querySelectorAll('details').forEach(d => d.open = true)"
    )
    slider = page.locator(".explorable input[type=range]").first
    slider.scroll_into_view_if_needed()
    size, value = slider.bounding_box(), float(slider.input_value())
    page.touchscreen.tap(
        size["x"] + 0.9 * size["width"], size["y"] + size["height"] / 2
    )
    assert float(slider.input_value()) > value


def carried(page):
    """What the page's experiment holds."""
    return page.evaluate(
        "() => JSON.parse(document.querySelector('.explorable script').textContent)"
    )


@pytest.mark.parametrize(
    "stem", ["08_how_many_orderings", "11_rank_reversal", "24_how_many_labels"]
)
def test_an_experiment_that_answers_stands_before_the_story_and_outside_the_fold(
    readers, stem
):
    page = readers["desktop", "light"].open(
        (HTML / f"{stem}.html").as_uri(), unfold=False
    )
    box = page.locator(".explorable").first
    assert box.is_visible()
    top, story = (
        page.locator(e).first.bounding_box()["y"] for e in (".explorable", ".story")
    )
    assert top < story


def test_scores_shown_are_the_recorded_ones_under_the_chosen_order(open_page):
    page, box = open_page("11_rank_reversal")
    data = carried(page)
    judge = data["judges"][0]
    orders = np.array(data["orderings"])
    # candidate × order × place
    reads = np.array([c["reads"] for c in judge["candidates"]])
    means = (reads * orders).sum(axis=2) / reads.sum(axis=2)
    for value, scores in (("same", means[:, 0]), ("all", means.mean(axis=1))):
        box.locator(f"input[value={value}]").check()
        winner = judge["candidates"][int(np.argmax(scores))]["name"]
        assert f"The judge's winner: {winner};" in box.locator("output").inner_text()
    recorded = rb.recorded("qwen2.5-coder-1.5b-instruct-embedded", "minibench")
    here = recorded.query(
        "design == 'balanced' and n_options == 5 and template == 'rubric' "
        "and group_id == 'minibench/exam-sleep/helpfulness'"
    )
    told = here.sort_values(["candidate", "ordering_index"]).expected_score.to_numpy()
    np.testing.assert_allclose(means.ravel(), told, atol=2e-3)


def test_same_order_for_all_never_changes_the_ranking_and_own_orders_do(open_page):
    _, box = open_page("11_rank_reversal")
    # the simulated judge, whose truth is known
    box.locator("select").select_option(index=1)
    slider = box.locator("input[type=range]")

    def wrong():
        return int(re.search(r"pairs (\d+)", box.locator("output").inner_text())[1])

    for value in ("-4", "0", "4"):
        slider.fill(value)
        assert wrong() == 0
    box.locator("input[value=own]").check()
    found = []
    for _ in range(20):
        box.get_by_role("button").click()
        found.append(wrong())
    assert max(found) > 0
    box.locator("input[value=all]").check()
    assert wrong() == 0


def test_correlation_shown_is_the_one_of_the_data(open_page):
    page, box = open_page("08_how_many_orderings")
    data = carried(page)["judges"][0]
    box.locator("input[type=range]").fill("3")
    said = box.locator("output").inner_text().replace("−", "-")
    chosen = [
        int(k) - 1 for k in re.search(r"Orderings ([\d, ]+):", said)[1].split(", ")
    ]
    shown = float(re.search(r"= (-?\.\d+)\.", said)[1])
    mean = np.array(data["reads"])[:, chosen].mean(axis=1)
    assert shown == pytest.approx(np.corrcoef(mean, data["human"])[0, 1], abs=6e-4)
    assert "ways to choose 3 of 10" in said


def test_cost_shown_is_the_one_of_the_ordering(open_page):
    page, box = open_page("A_bias_cost")
    tables = carried(page)["tables"]
    box.get_by_label("Move score 1 down").press("Enter")
    said = box.locator("output").inner_text()
    assert said.startswith("2-1-3-4-5")
    table = np.array(tables[0]["shares"])
    cost = 100 * np.abs(table[[1, 0, 2, 3, 4], range(5)] - 0.2).sum()
    assert float(re.search(r"Bias Cost ([\d.]+)", said)[1]) == pytest.approx(
        cost, abs=0.051
    )
    box.get_by_role("button", name="Cheapest").press("Enter")
    assert "place 1 of 120" in box.locator("output").inner_text()


def test_kappa_and_error_shown_are_those_of_the_cuts(open_page):
    page, box = open_page("17_calibration")
    data = carried(page)
    z, people = np.array(data["latent"]), np.array(data["people"])
    kappas = []
    for k, map_ in enumerate(data["maps"]):
        box.get_by_role("button").nth(k).press("Enter")
        said = box.locator("output").inner_text().replace("−", "-")
        at = [float(s.input_value()) for s in box.locator("input[type=range]").all()]
        # a label that nobody gets begins above them all
        shown = np.minimum(map_["cuts"], z.max())
        np.testing.assert_allclose(at, shown, atol=np.ptp(z) / 100)
        given = np.array(data["labels"])[(z[:, None] >= map_["cuts"]).sum(axis=1)]
        kappas.append(rb.quadratic_weighted_kappa(given, people))
        assert float(re.search(r"QWK (-?\.\d+)", said)[1]) == pytest.approx(
            kappas[-1], abs=6e-4
        )
        error = float(re.search(r"mean error ([\d.]+)", said)[1])
        assert error == pytest.approx(np.abs(given - people).mean(), abs=6e-4)
    assert max(kappas) == kappas[-1]  # the last button is the best map there is


SETTINGS = [  # half width, r, standard deviation, texts, of a prompt, how alike
    (0.2, 0.5, 1.0, 1200, 12, 0.1),
    (0.07, 0.64, 0.92, 1600, 16, 0.03),
    (0.5, 0.9, 0.4, 5000, 1, 0.0),
]


def told(box, setting):
    """Set the six sliders; the numbers in the sentence that follows."""
    for slider, value in zip(
        box.locator("input[type=range]").all(), setting, strict=True
    ):
        slider.fill(str(value))
    said = box.locator("output").inner_text()
    singly = re.search(r"rate (\d+) texts with the judge and (\d+) without", said)
    whole = re.search(r"takes (\d+) prompts with the judge: (\d+) texts", said)
    return said, [int(k) for found in (singly, whole) if found for k in found.groups()]


def planted(setting, lost):
    """Judgments and labels of all texts whose spread is exactly the setting's."""
    _, r, sd, n, *_ = setting
    rng = np.random.default_rng(n)
    basis = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, 2))]))[0].T
    # With all labelled: the variance of ratings,
    # or of what a judge of this r leaves, is known.
    human = (r * basis[1] + np.sqrt(1 - r**2) * basis[2]) * sd * np.sqrt(n - lost)
    names = [f"t{i}" for i in range(n)]
    judgments = pd.DataFrame(
        {
            "item_id": names,
            "cluster_id": names,
            "design": "fixed",
            "ordering_index": 1,
            "ordering": "1-2-3-4-5",
            "score": basis[1] * 50 + 3,
        }
    )
    return judgments, pd.DataFrame({"item_id": names, "human": human + 3})


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_labels_needed_are_those_of_the_package(open_page, setting):
    _, box = open_page("24_how_many_labels")
    said, (judged, alone, *whole) = told(box, setting)
    assert said.startswith(f"For ± {setting[0]:.2f} points")
    for shown, lost, column in ((judged, 2, "needed"), (alone, 1, "needed_alone")):
        needed = rb.labels_needed(*planted(setting, lost), half_width=setting[0]).iloc[
            0
        ]
        assert shown == needed[column]
    assert len(whole) == (2 if setting[4] > 1 else 0)


def test_so_many_whole_prompts_have_the_wanted_interval(open_page):
    """The interval of the package for clusters whose leftovers
    are as alike as the slider says.
    """
    _, box = open_page("24_how_many_labels")
    setting = (0.2, 0.5, 1.0, 1200, 12, 0.1)
    _, numbers = told(box, setting)
    g, texts = numbers[2:]
    assert texts == 12 * g
    widths = {k: whole_width(k, setting) for k in (g - 1, g)}
    assert widths[g] <= 0.2 < widths[g - 1]


def whole_width(g, setting):
    """Half width of `rb.mean_with_labels` for g whole prompts
    with exactly the planted spread.
    """
    _, r, sd, n, size, alike = setting
    human, score = np.zeros((n // size, size)), np.zeros((n // size, size))
    columns = np.column_stack([np.ones(g), np.random.default_rng(g).normal(size=g)])
    between = np.linalg.qr(columns)[0][:, 1] * np.sqrt(g)  # mean 0, mean square 1
    within = np.tile([1.0, -1.0], size // 2)
    left = sd**2 * (1 - r**2)
    # Mean square of a prompt's sum of leftovers:
    # size · left · (1 + (size − 1) · alike).
    shared = np.sqrt(left * (1 + (size - 1) * alike) / size)
    score[:g] = within
    human[:g] = between[:, None] * shared + 0.5 * within
    names = [f"p{c}/{i}" for c in range(n // size) for i in range(size)]
    judgments = pd.DataFrame(
        {
            "item_id": names,
            "cluster_id": [name.split("/")[0] for name in names],
            "design": "fixed",
            "ordering_index": 1,
            "ordering": "1-2-3-4-5",
            "score": score.ravel(),
        }
    )
    labels = pd.DataFrame({"item_id": names, "human": human.ravel()}).head(g * size)
    row = rb.mean_with_labels(judgments, labels).iloc[0]
    assert row["drawn"] == "clusters"
    return (row["high"] - row["low"]) / 2


def test_single_texts_need_no_clusters_and_a_recorded_judge_sets_the_sliders(open_page):
    page, box = open_page("24_how_many_labels")
    cells = carried(page)["cells"]
    assert len(cells) == 26
    box.locator("select").select_option(index=3)
    at = [float(s.input_value()) for s in box.locator("input[type=range]").all()]
    wanted = [cells[3][k] for k in ("r", "sd", "n_items", "shared", "alike")]
    assert at[1:] == [*wanted[:4], max(0, wanted[4])]
    said, numbers = told(box, (0.2, 0.5, 1.0, 1200, 1, 0.0))
    assert "No two texts share a prompt" in said
    assert len(numbers) == 2
