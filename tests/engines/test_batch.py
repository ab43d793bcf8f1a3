"""Batch files there and back, against a server that answers every line."""

import json
from functools import partial
from pathlib import Path

import pytest
import yaml
from endpoint import completion, endpoint, sent

import rubricnb as rb
from rubricnb.core.rendering import rendered
from rubricnb.core.run import RunInterrupted
from rubricnb.core.store import Store
from rubricnb.engines import batch
from studies.recording import record
from studies.study import batch_of

GOOD = completion("Fine. [RESULT] 2")
LABEL = [(" 2", {" 2": 0.6, " 1": 0.2, " 3": 0.1, " 4": 0.05, " 5": 0.01})]


@pytest.fixture(scope="module")
def items():
    return rb.load("minibench", n_items=5)


@pytest.fixture
def plan(items):
    return rb.plan(items, [rb.balanced(5), rb.fixed(5, 3)], readout="feedback")


@pytest.fixture
def served():
    """An endpoint: what it received, its spec,
    and a function that sends a batch file to it.
    """
    with endpoint(lambda payload, headers: (200, GOOD, {})) as (url, received):
        yield received, f"openai:m@{url}", partial(sent, url=url)


@pytest.fixture
def vllm():
    """A judge whose server does not run."""
    return rb.open_judge("openai:m@http://127.0.0.1:9/v1", server="vllm")


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("readout", "answer", "owner"),
    [
        ("feedback", GOOD, "someone"),
        ("score", completion('{"RESULT": "2"}'), "someone"),
        (
            "logprobs",
            completion("[RESULT] 2", tops=[("[RESULT]", {}), *LABEL]),
            "someone",
        ),
        ("score", completion(" 2"), "vllm"),
        ("logprobs", completion(" 2", tops=LABEL), "vllm"),
    ],
)
def test_after_a_round_trip_the_run_asks_nothing(
    items, tmp_path, readout, answer, owner
):
    plan = rb.plan(items, [rb.balanced(5), rb.fixed(5, 3)], readout=readout)
    with endpoint(lambda payload, headers: (200, answer, {}), owner) as (url, received):
        spec = f"openai:m@{url}"
        asked = rb.run(plan, spec, store=":memory:")
        [file] = rb.export_batch(plan, spec, tmp_path / "b.jsonl")
        lines = file.read_text().splitlines()
        assert len({json.loads(line)["custom_id"] for line in lines}) == len(lines)
        assert len(lines) == asked["key"].nunique()
        files = sent(file, url)
        counts = rb.import_batch(plan, spec, files)
        before = len(received)
        judgments = rb.run(plan, spec)
        assert len(received) == before
        assert rb.export_batch(plan, spec, tmp_path / "again.jsonl") == []
    assert counts["answered"] == len(lines)
    assert sum(counts.values()) == len(lines)
    assert judgments.drop(columns="seconds").equals(asked.drop(columns="seconds"))


def test_partial_files_and_failed_lines_leave_the_rest_to_the_run(
    plan, tmp_path, served
):
    received, spec, send = served
    [file] = rb.export_batch(plan, spec, tmp_path / "b.jsonl")
    keys = [json.loads(line)["custom_id"] for line in file.read_text().splitlines()]
    output, error = send(file, fail=keys[:3])
    whole = output.read_bytes()
    cut = whole.splitlines(keepends=True)[20]
    output.write_bytes(whole[: whole.index(cut) + 100])  # the download broke off
    counts = rb.import_batch(plan, spec, [error, output])
    n = len(keys)
    found = {what: number for what, number in counts.items() if number}
    assert found == {"answered": 20, "failed": 3, "missing": n - 23}
    output.write_bytes(whole)
    again = rb.import_batch(plan, spec, output)
    assert (again["known"], again["answered"], again["missing"]) == (20, n - 23, 3)
    before = len(received)
    assert (rb.run(plan, spec)["status"] == "ok").all()
    assert len(received) - before == 3


