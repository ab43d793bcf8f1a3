"""Decision models: a real server of one shape,
OpenAI's own types for the other, and faults.
"""

import hashlib
import json
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pandas as pd
import pytest
from endpoint import decided, endpoint, levels
from openai import OpenAI
from openai.types.decision import Decision

import rubricnb as rb
from rubricnb.core.contract import JudgeError, Message, Reply, Request
from rubricnb.core.estimates.losses import unread
from rubricnb.core.judge import describe
from rubricnb.core.parsing import read
from rubricnb.core.rendering import askable, rendered
from rubricnb.engines.decision import DecisionJudge

SPARROW = "sparrow-nano-general-v1.1"


@pytest.fixture(scope="module")
def sparrow():
    """The address of Sparrow's own server,
    a decision model whose weights are in its package.
    """
    with endpoint([(200, {}, {})]) as (url, _):  # a free port
        port = url.rpartition(":")[2].removesuffix("/v1")
    server = subprocess.Popen(
        [sys.executable, "-m", "sparrow_decider.cli", "serve", "--port", port],
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            urllib.request.urlopen(address, timeout=5).close()
            break
        except OSError:
            time.sleep(0.1)
    yield f"{address}/v1"
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=15)


def always(probabilities, **more):
    return lambda body, headers: (200, decided(body, probabilities, **more), {})


def judge(url, **options):
    return rb.open_judge(f"decision:m@{url}", retries=0, **options)


@pytest.mark.in_turn
def test_the_real_server_gives_each_level_the_probability_that_its_library_gives(
    sparrow, items
):
    from sparrow_decider import Decider

    library = Decider.load()
    requests = rb.plan(items, rb.balanced(5))
    for kind in ("score", "choice"):
        own = rb.open_judge(f"decision:{SPARROW}@{sparrow}", kind=kind)
        live = rb.run(requests, own)
        assert (live.status == "ok").all()
        asked = [json.loads(r.messages[0].content) for r in rendered(requests, own)]
        told = [
            library.ask(b["state"], b["questions"])["rating"]["probabilities"]
            for b in asked
        ]
        oracle = np.array([list(one.values()) for one in told])
        oracle /= oracle.sum(axis=1, keepdims=True)
        assert np.allclose(live.filter(like="probability_"), oracle, atol=1e-6)
        orders = np.array([[int(s) for s in o.split("-")] for o in live.ordering])
        assert np.allclose(
            live.expected_score, (orders * oracle).sum(axis=1), atol=1e-5
        )


@pytest.mark.parametrize("kind", ["score", "choice"])
def test_openai_s_shape_is_what_its_own_client_sends_and_reads(
    items, kind, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    requests = rb.plan(items, rb.permutation.single([3, 1, 2, 5, 4]))
    with endpoint(always([0.1, 0.2, 0.3, 0.25, 0.15])) as (url, bodies):
        live = rb.run(requests, judge(url, shape="decisions", kind=kind))
        ours = bodies[0]
        client = OpenAI(base_url=url, max_retries=0)
        answer = client.decisions.create(**ours)
        assert bodies[-1] == ours
        assert bodies.paths[0] == bodies.paths[-1] == "/v1/decisions"
    Decision.model_validate(answer.model_dump(), strict=True)
    assert live.probability_3.tolist() == pytest.approx([0.3] * 15)
    assert live.score.tolist() == [2] * 15  # at position 3
    assert live.prompt_tokens.iloc[0], live.cached_tokens.iloc[0] == (100, 64)


@pytest.mark.parametrize("last", [0.1498, 0.149, 0.151, 0.15])
def test_probabilities_are_closed_so_their_mass_is_missing(items, last):
    """Rounded ones sum to .999 or 1.001, and are read as shares of their sum."""
    with endpoint(always([0.1, 0.2, 0.3, 0.25, last])) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url))
    assert (live.status == "ok").all()
    assert live.label_mass.isna().all()
    assert live.filter(like="probability_").sum(axis=1).to_numpy() == pytest.approx(1)
    assert live.probability_5.to_numpy() == pytest.approx(last / (0.85 + last))


