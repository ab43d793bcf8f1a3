"""A stranger's names are written out in what Python prints and in its errors.

Every door that reads a file gets names with control characters: of columns, of keys and
in cells, each in ways that make it print or fail.
"""

import json
import re
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

import rubricnb as rb
from rubricnb.auditing import read_audit
from rubricnb.files.rubrics import read_rubrics
from rubricnb.rulers import load_bundle

# The title of the window, a C1 introducer, two changes of direction, a line's begin.
H = "\x1b]0;owned\x07\x9b31m\u202egpj\u2066\r"
ACTS = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028]"
)
LOG = [
    {"item_id": f"i{k}", "judge": "m", "criterion": "c", "score": k % 5 + 1, "human": 2}
    for k in range(6)
]
TEXTS = [
    {"instruction": "q", "response": f"r{k}", "human": k % 2 + 1, "group_id": f"g{k}"}
    for k in range(4)
]
RUBRIC = {"criterion": "c", "definition": "d", "levels": {1: "a", 2: "b"}}


def damaged(rows, more):
    """Rows with a hostile name: of each column, in all its cells, in one, beside."""
    for own in [*rows[0], *more]:
        yield [{(H + k if k == own else k): v for k, v in row.items()} for row in rows]
        yield [row | {own: H + str(row.get(own, ""))} for row in rows]
        yield [row | ({own: H} if k == 2 else {own: 1}) for k, row in enumerate(rows)]
        yield [row | {own: {H: [H]}} for row in rows]


def rubrics():
    for key in RUBRIC:
        yield [{(H + k if k == key else k): v for k, v in RUBRIC.items()}]
        yield [RUBRIC | {key: H}]
    yield from ([RUBRIC | {key: {H: H}}] for key in ("levels", "values", "paraphrased"))
    yield [RUBRIC | {"rubric_id": H}] * 2
    yield from ({H: 1}, [H], [RUBRIC | {"weight": H, H: 1}])


LOGS = (
    {H: 1},
    [H],
    {"eval": {"scorers": [{"name": H}], "model": H, "task": H},
     "samples": [{"id": H, "epoch": 1, "scores": {H: {"value": {H: 1}}}}]},
    {"results": {"results": [{"gradingResult": {"componentResults": [
        {"assertion": {"type": H, "value": H}, "score": H}]}, "vars": {H: H}}]}},
    {"testCases": [{"name": H, "metricsData": [
        {"name": H, "score": 0.5, "evaluationModel": H, "error": H}]}]},
    [{"item_idx": H, "report": {"report": [{"name": H, "verdict": H}]}}],
)  # fmt: skip


def files_of(rows):
    Path("a.json").write_text(json.dumps(rows))
    pd.DataFrame(rows).to_csv("a.csv", index=False)
    return "a.json", "a.csv", pd.DataFrame(rows)


def tables_of_judgments():
    more = ("ordering", "status", "human_ratings", "error", "probability_1", "text_id")
    for rows in damaged(LOG, more):
        for table in files_of(rows):
            yield lambda table=table: rb.judgments(table, scale=(1, 5))
            yield lambda table=table: str(rb.reading(table, scale=(1, 5)))
            yield lambda table=table: rb.audit(judgments=table, scale=(1, 5))
    two = [{"item_id": k, "score": 3, "judge": f"{H}{k % 2}"} for k in range(20)]
    for table in files_of(two):
        yield lambda table=table: rb.audit(judgments=table, scale=(1, 5))


def tables_of_texts():
    for rows in damaged(TEXTS, ("rubric_id", "human_ratings", "reference_1", "gold")):
        for table in files_of(rows):
            yield lambda table=table: rb.load("csv", path=table, rubric=RUBRIC)


def rubrics_of_all_kinds():
    for content in rubrics():
        Path("r.yml").write_text(yaml.safe_dump(content))
        yield lambda: read_rubrics("r.yml")
        yield lambda content=content: read_rubrics(content)
        yield lambda: rb.load("csv", path=pd.DataFrame(TEXTS), rubric="r.yml")


