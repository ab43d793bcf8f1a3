"""RULERS from its first phase to its last, on essays in the form of ASAP 2.0.

The rubric is the one that ships for ASAP 2.0, which rates the whole; the essays are
invented. A judge compiles it with scored examples and four fixed traits, every bundle
is locked, every variant grades, and the scores are calibrated.
"""

import json
import re
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.engines.embedded import EmbeddedJudge
from rubricnb.rulers.agreement import label_agreement, whole_texts
from rubricnb.rulers.bundle import VARIANTS, load_bundle
from rubricnb.rulers.compile import compile_rubric
from rubricnb.rulers.grading import grade

TRAITS = ["content", "source evidence", "organization", "language"]
CUES = {
    "content": "I argue that cars should leave the city",
    "source evidence": "According to the source, smog fell by half",
    "organization": "Therefore the next step follows from the first",
    "language": "Quiet streets would renew our neighbourhoods",
}
PAD = "It was a day like others", "Many people live there", "Some came by bus"
ANCHORS = [
    ("Cars are there. People walk.", "1: no position and no evidence"),
    (". ".join(CUES.values()) + ".", "5: a clear position with fitting evidence"),
]


def essays(folder, n):
    """Essays with none to all of the four cues, once or twice,
    rated by how many they have.
    """
    rng = np.random.default_rng(0)
    rows = []
    for k in range(n):
        rated = 1 + k % 6
        cues = [cue for cue in CUES.values() for _ in range(2)][
            : round(8 * (rated - 1) / 5)
        ]
        sentences = [*cues, *PAD[: 1 + rng.integers(len(PAD))], f"My number is {k}"]
        text = " ".join(f"{sentence}." for sentence in rng.permutation(sentences))
        rows.append({"essay_id": f"E{k}", "full_text": text, "score": rated})
    pd.DataFrame(rows).to_csv(folder / "asap2.csv", index=False)
    return rb.load("asap-2.0", path=folder / "asap2.csv")


def reads(payload, headers):
    """A judge that reads: its checklist is the rubric's own words,
    its quotes are the text's.
    """
    prompt = payload["messages"][-1]["content"]
    schema = payload["response_format"]["json_schema"]["schema"]["properties"]
    document = (
        compiled(prompt, schema) if "taxonomy" in schema else scored(prompt, schema)
    )
    return 200, completion(json.dumps(document)), {}


def compiled(prompt, schema):
    named = dict(re.findall(r"^(T\d+): (.*)$", prompt, re.MULTILINE))
    phrases = re.findall(r"^Score \d: (.*)$", prompt, re.MULTILINE)
    items = {}
    for k, item in enumerate(schema["checklist"]["properties"]):
        trait = list(named)[k % len(named)]
        text = f"{named[trait]}, {k // len(named) + 1}: {phrases[k % len(phrases)]}"
        items[item] = {"trait": trait, "text": text}
    minimum = schema["evidence_rules"]["properties"]["min_evidence"]["enum"]
    definitions = {
        trait: {"definition": f"How good is its {name}?"}
        for trait, name in named.items()
    }
    return {
        "taxonomy": definitions,
        "checklist": items,
        "evidence_rules": {"min_evidence": minimum[0]},
    }


def scored(prompt, schema):
    bank = json_after(prompt, "- Sentence Bank (ID -> Text): ")
    checklist = json_after(prompt, "- Locked Checklist: ")
    found = {
        trait: [k for k, unit in bank.items() if CUES[trait] in unit]
        for trait in TRAITS
    }
    # A harsh judge: the item "TRAIT, k: …" is partly met by k cues, and never clearly.
    asked = {c["id"]: re.split(", |: ", c["text"]) for c in checklist}
    decisions = {
        c: int(len(found[name]) >= int(k)) for c, (name, k, *_) in asked.items()
    }
    names = {c["trait"]: asked[c["id"]][0] for c in checklist}
    evidence, boundary = {}, {}
    for trait, wanted in schema["evidence"]["properties"].items():
        cited = [*found[names[trait]], *bank][: wanted["minItems"]]
        evidence[trait] = [{"sent_id": int(k), "quote": bank[k]} for k in cited]
        boundary[trait] = {
            "why_not_higher": "No more of it.",
            "why_not_lower": "It is there.",
        }
    return {"checklist": decisions, "evidence": evidence, "boundary": boundary}


def json_after(prompt, mark):
    return json.JSONDecoder().raw_decode(prompt.partition(mark)[2])[0]


