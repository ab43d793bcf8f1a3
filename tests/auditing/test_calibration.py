"""The line of the ratings on the expected scores, against a plain fit and loop."""

from functools import partial

import numpy as np
import pytest

import rubricnb as rb
from rubricnb.auditing import read_audit
from rubricnb.auditing.html import page

SPARROW = "sparrow-nano-general-v1.1-score"
LACKING = "no human ratings were given (a column human), or no probabilities"


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench")


@pytest.fixture(scope="module")
def reads():
    """Sparrow's answers to the plain prompt, each text three times."""
    asked = rb.recorded(SPARROW, "minibench", "decisions")
    return asked.query("design == 'fixed' and variant == 'standard'")


def rated(items, human):
    """The items with these ratings, by item."""
    out = items.copy()
    out["human"] = out["item_id"].astype(str).map(human)
    out.attrs.pop("truth", None)
    out.rubrics = items.rubrics
    return out


def expected(reads):
    return reads.astype({"item_id": str}).groupby("item_id").expected_score.mean()


def calibration_of(audit):
    rows = audit.rows[audit.rows.measure == "calibration"]
    return rows.set_index("criterion")


def line_of(row):
    (line,) = (code for code in row["codes"] if code == "intercept")
    return line.numbers


def test_it_is_the_mean_over_criteria_of_a_plain_fit_and_its_interval(items, reads):
    found = calibration_of(rb.audit(judgments=reads, items=items))
    score = items.item_id.astype(str).map(expected(reads)).to_numpy()
    human, criterion = items.human.to_numpy(float), items.criterion.to_numpy(str)
    prompts = items.cluster_id.to_numpy(str)

    def fitted(kept, names, part):
        own = [kept & (criterion == name) for name in names]
        return np.mean([np.polyfit(score[i], human[i], 1)[part] for i in own])

    for name in ("", *sorted(set(criterion))):
        names = [name] if name else sorted(set(criterion))
        row = found.loc[name]
        for part, numbers in enumerate(
            ([row["effect"], row["low"], row["high"]], [*line_of(row).values()])
        ):
            # leaves out each prompt once, and fits anew
            fresh = rb.jackknifed(partial(fitted, names=names, part=part), prompts)
            assert numbers == pytest.approx([*fresh], rel=1e-4)
        assert row["verdict"] == "measured"


def test_ratings_on_a_line_give_the_line_and_raters_errors_leave_it(items, reads):
    score = expected(reads)
    rng = np.random.default_rng(1)
    exact = calibration_of(
        rb.audit(judgments=reads, items=rated(items, 1 + 0.5 * score))
    ).loc[""]
    assert exact["effect"] == pytest.approx(0.5)
    assert line_of(exact)["intercept"] == pytest.approx(1)
    noisy = 1 + 0.5 * score + rng.normal(0, 0.3, len(score))
    row = calibration_of(rb.audit(judgments=reads, items=rated(items, noisy))).loc[""]
    assert row["low"] < 0.5 < row["high"]
    # the other way round their errors would halve it and more
    wrong = np.polyfit(noisy, score.to_numpy(), 1)[0]
    assert abs(row["effect"] - 0.5) < 0.15 < abs(1 / wrong - 0.5)


def test_the_picture_has_a_tenth_of_the_items_a_point_and_outlives_the_json(
    items, reads, tmp_path
):
    audit = rb.audit(judgments=reads, items=items, path=tmp_path / "audit.html")
    groups = audit.charts["calibration"]
    by_score = items.assign(score=items.item_id.astype(str).map(expected(reads)))
    by_score = by_score.sort_values("score", kind="stable")
    assert len(groups) == 10
    for group, own in ((groups[0], by_score.head(18)), (groups[-1], by_score.tail(18))):
        assert group["baseline"] == pytest.approx(own.score.mean())
        assert group["human"] == pytest.approx(own.human.mean())
    written = (tmp_path / "audit.html").read_text("utf-8")
    assert written.count("Mean rating of each tenth of the items, from") == 2
    assert page(read_audit(tmp_path / "audit.json")) == written


@pytest.mark.parametrize("lacks", ["probabilities", "ratings", "different ratings"])
def test_without_probabilities_or_ratings_there_is_no_row_and_it_says_why(
    items, reads, lacks
):
    probabilities = [*reads.filter(like="probability_"), "expected_score"]
    if lacks == "probabilities":
        reads = reads.drop(columns=probabilities)
    elif lacks == "ratings":
        items = rated(items, {})
    else:
        items = rated(items, dict.fromkeys(items.item_id.astype(str), 3.0))
    audit = rb.audit(judgments=reads, items=items)
    assert calibration_of(audit).empty
    assert audit.unseen["calibration"] == LACKING
    assert "Mean rating of each tenth" not in page(audit)