def always_tied(body, headers):
    """Tie the two levels whose texts come first in the alphabet, in every order."""
    texts = [text for _, text in levels(body)]
    best = sorted(texts)[:2]
    shares = [0.35 if text in best else 0.3 / (len(texts) - 2) for text in texts]
    return 200, decided(body, shares), {}


@pytest.mark.in_turn
def test_ties_favour_no_position_and_no_level():
    """Rounded probabilities are often equal;
    the first of them would look like primacy.
    """
    with endpoint(always_tied) as (url, _):
        live = rb.run(rb.plan(rb.load("minibench"), rb.balanced(5)), judge(url))
    shares = live.position.value_counts(normalize=True)
    assert all(abs(share - 1 / 5) < 0.05 for share in shares)
    levels_chosen = live.groupby("criterion", observed=True).score
    assert (levels_chosen.nunique() == 2).all()


def test_a_tie_has_one_draw_in_every_order_edit_and_repeat(items):
    """A server that answers alike in every order shows no order effect."""
    designs = (rb.balanced(5), rb.fixed(5, 3), rb.permutation.placebo(5, 6))
    with endpoint(always_tied) as (url, _):
        alone = pd.concat(rb.run(rb.plan(items, d), judge(url)) for d in designs)
        in_one_call = rb.plan(items, rb.fixed(3, 1), template="criteria")
        together = rb.run(in_one_call, judge(url))
    by_item = alone.groupby("item_id", observed=True)
    assert (by_item.score.nunique() == 1).all()
    assert (by_item.position.nunique() > 1).all()
    drawn = alone.set_index(alone.item_id.astype(str)).score.to_dict()
    shown_first = together[together.criterion_position == 1]
    for row in shown_first.itertuples():
        assert row.score == drawn[f"{row.item_id}/{row.criterion}"]


FAULTS = {  # what an answer has instead → what the reply's error says
    "a level is missing": (lambda p: dict(list(p.items())[:-1]), "asked about"),
    "a level too many": (lambda p: p | {"level 6": 0.0}, "asked about"),
    "other keys": (
        lambda p: {k.removeprefix("level "): v for k, v in p.items()},
        "asked about",
    ),
    "a negative one": (lambda p: p | {"level 1": -0.1}, "not a probability"),
    "not a number": (lambda p: p | {"level 1": None}, "not a probability"),
    "no distribution": (lambda p: dict.fromkeys(p, 0.9), "sum to 4.5"),
    "a text": (lambda p: "level 1", "no probabilities"),
    "nothing": (lambda p: None, "no probabilities"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_answer_that_is_not_about_the_levels_is_an_error(items, fault):
    change, says = FAULTS[fault]

    def answer(body, headers):
        out = decided(body, [0.1, 0.2, 0.3, 0.25, 0.15])
        one = out["answers"]["rating"]
        one["probabilities"] = change(one["probabilities"])
        return 200, out, {}

    request = next(
        rendered(
            rb.plan(items, rb.fixed(5, 1)),
            DecisionJudge("m", kind="choice", shape="systemone"),
        )
    )
    with endpoint(answer) as (url, _):
        (reply,) = judge(url, kind="choice").answer([request])
    assert reply.finish == "error"
    assert says in reply.error


def test_probabilities_that_are_all_zero_give_no_score(items):
    with endpoint(always([0.0] * 5)) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url))
    assert (live.status == "unparsed").all()
    assert live.score.isna().all()