def logs_and_what_is_none():
    for document in LOGS:
        Path("d.json").write_text(json.dumps(document))
        yield lambda: rb.judgments("d.json")
        yield lambda: str(rb.reading("d.json"))
        yield lambda: read_audit("d.json")
    with zipfile.ZipFile("z.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {H: 1}}))
        archive.writestr(f"samples/{H}.json", "{" + H)
    yield lambda: rb.judgments("z.eval")
    for ending in ("json", "jsonl", "csv", "parquet", "eval", "yml"):
        Path(f"{H}.{ending}").write_text("{" + H)
        yield lambda ending=ending: rb.judgments(f"{H}.{ending}")
        yield lambda ending=ending: read_rubrics(f"{H}.{ending}")
        yield lambda ending=ending: read_audit(f"{H}.{ending}")


def batches():
    requests = rb.plan(
        rb.load("minibench", n_items=5), rb.fixed(5, 1), readout="feedback"
    )
    plan = requests, "openai:gpt-4.1"
    [file] = rb.export_batch(*plan, "b.jsonl", "s.sqlite")
    one, two, *_ = [json.loads(x)["custom_id"] for x in file.read_text().splitlines()]

    def answer(key, text, model="gpt-4.1"):
        choice = {"finish_reason": "stop", "message": {"content": f"{text} [RESULT] 4"}}
        body = {"model": model, "choices": [choice]}
        return {"custom_id": key, "response": {"status_code": 200, "body": body}}

    for lines in (
        [H],
        [{H: 1}],
        [{"custom_id": H, "response": {}}],
        [{"custom_id": one, "error": {"message": H, H: H}}],
        [{"custom_id": one, "response": {"status_code": H, "body": {H: H}}}],
        [{"custom_id": one, "response": {"status_code": 200, "body": {"choices": H}}}],
        [answer(one, "a", H), answer(two, "b", f"b{H}")],
        [answer(one, H), answer(one, "b")],
        ['{"custom_id": "'],  # a download that was cut
    ):
        for name in ("o.jsonl", f"{H}.jsonl"):
            Path(name).write_text("\n".join(map(json.dumps, lines)))
            if lines[0] == '{"custom_id": "':
                Path(name).write_text(lines[0])
            for release in (False, True):
                yield lambda name=name, release=release: rb.import_batch(
                    *plan, name, "t.sqlite", release
                )
    yield lambda: rb.import_batch(*plan, f"no{H}.jsonl", "t.sqlite")
    yield lambda: rb.export_batch(*plan, f"{H}.jsonl", "u.sqlite")


def bundles():
    load_bundle("minibench").save("b.json")
    good, lock = (json.loads(Path(f"b{e}.json").read_text()) for e in ("", ".lock"))
    trait, item = good["traits"][0], good["checklist"][0]
    damaged = [{(H + k if k == own else k): v for k, v in good.items()} for own in good]
    damaged += [good | {own: value} for own in good for value in (H, [H], {H: H})]
    for name, one in (("traits", trait), ("checklist", item)):
        for own in one:
            renamed = {(H + k if k == own else k): v for k, v in one.items()}
            rest = good[name][1:]
            damaged += [good | {name: [renamed, *rest]}]
            damaged += [good | {name: [one | {own: H}, *rest]}]
            damaged += [good | {name: [one | {own: H}, one | {own: H}, *rest]}]
    few = trait | {"name": H, "levels": trait["levels"][:2]}
    damaged += [good | {"traits": [few]}, good | {H: H}, [H]]
    for content in damaged:
        for locked in (True, False):
            Path("b.json").write_text(json.dumps(content))
            yield lambda locked=locked: load_bundle("b.json", locked=locked)
    Path("b.json").write_text(json.dumps(good))
    for content in (lock | {"sha256": H}, lock | {H: H}, {H: H}, [H]):
        Path("b.lock.json").write_text(json.dumps(content))
        yield lambda: load_bundle("b.json")
    other = good | {"traits": [trait | {"name": H}, *good["traits"][1:]]}
    Path("minibench-paraphrased.json").write_text(json.dumps(other))
    paraphrased = load_bundle("minibench-paraphrased.json", locked=False)
    paraphrased.save("minibench-paraphrased.json")
    yield lambda: paraphrased.in_variant("paraphrased")
    yield lambda: load_bundle("b.json", locked=False).in_variant(H)
    for text in ("{" + H, "", "\ud83d"):
        Path(f"{H}.json").write_text(text.encode("utf-8", "replace").decode())
        yield lambda: load_bundle(f"{H}.json")
    Path(f"{H}.json").write_text(json.dumps(good))
    yield lambda: load_bundle(f"{H}.json")  # no lock


def files_that_are_not_there():
    for ending in ("json", "jsonl", "csv", "parquet", "eval", "yml", "txt"):
        name = f"no{H}.{ending}"
        yield lambda name=name: rb.judgments(name)
        yield lambda name=name: rb.reading(name)
        yield lambda name=name: rb.load("csv", path=name)
        yield lambda name=name: read_rubrics(name)
        yield lambda name=name: read_audit(name)
        yield lambda name=name: load_bundle(name)
        yield lambda name=name: rb.reading(pd.DataFrame(LOG), decide=name).result()


def decisions():
    for line in (f"{H} role: score", H, f"score {H}: x", f"score role: {H}"):
        yield lambda line=line: rb.reading(pd.DataFrame(LOG), decide=[line]).result()


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "door",
    [
        tables_of_judgments,
        tables_of_texts,
        rubrics_of_all_kinds,
        logs_and_what_is_none,
        decisions,
        batches,
        bundles,
        files_that_are_not_there,
    ],
)
def test_names_of_a_file_are_written_out_by_every_door(
    door, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    said = []
    for number, attempt in enumerate(door()):
        try:
            attempt()
        except Exception as error:
            while error is not None:  # a traceback prints these
                said.append((number, f"{type(error).__name__}: {error}"))
                hidden = error.__suppress_context__
                error = error.__cause__ or (None if hidden else error.__context__)
        said.append((number, capsys.readouterr().out))
    assert not [text for text in said if ACTS.search(text[1])]
    # and it was quoted: the test would see nothing where nobody names it
    assert sum("\\u202e" in text for _, text in said) >= 2
