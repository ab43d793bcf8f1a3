import json

import pytest

import rubricnb as rb
from rubricnb.judging.contract import Reply
from rubricnb.rulers import SimulatedGrader, compile_rubric, load_bundle
from rubricnb.rulers.compile import parse

RUBRIC = rb.load("minibench", n_items=3).rubrics


class Writer(SimulatedGrader):
    """Compiles as told."""

    def __init__(self, change=lambda document: None, raw=None, finish="stop"):
        super().__init__()
        self.change, self.raw, self.finish = change, raw, finish

    def answer(self, requests):
        for request in requests:
            self.request = request
            (reply,) = super().answer([request])
            document = json.loads(reply.text)
            self.change(document)
            yield Reply(request.request_id, self.raw or json.dumps(document), self.finish)


def compiled(judge, **options):
    return compile_rubric(RUBRIC, judge, name="mine", store=":memory:", **options)


def test_exactly_n_traits_and_m_items_and_the_rubrics_own_levels():
    bundle = compiled(Writer(), n_items=7, min_evidence=1)
    assert [t.name for t in bundle.traits] == ["accuracy", "helpfulness", "clarity"]
    assert [c.id for c in bundle.checklist] == [f"C{k:02d}" for k in range(1, 8)]
    assert bundle.min_evidence == 1
    assert bundle.traits == tuple(
        type(t)(t.id, t.name, o.definition, t.levels)
        for t, o in zip(load_bundle("minibench").traits, bundle.traits, strict=True)
    )


def test_the_prompt_is_the_papers_with_the_whole_rubric():
    judge = Writer()
    compiled(judge, n_items=6, dataset="minibench", anchors=[("A poor text.", "1: no answer")])
    prompt = judge.request.messages[0].content
    for line in (
        "compile the OFFICIAL rubric below into a FIXED analytic rubric bundle for the minibench",
        "1. Define EXACTLY 3 traits:",
        "2. Create EXACTLY 6 checklist checkpoints total:",
        "- Scale: 0=not present, 1=partially, 2=clearly.",
        "- Must COVER all official key concepts.",
        "- evidence_rules.min_evidence must be 2.",
        "A poor text. -> 1: no answer",
        "checklist items (C01..C06), and rules.",
    ):
        assert line in prompt
    for description in RUBRIC[RUBRIC.variant == "standard"].description:
        assert description in prompt


def test_a_compiled_bundle_can_be_locked_and_loaded(tmp_path):
    bundle = compiled(Writer())
    assert load_bundle(bundle.save(tmp_path / "mine.json")) == bundle


def test_the_same_question_is_compiled_once(tmp_path):
    store = tmp_path / "store.sqlite"
    one = compile_rubric(RUBRIC, Writer(), name="mine", store=store)
    judge = Writer()
    two = compile_rubric(RUBRIC, judge, name="mine", store=store)
    assert one.lock == two.lock
    assert not hasattr(judge, "request")


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (Writer(lambda d: d["checklist"].pop("C03")), "'C03' is a required property"),
        (Writer(lambda d: d["checklist"].update(C99={})), "'C99' was unexpected"),
        (Writer(lambda d: d["checklist"]["C01"].update(trait="T7")), r"'T7' is not one of"),
        (Writer(lambda d: d["taxonomy"]["T1"].update(definition="")), "definition: '' "),
        (Writer(lambda d: d["evidence_rules"].update(min_evidence=5)), "5 is not one of"),
        (Writer(raw="Here is the rubric:"), "no JSON document"),
        (Writer(raw='{"taxonomy": {', finish="length"), "was cut at the token limit"),
        (Writer(raw="No.", finish="refusal"), "the judge refused"),
        (
            Writer(lambda d: [item.update(trait="T1") for item in d["checklist"].values()]),
            r"trait T2 .helpfulness. has no checklist item",
        ),
        (
            Writer(lambda d: [item.update(text="Same.") for item in d["checklist"].values()]),
            "the checklist text 'same.' stands twice",
        ),
    ],
)
def test_an_answer_that_is_no_bundle_is_refused(judge, message):
    with pytest.raises(ValueError, match=message):
        compiled(judge, n_items=6)


def test_a_rubric_without_levels_is_refused():
    with pytest.raises(ValueError, match="the rubric has no levels"):
        compile_rubric(RUBRIC.iloc[:0], Writer(), name="mine")
    with pytest.raises(ValueError, match=r"has levels 1; a 2-level rubric needs 1\.\.2"):
        compile_rubric(RUBRIC[RUBRIC.score == 1], Writer(), name="mine")


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="2 checklist items cannot cover 3 traits"):
        compiled(Writer(), n_items=2)
    with pytest.raises(ValueError, match="the trait 'wit' is none of the rubric's criteria"):
        compiled(Writer(), traits=["wit"])
    with pytest.raises(ValueError, match="no variant 'paraphrase'; it has: standard, paraphrased"):
        compiled(Writer(), variant="paraphrase")


def test_traits_of_a_rubric_for_the_whole_share_its_levels():
    one = RUBRIC[RUBRIC.criterion == "clarity"]
    bundle = compile_rubric(
        one, Writer(), name="mine", traits=["order", "words"], n_items=4, store=":memory:"
    )
    assert [t.name for t in bundle.traits] == ["order", "words"]
    assert len({t.levels for t in bundle.traits}) == 1


def test_brackets_without_end_are_no_document():
    schema = {"type": "object"}
    for depth in (500, 900, 2_000, 200_000):
        _, why = parse(Reply(1, "[" * depth + "]" * depth), schema)
        assert why
