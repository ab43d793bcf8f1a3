import json
from dataclasses import replace
from pathlib import Path

import pytest
from endpoint import completion, endpoint
from scripted import Scripted, changing
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app
from rubricnb.core.contract import Reply
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.compile import compile_rubric, parse, read_anchors
from rubricnb.rulers.grading import grade
from rubricnb.rulers.simulated import SimulatedGrader

RUBRIC = rb.load("minibench", n_items=3).rubrics


def compiled(judge, **options):
    return compile_rubric(RUBRIC, judge, name="mine", store=":memory:", **options)


def test_exactly_n_traits_and_m_items_and_the_rubrics_own_levels(tmp_path):
    bundle = compiled(Scripted(), n_items=7, min_evidence=1)
    assert [c.id for c in bundle.checklist] == [f"C{k:02d}" for k in range(1, 8)]
    assert bundle.min_evidence == 1
    own = load_bundle("minibench").traits
    assert [(t.id, t.name, t.levels) for t in bundle.traits] == [
        (t.id, t.name, t.levels) for t in own
    ]
    assert load_bundle(bundle.save(tmp_path / "mine.json")) == bundle


def test_the_prompt_is_the_papers_with_the_whole_rubric():
    judge = Scripted()
    compiled(
        judge,
        n_items=6,
        dataset="minibench",
        anchors=[("A poor text.", "1: no answer")],
    )
    prompt = judge.asked[0].messages[0].content
    for line in (
        "compile the OFFICIAL rubric below into a FIXED analytic rubric bundle for the "
        "minibench",
        "1. Define EXACTLY 3 traits:",
        "2. Create EXACTLY 6 checklist checkpoints total:",
        "- Scale: 0=not present, 1=partially, 2=clearly.",
        "- Must COVER all official key concepts.",
        "- evidence_rules.min_evidence must be 2.",
        "- Calibration Anchors: A poor text. -> 1: no answer",
        "checklist items (C01..C06), and rules.",
    ):
        assert line in prompt
    for description in RUBRIC[RUBRIC.variant == "standard"].description:
        assert description in prompt


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (changing(lambda d: d["checklist"].pop("C03")), "'C03' is a required property"),
        (
            changing(lambda d: d["checklist"]["C01"].update(trait="T7")),
            r"'T7' is not one of",
        ),
        (
            changing(lambda d: d["taxonomy"]["T1"].update(definition="")),
            "definition: '' ",
        ),
        (lambda d, r: "Here is the rubric:", "no JSON document"),
        (lambda d, r: Reply(r.request_id, "{", "length"), "was cut at the token limit"),
        (lambda d, r: Reply(r.request_id, "No.", "refusal"), "the judge refused"),
        (
            changing(
                lambda d: [
                    item.update(text="Same.") for item in d["checklist"].values()
                ]
            ),
            "the checklist text 'same.' appears twice",
        ),
    ],
)
def test_an_answer_that_is_no_bundle_is_refused(write, message):
    with pytest.raises(ValueError, match=message):
        compiled(Scripted(write), n_items=6)


@pytest.mark.parametrize(
    ("rubric", "options", "message"),
    [
        (
            RUBRIC,
            {"n_items": 2},
            "2 checklist items cannot cover 3 traits: ask for 9 or more",
        ),
        (
            RUBRIC,
            {"traits": ["wit"]},
            "the trait 'wit' is not a criterion of this rubric",
        ),
        (
            RUBRIC,
            {"variant": "paraphrase"},
            "no variant 'paraphrase'; it has: standard, paraphr",
        ),
        (
            RUBRIC[RUBRIC.variant != "standard"],
            {},
            "no variant 'standard'; it has: paraphrased",
        ),
        (RUBRIC[RUBRIC.score == 1], {}, "has the levels 1: give at least two levels"),
        (RUBRIC[RUBRIC.score != 2], {}, "RULERS needs whole scores without gaps"),
    ],
)
def test_what_cannot_be_compiled_is_named_before_anything_is_asked(
    rubric, options, message
):
    judge = Scripted()
    with pytest.raises(ValueError, match=message):
        compile_rubric(rubric, judge, name="mine", store=":memory:", **options)
    assert not judge.asked