@pytest.mark.parametrize("shape", ["systemone", "decisions"])
@pytest.mark.parametrize("kind", ["score", "choice"])
def test_a_server_that_sorts_the_levels_stops_the_run(items, kind, shape):
    """Its judge would look as if order did not matter."""

    def answer(body, headers):
        sent = levels(body)
        out = decided(body, [0.3, 0.1, 0.2, 0.25, 0.15])
        for one in out["answers"] if shape == "decisions" else out["answers"].values():
            told = one["probabilities"]
            if shape == "systemone" and kind == "score":  # it repeats its own order
                one["legend"] = {
                    str(k): text for k, text in enumerate(sorted(t for _, t in sent))
                }
            elif shape == "systemone":
                one["probabilities"] = dict(sorted(told.items()))
            elif kind == "choice":
                one["probabilities"] = sorted(told, key=lambda p: p["value"])
            else:
                told = sorted(told, key=lambda p: p["label"])
                one["probabilities"] = [p | {"value": k} for k, p in enumerate(told)]
        return 200, out, {}

    requests = rb.plan(items, rb.permutation.single([2, 1, 5, 3, 4]))
    with (
        endpoint(answer) as (url, _),
        pytest.raises(JudgeError, match="this server sorts them"),
    ):
        rb.run(requests, judge(url, kind=kind, shape=shape))


LEGENDS = {  # of sorted levels, as servers might spell them
    "without full stops": lambda texts: {
        str(k): text.rstrip(".") for k, text in enumerate(texts)
    },
    "in capitals": lambda texts: {str(k): t.upper() for k, t in enumerate(texts)},
    "as a list": lambda texts: texts,
}


@pytest.mark.parametrize("spelling", LEGENDS)
def test_sorted_levels_are_seen_however_the_legend_is_spelt(items, spelling):
    def answer(body, headers):
        out = decided(body, [0.1, 0.2, 0.3, 0.25, 0.15])
        (one,) = out["answers"].values()
        one["legend"] = LEGENDS[spelling](sorted(text for _, text in levels(body)))
        return 200, out, {}

    requests = rb.plan(items, rb.permutation.single([2, 1, 5, 3, 4]))
    with (
        endpoint(answer) as (url, _),
        pytest.raises(JudgeError, match="this server sorts them"),
    ):
        rb.run(requests, judge(url))


# Answers that do not show in which order a server has read the levels.
UNSHOWN = {
    "another legend": {"legend": {str(k): f"Stufe {k}" for k in range(5)}},
    "no legend": {"legend": None},
    "a number": {"legend": 5},
}


@pytest.mark.parametrize("legend", UNSHOWN)
def test_a_legend_that_cannot_be_matched_is_said_once(legend, items, capsys):
    def answer(body, headers):
        out = decided(body, [0.1, 0.2, 0.3, 0.25, 0.15])
        out["answers"]["rating"] |= UNSHOWN[legend]
        return 200, out, {}

    with endpoint(answer) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url))
    assert (live.status == "ok").all()
    assert capsys.readouterr().out.count("the order of the levels: sorted") == 1


@pytest.mark.parametrize("number", [None, "first"])
def test_levels_without_numbers_are_said_not_to_show_their_order(number, items):
    """OpenAI's shape tells the order of a score's levels by their values."""

    def answer(body, headers):
        out = decided(body, [0.1, 0.2, 0.3, 0.25, 0.15])
        for one in out["answers"][0]["probabilities"]:
            one["value"] = number
        return 200, out, {}

    with endpoint(answer) as (url, _):
        live = rb.run(rb.plan(items, rb.balanced(5)), judge(url, shape="decisions"))
    assert (live.status == "ok").all()
    assert live.server_note.str.contains("sorted levels are not seen").all()


def test_eleven_levels_are_not_taken_for_sorted_where_their_numbers_are_texts():
    rubric = {"rubric_id": "r", "criterion": "r", "definition": "Is it good?"}
    rubric["levels"] = {k: f"So good: {'+' * k}." for k in range(1, 12)}
    rows = [
        {"item_id": f"t{k}", "instruction": "Go.", "response": "Fine."}
        for k in range(5)
    ]
    texts = rb.load("csv", path=pd.DataFrame(rows), rubric=[rubric])

    def answer(body, headers):
        out = decided(body, [0.05] * 10 + [0.5])
        for one in out["answers"][0]["probabilities"]:
            one["value"] = str(one["value"])
        return 200, out, {}

    with endpoint(answer) as (url, _):
        live = rb.run(rb.plan(texts, rb.fixed(11, 1)), judge(url, shape="decisions"))
    assert live.score.tolist() == [11] * 5
    assert "server_note" not in live


