"""Real servers of decision models, on 127.0.0.1, and what they do to a rubric.

They live in an environment of their own (`make test-decisions`). Two of them read the
answer of a chat model: a small stand-in answers for it, since what is tested is what
the servers make of an answer.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

import rubricnb as rb
from rubricnb.core.contract import JudgeError
from rubricnb.core.support.naming import CannotShow
from rubricnb.core.validate import check_items
from studies.recording import read_table

sys.path.insert(0, str(Path(__file__).parents[1] / "engines"))
from endpoint import completion, endpoint

BIN = Path(__file__).parents[2] / ".venv-decisions" / "bin"
ITEMS = rb.load("minibench")
SPARROW = "sparrow-nano-general-v1.1"
MICROLLM = "microllm-gear1-fast"
POLYJEV = """models:
  chat:
    provider: openai
    model: {model}
    base_url: {url}
    api_key: none
"""
DECLINES = "I would rather not say."


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@contextmanager
def serving(*command, **environment):
    """Start a server; yields its address once it accepts connections."""
    port = free_port()
    server = subprocess.Popen(
        [BIN / command[0], *command[1:], "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | environment,
    )
    try:
        for _ in range(1200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, f"{command[0]} has ended"
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def overlap():
    with serving("dev-double", "serve", "--engine", "mock") as url:
        yield url


@pytest.fixture(scope="module")
def sparrow():
    with serving("sparrow-decider", "serve") as url:
        yield url


@pytest.fixture(scope="module")
def microllm():
    with serving("uvicorn", "--factory", "microllm.server:create_app") as url:
        yield url


@pytest.fixture(scope="module")
def fake():
    with serving("polyjev", "serve", "--model", "fake/demo") as url:
        yield url


@contextmanager
def behind(server, folder, says, tops, model="chat"):
    """A server that reads a chat model which always answers the same."""
    with endpoint(lambda *_: (200, completion(says, tops=tops), {})) as (chat, _):
        if server == "polyjev":
            config = folder / "polyjev.yaml"
            config.write_text(POLYJEV.format(model=model, url=chat))
            started = serving("polyjev", "serve", "--config", str(config))
        else:
            options = ("--engine", "openai", "--base-url", chat, "--model", model)
            started = serving("dev-double", "serve", *options)
        with started as url:
            yield url


def judge(name, url, **options):
    return rb.open_judge(f"decision:{name}@{url}", retries=0, **options)


def run(items, design, judge, **options):
    return rb.run(rb.plan(items, design), judge, store=":memory:", **options)


def sent(url, body):
    """What the server itself answers: the status and the body."""
    raw = json.dumps(body).encode()
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/systemone", raw, kind)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


def question(levels, state="Four."):
    asked = {"type": "score", "instructions": "Is it right?", "criteria": levels}
    return {"model": "mock-overlap", "state": state, "questions": {"rating": asked}}


@pytest.mark.parametrize("server", ["polyjev", "dev-double"])
def test_the_audit_of_a_server_that_declines_says_so_first(server, tmp_path, capsys):
    """Both answer with a fifth for each level and HTTP 200."""
    tops = [("I", {"I": 0.9, "We": 0.1})]
    with behind(server, tmp_path, DECLINES, tops) as url:
        status, raw = sent(
            url, question(["No.", "Partly.", "Yes."]) | {"model": "chat"}
        )
        told = raw["answers"]["rating"]["probabilities"]
        assert (status, len(set(told.values()))) == (200, 1)
        live = run(ITEMS.head(15), rb.fixed(5, 1), judge("chat", url))
        assert (live.status == "unparsed").all()
        assert live.score.isna().all()
        assert live.server_note.notna().all()
        assert DECLINES not in str(live.server_note.unique())
        assert "15 of 15 answers carry the note" in capsys.readouterr().out
        with pytest.raises(CannotShow, match="gave no score in any of") as found:
            rb.audit(judge("chat", url), ITEMS, store=":memory:")
    assert live.server_note[0][:200] in str(found.value)


@pytest.mark.parametrize("server", ["polyjev", "dev-double"])
def test_an_answer_of_a_chat_model_is_read_with_its_label_mass(server, tmp_path):
    tops = [("C", {"C": 0.3, "2": 0.3, "I": 0.2, "3": 0.1})]
    with behind(server, tmp_path, "2", tops) as url:
        live = run(ITEMS.head(6), rb.fixed(5, 1), judge("chat", url))
    assert (live.status == "ok").all()
    assert live.label_mass.notna().all() == (server == "polyjev")


def test_a_deterministic_server_with_ties_changes_nothing(overlap):
    """A word counter: its answers do not depend on the order, and many are tied."""
    orders = run(ITEMS, rb.balanced(5), judge("mock-overlap", overlap))
    shares = orders.filter(like="probability_").to_numpy()
    tied = (shares == shares.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert tied.mean() > 0.1
    assert (orders.groupby("item_id", observed=True).score.nunique() == 1).all()
    twice = run(ITEMS, rb.fixed(5, 2), judge("mock-overlap", overlap))
    assert (twice.groupby("item_id", observed=True).score.nunique() == 1).all()


@pytest.mark.parametrize("kind", ["score", "choice"])
@pytest.mark.parametrize("name", [SPARROW, MICROLLM])
def test_a_server_answers_as_it_was_recorded(name, kind, sparrow, microllm):
    """The recordings of chapter 30, of which some texts are asked again."""
    url = sparrow if name == SPARROW else microllm
    engine = judge(name, url, kind=kind, check_model=False)
    live = run(ITEMS.head(6), rb.balanced(5), engine).set_index("request_id")
    known = rb.recorded(f"{name}-{kind}", "minibench", "decisions")
    known = known.set_index("request_id").loc[live.index]
    apart = live.expected_score - known.expected_score
    assert apart.abs().max() < 0.001
    assert (live.score == known.score).all()


@pytest.mark.parametrize("name", [SPARROW, MICROLLM])
def test_a_digit_in_the_text_can_pick_the_level_of_that_name(name, sparrow, microllm):
    """Five levels with one text, named level 1 to level 5, as they were recorded."""
    url = sparrow if name == SPARROW else microllm
    rubrics = ITEMS.rubrics.query("variant == 'standard'").set_index("rubric_id")
    criteria, picked, moved = {}, [], []
    for item in ITEMS.iloc[::3].itertuples():
        own = rubrics.loc[item.rubric_id].set_index("score")
        criteria = {f"level {k}": own.description[3] for k in range(1, 6)}
        asked = {"type": "choice", "instructions": own.definition.iloc[0]}
        found = []
        for digit in ("", *(f" {k}" for k in range(1, 6))):
            state = f"Instruction:\n{item.instruction}\n\nResponse:\n{item.response}"
            body = {"model": name, "state": state + digit}
            body["questions"] = {"q": asked | {"criteria": criteria}}
            (answer,) = sent(url, body)[1]["answers"].values()
            found.append([answer["probabilities"][level] for level in criteria])
        picked.append([found[k].index(max(found[k])) == k - 1 for k in range(1, 6)])
        moved += [
            abs(a - b) for row in found[1:] for a, b in zip(row, found[0], strict=True)
        ]
    kept = read_table("decision_digits").set_index("judge").loc[f"{name}-choice"]
    shares = [sum(own) / len(picked) for own in zip(*picked, strict=True)]
    assert kept.chosen.to_list() == pytest.approx(shares, abs=1e-5)
    assert kept.moved.max() == pytest.approx(max(moved), abs=1e-5)
    assert set(kept.n_texts) == {len(picked)}


def test_an_echoed_name_is_refused_where_the_server_names_its_model(overlap):
    with pytest.raises(JudgeError, match="'mock-overlap' answered; name that one"):
        run(ITEMS.head(6), rb.fixed(5, 1), judge("jev-1.13.0", overlap))
    unchecked = judge("jev-1.13.0", overlap, check_model=False)
    live = run(ITEMS.head(6), rb.fixed(5, 1), unchecked)
    assert live.server_note.str.contains("was ignored").all()


def test_an_echoed_name_is_said_where_nothing_else_names_the_model(microllm, capsys):
    live = run(ITEMS.head(6), rb.fixed(5, 1), judge("gpt-6-luna", microllm))
    assert live.server_note.str.contains("answers to any model name").all()
    assert "6 of 6 answers carry the note" in capsys.readouterr().out


def test_a_server_that_names_its_model_or_refuses_has_no_such_note(sparrow, fake):
    for name, url in ((SPARROW, sparrow), ("fake/demo", fake)):
        assert "server_note" not in run(ITEMS.head(6), rb.fixed(5, 1), judge(name, url))


def test_the_model_behind_a_configured_name_is_named(tmp_path):
    with (
        behind("polyjev", tmp_path, "2", [("2", {"2": 1.0})], model="qwen-0.5b") as url,
        pytest.raises(JudgeError, match=r"'qwen-0\.5b' answered; name that one"),
    ):
        run(ITEMS.head(6), rb.fixed(5, 1), judge("chat", url))


@pytest.mark.parametrize("kind", ["score", "choice"])
def test_every_server_answers_about_the_levels_as_they_were_sent(
    kind, sparrow, microllm, fake, overlap
):
    names = (SPARROW, "microllm-gear1-fast", "fake/demo", "mock-overlap")
    for name, url in zip(names, (sparrow, microllm, fake, overlap), strict=True):
        live = run(ITEMS.head(9), rb.balanced(5), judge(name, url, kind=kind))
        assert (live.status == "ok").all(), name
        told = live.filter(like="probability_").sum(axis=1)
        assert (told - 1).abs().max() < 1e-5


@pytest.mark.parametrize("count", [1, 11])
def test_scales_that_a_server_refuses_are_errors_with_its_words(
    count, sparrow, microllm, overlap
):
    levels = [f"Level {k} of the scale." for k in range(count)]
    for url in (sparrow, microllm, overlap):
        status, raw = sent(url, question(levels))
        if status == 200:  # a word counter takes up to 26
            assert (url, count) == (overlap, 11)
            continue
        assert status in (400, 422)
        assert "level" in str(raw) or "entries" in str(raw)


def test_an_empty_state_gets_a_score_from_three_of_four_and_is_never_sent(
    sparrow, microllm, fake, overlap
):
    names = (SPARROW, MICROLLM, "fake/demo", "mock-overlap")
    for name, url in zip(names, (sparrow, microllm, fake, overlap), strict=True):
        body = question(["No.", "Partly.", "Yes."], state="") | {"model": name}
        status, raw = sent(url, body)
        if url == overlap:
            assert (status, raw) == (400, {"error": "`state` must not be blank."})
            continue
        told = raw["answers"]["rating"]["probabilities"]
        assert status == 200
        assert sum(told.values()) == pytest.approx(1, abs=0.001)
    empty = ITEMS.head(6).copy()
    empty.loc[empty.index[2], "response"] = " "
    with pytest.raises(ValueError, match=r"'response'.* is empty"):
        check_items(empty, ITEMS.rubrics)


def test_a_body_that_is_too_large_is_one_error(overlap):
    """dev-double refuses more than 64 KiB with 413."""
    items = ITEMS.head(6).copy()
    items.loc[items.index[-1], "response"] = "word " * 20_000
    live = run(items, rb.fixed(5, 1), judge("mock-overlap", overlap, concurrency=1))
    assert live.status.tolist() == ["ok"] * 5 + ["error"]