def test_fixed_traits_of_a_rubric_for_the_whole_share_its_levels():
    one = RUBRIC[RUBRIC.criterion == "clarity"]
    judge = Scripted()
    bundle = compile_rubric(
        one, judge, name="mine", traits=["order", "words"], n_items=4, store=":memory:"
    )
    assert [t.name for t in bundle.traits] == ["order", "words"]
    assert len({t.levels for t in bundle.traits}) == 1
    assert (
        "EXACTLY 2 traits:\nT1: order\nT2: words\n"
        in judge.asked[0].messages[0].content
    )


def test_anchors_are_locked_and_read_by_the_judge_that_scores():
    judge = Scripted()
    bundle = compiled(judge, n_items=6, anchors=[("A poor text.", "1: no answer")])
    without = compiled(judge, n_items=6)
    assert bundle.lock != without.lock
    grade(rb.load("minibench", n_items=3), bundle, judge, store=":memory:")
    assert "A poor text. -> 1: no answer" in judge.asked[-1].messages[0].content


def test_the_paraphrased_wording_compiles_to_the_bundles_third_variant(tmp_path):
    judge = Scripted()
    bundle = compiled(judge, n_items=6)
    bundle = load_bundle(bundle.save(tmp_path / "mine.json"))
    assert "paraphrased" not in bundle.variants
    reworded = compile_rubric(
        RUBRIC,
        judge,
        name="mine-paraphrased",
        dataset="mine",
        n_items=6,
        store=":memory:",
        variant="paraphrased",
    )
    reworded.save(tmp_path / "mine-paraphrased.json")
    assert "paraphrased" in bundle.variants
    third = bundle.in_variant("paraphrased")
    ours = load_bundle("minibench-paraphrased")
    assert [t.levels for t in third.traits] == [t.levels for t in ours.traits]
    assert third.lock not in {bundle.lock, ours.lock}
    fewer = replace(
        reworded, traits=reworded.traits[:2], checklist=reworded.checklist[:2]
    )
    fewer.save(tmp_path / "mine-paraphrased.json")
    with pytest.raises(
        ValueError, match=r"accuracy, helpfulness and mine has accuracy, help.*clar"
    ):
        bundle.in_variant("paraphrased")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("text,points\nGood.,4\n", "lacks 'score'"),
        (
            "text,score\nGood.,4\nBetter.,6\n",
            r"row 2 has the score 6; the rubric's are 1, 2, 3",
        ),
        ("text,score\nGood.,four\n", "is not a number"),
        ("text,score\n", "no rows"),
    ],
)
def test_scored_examples_that_are_none_are_refused(tmp_path, text, message):
    (tmp_path / "anchors.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_anchors(tmp_path / "anchors.csv", RUBRIC)


OWN = Path(__file__).parents[2] / "examples" / "own-data" / "my_rubric.yml"
CSV = "criterion,definition,score,description\n" + "".join(
    f'{name},"Is it {name}?",{score},"{name} {score}."\n'
    for name in ("kind", "brief")
    for score in (1, 2, 3)
)


def command(*arguments):
    return CliRunner().invoke(app, ["compile", *map(str, arguments)])


def written(payload, headers):
    """A judge that writes what the schema asks for, and no more."""
    asked = payload["response_format"]["json_schema"]["schema"]["properties"]
    traits = list(asked["taxonomy"]["properties"])
    items = asked["checklist"]["properties"]
    document = {
        "taxonomy": {t: {"definition": f"What {t} asks."} for t in traits},
        "checklist": {
            c: {"trait": traits[k % len(traits)], "text": f"Says {c}."}
            for k, c in enumerate(items)
        },
        "evidence_rules": {"min_evidence": 1},
    }
    return 200, completion(json.dumps(document)), {}


def test_a_rubric_of_ones_own_becomes_a_locked_file_that_grades(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    (tmp_path / "rubric.csv").write_text(CSV)
    output = tmp_path / "my_bundle.json"
    with endpoint(written) as (url, received):
        done = command(
            tmp_path / "rubric.csv",
            "--judge",
            f"openai:m@{url}",
            "--output",
            output,
            "--n-items",
            6,
            "--min-evidence",
            1,
            "--input-type",
            "letters",
        )
    assert done.exit_code == 0, done.output
    assert len(received) == 1
    assert "m is asked once, with the whole of rubric.csv" in done.output
    assert "kind: What T1 asks." in done.output
    bundle = load_bundle(output)
    assert (bundle.name, bundle.input_type, bundle.levels) == (
        "my_bundle",
        "letters",
        3,
    )
    assert bundle.min_evidence == 1
    assert bundle.traits[1].levels == (
        (3, "brief 3."),
        (2, "brief 2."),
        (1, "brief 1."),
    )
    (tmp_path / "texts.csv").write_text(
        "instruction,response\nSay no.,No! I will not do that.\n"
    )
    items = rb.load("csv", path=tmp_path / "texts.csv", rubric=tmp_path / "rubric.csv")
    scores = grade(items, bundle, SimulatedGrader(), store=":memory:").scores
    assert scores.score.between(1, 3).all()


def test_a_judge_that_leaves_a_trait_out_is_told_with_the_way_out(tmp_path):
    def broken(payload, headers):
        status, body, more = written(payload, headers)
        content = json.loads(body["choices"][0]["message"]["content"])
        for item in content["checklist"].values():
            item["trait"] = "T1"
        return status, completion(json.dumps(content)), more

    (tmp_path / "rubric.csv").write_text(CSV)
    with endpoint(broken) as (url, _):
        done = command(
            tmp_path / "rubric.csv",
            "--judge",
            f"openai:m@{url}",
            "--min-evidence",
            1,
            "--output",
            tmp_path / "b.json",
        )
    assert done.exit_code == 1
    assert "not a valid bundle for 'b'" in done.output
    assert "trait T2 (brief) has no checklist item" in done.output
    assert "compile with a different judge" in done.output
    assert not (tmp_path / "b.json").exists()


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("criterion: tone\ndefinition: Kind?", (), "(standard) lacks 'levels'"),
        (
            None,
            ("--judge", "simulated:unbiased"),
            "cannot fill in documents, which RULERS needs: use openai:",
        ),
        (
            None,
            ("--n-items", "0"),
            "0 checklist items cannot cover 1 traits: ask for 3 or more (n_items, "
            "--n-items)",
        ),
        (None, ("--variant", "reversed"), "unknown variant 'reversed'"),
        (None, ("--anchors", "no/such.csv"), "there is no no/such.csv"),
        (
            None,
            ("--output", __file__),
            "does not end in .json: choose a different one with --output",
        ),
    ],
)
def test_what_cannot_be_compiled_is_one_line(tmp_path, text, arguments, message):
    rubric = tmp_path / "mine.yml"
    rubric.write_text(text or OWN.read_text())
    known = ("--judge", "simulated:grader", "--output", tmp_path / "b.json")
    done = command(rubric, *known, *arguments)
    assert done.exit_code == 1
    assert message in done.output
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "b.json").exists()