def test_levels_in_the_order_of_their_probabilities_are_not_taken_for_sorted(items):
    def answer(body, headers):
        out = decided(body, [0.1, 0.2, 0.3, 0.25, 0.15])
        (one,) = out["answers"].values()
        falling = sorted(one["probabilities"].items(), key=lambda pair: -pair[1])
        one["probabilities"] = dict(falling)
        return 200, out, {}

    with endpoint(answer) as (url, _):
        live = rb.run(rb.plan(items, rb.balanced(5)), judge(url, kind="choice"))
    assert live.probability_3.tolist() == pytest.approx([0.3] * 150)
    assert live.server_note.str.contains("sorted levels are not seen").all()


def test_one_refused_question_of_three_does_not_lose_its_neighbours(items):
    def answer(body, headers):
        out = decided(body, [0.1, 0.2, 0.3, 0.25, 0.15])
        out["answers"][1] = {"type": "refusal", "name": body["questions"][1]["name"]}
        return 200, out, {}

    requests = rb.plan(items, rb.fixed(3, 1), template="criteria")
    with endpoint(answer) as (url, bodies):
        live = rb.run(requests, judge(url, shape="decisions"))
    assert live.status.tolist() == ["ok", "refused", "ok"] * 5
    assert len({q["levels"][0]["description"] for q in bodies[0]["questions"]}) == 3


def test_a_question_that_is_refused_alone_is_refused(items):
    def answer(body, headers):
        return (
            200,
            decided(body, [0.2] * 5) | {"answers": [{"type": "refusal", "name": None}]},
            {},
        )

    with endpoint(answer) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url, shape="decisions"))
    assert (live.status == "refused").all()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            501,
            {"error": {"message": "this model is not a decision model", "code": 501}},
        ),
        (404, {"error": "not found"}),
    ],
)
def test_a_server_without_decision_models_stops_the_run_at_once(items, status, body):
    with endpoint([(status, body, {})]) as (url, bodies):
        own = rb.open_judge(f"decision:m@{url}", retries=6, concurrency=1)
        with pytest.raises(JudgeError, match="no decision model at /systemone"):
            rb.run(rb.plan(items, rb.fixed(5, 1)), own)
        assert len(bodies) == 1


@pytest.mark.parametrize(
    "body", [{"detail": [{"msg": "state is too long"}]}, {"error": "too long"}]
)
def test_a_request_that_is_invalid_is_one_error(items, body):
    turns = iter([(200, None)] * 3 + [(422, body)])

    def answer(sent, headers):
        status, error = next(turns, (200, None))
        return status, error or decided(sent, [0.2, 0.2, 0.3, 0.2, 0.1]), {}

    with endpoint(answer) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url, concurrency=1))
    assert (live.status == "ok").sum() == 15  # once more at the end


@pytest.mark.in_turn
@pytest.mark.parametrize("status", [429, 503, 529])
def test_a_server_that_is_busy_is_asked_again(items, status):
    turns = iter([status])

    def answer(body, headers):
        busy = next(turns, None)
        return (
            (busy or 200),
            {"detail": "busy"} if busy else decided(body, [0.2] * 5),
            {},
        )

    with endpoint(answer) as (url, _):
        own = rb.open_judge(f"decision:m@{url}", retries=2, concurrency=1)
        assert (rb.run(rb.plan(items, rb.fixed(5, 1)), own).status == "ok").all()


@pytest.mark.parametrize("shape", ["systemone", "decisions"])
def test_no_redirect_is_followed_and_a_lost_call_is_sent_again(items, shape):
    """With the openai client between, and without."""
    good = always([0.2] * 5)
    requests = rb.plan(items, rb.fixed(5, 1))
    with endpoint(good) as (stranger, seen):
        elsewhere = (307, {}, {"Location": f"{stranger}/{shape}"})
        with (
            endpoint([elsewhere]) as (url, _),
            pytest.raises(JudgeError, match="redirects are not followed"),
        ):
            rb.run(requests, judge(url, shape=shape))
        assert not seen
    turns = iter([(200, None, {})])
    with endpoint(lambda *call: next(turns, None) or good(*call)) as (url, bodies):
        own = rb.open_judge(f"decision:m@{url}", retries=1, shape=shape, concurrency=1)
        assert (rb.run(requests, own).status == "ok").all()
    assert len(bodies) == 16
    assert bodies[0] == bodies[1]
    for sent in bodies.headers:
        assert sent["user-agent"] == "rubricnb"
        assert sent["content-type"] == "application/json"
        assert not any(name.startswith("x-stainless") for name in sent)


