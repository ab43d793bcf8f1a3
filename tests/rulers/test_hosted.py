"""RULERS behind a hosted endpoint, whose engine cannot hold a string to a length."""

import json
from hashlib import sha256

import pytest
from endpoint import completion, endpoint
from scripted import Scripted

import rubricnb as rb
from rubricnb.core.rendering import key_of
from rubricnb.core.store import Store
from rubricnb.core.validate import check_items
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.compile import compile_rubric
from rubricnb.rulers.grades import recorded_grades
from rubricnb.rulers.grading import grade
from rubricnb.rulers.methods import METHODS
from rubricnb.sets.sets import bundled_rubrics

ITEMS = rb.load("minibench", n_items=36)  # 12 texts, three criteria
BUNDLE = load_bundle("minibench")
LONG = (
    "The answer says what was asked, and it says why, in one long sentence that " * 3
)[:160]


def filled_in(schema, string):
    """A document of this schema whose strings are all the same."""
    if "enum" in schema:
        return schema["enum"][-1]
    if schema["type"] == "object":
        return {
            name: filled_in(part, string) for name, part in schema["properties"].items()
        }
    if schema["type"] == "array":
        number = schema.get("minItems", schema.get("maxItems"))
        return [filled_in(schema["items"], string) for _ in range(number)]
    return 1 if schema["type"] == "integer" else string


def hosted(string, change=lambda document: None):
    """What an engine answers that keeps to the schema it
    was sent and to nothing else.
    """

    def answer(payload, headers):
        document = filled_in(
            payload["response_format"]["json_schema"]["schema"], string
        )
        change(document)
        return 200, completion(json.dumps(document)), {}

    return endpoint(answer)


def judge_at(url, server="openai"):
    return rb.open_judge(f"openai:m@{url}", server=server)


@pytest.mark.parametrize("server", ["openai", "openrouter", "other"])
@pytest.mark.parametrize("method", ["rulers", "dhs", "mts", "autoscore"])
def test_strings_over_the_limits_lose_no_text(server, method):
    with hosted(LONG) as (url, _):
        scores = grade(
            ITEMS, BUNDLE, judge_at(url, server), method, store=":memory:"
        ).scores
    graded = scores.drop_duplicates("text_id")
    assert len(graded) == 12
    assert graded.status.eq("ok").all(), graded.reason.unique()
    assert scores.score.notna().all()


def test_a_quote_over_the_limit_is_cut_at_a_word_and_verified():
    items = ITEMS.assign(response=LONG + " and ends here.")
    with hosted(LONG) as (url, _):
        found = grade(items, BUNDLE, judge_at(url), store=":memory:")
    assert found.evidence.status.eq("verified").all()
    (quote,) = found.evidence.text.unique()
    assert LONG.startswith(quote + " ")
    assert 100 < len(quote) <= 120
    assert found.scores.n_verified.eq(6).all()


def test_a_long_word_is_cut_where_it_must_be():
    items = ITEMS.assign(response="好" * 300)
    with hosted("好" * 200) as (url, _):
        evidence = grade(items, BUNDLE, judge_at(url), store=":memory:").evidence
    assert evidence.status.eq("verified").all()
    assert evidence.characters.eq(120).all()


def test_the_prompt_states_what_the_schema_cannot_say():
    with hosted("A short string.") as (url, received):
        grade(ITEMS, BUNDLE, judge_at(url), ["rulers", "dhs"], store=":memory:")
    rulers, dhs = (
        next(
            p["messages"][-1]["content"]
            for p in received
            if word in p["messages"][-1]["content"]
        )
        for word in ("LOCKED BUNDLE HASH", "brief rationale")
    )
    assert rulers.endswith("quote 120, why_not_higher 100, why_not_lower 100.")
    assert dhs.endswith("rationale 600.")
    assert not any("maxLength" in json.dumps(p["response_format"]) for p in received)


def test_another_prompt_has_another_key():
    """An answer to the prompt without limits is not taken
    for one to the prompt with them.
    """
    store = Store(":memory:")
    with hosted("A short string.") as (url, received):
        grade(ITEMS, BUNDLE, judge_at(url, "vllm"), store=store)
        # its engine holds the lengths: the prompt is the paper's
        for payload in received:
            assert payload["messages"][0]["content"].endswith("evaluation object now.")
            assert "maxLength" in json.dumps(payload["response_format"])
        grade(ITEMS, BUNDLE, judge_at(url, "openai"), store=store)
        assert len(received) == 24
        grade(ITEMS, BUNDLE, judge_at(url, "openai"), store=store)
    assert len(received) == 24


def test_a_rubric_is_compiled_whole_however_long_its_items_are():
    def number(document):
        for name, item in document["checklist"].items():
            item["text"] = f"{name}: {LONG} to the last word."

    with hosted(LONG, number) as (url, received):
        judge = judge_at(url)
        rubric = ITEMS.rubrics[ITEMS.rubrics.criterion == "clarity"]
        bundle = compile_rubric(rubric, judge, name="mine", n_items=3, store=":memory:")
    assert [c.text for c in bundle.checklist] == [
        f"C0{k}: {LONG} to the last word." for k in (1, 2, 3)
    ]
    assert received[0]["messages"][0]["content"].endswith("definition 160, text 160.")


class Local(Scripted):
    """Stands where a judge of this machine stood."""

    identity = "the weights"
    source = "live"


KEYS = {
    ("minibench", "rulers"): "20227b96775a",
    ("minibench", "rulers-unlocked"): "24ba2fe528be",
    ("minibench", "dhs"): "3b15bb1a76cf",
    ("minibench", "mts"): "1439e9b53c86",
    ("minibench", "autoscore"): "1483ea9ff150",
    ("asap-2", "rulers"): "bc17693dcc09",
    ("asap-2", "rulers-unlocked"): "d3f2aa72df2e",
    ("asap-2", "dhs"): "20f830c8dd3a",
    ("asap-2", "mts"): "fc211dcbdf01",
    ("asap-2", "autoscore"): "00ac9ec7c607",
}
"""Study and method → first digits of the SHA-256 of all keys,
before hosted judges had limits.
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("slug", "dataset"),
    [
        ("smollm2-135m-instruct-embedded", "minibench"),
        ("qwen2.5-coder-0.5b-instruct-vllm", "asap-2"),
    ],
)
def test_recorded_gradings_keep_their_keys(slug, dataset, method):
    """The prompts of the recorded studies, byte for byte:
    a change would ask all of them again.
    """
    bundle = load_bundle(dataset)
    recorded = recorded_grades(slug, dataset, design="single").scores
    own = recorded[(recorded.method == "rulers") & (recorded.variant == "standard")]
    assert bundle.lock[:12] in set(own.lock)
    items = ITEMS.iloc[:3]
    if dataset == "asap-2":
        rubrics = bundled_rubrics("asap")
        rubrics = rubrics[rubrics.rubric_id == "asap-2-holistic"]
        items = items.iloc[:1].assign(criterion="holistic", rubric_id="asap-2-holistic")
        items = check_items(items, rubrics)
    judge = Local()
    grade(items, bundle, judge, method, store=":memory:")
    keys = sorted(key_of(request, judge, shared=True) for request in judge.asked)
    digits = sha256(" ".join(keys).encode()).hexdigest()[:12]
    assert KEYS[dataset, method] == digits


def test_a_judge_named_with_its_address_is_called_by_its_model(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with hosted("A short string.") as (url, _):
        scores = grade(
            ITEMS, BUNDLE, f"openai:m@{url}", store=tmp_path / "s.sqlite"
        ).scores
    assert set(scores.judge) == {"m"}
