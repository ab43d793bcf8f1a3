"""The lock: what it covers, and that nothing it covers can change unseen."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

import rubricnb.rulers.bundle as module
from rubricnb.rulers.bundle import LockError, answer_schema, first_problem, load_bundle
from rubricnb.rulers.methods import Case, rulers
from rubricnb.sets.sets import bundled_rubrics

OURS = ["minibench", "hanna", "summeval", "asap-2", "asap-2.0", "summhf", "dress"]


@pytest.fixture
def bundle():
    return load_bundle("minibench")


@pytest.fixture
def file(bundle, tmp_path):
    return bundle.save(tmp_path / "mine.json")


def edit(file, old, new):
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize("name", OURS)
def test_our_bundles_and_their_paraphrases_are_locked_and_complete(name):
    one = load_bundle(name)
    other = one.in_variant("paraphrased")
    for bundle in (one, other):
        assert all(len(bundle.of_trait(t)) >= 3 for t in bundle.traits)
        assert (bundle.dataset, bundle.anchors) == (one.dataset, ())
    assert [(c.id, c.trait) for c in one.checklist] == [
        (c.id, c.trait) for c in other.checklist
    ]
    assert [t.name for t in one.traits] == [t.name for t in other.traits]
    assert not {c.text for c in one.checklist} & {c.text for c in other.checklist}
    assert one.lock != other.lock
    if name in PAPERS:
        counts = len(one.checklist), one.min_evidence, one.levels
        assert ([t.name for t in one.traits], *counts) == PAPERS[name]


PAPERS = {
    "asap-2.0": (["content", "source evidence", "organization", "language"], 15, 2, 6),
    "summhf": (["coherence", "accuracy", "coverage"], 12, 1, 7),
    "dress": (["content", "organization", "language"], 18, 2, 5),
}
"""Traits, checklist items, quotes and levels of the paper's sets,
as in its repository.
"""


def test_a_paraphrase_is_looked_for_beside_the_bundle(bundle, file):
    mine = replace(bundle, name="mine")
    mine.save(file)
    assert load_bundle(file).variants == (
        "standard",
        "criteria-reversed",
        "levels-reversed",
    )
    with pytest.raises(
        ValueError, match=r"there is no bundle .*mine-paraphrased\.json"
    ):
        load_bundle(file).in_variant("paraphrased")
    other = replace(bundle.in_variant("paraphrased"), name="mine-paraphrased")
    other.save(file.with_name("mine-paraphrased.json"))
    found = replace(load_bundle(file), units="whole")
    assert found.variants[-1] == "paraphrased"
    assert found.in_variant("paraphrased").lock == other.lock


@pytest.mark.parametrize(
    ("name", "rubric", "variants"),
    [
        *(
            (name, name, ("standard", "paraphrased"))
            for name in ("minibench", "hanna", "summeval", "dress")
        ),
        ("asap-7", "asap", ("standard",)),
        ("asap-8", "asap", ("standard",)),
    ],
)
def test_the_levels_are_those_of_the_rubric_the_best_first(name, rubric, variants):
    rubrics = bundled_rubrics(rubric)
    if rubric == "asap":
        rubrics = rubrics[rubrics.rubric_id.astype(str).str.startswith(f"{name}-")]
    for variant in variants:
        for trait in load_bundle(name).in_variant(variant).traits:
            own = rubrics[
                (rubrics.criterion == trait.name) & (rubrics.variant == variant)
            ]
            # A.3: descending is standard
            levels = own.sort_values("score", ascending=False)
            assert list(trait.levels) == list(
                zip(levels.score, levels.description, strict=True)
            )
    if rubric == "asap":
        assert load_bundle(name).variants == (
            "standard",
            "criteria-reversed",
            "levels-reversed",
        )


def test_an_edited_bundle_or_lock_is_refused_with_the_difference(file):
    edit(file, "States the main point correctly.", "States the main point nicely.")
    with pytest.raises(LockError, match="bundle changed") as refused:
        load_bundle(file)
    assert "States the main point correctly." in str(refused.value)
    assert "States the main point nicely." in str(refused.value)
    edit(file.with_name("mine.lock.json"), "EXACTLY", "ABOUT")
    with pytest.raises(LockError, match=r"mine\.lock\.json was edited"):
        load_bundle(file)


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("PARSER", module.PARSER + 1, "parser"),
        ("QUOTE_CHARACTERS", 99, "schema"),
        ("source", lambda name: "Score it.", "template"),
    ],
)
def test_a_changed_parser_schema_or_template_is_refused(
    file, monkeypatch, name, value, part
):
    monkeypatch.setattr(module, name, value)
    with pytest.raises(LockError, match=f"{part} changed") as refused:
        load_bundle(file)
    assert part != "template" or "VERBATIM substrings" in str(refused.value)


def test_a_bundle_without_a_lock_is_refused_until_it_is_reviewed(file):
    file.with_name("mine.lock.json").unlink()
    with pytest.raises(LockError, match=r"has no lock .*review"):
        load_bundle(file)
    load_bundle(file, locked=False).save(file)
    assert load_bundle(file).name == "minibench"


def test_everything_that_the_judge_reads_is_in_the_lock(bundle):
    """Each change of what a judge sees or may answer gives another lock."""
    changed = [
        replace(bundle, input_type="essays"),
        replace(bundle, min_evidence=3),
        replace(bundle, min_characters=9),
        replace(bundle, units="naive"),
        replace(bundle, anchors=(("A text.", "5"),)),
        replace(bundle, checklist=bundle.checklist[::-1]),
        bundle.in_variant("levels-reversed"),
        bundle.in_variant("criteria-reversed"),
        bundle.arranged(criteria=[2, 1, 3]),
    ]
    locks = {bundle.lock, *(other.lock for other in changed)}
    assert len(locks) == len(changed) + 1


PROMPTS = {
    "f0e581569a47": "128ee8d4a49f",
    "05eb7917777a": "4fd1c2500598",
}
"""First digits of a lock → those of the SHA-256 of the prompt
that a probe text gets under it.
"""


@pytest.mark.parametrize("name", ["minibench", "asap-2"])
def test_a_lock_stands_for_one_prompt(name):
    """How the parts are laid out in the prompt is no part of the lock:
    a change is seen here.

    Should this fail, recorded scores belong to another prompt under the same lock.
    Raise PARSER, which changes every lock, or take the change back.
    """
    bundle = load_bundle(name)
    case = Case(bundle, {}, "What is asked?", "A probe “text”. It has two sentences.")
    (request,) = next(rulers(case))
    (message,) = request.messages
    digits = sha256(message.content.encode()).hexdigest()[:12]
    assert PROMPTS[bundle.lock[:12]] == digits


def test_variants_change_the_order_and_nothing_else(bundle):
    levels = bundle.in_variant("levels-reversed")
    criteria = bundle.in_variant("criteria-reversed")
    assert [t.levels for t in levels.traits] == [t.levels[::-1] for t in bundle.traits]
    assert (criteria.traits, criteria.checklist) == (
        bundle.traits[::-1],
        bundle.checklist[::-1],
    )
    assert levels.checklist == bundle.checklist
    moved = bundle.arranged(criteria=[3, 1, 2])
    assert [t.id for t in moved.traits] == ["T3", "T1", "T2"]
    assert [c.trait for c in moved.checklist] == ["T3"] * 4 + ["T1"] * 4 + ["T2"] * 4
    with pytest.raises(ValueError, match="unknown variant 'shuffled'"):
        bundle.in_variant("shuffled")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda a: None, ""),
        (lambda a: a["checklist"].pop("C01"), "'C01' is a required property"),
        (lambda a: a["checklist"].update(C01=3), "3 is not one of"),
        (lambda a: a["evidence"]["T1"].pop(), "too short"),
    ],
)
def test_the_schema_wants_every_item_once_and_m_quotes(bundle, change, problem):
    reason = {"why_not_higher": "a", "why_not_lower": "b"}
    ids = [t.id for t in bundle.traits]
    document = {
        "checklist": {c.id: 1 for c in bundle.checklist},
        "evidence": {
            i: [{"sent_id": 1, "quote": "a"}] * bundle.min_evidence for i in ids
        },
        "boundary": dict.fromkeys(ids, reason),
    }
    change(document)
    found = first_problem(document, answer_schema(bundle))
    assert problem in found
    assert bool(problem) == bool(found)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda b: b["traits"][0].update(levels=[]),
            r"T1 .accuracy. has levels none; every .* 1\.\.2",
        ),
        (
            lambda b: b["traits"][1]["levels"].pop(),
            r"has levels 2,3,4,5; every trait needs each of 1\.\.5",
        ),
        (lambda b: b.update(traits=[]), "has no traits"),
        (
            lambda b: b["checklist"][0].update(trait="T9"),
            "unknown trait of the item C01 'T9'",
        ),
        (
            lambda b: b["checklist"][0].update(text=b["checklist"][1]["text"].upper()),
            "the checklist text .* appears twice",
        ),
        (
            lambda b: b["checklist"].__delitem__(slice(0, 4)),
            "T1 .accuracy. has no checklist item",
        ),
        (
            lambda b: b["checklist"][0].update(text=""),
            "checklist.0.text: String should have at least 1 character",
        ),
        (lambda b: b.pop("name"), "mine.json: name: Field required"),
        (lambda b: b.update(colour="red"), "colour: Unexpected"),
        (lambda b: b.update(units="lines"), "units: Input should be 'sentences'"),
        (lambda b: b.update(variant="other"), "unknown variant 'other'"),
    ],
)
def test_what_is_no_bundle_is_named(file, change, message):
    content = json.loads(file.read_text("utf-8"))
    change(content)
    file.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ValueError, match=message):
        load_bundle(file, locked=False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hana", "no bundle 'hana'; did you mean 'hanna"),
        ("csv", r"no bundle 'csv'.*python -m rubricnb compile RUBRIC"),
        ("none.json", "there is no bundle"),
        ("broken.json", r"broken\.json: line 1 is not JSON"),
    ],
)
def test_an_unknown_name_and_a_broken_file_are_named(
    tmp_path, monkeypatch, name, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(ValueError, match=message):
        load_bundle(name)
