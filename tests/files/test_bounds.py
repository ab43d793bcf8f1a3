"""Files that are odd or would fill the memory: read,
or refused at once with what to do.
"""

import json
import resource
import sys
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from rubricnb.files import logs, tables
from rubricnb.files.tables import read_records, read_rows, read_table, read_text

NUL = "\0"


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_zero_byte_in_a_utf_8_file_does_not_make_it_another_encoding(
    ending, tmp_path, capsys
):
    file = tmp_path / f"a.{ending}"
    text = {
        "csv": f"text,score\nGr{NUL}üße 字 🦀,4\n",
        "jsonl": json.dumps({"text": "Grüße 字 🦀", "score": "4"}),
    }
    file.write_bytes((text[ending] + ("" if ending == "csv" else NUL)).encode())
    assert read_table(file, ["text"], ["score"]).values.tolist() == [
        ["Grüße 字 🦀", 4.0]
    ]
    assert "read as" not in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_half_of_the_bytes_zero_is_another_encoding(encoding, tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes("text,score\nGood morning to all of you,4\n".encode(encoding))
    assert "Good morning" in read_text(file)


@pytest.mark.in_turn
def test_a_table_of_very_many_columns_is_refused_at_once(tmp_path):
    names = [f"c{n}" for n in range(20_000)]
    (wide := tmp_path / "wide.csv").write_text(
        f"{','.join(names)}\n{','.join('1' for _ in names)}\n"
    )
    (lines := tmp_path / "wide.jsonl").write_text(json.dumps(dict.fromkeys(names, 1)))
    parquet.write_table(
        pa.table({n: [1] for n in names[:5001]}), columns := tmp_path / "w.parquet"
    )
    for file in (wide, lines, columns):
        with pytest.raises(
            ValueError, match=r"has (20,000|5,001) columns, more than 5,000: keep"
        ):
            read_rows(file)
    (fair := tmp_path / "fair.csv").write_text(
        f"{','.join(names[:900])}\n{','.join('1' for _ in range(900))}\n"
    )
    assert read_rows(fair).shape == (1, 900)
    (twice := tmp_path / "twice.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(ValueError, match="two columns 'a'"):
        read_rows(twice)


def text():
    rows = pa.array(np.zeros(300_000, "int32"))
    return pa.table(
        {"text": pa.DictionaryArray.from_arrays(rows, pa.array(["x" * 10_000]))}
    )


def numbers():
    return pa.table({"n": np.zeros(51_000_000, "int8")})


def lists():
    values = pa.array(np.zeros(51_000_000, "int8"))
    return pa.table(
        {"l": pa.ListArray.from_arrays(pa.array([0, 51_000_000], "int32"), values)}
    )


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("bomb", "schema", "has"),
    [
        (text, False, r"[\d,]+ bytes of values, or more"),
        (text, True, r"[\d,]+ bytes of values, or more"),  # as a category
        (numbers, True, "51,000,000 values"),
        (lists, True, "51,000,000 values"),
    ],
)
def test_a_parquet_file_that_would_fill_the_memory_is_refused_from_its_head(
    bomb, schema, has, tmp_path
):
    """A few kilobytes stand for gigabytes."""
    file = tmp_path / "a.parquet"
    parquet.write_table(bomb(), file, store_schema=schema)
    assert file.stat().st_size < 400_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for read in (read_rows, read_records):
        with pytest.raises(ValueError, match=rf"a\.parquet has {has}, more than"):
            read(file)
    # kilobytes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


LONG = pa.DictionaryArray.from_arrays(pa.array([0] * 300_000, "int32"), ["x" * 10_000])
BYTES = pa.DictionaryArray.from_arrays(LONG.indices, [b"x" * 10_000])
WIDE = pa.DictionaryArray.from_arrays(
    LONG.indices, pa.array([b"x" * 10_000], pa.binary(10_000))
)


def in_rows(number, values):
    """Return lists that share these values evenly."""
    ends = np.linspace(0, len(values), number + 1).astype("int32")
    return pa.ListArray.from_arrays(pa.array(ends), values)


def of_objects(values):
    return pa.StructArray.from_arrays([values], ["a"])


def in_a_map(values):
    keys = pa.array([*map(str, range(len(values)))])
    return pa.MapArray.from_arrays(pa.array([0, len(values)], "int32"), keys, values)


NESTED = {  # 3 GB each, in few rows, by some kilobytes
    "one list": lambda: in_rows(1, LONG),
    "lists": lambda: in_rows(1000, LONG),
    "lists in lists": lambda: in_rows(1, in_rows(10, LONG)),
    "objects": lambda: of_objects(LONG),
    "objects in a list": lambda: in_rows(1, of_objects(LONG)),
    "lists in objects": lambda: of_objects(in_rows(10, LONG)),
    "a map": lambda: in_a_map(LONG),
    "bytes in lists": lambda: in_rows(10, BYTES),
    "bytes of one width": lambda: WIDE,
    "bytes of one width in lists": lambda: in_rows(10, WIDE),
    "empty lists": lambda: in_rows(20_000_000, pa.array([], "int8")),
}


@pytest.fixture
def peak():
    """Return the most memory that Arrow has held since this test began."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    yield pool.max_memory
    pa.set_memory_pool(before)


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", NESTED)
def test_lists_and_objects_that_would_fill_the_memory_are_refused_by_name(
    kind, tmp_path, peak
):
    file = tmp_path / "a.parquet"
    values = NESTED[kind]()
    # an old file's dictionaries, and those that Arrow itself would write out
    parquet.write_table(pa.table({"n": range(len(values)), "l": values}), file)
    begun = peak()
    with pytest.raises(
        ValueError,
        match=r"^a\.parquet has \d,[\d,]+ bytes of values, .*, more than 2,147",
    ):
        read_rows(file)
    assert peak() < max(begun, 2**28)


@pytest.mark.in_turn
def test_texts_of_a_list_that_repeat_their_beginning_are_refused_by_name(
    tmp_path, peak
):
    file, rows = tmp_path / "a.parquet", [["x" * 10_000] * 30_000] * 8
    written = {"l.list.element": "DELTA_BYTE_ARRAY"}
    table = pa.table({"l": rows})
    parquet.write_table(table, file, use_dictionary=False, column_encoding=written)
    del table
    begun = pa.total_allocated_bytes()
    with pytest.raises(
        ValueError,
        match=r"^a\.parquet has .* bytes of values, as its head allows, more",
    ):
        read_rows(file)
    assert pa.total_allocated_bytes() <= begun


def test_texts_are_counted_once_however_many_batches_they_come_in(
    tmp_path, monkeypatch
):
    """Each part of the file knows the texts of the parts before it."""
    texts = [f"{k:064x}" for k in range(300_000)]
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"t": texts}), file)
    monkeypatch.setattr(tables, "_MOST_BYTES", 3 * 64 * len(texts) // 2)
    assert read_rows(file)["t"].tolist() == texts
    monkeypatch.setattr(tables, "_MOST_BYTES", 64 * len(texts))
    with pytest.raises(ValueError, match="more than"):
        read_rows(file)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_lists_objects_and_rarer_encodings_are_read(encoding, tmp_path):
    columns = {
        "text": [f"a{k}" for k in range(5000)],
        "ratings": [["4", "5"], [], None, ["3"]] * 1250,
        "numbers": [[1.5, 2.0]] * 5000,
        "about": [{"a": "x", "b": 2}, None] * 2500,
    }
    lengths = {"text": encoding, "ratings.list.element": "DELTA_LENGTH_BYTE_ARRAY"}
    for how in ({}, {"use_dictionary": False, "column_encoding": lengths}):
        parquet.write_table(pa.table(columns), tmp_path / "a.parquet", **how)
        read = read_rows(tmp_path / "a.parquet")
        assert read["text"].tolist() == columns["text"]
        assert list(read["ratings"].iloc[0]) == ["4", "5"]
        assert read["about"].iloc[0] == {"a": "x", "b": 2}


def test_lists_and_objects_of_texts_are_read_from_every_part_of_a_file(tmp_path):
    """A file of many rows has several parts, each with texts that it numbers anew."""
    columns = {
        "ratings": [["4", "5"], ["3"]] * 150,
        "about": [{"a": "x"}, {"a": "y"}] * 150,
        "deep": [[["4"]], [["5"]]] * 150,
    }
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table(columns), file, row_group_size=100)
    read = read_rows(file)
    assert [list(one) for one in read["ratings"]] == columns["ratings"]
    assert read["about"].tolist() == columns["about"]
    assert len(read["deep"]) == 300


OBJECTS = {
    "decimals": lambda: pa.array([1] * 1000).cast(pa.decimal128(30)),
    "dates": lambda: pa.array([1] * 1000, pa.date32()),
    "times of day": lambda: pa.array([1] * 1000, pa.time32("s")),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_becomes_an_object_of_python_counts_as_one(kind, tmp_path, monkeypatch):
    file = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"v": OBJECTS[kind]()}), file)
    held = sum(map(sys.getsizeof, read_rows(file)["v"]))
    monkeypatch.setattr(tables, "_MOST_BYTES", held - 1)
    with pytest.raises(ValueError, match=r"a\.parquet has .* bytes of values, or more"):
        read_rows(file)


def test_an_ordinary_parquet_file_is_read_as_before(tmp_path):
    table = pd.DataFrame(
        {
            "text": ["a", None, "ä"] * 50,
            "score": [1, 2, 3] * 50,
            "kind": pd.Categorical(["x", "y", "z"] * 50),
        }
    )
    table.to_parquet(tmp_path / "a.parquet")
    read = read_rows(tmp_path / "a.parquet")
    assert read["text"].isna().sum() == 50
    assert read["score"].tolist() == table["score"].tolist()
    assert read["kind"].astype(str).tolist() == table["kind"].astype(str).tolist()


SMALL_ON_DISK = {  # JSON of a few characters a value, which takes many times that
    "lists": "[" + "[]," * 100_000 + "[]]",
    "objects": "[" + "{}," * 60_000 + "{}]",
    "nested objects": "[" + '{"a":{}},' * 30_000 + "1]",
    "keys": "{" + ",".join(f'"{k}":0' for k in range(60_000)) + "}",
    "texts": "[" + '"é🦀",' * 60_000 + "1]",
    "numbers": "[" + "1.5," * 100_000 + "1]",
}


def written_log(file, **samples):
    """An .eval file whose header has no scorers, and these texts of samples."""
    about = {"eval": {"task": "t", "model": "m", "scorers": []}}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(about))
        for name, text in samples.items():
            archive.writestr(f"samples/{name}.json", text)
    return file


@pytest.mark.parametrize("kind", SMALL_ON_DISK)
def test_a_log_that_takes_more_memory_than_it_says_is_too_large(
    kind, tmp_path, monkeypatch
):
    """Harmless stand-ins, below a bound that is lowered for them."""
    sample = f'{{"id": 1, "epoch": 1, "metadata": {{"x": {SMALL_ON_DISK[kind]}}}}}'
    file = written_log(tmp_path / "a.eval", one=sample)
    assert file.stat().st_size < 300_000
    tracemalloc.start()
    json.loads(sample)
    assert tracemalloc.get_traced_memory()[1] < logs._memory(sample)
    tracemalloc.stop()
    monkeypatch.setattr(logs, "MAX_SAMPLE_BYTES", 2**22)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"^a\.eval is too large: unpacked it takes"):
        read_rows(file)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_what_is_kept_of_all_samples_is_bounded_and_what_is_not_kept_is_free(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(logs, "MAX_SAMPLE_BYTES", 2**21)
    events = [{"event": "model", "output": "word " * 50} for _ in range(500)]

    def sample(number, **more):
        scores = {"tone": {"value": number}}
        return json.dumps({"id": number, "epoch": 1, "scores": scores} | more)

    long = {f"s{k}": sample(k, events=events) for k in range(12)}
    assert sum(map(logs._memory, long.values())) > 2 * 2**21
    read = read_rows(written_log(tmp_path / "long.eval", **long))
    assert sorted(read["score"]) == list(range(12))
    kept = {f"s{k}": sample(k, metadata={"x": events}) for k in range(12)}
    with pytest.raises(
        ValueError, match=r"^kept\.eval is too large: unpacked it takes"
    ):
        read_rows(written_log(tmp_path / "kept.eval", **kept))