@pytest.mark.in_turn
def test_nobody_else_asks_what_a_batch_asks(
    plan, tmp_path, capsys, monkeypatch, served
):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    part = plan[plan["ordering_index"] <= 2]
    received, spec, send = served
    [file] = rb.export_batch(part, spec, tmp_path / "part.jsonl")
    n = len(file.read_text().splitlines())
    [other] = rb.export_batch(plan, spec, tmp_path / "rest.jsonl")
    assert (
        f"left out: {n} requests that the batch file {file} already asks"
        in capsys.readouterr().out
    )
    rest = len(other.read_text().splitlines())
    other.unlink()  # never sent: a run may ask it
    received.clear()
    judge = rb.open_judge(spec)
    judge.host = "judge.example.org"  # so that the run says what leaves this machine
    with pytest.raises(
        RunInterrupted, match=rf"^{n} requests are in {file}: import the answ"
    ):
        rb.run(plan, judge)
    assert f"is sent the texts of {rest} requests" in capsys.readouterr().out
    assert len(received) == rest
    with pytest.raises(RunInterrupted):  # nor does it ask failed or stored ones again
        rb.run(plan, spec)
    assert len(received) == rest
    output, _ = send(file)
    lines = output.read_bytes().splitlines(keepends=True)
    output.write_bytes(b"".join(lines[3:]))  # three never came back
    assert rb.import_batch(plan, spec, output)["answered"] == n - 3
    said = (
        "3 requests have no answer yet and stay with their batch. Once it has ended, "
        "release="
    )
    assert said in capsys.readouterr().out
    received.clear()
    with pytest.raises(
        RunInterrupted, match=r"3 requests are in .*release=True \(--release\)"
    ):
        rb.run(plan, spec)  # they may be paid, and still to come
    assert len(received) == 0
    counts = rb.import_batch(plan, spec, output, release=True)
    assert counts["missing"] == 3
    assert (rb.run(plan, spec)["status"] == "ok").all()
    assert len(received) == 3


@pytest.mark.in_turn
def test_a_download_that_was_cut_releases_nothing(plan, tmp_path, capsys, served):
    """Its last line proves it; and a page of a proxy is no output file,
    however short.
    """
    received, spec, send = served
    [file] = rb.export_batch(plan, spec, tmp_path / "b.jsonl")
    output, error = send(file)
    whole = output.read_bytes()
    n = len(whole.splitlines())
    lines = whole.splitlines(keepends=True)
    received.clear()
    output.write_bytes(b"".join(lines[:20]) + lines[20][:-30])
    assert rb.import_batch(plan, spec, [output, error])["missing"] == n - 20
    assert (
        f"stay with their batch, as {output} was cut: download it again"
        in capsys.readouterr().out
    )
    with pytest.raises(RunInterrupted, match=f"{n - 20} requests are in"):
        rb.run(plan, spec)
    with pytest.raises(
        ValueError, match=r"ends within a line, so its download was cut"
    ):
        rb.import_batch(plan, spec, [output, error], release=True)
    for page in (
        b"<html>Log in</html>",
        b"<html>\nLog in\n</html>",
        b"null",
        b"[]",
        b"Not found",
    ):
        output.write_bytes(page)
        with pytest.raises(
            ValueError, match=r"output\.jsonl, line 1: import the output and error"
        ):
            rb.import_batch(plan, spec, output, release=True)
    with pytest.raises(RunInterrupted):
        rb.run(plan, spec)
    # cut between two lines, which nothing shows
    output.write_bytes(b"".join(lines[:20]))
    rb.import_batch(plan, spec, output)
    with pytest.raises(RunInterrupted):
        rb.run(plan, spec)
    assert len(received) == 0
    output.write_bytes(whole)
    assert rb.import_batch(plan, spec, output)["answered"] == n - 20
    assert (rb.run(plan, spec)["status"] == "ok").all()
    assert len(received) == 0  # nothing was paid twice


def test_a_batch_is_written_whole_and_over_no_other(plan, tmp_path, monkeypatch, vllm):
    path = tmp_path / "b.jsonl"
    [file] = rb.export_batch(plan[plan["ordering_index"] <= 2], vllm, path)
    before = file.read_bytes()
    with pytest.raises(
        FileExistsError, match=r"b\.jsonl exists: its batch may be under way"
    ):
        rb.export_batch(plan, vllm, path)
    assert file.read_bytes() == before
    monkeypatch.setattr(batch, "MAX_REQUESTS", 10)
    (tmp_path / "c-2.jsonl").write_text("another's\n")
    with pytest.raises(FileExistsError):
        rb.export_batch(plan, vllm, tmp_path / "c.jsonl")
    assert sorted(p.name for p in tmp_path.glob("*.jsonl")) == ["b.jsonl", "c-2.jsonl"]
    # nobody holds c's requests
    files = rb.export_batch(plan, vllm, tmp_path / "d.jsonl")
    assert len(files[0].read_bytes().splitlines()) == 10
    monkeypatch.setattr(batch, "MAX_REQUESTS", 1000)
    for deleted in (path, *files):
        deleted.unlink()
    [file] = rb.export_batch(plan[plan["ordering_index"] > 4], vllm, path)
    again = rb.export_batch(
        plan[plan["ordering_index"] <= 2], vllm, tmp_path / "e.jsonl"
    )
    # the old b's requests are not the new's
    assert b"".join(map(Path.read_bytes, again)) == before


