"""Tables as people save them: encodings, names of columns,
ids, ratings, and damaged files.
"""

import json
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import rubricnb as rb
from rubricnb.files import logs, tables

LOGS, EXPORTS = (Path(__file__).parent / name for name in ("logs", "exports"))
LEVELS = (
    "{criterion: tone, definition: 'Kind?', levels: {1: no!, 3: so so, 5: well, 7: "
    "very}}"
)
ANSWERS = "{criterion: kind, definition: 'Kind?', levels: {'no': rude, 'yes': kind}}"
FRENCH = (
    "instruction;response;human\nPourquoi ?;Parce que l’été a été très chaud.;3\nQui "
    "?;Zoé.;5\n"
)
GERMAN = FRENCH.replace(
    "Parce que l’été a été très chaud", "Weil es größer, schöner und übel ist"
)


@pytest.mark.parametrize(
    ("encoding", "said"),
    [
        ("cp1252", "read as cp1252;"),
        ("utf-16", "read as utf_16;"),
        ("utf-16-le", "read as utf_16_le;"),
        ("utf-8-sig", ""),
    ],
)
@pytest.mark.parametrize("text", [FRENCH, GERMAN], ids=["french", "german"])
def test_text_as_spreadsheets_save_it_is_read_to_the_letter(
    own, text, encoding, said, capsys
):
    items = own(text, LEVELS, encoding=encoding)
    assert items.response.tolist() == [
        row.split(";")[1] for row in text.splitlines()[1:]
    ]
    out = capsys.readouterr().out
    assert said.split(";")[0] in out
    assert ("save it in UTF-8" in out) == bool(said)


def test_columns_go_by_the_names_given_whatever_their_case(own):
    table = "Frage,Answer,Note,TEXT_ID\na,x,3,7.0\nb,y,5,8.0\n"
    names = {"Frage": "instruction", "Answer": "response", "Note": "human"}
    items = own(table, LEVELS, columns=names)
    assert items[["instruction", "response", "human", "text_id"]].values.tolist() == [
        ["a", "x", 3, "mails/7"],
        ["b", "y", 5, "mails/8"],
    ]
    with pytest.raises(
        ValueError, match=r"mails\.csv: unknown column 'Notes'; did you m"
    ):
        own(table, LEVELS, columns=names | {"Notes": "human"})


def test_ratings_may_be_labels_shares_and_a_column_a_rater(own, capsys):
    items = own("instruction,response,human\na,x,Yes\nb,y,no\nc,z,\nd,u,NaN\n", ANSWERS)
    assert items.human.fillna(-1).tolist() == [1, 0, -1, -1]
    out = capsys.readouterr().out
    assert (
        "human: 2 values are not plain numbers, such as 'Yes', which is read as 1"
        in out
    )
    shares = own("instruction,response,human\na,x,3/7\nb,y,7 / 7\n", LEVELS)
    assert shares.human.tolist() == [3, 7]
    with pytest.raises(
        ValueError, match=r"row 1, column 'human': '3/5' is not a number"
    ):
        own("instruction,response,human\na,x,3/5\n", LEVELS)
    raters = "instruction,response,rater_1,rater_2\na,x,no,yes\nb,y,yes,\n"
    assert "human" not in own(raters, ANSWERS)
    assert "columns={'rater_1': 'human_ratings', 'rater_2'" in capsys.readouterr().out
    names = dict.fromkeys(("rater_1", "rater_2"), "human_ratings")
    rated = own(raters, ANSWERS, columns=names)
    assert rated.human.tolist() == [0.5, 1]
    assert rated.human_ratings.iloc[0] == (0, 1)
    np.testing.assert_equal(rated.human_ratings.iloc[1], (1, np.nan))


def test_half_an_emoji_is_named_by_file_row_and_column(tmp_path):
    file = tmp_path / "a.jsonl"
    file.write_text(
        '{"item_id": "\\ud83d\\ude00", "score": 1}\n{"item_id": "\\ud83d", "score": '
        "1}\n"
    )
    with pytest.raises(ValueError, match=r"a\.jsonl: line 2: .* half a character"):
        rb.judgments(file, scale=(0, 1))
    file = tmp_path / "a.json"
    file.write_text('[{}, {"item_id": "\\ud83d"}]')
    with pytest.raises(ValueError, match=r"a\.json: line 1: .* half a char"):
        rb.judgments(file, scale=(0, 1))


def test_rows_with_more_values_than_the_header_are_refused(tmp_path):
    """Read as they are, each value would move one column to the left."""
    file = tmp_path / "a.csv"
    for text in ("item_id,score\na,1,2\nb,2,3\n", "item_id,score\na,1,\nb,2,\n"):
        file.write_text(text)
        with pytest.raises(
            ValueError, match=r"a\.csv is not a CSV .* 2 fields in line 2, saw 3"
        ):
            rb.judgments(file, scale=(0, 5))
    file.write_text("item_id,score,\na,1,\nb,2,\n")
    assert rb.judgments(file, scale=(0, 5)).score.tolist() == [1, 2]


