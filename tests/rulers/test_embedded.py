"""RULERS on the default judge, for real: one text,
a bundle of two items and a quote.
"""

from dataclasses import replace

import pytest

import rubricnb as rb
from rubricnb.engines.embedded import EmbeddedJudge
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.grading import grade
from rubricnb.rulers.scoring import score

BUNDLE = load_bundle("minibench")
TWO = replace(
    BUNDLE,
    name="two",
    traits=BUNDLE.traits[:1],
    checklist=tuple(BUNDLE.of_trait(BUNDLE.traits[0])[:2]),
    min_evidence=1,
)


@pytest.fixture(scope="module")
def grades():
    items = rb.load("minibench", n_items=3)
    judge = EmbeddedJudge(context=4096, threads=1)
    try:
        return grade(items, TWO, judge, store=":memory:")
    finally:
        judge.close()


def test_every_item_is_decided_and_every_trait_has_its_quote(grades):
    assert (grades.scores.status == "ok").all(), grades.scores.reason.unique()
    assert len(grades.scores) == 3
    assert grades.decisions.item.tolist() == [c.id for c in TWO.checklist]
    assert set(grades.decisions.decision) <= {0, 1, 2}
    assert grades.evidence.trait.tolist() == [t.name for t in TWO.traits]
    row = grades.scores.set_index("criterion").loc[TWO.traits[0].name]
    assert (
        row.score_ungated == score(grades.decisions.decision.tolist(), 5) >= row.score
    )


def test_what_is_verified_stands_in_the_text(grades):
    texts = rb.load("minibench", n_items=3).set_index("text_id").response
    for quote in grades.evidence.itertuples():
        if quote.status == "verified":
            assert quote.text in texts[quote.text_id].iloc[0]