@pytest.mark.parametrize("name", ["jev-latest", "qwen:latest", "LATEST"])
def test_a_name_that_moves_is_refused_before_anything_is_asked(name):
    with pytest.raises(ValueError, match="give the name of a version"):
        rb.open_judge(f"decision:{name}@http://127.0.0.1:9/v1")
    rb.open_judge(f"decision:{name}@http://127.0.0.1:9/v1", check_model=False)


def test_a_model_that_changes_in_the_middle_is_said(items, capsys):
    names = iter(["m-2026-01-01"] * 8)

    def answer(body, headers):
        out = decided(body, [0.1, 0.2, 0.3, 0.25, 0.15])
        out["meta"] = {"model": next(names, "m-2026-02-02"), "warnings": []}
        return 200, out, {}

    with endpoint(answer) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url, concurrency=1))
    assert (live.status == "ok").all()
    assert "the endpoint has changed its model" in capsys.readouterr().out


def answer_with_note(note, shares):
    def answer(body, headers):
        out = decided(body, shares)
        out["meta"] = {"model": "m", "warnings": [note]}
        return 200, out, {}

    return answer


@pytest.mark.parametrize(
    "note",
    [
        "rating: no usable read (got 'Der Text'); uniform",
        "rating: Keine gültige Antwort («Der Text»), Gleichverteilung 20%",
    ],
)
def test_equal_probabilities_with_a_note_in_any_language_are_no_answer(items, note):
    plan = rb.plan(items, rb.fixed(5, 1))
    with endpoint(answer_with_note(note, [0.2] * 5)) as (url, _):
        declined = rb.run(plan, judge(url), store="store.sqlite")
        again = rb.run(plan, judge(url), store="store.sqlite")
    assert (declined.status == "unparsed").all()
    (said,) = declined.server_note.unique()
    assert "…" in said
    assert "Der Text" not in said
    pd.testing.assert_frame_equal(declined, again)  # from the store


def test_a_note_beside_an_answer_is_kept_and_counted(items, capsys):
    note = "rating: Only 32% of the model's probability landed on a label."
    with endpoint(answer_with_note(note, [0.1, 0.2, 0.3, 0.25, 0.149])) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url))
    assert (live.status == "ok").all()
    assert (
        '15 of 15 answers carry the note "rating: Only …% of' in capsys.readouterr().out
    )


def test_equal_probabilities_without_a_note_are_counted(items, capsys):
    with endpoint(always([0.2] * 5)) as (url, _):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url))
    assert (live.status == "ok").all()
    out = capsys.readouterr().out
    assert "15 of 15 answers give every level the same probability" in out


def test_a_server_that_answers_to_any_name_is_said_to(items):
    def answer(body, headers):
        rest = [0.1] * (len(levels(body)) - 1)
        return 200, decided(body, [1 - sum(rest), *rest]), {}

    with endpoint(answer, any_name=True) as (url, bodies):
        live = rb.run(rb.plan(items, rb.fixed(5, 1)), judge(url))
    assert live.server_note.str.contains("answers to any model name").all()
    assert [body["model"] for body in bodies].count("no-such-model") == 1
    assert not any(text in str(bodies[0]) for text in items.response)


def test_a_repeat_is_asked_again_since_no_server_promises_the_same_answer(items):
    with endpoint(always([0.2] * 5)) as (url, bodies):
        rb.run(rb.plan(items, rb.fixed(5, 3)), judge(url))
    assert len(bodies) == 45


