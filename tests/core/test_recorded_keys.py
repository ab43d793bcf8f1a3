"""Recorded answers are found by the prompts of today:
a changed prompt would lose them.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.core.judge import describe, judges
from rubricnb.core.prompts import inert
from rubricnb.core.results import recorded_judgments
from studies.study import plans_for, question_of, read_study, requests_of

pytestmark = pytest.mark.in_turn

RESULTS = Path(__file__).parents[2] / "results"
GRADINGS = "rulers"  # recorded without keys
RECORDED = [
    pytest.param(path, id="-".join(path.relative_to(RESULTS).with_suffix("").parts))
    for path in sorted(RESULTS.glob("*/*/*.parquet"))
    if path.parts[-3] != GRADINGS
]
BUNDLED = {"minibench"}


@pytest.mark.in_turn
@pytest.mark.parametrize("path", RECORDED)
def test_a_recorded_answer_has_the_key_of_today_s_prompt(path, request):
    if path.stem not in BUNDLED:
        request.getfixturevalue("mirror")
    recorded = pd.read_parquet(path, columns=["request_id", "key", "status"])
    recorded = recorded[recorded["status"] != "error"]
    recorded = recorded.sample(min(150, len(recorded)), random_state=0)
    study = read_study(path.parts[-3])
    named = judges().set_index("slug").loc[path.parent.name]
    spec, model = named[["spec", "model"]]
    same = [entry for entry in study["judges"] if entry["spec"] == spec]
    (judge,) = [entry for entry in same if entry["model"] == model] or same
    # A spec may have answers of two modes: the slug says of which these are.
    described = replace(
        describe(spec, **question_of(judge)),
        slug=path.parent.name,
        identity=named["identity"],
    )
    found = []
    for part in plans_for(judge, study["plans"]):
        if part["dataset"] == path.stem:
            requests = requests_of(part)
            asked = requests[requests["request_id"].isin(recorded["request_id"])]
            found.append(recorded_judgments(described, asked))
    keys = pd.concat(found)["key"]
    assert set(recorded["key"]) <= set(keys)


@pytest.mark.parametrize(
    "dataset", ["minibench", "mt-bench", "vicuna", "hanna", "summeval", "asap-2"]
)
def test_no_text_that_judges_were_shown_holds_anything_to_make_inert(dataset, request):
    """So gradings, which are recorded without keys,
    were asked with the prompts of today too.
    """
    if dataset not in BUNDLED:
        request.getfixturevalue("mirror")
    items = rb.load(dataset)
    texts = {*items["instruction"], *items["response"]}
    texts |= {*items.rubrics["definition"], *items.rubrics["description"]}
    assert [text for text in texts if inert(text, ["[RESULT]"]) != text] == []
