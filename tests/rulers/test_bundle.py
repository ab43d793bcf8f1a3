"""The lock: what it covers, and that nothing it covers can change unseen."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

import rubricnb.rulers.bundle as module
from rubricnb.data.rubrics import bundled_rubrics
from rubricnb.rulers import load_bundle
from rubricnb.rulers.bundle import CheckItem, LockError, answer_schema, first_problem, read_bundle
from rubricnb.rulers.methods import Case, rulers

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
@pytest.mark.parametrize("variant", ["", "-paraphrased"])
def test_our_bundles_are_locked_and_complete(name, variant):
    bundle = load_bundle(name + variant)
    assert all(len(bundle.of_trait(t)) >= 3 for t in bundle.traits)
    assert bundle.anchors == ()


@pytest.mark.parametrize("name", OURS)
def test_a_paraphrase_says_the_same_in_other_words(name):
    one, other = load_bundle(name), load_bundle(name).in_variant("paraphrased")
    assert [(c.id, c.trait) for c in one.checklist] == [(c.id, c.trait) for c in other.checklist]
    assert [t.name for t in one.traits] == [t.name for t in other.traits]
    assert not {c.text for c in one.checklist} & {c.text for c in other.checklist}
    assert one.lock != other.lock


@pytest.mark.parametrize("name", ["asap-7", "asap-8"])
def test_the_bundles_of_stories_are_locked_and_in_the_rubrics_words(name):
    rubrics = bundled_rubrics("asap")
    bundle = load_bundle(name)
    own = rubrics[rubrics.rubric_id.astype(str).str.startswith(f"{name}-")]
    assert [t.name for t in bundle.traits] == list(own.criterion.unique())
    for trait in bundle.traits:
        levels = own[own.criterion == trait.name].sort_values("score", ascending=False)
        assert trait.definition == levels.definition.iloc[0]
        assert list(trait.levels) == list(zip(levels.score, levels.description, strict=True))
        assert len(bundle.of_trait(trait)) >= 3
    assert bundle.variants == ("standard", "criteria-reversed", "levels-reversed")
    with pytest.raises(ValueError, match=rf"nobody has paraphrased the bundle '{name}': copy its"):
        bundle.in_variant("paraphrased")


@pytest.mark.parametrize(
    ("name", "traits", "items", "quotes", "levels"),
    [
        ("asap-2.0", ["content", "source evidence", "organization", "language"], 15, 2, 6),
        ("summhf", ["coherence", "accuracy", "coverage"], 12, 1, 7),
        ("dress", ["content", "organization", "language"], 18, 2, 5),
    ],
)
def test_the_papers_sets_have_the_traits_and_counts_of_its_repository(
    name, traits, items, quotes, levels
):
    for variant in ("standard", "paraphrased"):
        bundle = load_bundle(name).in_variant(variant)
        assert [t.name for t in bundle.traits] == traits
        assert (len(bundle.checklist), bundle.min_evidence, bundle.levels) == (
            items,
            quotes,
            levels,
        )
        assert bundle.dataset == name


def test_the_evidence_of_asap_2_0_is_that_of_the_sources():
    bundle = load_bundle("asap-2.0")
    evidence = next(t for t in bundle.traits if t.name == "source evidence")
    assert all("source" in description for s, description in evidence.levels if s >= 4)
    assert sum("source" in c.text for c in bundle.of_trait(evidence)) >= 3
    assert (
        "sources"
        in bundled_rubrics("asap").query("rubric_id == 'asap-2.0-holistic'").definition.iloc[0]
    )


def test_a_paraphrase_is_looked_for_beside_the_bundle(bundle, file):
    mine = replace(bundle, name="mine")
    mine.save(file)
    assert load_bundle(file).variants == ("standard", "criteria-reversed", "levels-reversed")
    with pytest.raises(ValueError, match=r"copy its file to mine-paraphrased\.json"):
        load_bundle(file).in_variant("paraphrased")
    other = replace(bundle.in_variant("paraphrased"), name="mine-paraphrased")
    other.save(file.with_name("mine-paraphrased.json"))
    found = replace(load_bundle(file), units="whole")
    assert found.variants[-1] == "paraphrased"
    assert found.in_variant("paraphrased").lock == other.lock


@pytest.mark.parametrize("name", ["minibench", "hanna", "summeval", "dress"])
def test_the_levels_are_those_of_the_rubric(name):
    rubrics = bundled_rubrics(name)
    for variant in ("standard", "paraphrased"):
        for trait in load_bundle(name).in_variant(variant).traits:
            own = rubrics[(rubrics.criterion == trait.name) & (rubrics.variant == variant)]
            assert dict(trait.levels) == dict(zip(own.score, own.description, strict=True))
            assert [s for s, _ in trait.levels] == [5, 4, 3, 2, 1]  # A.3: descending is standard


def test_the_lock_is_the_same_tomorrow_and_after_a_round_trip(bundle, file):
    again = load_bundle(file)
    assert again == bundle
    assert again.lock == bundle.lock
    assert file.with_name("mine.lock.json").read_text("utf-8") == (
        bundle.save(file.with_name("other.json")).with_name("other.lock.json").read_text("utf-8")
    )


def test_an_edited_bundle_is_refused_with_the_difference(file):
    edit(file, "States the main point correctly.", "States the main point nicely.")
    with pytest.raises(LockError, match="bundle changed") as refused:
        load_bundle(file)
    assert "-" in str(refused.value)
    assert "States the main point correctly." in str(refused.value)
    assert "States the main point nicely." in str(refused.value)


def test_a_changed_template_is_refused_with_the_difference(file, monkeypatch):
    template = module.source("rulers_score")
    monkeypatch.setattr(
        module, "source", lambda name: template.replace("VERBATIM substrings", "substrings")
    )
    with pytest.raises(LockError, match="template changed") as refused:
        load_bundle(file)
    assert "VERBATIM substrings" in str(refused.value)


def test_a_changed_parser_or_schema_is_refused(file, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(module, "PARSER", module.PARSER + 1)
        with pytest.raises(LockError, match="parser changed"):
            load_bundle(file)
    monkeypatch.setattr(module, "QUOTE_CHARACTERS", 99)
    with pytest.raises(LockError, match="schema changed"):
        load_bundle(file)


def test_an_edited_lock_is_refused(file):
    edit(file.with_name("mine.lock.json"), "EXACTLY", "ABOUT")
    with pytest.raises(LockError, match=r"mine\.lock\.json was edited"):
        load_bundle(file)


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
"""First digits of a lock → those of the SHA-256 of the prompt that a probe text gets under it."""


@pytest.mark.parametrize("name", ["minibench", "asap-2"])
def test_a_lock_stands_for_one_prompt(name):
    """How the parts are laid out in the prompt is no part of the lock: a change is seen here.

    Should this fail, recorded scores belong to another prompt under the same lock. Raise PARSER,
    which changes every lock, or take the change back.
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
    for t, flipped in zip(bundle.traits, levels.traits, strict=True):
        assert flipped.levels == t.levels[::-1]
    assert criteria.traits == bundle.traits[::-1]
    assert criteria.checklist == bundle.checklist[::-1]
    assert levels.checklist == bundle.checklist
    with pytest.raises(ValueError, match="unknown variant 'shuffled'"):
        bundle.in_variant("shuffled")