def test_identical_levels_show_what_positions_do_by_themselves(items):
    with endpoint(always([0.3, 0.1, 0.2, 0.25, 0.15])) as (url, bodies):
        rb.run(
            rb.plan(items, rb.fixed(5, 1), variant="identical"),
            judge(url, kind="choice"),
        )
    assert all(len({text for _, text in levels(body)}) == 1 for body in bodies)
    assert [name for name, _ in levels(bodies[0])] == [
        f"level {k}" for k in range(1, 6)
    ]


@pytest.mark.parametrize("shape", ["systemone", "decisions"])
def test_neutral_edits_change_the_body_and_no_word(items, shape):
    own = DecisionJudge("m", "http://127.0.0.1:1/v1", shape=shape)
    requests = rb.plan(items[:1], rb.placebo(5, 15))
    bodies = [r.messages[0].content for r in rendered(requests, own)]
    assert len(set(bodies)) == 15
    texts = {
        tuple(text.strip() for _, text in levels(json.loads(body) | {"model": "m"}))
        for body in bodies
    }
    assert len(texts) == 1
    words = {
        json.loads(b).get("state", json.loads(b).get("input")).strip() for b in bodies
    }
    assert len(words) == 1


NOT_ASKED = [  # setting, kind and shape of the question, what is refused
    ({"labels": "letter"}, "score", "systemone", {"labels"}),
    ({"labels": "letter"}, "choice", "systemone", set()),
    ({"labels": "roman"}, "score", "decisions", set()),
    ({"temperature": 1.0}, "choice", "decisions", {"sampling"}),
    ({"effort": "low"}, "score", "systemone", {"sampling"}),
    ({"reference": 5}, "score", "systemone", {"references"}),
    ({"exemplar": 3}, "choice", "systemone", {"examples"}),
    ({"layout": "rubric-first"}, "choice", "systemone", {"layout"}),
    ({"template": "pointwise"}, "score", "systemone", {"template"}),
    ({"variant": "paraphrased"}, "score", "systemone", set()),
]


@pytest.mark.parametrize(("setting", "kind", "shape", "refused"), NOT_ASKED)
def test_what_the_judge_cannot_see_is_not_asked(items, setting, kind, shape, refused):
    own = DecisionJudge("m", kind=kind, shape=shape)
    requests = rb.plan(items, rb.fixed(5, 1), readout="logprobs", **setting)
    asked, why = askable(requests, own)
    assert set(why) == refused
    assert len(asked) == (0 if refused else 15)
    if refused:
        with pytest.raises(ValueError, match="cannot be asked"):
            next(rendered(requests, own))


@pytest.mark.in_turn
def test_what_it_costs_is_known_before_and_kept_to(items, monkeypatch):
    requests = rb.plan(items, rb.balanced(5))
    luna = rb.estimate_cost(requests, "decision:gpt-6-luna").iloc[0]
    jev = rb.estimate_cost(
        requests, "decision:jev-1.13.0@https://api.typesafe.ai/v1"
    ).iloc[0]
    assert luna.price == pytest.approx(luna.prompt_tokens * 0.10e-6)  # output is free
    assert jev.price == pytest.approx(jev.prompt_tokens * 0.042e-6)
    assert describe("decision:m@http://127.0.0.1:1/v1").price is None
    with endpoint(always([0.2] * 5)) as (url, bodies):
        with pytest.raises(rb.judging.RunInterrupted, match="max_cost"):
            rb.run(requests, judge(url), max_cost=0.05, price=(10, 10, 0))
        assert 0 < len(bodies) * 100 * 10e-6 < 0.05


def test_a_key_goes_to_typesafe_alone(monkeypatch):
    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    requests = rb.plan(rb.load("minibench", n_items=5), rb.fixed(5, 1))
    with pytest.raises(
        ValueError, match="set the environment variable TYPESAFE_API_KEY"
    ):
        rb.run(requests, "decision:jev-1.13.0@https://api.typesafe.ai/v1")


