"""A recording from elsewhere is taken in as it is,
or refused with a sentence that says where.
"""

import json
import re
import shutil
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rubricnb.core.results import judges, results_folder
from rubricnb.files import tables
from studies import __main__ as asking
from studies.contribution import problems, shows
from studies.recording import counts_of, write_card

SLUG = "qwen2.5-coder-1.5b-instruct-embedded"
NAME = "minibench.parquet"


def carded(folder, **facts):
    """Write the card of a folder, as `record` does."""
    row = judges().set_index("slug").loc[folder.name]
    judge = SimpleNamespace(slug=folder.name, identity=row["identity"])
    counts = {p.stem: counts_of(p) for p in sorted(folder.glob("*.parquet"))}
    who = {
        "spec": row["spec"],
        "model": row["model"],
        "licence": row["licence"],
        "conditions": {},
    }
    write_card(folder, judge, counts, **who | facts)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A real recording: three answers under all 120 orders of their rubric,
    by the 1.5B judge.
    """
    real = results_folder()
    (tmp_path / "results").mkdir()
    shutil.copy(real / "judges.csv", tmp_path / "results")
    (tmp_path / "params").symlink_to(real.parent / "params")
    folder = tmp_path / "results" / "every-order" / SLUG
    shutil.copytree(real / "every-order" / SLUG, folder)
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    carded(folder)
    return folder


def test_a_real_recording_is_taken_in_and_the_command_says_what_it_shows(folder):
    assert problems(folder) == []
    done = CliRunner().invoke(asking.app, ["check", str(folder)])
    assert done.exit_code == 0, done.output
    assert "matches its study and its run.json" in done.output
    assert "will rewrite in results/: replication.csv" in done.output
    assert "first" in done.output


def test_a_recording_that_would_fill_the_memory_is_refused_by_name(folder, monkeypatch):
    """A few bytes of a column may stand for gigabytes: here a bound is lowered."""
    monkeypatch.setattr(tables, "_MOST_BYTES", 10_000)
    (said, *_) = problems(folder)
    assert re.search(
        r"minibench\.parquet has [\d,]+ bytes of values, .*more than 10,000", said
    )


def test_of_several_criteria_at_once_the_one_that_lacks_an_answer_is_named(tmp_path):
    real = results_folder() / "minibench" / "smollm2-135m-instruct-embedded"
    folder = shutil.copytree(real, tmp_path / "minibench" / real.name)
    frame = pd.read_parquet(folder / NAME)
    row = frame["criterion_position"].eq(3).idxmax()
    frame.drop(index=row).to_parquet(folder / NAME, index=False)
    carded(folder)
    [said] = problems(folder)
    assert said.startswith(f"{NAME}: 1 of ")
    assert frame["item_id"][row] in said


def put(**values):
    """Say how to write other values into row 8; a function of the frame gives one."""

    def change(frame):
        new = {name: v(frame) if callable(v) else v for name, v in values.items()}
        for name, value in new.items():
            if frame[name].dtype == "category":
                frame[name] = frame[name].astype(object)
            frame.loc[7, name] = value

    return change


def swapped(k):
    return lambda frame: frame[f"probability_{6 - k}"][7]


CHANGES = {
    r"row 8: score \d is not at place \d of [1-5-]+$": put(
        score=lambda f: f["score"][7] % 5 + 1
    ),
    r"row 8: place \d was taken, which is not the most probable": put(
        position=lambda f: f["position"][7] % 5 + 1,
        score=lambda f: int(f["ordering"][7].split("-")[int(f["position"][7]) % 5]),
    ),
    "row 8: score 7 is not on the scale": put(score=7),
    "row 8: status is 'ok', and the score None": put(score=None, position=None),
    r"row 8: its probabilities sum to 1\.5": put(
        probability_1=lambda f: f["probability_1"][7] + 0.5
    ),
    r"row 8: expected_score is \d\.\d+, and \d\.\d+ by its probabilities": put(
        **{f"probability_{k}": swapped(k) for k in range(1, 6)}
    ),
    r"row 8: ordering is '[1-5-]+', and '[1-5-]+' in the plan": put(
        ordering=lambda f: f["ordering"][8]
    ),
    r"row 8: request \d+ is not in the study's plan": put(
        request_id=lambda f: f["request_id"][7] ^ 1
    ),
    r"row 8: the key 0{12}… is not that of its prompt to 'llama\.cpp": put(
        key="0" * 64
    ),
    "row 8: cluster_id is 'minibench/elsewhere', not 'minibench/exam-sleep'": put(
        cluster_id="minibench/elsewhere"
    ),
    f"row 8: judge is 'me', not '{SLUG}'": put(judge="me"),
    "column 'answer' is not a column of judgments; a recording must not hold "
    "texts": lambda frame: frame.insert(0, "answer", "Clear."),
    "judgments lack the column 'key'": lambda frame: frame.pop("key"),
}


@pytest.mark.parametrize("message", CHANGES)
def test_one_changed_row_is_refused_and_named(folder, message):
    frame = pd.read_parquet(folder / NAME)
    CHANGES[message](frame)
    frame.to_parquet(folder / NAME, index=False)
    found = pd.Series(problems(folder))
    assert found.str.startswith(f"{NAME}: ").all()
    assert found.str.contains(message).sum() == 1, list(found)
    assert "key" not in frame or found.str.startswith(f"{NAME}: sha256 is ").sum() == 1


def test_a_value_that_breaks_a_check_is_said_beside_the_check_it_fails(folder):
    frame = pd.read_parquet(folder / NAME)
    put(ordering="a-b")(frame)
    frame.to_parquet(folder / NAME, index=False)
    found = "; ".join(problems(folder))
    assert "row 8: ordering is 'a-b', and '" in found
    assert f"{NAME}: it is damaged or forged (" in found


def test_a_card_that_was_written_anew_does_not_hide_a_changed_row(folder):
    frame = pd.read_parquet(folder / NAME)
    frame[::-1].to_parquet(folder / NAME, index=False)
    [said] = problems(folder)
    # rows in another order are another file
    assert said.startswith(f"{NAME}: sha256 is ")
    message, change = next(iter(CHANGES.items()))
    change(frame)
    frame.to_parquet(folder / NAME, index=False)
    carded(folder)
    done = CliRunner().invoke(asking.app, ["check", str(folder)])
    assert done.exit_code == 1
    assert f"error: {folder} has these problems:" in done.output
    assert re.search(f"^  {NAME}: {message}", done.output, re.M)


def test_a_missing_and_a_doubled_row_are_refused(folder):
    frame = pd.read_parquet(folder / NAME)
    frame.drop(index=7).to_parquet(folder / NAME, index=False)
    carded(folder)
    [said] = problems(folder)
    order = frame["ordering"][7]
    assert said.startswith(
        f"{NAME}: 1 of 360 requests of the plan lack an answer, the first is "
    )
    assert (
        f"{frame['item_id'][7]}, shuffled, {order}, read {frame['ordering_index'][7]}"
        in said
    )
    pd.concat([frame, frame[7:8]]).to_parquet(folder / NAME, index=False)
    carded(folder)
    [said] = problems(folder)
    assert said == f"{NAME}: row 361: request {frame['request_id'][7]} appears twice"


def test_another_identity_is_refused_whatever_the_table_of_judges_says(folder):
    path, table = folder / "run.json", results_folder() / "judges.csv"
    old = json.loads(path.read_text())["identity"]
    path.write_text(path.read_text().replace(old, "better weights"))
    [said] = problems(folder)
    assert said.startswith(
        "run.json: identity is 'better weights', but results/judges.csv records "
    )
    table.write_text(table.read_text().replace(old, "better weights"))
    [said] = problems(folder)
    assert said.startswith(f"{NAME}: no key is that of a prompt to 'better weights'")


def test_what_the_card_says_is_counted_again(folder):
    path = folder / "run.json"
    card = json.loads(path.read_text())
    counts = card["datasets"]["minibench"]
    counts["status"] = {"ok": 359}
    counts["positions"]["shuffled"]["1"] += 1
    del counts["prompt_tokens"]
    path.write_text(json.dumps(card))
    said = problems(folder)
    assert f"{NAME}: run.json says no prompt_tokens" in said
    assert f"{NAME}: status is ok: 360, and run.json says ok: 359" in said
    n = counts["positions"]["shuffled"]["1"]
    assert (
        f"{NAME}: positions is shuffled: 1: {n - 1}, and run.json says shuffled: 1: {n}"
        in said
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "run.json").unlink(), "has no run.json"),
        (lambda f: (f / "run.json").write_text("{"), "run.json is not a card"),
        (lambda f: (f / "run.json").write_text("[" * 99999), "run.json is not a card"),
        (
            lambda f: carded(f, conditions=[]),
            "datasets or question are not a JSON object",
        ),
        (
            lambda f: (f / "run.json").write_text("{}"),
            "run.json lacks judge, identity, spec",
        ),
        (
            lambda f: carded(f, conditions={"labels": "letter"}),
            "condition 'labels' that a study cannot set",
        ),
        (
            lambda f: (f / "texts.jsonl").write_text("{}"),
            "texts.jsonl: a recording is run.json",
        ),
        (lambda f: (f / NAME).unlink(), "minibench is not in a file"),
        (
            lambda f: shutil.copy(f / NAME, f / "vicuna.parquet"),
            "vicuna is not in the study's pl",
        ),
        (lambda f: (f / NAME).write_bytes(b"PAR1"), NAME),
        (
            lambda f: carded(f, conditions={"temperature": 1.0}),
            "request .* is not in the study's",
        ),
    ],
)
def test_what_is_no_recording_of_the_study_is_said(folder, change, message):
    change(folder)
    assert pd.Series(problems(folder)).str.contains(message).any(), problems(folder)


SMUGGLED = "a letter to a friend, at some length, that nobody asked for"


def rewritten(change):
    """Write the recording's table with something beside its rows,
    and a card that fits.
    """

    def write(folder):
        pq.write_table(
            change(pq.read_table(folder / NAME)), folder / NAME, compression="zstd"
        )
        carded(folder)

    return write


def framed(change):
    def write(folder):
        frame = change(pd.read_parquet(folder / NAME))
        frame.to_parquet(
            folder / NAME, index=frame.columns.name is not None, compression="zstd"
        )
        carded(folder)

    return write


def noted_in_a_column(table):
    field = table.schema.field("score").with_metadata({"note": SMUGGLED})
    return table.cast(table.schema.set(table.schema.get_field_index("score"), field))


TWICE = f'{{"columns": "{SMUGGLED}", '.encode()


def noted(table, text):
    return table.replace_schema_metadata({**table.schema.metadata, b"pandas": text})


def packed(folder, entry=""):
    """Write the schema's note by hand,
    and a column's dictionary with an entry of its own.
    """
    path = folder / NAME
    pq.write_table(table := pq.read_table(path), path)
    notes = dict(pq.read_metadata(path).metadata)
    keys = table.column("key").combine_chunks().dictionary_encode()
    words = pa.concat_arrays(
        [keys.dictionary, pa.array([entry] if entry else [], keys.dictionary.type)]
    )
    keys = pa.DictionaryArray.from_arrays(keys.indices, words)
    plain = table.set_column(table.schema.get_field_index("key"), "key", keys)
    plain = plain.replace_schema_metadata(None)
    with pq.ParquetWriter(path, plain.schema, store_schema=False) as writer:
        writer.write_table(plain)
        writer.add_key_value_metadata(notes)
    carded(folder)


def with_attributes(frame):
    frame.attrs["note"] = SMUGGLED
    return frame


def with_a_status(frame):
    status = frame["status"].astype(object).where(frame.index != 7, SMUGGLED)
    score = frame["score"].where(frame.index != 7)
    return frame.assign(
        status=status, score=score, position=frame["position"].where(score.notna())
    )


def padded(path):
    """Bytes between the columns and the footer: readers jump over them."""
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    path.write_bytes(content[:-footer] + SMUGGLED.encode() + content[-footer:])
    carded(path.parent)


def keyed(*where, value=SMUGGLED):
    def write(folder):
        part = card = json.loads((folder / "run.json").read_text())
        for key in where[:-1]:
            part = part[key]
        part[where[-1]] = value
        (folder / "run.json").write_text(json.dumps(card, indent=1) + "\n")

    return write


def beside(name):
    return lambda folder: (folder / name).write_text(SMUGGLED)


def said_twice(folder):
    path = folder / "run.json"
    path.write_text(path.read_text().replace("{", f'{{\n "judge": "{SMUGGLED}",', 1))


SMUGGLING = {
    "another table": beside("notes.csv"),
    "a lock": beside(".lock"),
    "a link": lambda f: (f / ".lock").symlink_to("/etc/hostname"),
    "a key of the card": keyed("note"),
    "a count": keyed("datasets", "minibench", "status", SMUGGLED, value=1),
    "a key twice": said_twice,
    "the machine": keyed("machine"),
    "the licence": keyed("licence", value=SMUGGLED * 9),
    "a condition": keyed("conditions", "effort", value=SMUGGLED * 9),
    "a note of the file": rewritten(
        lambda t: t.replace_schema_metadata(
            {**t.schema.metadata, b"note": SMUGGLED.encode()}
        )
    ),
    "a note of a column": rewritten(noted_in_a_column),
    "a note twice": rewritten(
        lambda t: noted(t, t.schema.metadata[b"pandas"].replace(b"{", TWICE, 1))
    ),
    "an entry that no row has": lambda f: packed(f, entry=SMUGGLED),
    "attributes": framed(with_attributes),
    "the columns' name": framed(lambda t: t.rename_axis(columns=SMUGGLED)),
    "a category": framed(
        lambda t: t.assign(design=t["design"].cat.add_categories([SMUGGLED]))
    ),
    "a status": framed(with_a_status),
    "bytes between columns": lambda f: padded(f / NAME),
}


@pytest.mark.parametrize("place", SMUGGLING)
def test_a_text_that_rides_along_is_refused(folder, place):
    SMUGGLING[place](folder)
    found = problems(folder)
    assert found
    assert all(len(said) < 600 for said in found)


def test_what_is_written_again_as_it_was_is_taken_in(folder):
    framed(lambda table: table)(folder)
    rewritten(lambda table: table)(folder)
    packed(folder)
    (folder / ".lock").write_text("")
    assert problems(folder) == []


def test_a_recording_of_several_plans_on_a_gpu_is_taken_in(folder):
    """Only some of a file's plans have an order of criteria; a card names the GPU."""
    frame = pd.read_parquet(folder / NAME)
    frame["criterion_ordering"] = pd.Series(None, frame.index, "str")

    def found():
        frame.to_parquet(folder / NAME, index=False)
        carded(folder)
        card = json.loads((folder / "run.json").read_text("utf-8"))
        card["machine"] += "; NVIDIA H100 80GB HBM3, driver 580.159.04"
        text = json.dumps(card, indent=1) + "\n"
        (folder / "run.json").write_text(text, "utf-8")
        return problems(folder)

    assert found() == []
    frame.loc[7, "criterion_ordering"] = "1-2"
    (said,) = found()
    assert "column 'criterion_ordering' is not a column of judgments" in said