def test_a_failed_line_replaces_no_answer_whatever_the_order_of_the_files(
    plan, tmp_path, served
):
    _, spec, send = served
    [file] = rb.export_batch(plan, spec, tmp_path / "b.jsonl")
    output, _ = send(file)
    lines = [json.loads(line) for line in output.read_text().splitlines()]
    # What gateways put in place of an endpoint's own error.
    failed = {"response": {"status_code": 502, "body": "<html>bad gateway</html>"}}
    earlier = tmp_path / "earlier.jsonl"
    earlier.write_text("".join(json.dumps(line | failed) + "\n" for line in lines))
    for files in ([earlier, output], [output, earlier]):
        counts = rb.import_batch(
            plan, spec, files, tmp_path / f"{files[0].stem}.sqlite"
        )
        assert counts["answered"] == len(lines)
    with Store(tmp_path / "failed.sqlite") as store:
        assert rb.import_batch(plan, spec, earlier, store)["failed"] == len(lines)
        key = lines[0]["custom_id"]
        assert store.get([key])[key].error == "in the batch: <html>bad gateway</html>"


@pytest.mark.in_turn
def test_what_is_recorded_is_not_exported(plan, tmp_path, monkeypatch, served):
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    received, spec, _ = served
    judge = rb.open_judge(spec)
    part = plan[plan["ordering_index"] <= 2]
    facts = {"model": "m", "licence": "none", "spec": spec}
    record(rb.run(part, judge, store=":memory:"), judge, "study", **facts)
    [file] = rb.export_batch(plan, judge, tmp_path / "b.jsonl")
    received.clear()
    rb.run(plan, judge, store=":memory:")
    assert len(file.read_text().splitlines()) == len(received) < len(plan)
    assert rb.export_batch(part, judge, tmp_path / "c.jsonl") == []


@pytest.mark.in_turn
def test_lines_of_another_study_are_refused_and_nothing_of_the_file_is_kept(
    items, plan, tmp_path, served
):
    _, spec, send = served
    other = rb.plan(items, rb.balanced(5), readout="feedback", temperature=1.0)
    output, _ = send(rb.export_batch([plan, other], spec, tmp_path / "b.jsonl")[0])
    with pytest.raises(
        ValueError, match=r"does not match any request in this plan by http.* m"
    ):
        rb.import_batch(plan, spec, output)
    with Store() as store:
        assert len(store) == 0
    assert rb.import_batch([plan, other], spec, output)["answered"] > len(items) * 10
    output.write_text('{"this": "is no answer"}\n')
    with pytest.raises(ValueError, match=r"output\.jsonl, line 1: import the output"):
        rb.import_batch(plan, spec, output)


def test_two_answers_to_one_request_are_refused_where_they_differ(
    plan, tmp_path, served
):
    _, spec, send = served
    [file] = rb.export_batch(plan, spec, tmp_path / "b.jsonl")
    assert file.stat().st_mode & 0o777 == 0o600
    output, _ = send(file)
    lines = output.read_text().splitlines(keepends=True)
    other = tmp_path / "other.jsonl"
    other.write_text(lines[7].replace("[RESULT] 2", "[RESULT] 5"))
    key = json.loads(lines[7])["custom_id"]
    for files in ([output, other], [other, output]):
        with pytest.raises(
            ValueError, match=rf"line .*: two answers to '{key}' differ"
        ):
            rb.import_batch(plan, spec, files)
    with Store() as store:
        assert len(store) == 0
    assert rb.import_batch(plan, spec, [output, output])["answered"] == len(lines)


def test_a_file_that_holds_no_answers_is_named(plan, tmp_path, vllm):
    [file] = rb.export_batch(plan, vllm, tmp_path / "b.jsonl")
    with pytest.raises(
        ValueError,
        match=r"b\.jsonl, line 1: import the output and error files of a batch",
    ):
        rb.import_batch(plan, vllm, file)
    with Store() as store:
        assert len(store) == 0
        assert len(store.in_batches([r.key for r in rendered(plan, vllm)])) > 0


def test_files_are_split_at_the_limits_of_the_api(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "MAX_REQUESTS", 20)
    files = rb.export_batch(plan, "openai:gpt-4.1", tmp_path / "b.jsonl")
    assert [f.name for f in files] == ["b.jsonl", "b-2.jsonl", "b-3.jsonl"]
    sizes = [f.stat().st_size for f in files]
    lines = [line for f in files for line in f.read_text().splitlines()]
    assert len(lines) == 60
    for file in files:
        file.unlink()
    monkeypatch.setattr(batch, "MAX_REQUESTS", 50_000)
    monkeypatch.setattr(batch, "MAX_BYTES", max(sizes))
    files = rb.export_batch(plan, "openai:gpt-4.1", tmp_path / "c.jsonl")
    assert all(f.stat().st_size <= max(sizes) for f in files)
    assert [line for f in files for line in f.read_text().splitlines()] == lines