@pytest.mark.parametrize(
    ("spec", "options", "says"),
    [
        ("decision:m", {"kind": "noul"}, "There are: score, choice"),
        ("decision:m", {"shape": "chat"}, "There are: systemone, decisions"),
        ("decision:m", {"shap": "x"}, "no option 'shap'"),
        ("decision:", {}, "names no model"),
        ("decision:m", {"parser": "json"}, "leave template and parser out"),
        ("ray:decision:m", {}, "takes no endpoint"),
    ],
)
def test_a_spec_that_is_wrong_says_what_is_right(spec, options, says):
    with pytest.raises(ValueError, match=says):
        describe(spec, **options)


def preferring(body, gamma):
    """A judge whose logits are those of the text's length and, by position, `gamma`."""
    quality = len(body["state"]) % 5
    number = [int(name.removeprefix("level ")) - 1 for name, _ in levels(body)]
    logits = gamma - 0.5 * (np.array(number) - quality) ** 2
    return (np.exp(logits) / np.exp(logits).sum()).tolist()


@pytest.mark.in_turn
def test_a_planted_preference_for_positions_is_found_and_none_where_there_is_none():
    requests = rb.plan(rb.load("minibench"), rb.balanced(5))
    found = {}
    for name, gamma in {
        "numbering": np.array([0, 1, 0, 1, 0]),
        "none": np.zeros(5),
    }.items():

        def answer(body, headers, gamma=gamma):
            return 200, decided(body, preferring(body, gamma)), {}

        with endpoint(answer) as (url, _):
            live = rb.run(requests, judge(url, kind="choice"), store=":memory:")
        found[name] = rb.position_bias(live, value="expected_score").iloc[0]
    biased, none = found["numbering"], found["none"]
    assert biased.p_within < 0.001
    assert biased.share_2 + biased.share_4 > 0.5
    assert not none.p_within < 0.05
    assert [none[f"share_{k}"] for k in range(1, 6)] == pytest.approx([0.2] * 5)


def test_scores_are_read_from_probabilities_and_never_from_what_a_server_says(items):
    """Score and confidence of a reordered list are computed
    from positions and mean nothing.
    """
    own = DecisionJudge("m", kind="score", shape="systemone")
    body = {
        "state": "…",
        "questions": {"rating": {"type": "score", "criteria": ["Good.", "Bad."]}},
    }
    asked = Request(
        7,
        "",
        (Message("user", json.dumps(body)),),
        ("[RESULT]",),
        ("5", "1"),
        "logprobs",
    )
    told = {
        "type": "score",
        "score": 0.2,
        "confidence": 0.9,
        "probabilities": {"0": 0.8, "1": 0.2},
    }
    reply = own.read(asked, {"model": "m", "answers": {"rating": told}})
    assert read(asked, reply)[0].position == 1
    assert "confidence" not in str(reply)


def test_refused_and_empty_slots_are_told_apart():
    request = Request(1, "", (), ("[A]", "\n[B]"), ("1", "2"), "logprobs")
    readings = read(request, Reply(1, "[A] 1\n[B] 1", probabilities=((), (0.0, 0.0))))
    assert [reading.status for reading in readings] == ["refused", "unparsed"]


def two_of_each_prompt():
    items = rb.load("minibench")
    return items[(items.criterion == "helpfulness") & items.candidate.isin(["A", "C"])]


def reads_up_to(limit, digits=4, sharpness=1.0):
    """A server that answers about the first characters of a text."""

    def answer(body, headers):
        text = (body.get("state") or body["input"]).strip()[:limit]
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        logits = sharpness * np.random.default_rng(seed).normal(size=5)
        by_level = np.exp(logits) / np.exp(logits).sum()
        number = [int(name.removeprefix("level ")) for name, _ in levels(body)]
        told = by_level[np.array(number) - 1].round(digits).tolist()
        return 200, decided(body, told), {}

    return answer