def test_a_table_of_references_is_read_cell_by_cell(tmp_path):
    real = results_folder() / "scoring" / "smollm2-135m-instruct-embedded"
    folder = shutil.copytree(real, tmp_path / "scoring" / real.name)
    carded(folder)
    path = folder / "references-minibench.csv"

    def wrong():
        return [said for said in problems(folder) if path.name in said]

    assert wrong() == []
    text = path.read_text()
    path.write_text(text.replace(",ok,", f",{SMUGGLED.replace(',', ';')},", 1))
    [said] = wrong()
    assert "row 1: status is 'a letter" in said
    path.write_text(text.replace("characters\n", "characters,note\n", 1))
    [said] = wrong()
    assert "its columns are item_id, " in said


def test_a_folder_that_is_named_after_another_judge_or_study_is_refused(folder):
    moved = folder.rename(folder.with_name("gpt-4.1"))
    assert problems(moved) == [f"run.json names '{SLUG}', but the folder is 'gpt-4.1'"]
    other = shutil.copytree(moved, moved.parents[1] / "nowhere" / SLUG)
    assert problems(other)[0].startswith("no study 'nowhere' in ")


def test_only_tables_that_get_rows_are_named(folder):
    findings, tables = shows(folder)
    assert set(findings["judge"]) == {judges().set_index("slug")["name"][SLUG]}
    assert tables == ["replication.csv"]  # one design that no table reads


@pytest.mark.parametrize("name", ["model", "licence"])
def test_a_name_of_the_judge_or_its_licence_has_200_characters(folder, name):
    said = f"run.json: {name} is longer than 200 characters"
    for length, is_refused in ((200, False), (201, True)):
        carded(folder, **{name: "x" * length})
        assert any(one.startswith(said) for one in problems(folder)) == is_refused