def test_items_go_with_their_trait(bundle):
    moved = bundle.arranged(criteria=[3, 1, 2])
    assert [t.id for t in moved.traits] == ["T3", "T1", "T2"]
    assert [c.trait for c in moved.checklist] == ["T3"] * 4 + ["T1"] * 4 + ["T2"] * 4
    assert moved.of_trait(moved.traits[0]) == bundle.of_trait(bundle.traits[2])


def answer(bundle):
    reason = {"why_not_higher": "a", "why_not_lower": "b"}
    return {
        "checklist": {c.id: 1 for c in bundle.checklist},
        "evidence": {
            t.id: [{"sent_id": 1, "quote": "a quote"}] * bundle.min_evidence for t in bundle.traits
        },
        "boundary": {t.id: reason for t in bundle.traits},
    }


def test_the_schema_wants_every_item_once_and_m_quotes(bundle):
    schema = answer_schema(bundle)
    assert first_problem(answer(bundle), schema) == ""
    for broken, problem in (
        (lambda a: a["checklist"].pop("C01"), "'C01' is a required property"),
        (lambda a: a["checklist"].update(C99=1), "C99"),
        (lambda a: a["checklist"].update(C01=3), "3 is not one of"),
        (lambda a: a["evidence"]["T1"].pop(), "too short"),
        (lambda a: a["evidence"].pop("T2"), "'T2' is a required property"),
        (lambda a: a.pop("boundary"), "'boundary' is a required property"),
    ):
        document = json.loads(json.dumps(answer(bundle)))
        broken(document)
        assert problem in first_problem(document, schema)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda b: b["traits"][0].update(levels=[]),
            r"T1 .accuracy. has levels none; every .* 1\.\.2",
        ),
        (
            lambda b: b["traits"][0].update(levels=[[1, "Bad."]]),
            r"has levels 1; every trait needs each of 1\.\.2",
        ),
        (
            lambda b: b["traits"][1]["levels"].pop(),
            r"has levels 2,3,4,5; every trait needs each of 1\.\.5",
        ),
        (lambda b: b.update(traits=[]), "has no traits"),
        (lambda b: b["checklist"][0].update(trait="T9"), "item C01 belongs to 'T9'"),
        (lambda b: b["checklist"][0].update(id="C02"), "the checklist id 'C02' stands twice"),
        (lambda b: b["checklist"].__delitem__(slice(0, 4)), "T1 .accuracy. has no checklist item"),
        (
            lambda b: b["checklist"][0].update(text=""),
            "checklist.0.text: String should have at least 1 character",
        ),
        (lambda b: b.pop("name"), "mine.json: name: Field required"),
        (lambda b: b.update(colour="red"), "colour: Unexpected"),
        (
            lambda b: b.update(min_evidence=0),
            "min_evidence: Input should be greater than or equal to 1",
        ),
        (lambda b: b.update(units="lines"), "units: Input should be 'sentences'"),
        (lambda b: b.update(variant="other"), "unknown variant 'other': choose from standard"),
    ],
)
def test_what_is_no_bundle_is_named(file, change, message):
    content = json.loads(file.read_text("utf-8"))
    change(content)
    with pytest.raises(ValueError, match=message):
        read_bundle(content, "mine.json")


def test_the_same_text_under_two_ids_is_refused(bundle):
    twin = CheckItem("C99", "T1", bundle.checklist[0].text.upper())
    with pytest.raises(ValueError, match=r"the checklist text .* stands twice"):
        replace(bundle, checklist=(*bundle.checklist, twin))


def test_an_unknown_name_and_a_broken_file_are_named(tmp_path):
    with pytest.raises(ValueError, match="no bundle 'hana'; did you mean 'hanna"):
        load_bundle("hana")
    with pytest.raises(ValueError, match=r"no bundle 'csv'.*python -m rubricnb compile RUBRIC"):
        load_bundle("csv")
    with pytest.raises(ValueError, match="there is no bundle"):
        load_bundle(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ValueError, match=r"broken\.json: line 1 is not JSON"):
        load_bundle(broken)