@pytest.mark.parametrize(
    "cell",
    [{"human_ratings": [["x"]]}, {"ordering": 5}],
)
def test_a_cell_of_another_kind_is_named_by_row_and_column(tmp_path, cell):
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"item_id": "a", "score": 1} | cell]))
    with pytest.raises(ValueError, match=f"column '{next(iter(cell))}'"):
        rb.judgments(file, scale=(0, 1))


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "rubric", ["- 5", "criterion: tone", "[" * 5000, "levels: {1: a, 1: b}", "a: 1"]
)
def test_a_damaged_rubric_is_named_and_not_the_texts(tmp_path, rubric):
    (tmp_path / "texts.csv").write_text("instruction,response\na,b\n")
    (tmp_path / "kind.yml").write_text(rubric)
    with pytest.raises(ValueError, match=r"^kind\.yml"):
        rb.load("csv", path=tmp_path / "texts.csv", rubric=tmp_path / "kind.yml")


DAMAGED = {
    "a.csv": b'item_id,score\n"' + b"x" * 200_000,
    "b.csv": b"\x00\x01\x02" * 50,
    "a.parquet": b"PAR1" + b"\x00" * 50,
    "a.jsonl": b'{"a": ' * 100_000,
    "a.json": b"[" * 100_000,
    "b.json": b'{"eval": 1, "plan": {}}',
    "c.json": b'{"eval": {"task": "t"}, "plan": {}, "samples": [3]}',
    "d.json": b'{"results": {"results": [3]}}',
    "e.json": b'{"testCases": [3]}',
    "f.json": b'{"testCases": [{"name": "a", "metricsData": {"a": 1}}]}',
    "i.json": (
        b'{"results": {"results": [{"gradingResult": {"componentResults": [3]}}]}}'
    ),
    "a.eval": b"PK\x05\x06" + b"\x00" * 18,
    "b.eval": b"x",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_one_error_that_names_it(tmp_path, name):
    (tmp_path / name).write_bytes(DAMAGED[name])
    with pytest.raises(ValueError, match=rf"^{name}") as raised:
        rb.judgments(tmp_path / name, scale=(0, 1))
    assert len(str(raised.value)) < 500


def spoilt(value, path=()):
    """Every document that differs from this one in one part, which has another type."""
    for other in (None, 3, "x", [], {}):
        if type(other) is not type(value):
            yield path, other
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value[:2])
        for key, part in parts:
            yield from spoilt(part, (*path, key))


@pytest.mark.parametrize(
    "name", ["promptfoo_repeat.json", "inspect_crashed.json", "deepeval_above_one.json"]
)
def test_a_log_with_a_part_of_another_type_is_read_or_named(tmp_path, name):
    text = (LOGS / name).read_text()
    tried = [case for case in spoilt(json.loads(text)) if case[0]][::5]
    for path, other in tried:
        log = place = json.loads(text)
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = other
        (tmp_path / name).write_text(json.dumps(log))
        with suppress(_Named):
            _read_named(tmp_path / name)
    assert len(tried) > 50


class _Named(Exception):
    """An error that begins with the file's name."""


def _read_named(path):
    try:
        tables.read_rows(path)
    except ValueError as error:
        raise (_Named if str(error).startswith(path.name) else AssertionError)(
            error
        ) from error


def test_an_eval_that_unpacks_to_too_much_is_refused_before_it_is_unpacked(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(logs, "MAX_UNPACKED_BYTES", 10_000_000)
    with zipfile.ZipFile(tmp_path / "big.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/1.json", b" " * 20_000_000)
    assert (tmp_path / "big.eval").stat().st_size < 100_000
    with pytest.raises(
        ValueError,
        match=r"^big\.eval is too large: unpacked it takes 20,000,002 bytes, "
        r"and at most 10",
    ):
        rb.judgments(tmp_path / "big.eval")


def test_a_zstandard_member_longer_than_it_says_is_refused(tmp_path):
    packed = (LOGS / "inspect_replies.eval").read_bytes()
    with zipfile.ZipFile(LOGS / "inspect_replies.eval") as archive:
        info = archive.getinfo("header.json")
    size = info.file_size.to_bytes(4, "little")
    assert packed.count(size) >= 1
    (tmp_path / "a.eval").write_bytes(packed.replace(size, (10).to_bytes(4, "little")))
    with pytest.raises(
        ValueError, match=r"^a\.eval: header\.json is longer than the archive says"
    ):
        rb.judgments(tmp_path / "a.eval")