def bundles(items, judge, folder, **options):
    """Compile both wordings, lock them, and load the four variants from their files."""
    for file, variant in (("form", "standard"), ("form-paraphrased", "paraphrased")):
        compile_rubric(
            items.rubrics,
            judge,
            name=file,
            dataset="asap-2.0",
            input_type="essays",
            traits=TRAITS,
            anchors=ANCHORS,
            variant=variant,
            **options,
        ).save(folder / f"{file}.json")
    standard = load_bundle(folder / "form.json")
    assert standard.variants == VARIANTS
    return {variant: standard.in_variant(variant) for variant in standard.variants}


def test_a_judge_compiles_locks_extracts_and_is_calibrated(tmp_path):
    items = essays(tmp_path, 120)
    with (
        endpoint(reads) as (url, received),
        closing(rb.open_judge(f"openai:m@{url}")) as judge,
    ):
        own = bundles(
            items, judge, tmp_path, n_items=8, min_evidence=1, store=":memory:"
        )
        asked = [payload["messages"][-1]["content"] for payload in received]
        found = {
            name: grade(items, b, judge, store=":memory:") for name, b in own.items()
        }
    assert len(asked) == 2  # one call a wording; the reversed variants are not compiled
    for prompt in asked:
        assert (
            "1. Define EXACTLY 4 traits:\nT1: content\nT2: source evidence\n" in prompt
        )
        assert f"Calibration Anchors: {ANCHORS[0][0]} -> {ANCHORS[0][1]}; " in prompt
    assert "Score 6: Does the task fully" in asked[0]
    assert "Score 6: Meets the assignment in every way" in asked[1]
    for payload in received[2:]:
        assert ANCHORS[1][0] in payload["messages"][-1]["content"]
    assert len({b.lock for b in own.values()}) == 4
    assert [t.name for t in own["criteria-reversed"].traits] == TRAITS[::-1]
    scores = {name: grades.scores for name, grades in found.items()}
    for name, grades in found.items():
        assert grades.scores.status.eq("ok").all(), grades.scores.reason.unique()
        assert grades.evidence.status.eq("verified").all()
        assert set(grades.scores.lock) == {own[name].lock[:12]}
        assert grades.decisions.groupby(
            "trait", observed=True
        ).size().to_dict() == dict.fromkeys(TRAITS, 240)
    # This judge reads neither order nor wording of the levels:
    # nothing may move but the lock.
    for name in VARIANTS[1:]:
        assert scores[name].score.equals(scores["standard"].score)
    for name in VARIANTS:
        whole, texts = whole_texts(scores[name], items)
        agreed = label_agreement(whole, texts, ["none", "quantile"], n_draws=5, by=[])
        agreed = agreed.set_index("calibration")
        assert agreed.qwk["quantile"] > 0.9
        assert agreed.mae["quantile"] < agreed.mae["none"]
        assert (agreed.n_calibration == [0, 60]).all()


def test_a_quote_that_the_essay_does_not_hold_caps_the_score(tmp_path):
    def invents(payload, headers):
        status, body, more = reads(payload, headers)
        document = json.loads(body["choices"][0]["message"]["content"])
        for quotes in document.get("evidence", {}).values():
            quotes[:] = [quote | {"quote": "a sentence of nobody"} for quote in quotes]
        return status, completion(json.dumps(document)), more

    items = essays(tmp_path, 12)
    with (
        endpoint(invents) as (url, _),
        closing(rb.open_judge(f"openai:m@{url}")) as judge,
    ):
        own = bundles(
            items, judge, tmp_path, n_items=8, min_evidence=1, store=":memory:"
        )
        grades = grade(items, own["paraphrased"], judge, store=":memory:")
    assert grades.scores.score_ungated.max() == 4
    assert grades.scores.score.max() == 3  # the middle of six levels
    assert not grades.evidence.valid.any()


@pytest.mark.slow
def test_the_embedded_judge_grades_by_a_bundle(tmp_path):
    """It is too small to compile a bundle, but its grades are those of a real model."""
    items = essays(tmp_path, 1)
    with (
        endpoint(reads) as (url, _),
        closing(rb.open_judge(f"openai:m@{url}")) as judge,
    ):
        own = bundles(
            items, judge, tmp_path, n_items=8, min_evidence=1, store=":memory:"
        )
    with closing(EmbeddedJudge(context=4096, threads=2)) as judge:
        name = "paraphrased"  # one of four: a page of answers takes it a minute
        graded = {name: grade(items, own[name], judge, store=":memory:")}
    assert len({bundle.lock for bundle in own.values()}) == 4
    (text,) = items.response
    for name, (scores, decisions, evidence) in graded.items():
        assert scores.status.eq("ok").all(), scores.reason.unique()
        assert set(scores.lock) == {own[name].lock[:12]}
        assert set(decisions.trait) == set(TRAITS)
        assert set(decisions.decision) <= {0, 1, 2}
        assert all(
            quote in text for quote in evidence.text[evidence.status == "verified"]
        )
        assert 1 <= scores.score.item() <= 6