def test_the_command_has_anchors_fixed_traits_and_both_wordings(tmp_path):
    (tmp_path / "anchors.csv").write_text(
        "text,score,reason\nWe will see.,2,offers nothing\n"
    )
    output = tmp_path / "b.json"
    done = command(
        OWN,
        "--judge",
        "simulated:grader",
        "--output",
        output,
        "--n-items",
        4,
        "--traits",
        "remedy, tone",
        "--anchors",
        tmp_path / "anchors.csv",
    )
    assert done.exit_code == 0, done.output
    assert "is asked twice" in done.output
    bundle = load_bundle(output)
    assert [t.name for t in bundle.traits] == ["remedy", "tone"]
    assert bundle.anchors == (("We will see.", "2: offers nothing"),)
    third = bundle.in_variant("paraphrased")
    assert (
        third.traits[0]
        .levels[0][1]
        .startswith("The issue is solved, and both the next step")
    )
    assert third.anchors == bundle.anchors
    again = command(OWN, "--judge", "simulated:grader", "--output", output)
    assert "b.json exists already" in again.output
    output.unlink()
    for wording, refused in (("standard", False), ("paraphrased", True)):
        done = command(
            OWN, "--judge", "simulated:grader", "--output", output, "--variant", wording
        )
        assert ("b-paraphrased.json exists already" in done.output) == refused


def test_brackets_without_end_are_no_document():
    schema = {"type": "object"}
    for depth in (500, 900, 2_000, 200_000):
        with pytest.raises(ValueError, match=r"type|no JSON document"):
            parse(Reply(1, "[" * depth + "]" * depth), schema)