def long_texts():
    """Texts of a long instruction, which comes first."""
    items = two_of_each_prompt().copy()
    items["instruction"] = items["instruction"].str.pad(2_000, "right", "~")
    return items


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("limit", "digits", "sharpness", "said"),
    [
        (1_500, 4, 1, True),
        (9_000, 4, 1, False),
        (1_500, 2, 99, False),
        (9_000, 0, 99, False),
    ],
)
def test_texts_that_a_server_cuts_are_noticed_by_their_twins(
    limit, digits, sharpness, said, capsys
):
    """Not where a server reads all, nor where answers are equal because they are
    rounded: then they are equal between instructions, too.
    """
    items = long_texts()
    requests = rb.plan(items, rb.balanced(5))
    with endpoint(reads_up_to(limit, digits, sharpness)) as (url, _):
        live = rb.run(requests, judge(url, kind="choice"), store=":memory:")
    [*found] = unread(live, items)
    assert bool(found) == said
    out = capsys.readouterr().out
    assert ("the server may cut long texts" in out) == said
    if said:
        assert found[0].numbers == {"n": len(items), "asked": len(items)}


def test_equal_answers_about_equal_texts_are_no_sign_of_a_cut():
    """Copies of a response, and responses that differ in case and white space."""
    items = long_texts()
    items["response"] = items.groupby("group_id").response.transform("first")
    items["response"] += [" " * k for k in range(len(items))]
    with endpoint(reads_up_to(9_000)) as (url, _):
        live = rb.run(rb.plan(items, rb.balanced(5)), judge(url, kind="choice"))
    assert not unread(live, items)


@pytest.mark.needs_data
def test_sparrow_s_recorded_answers_show_the_texts_that_its_server_cut():
    """By its own tokenizer: texts that share their first 512 tokens."""
    from sparrow_decider import Decider

    items = rb.load("summeval")
    news = rb.recorded(f"{SPARROW}-score", "summeval", "decisions")
    items = items[items["item_id"].isin(news["item_id"].astype(str).unique())]
    texts = items.drop_duplicates("text_id")
    token = Decider.load().static.tok
    seen = [
        tuple(token.encode(f"Instruction:\n{i}\n\nResponse:\n{r}", 512))
        for i, r in zip(texts["instruction"], texts["response"], strict=True)
    ]
    (found,) = unread(news, items)
    twins = sum(seen.count(one) > 1 for one in seen)
    assert found.numbers == {"n": twins, "asked": len(texts)}
    assert 0 < twins < len(texts)
    brief = rb.recorded(f"{SPARROW}-score", "minibench", "decisions")
    assert not unread(brief, rb.load("minibench"))


@pytest.mark.in_turn
def test_an_audit_keeps_what_its_judge_did_not_read():
    with endpoint(reads_up_to(1_500)) as (url, _):
        report = rb.audit(judge(url, kind="choice"), long_texts())
    (parsed,) = report.rows.query("measure == 'parsed'").itertuples()
    assert "the server may cut long texts" in parsed.reason


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", ["score", "choice"])
def test_an_audit_asks_what_the_judge_can_see_and_does_not_praise_a_judge_of_no_use(
    sparrow, kind
):
    """Sparrow hardly moves, and its scores do not agree with the designed quality."""
    own = rb.open_judge(f"decision:{SPARROW}@{sparrow}", kind=kind)
    report = rb.audit(own, two_of_each_prompt())
    assert "was not shown to agree" in report.sentence
    assert ("labels" in report.unseen) == (kind == "score")
    assert "cannot be asked" in report.unseen["reference"]


@pytest.mark.in_turn
def test_an_audit_of_openai_s_shape_finds_a_planted_numbering():
    def answer(body, headers):
        names = [name for name, _ in levels(body)]
        quality = len(body["input"]) % 5 + 1
        number = np.array([int(name.removeprefix("level ")) for name in names])
        logits = np.array([1.5, 0, 0, 0, 0]) - 0.5 * (number - quality) ** 2
        probabilities = np.exp(logits) / np.exp(logits).sum()
        return 200, decided(body, probabilities.tolist()), {}

    with endpoint(answer) as (url, bodies):
        report = rb.audit(judge(url, shape="decisions"), two_of_each_prompt())
    (found,) = report.rows.query(
        "measure == 'position' and criterion == ''"
    ).itertuples()
    assert found.p < 0.001
    assert {tuple(sorted(body)) for body in bodies} == {("input", "model", "questions")}