def test_what_one_call_cannot_ask_is_said_before_anything_is_written(
    items, tmp_path, vllm
):
    several = rb.plan(
        rb.load("minibench", n_items=15),
        rb.balanced(3),
        readout="logprobs",
        template="criteria",
    )
    plain = rb.plan(items, rb.balanced(5), readout="score", prompt_format="plain")
    for plan, why in (
        (several, "need one call each"),
        (plain, "does not support plain prompts"),
    ):
        with pytest.raises(ValueError, match=why):
            rb.export_batch(plan, vllm, tmp_path / "b.jsonl")
    with pytest.raises(ValueError, match="simulated:unbiased is not an endpoint"):
        rb.export_batch(several, "simulated:unbiased", tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


def test_a_label_of_several_tokens_is_left_to_the_run(items, tmp_path):
    plan = rb.plan(
        items, rb.permutation.single(range(1, 6)), readout="logprobs", labels="roman"
    )
    answer = completion(" i", tops=[(" i", {" i": 0.9, " v": 0.1})])
    with endpoint(lambda payload, headers: (200, answer, {}), "vllm") as (url, _):
        spec = f"openai:m@{url}"
        output, _ = sent(rb.export_batch(plan, spec, tmp_path / "b.jsonl")[0], url)
        assert rb.import_batch(plan, spec, output)["unfinished"] == 5


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "params").mkdir()

    def write(*judges, **content):
        judges = [{"licence": "none"} | judge for judge in judges]
        plan = {
            "dataset": "minibench",
            "n_items": 5,
            "designs": ["single([1, 2, 3, 4, 5])"],
        }
        content = content or {"plans": [plan | {"readout": "score"}]}
        file = tmp_path / "params/mine.yml"
        file.write_text(yaml.safe_dump({"judges": judges} | content))

    return write


def test_a_batch_has_the_plans_of_all_entries_of_a_judge(study):
    low, high = (
        {"spec": "openai:m", "model": effort, "conditions": {"effort": effort}}
        for effort in ("low", "high")
    )
    study(low, high)
    _, plans = batch_of("mine")
    assert [str(plan["effort"].iloc[0]) for plan in plans] == ["low", "high"]
    study(low, high | {"options": {"extra": {"top_p": 1}}})
    with pytest.raises(ValueError, match="openai:m with several options"):
        batch_of("mine")


MESSAGE = {"role": "assistant", "content": "[RESULT] 4"}
ENVELOPES = {
    "the body without a wrapper": {
        "response": {"model": "m", "choices": [{"message": MESSAGE}]}
    },
    "a status in words": {
        "response": {
            "status_code": "200",
            "body": {"model": "m", "choices": [{"message": MESSAGE}]},
        }
    },
    "/v1/responses": {
        "response": {
            "status_code": 200,
            "body": {
                "object": "response",
                "model": "m",
                "status": "completed",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {
                        "type": "message",
                        "content": [{"type": "output_text", "text": "[RESULT] 4"}],
                    },
                ],
            },
        }
    },
    "Anthropic": {
        "result": {
            "type": "succeeded",
            "message": {
                "model": "m",
                "content": [
                    {"type": "thinking", "thinking": "[RESULT] 1"},
                    {"type": "text", "text": "[RESULT] 4"},
                ],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 9, "output_tokens": 3},
            },
        }
    },
    "Gemini": {
        "response": {
            "modelVersion": "m",
            "candidates": [
                {"content": {"parts": [{"text": "[RESULT] 4"}]}, "finishReason": "STOP"}
            ],
        }
    },
}


@pytest.mark.parametrize("form", ENVELOPES)
def test_paid_answers_in_other_envelopes_are_read_and_not_asked_again(
    items, tmp_path, form
):
    plan = rb.plan(items, rb.fixed(5, 1), readout="feedback")
    with endpoint(lambda payload, headers: (200, GOOD, {})) as (url, received):
        judge, store = f"openai:m@{url}", tmp_path / "s.sqlite"
        [file] = rb.export_batch(plan, judge, tmp_path / "b.jsonl", store)
        keys = [json.loads(line)["custom_id"] for line in file.read_text().splitlines()]
        name = "key" if form == "Gemini" else "custom_id"
        lines = [json.dumps({name: key, **ENVELOPES[form]}) for key in keys]
        (tmp_path / "out.jsonl").write_text("\n".join(lines) + "\n")
        counts = rb.import_batch(plan, judge, tmp_path / "out.jsonl", store)
        assert counts["answered"] == len(keys)
        got = rb.run(plan, judge, store=store)
        assert set(got.score) == {4}
        assert not [one for one in received if "messages" in str(one)]
