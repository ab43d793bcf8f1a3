import csv
import re
from ast import literal_eval
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rubricnb.sets.catalogue import load

EXAMPLE = Path(__file__).parents[2] / "examples" / "own-data"
TONE = "{criterion: tone, definition: 'Kind?', levels: {1: no!, 2: so so, 3: very}}"
LENGTH = (
    "{criterion: length, rubric_id: len, definition: 'Short?', levels: {1: no!, 2: "
    "very}}"
)


TWO = f"[{TONE}, {LENGTH}]"


def ratings(items):
    return zip(items.criterion, items.human_ratings, strict=True)


@pytest.fixture
def two(own):
    """Load a table of texts by two rubrics."""
    return lambda table, **how: own(table, TWO, **how)


def test_the_example_loads():
    items = load("csv", path=EXAMPLE / "my_data.csv", rubric=EXAMPLE / "my_rubric.yml")
    rows = list(
        csv.DictReader((EXAMPLE / "my_data.csv").open(encoding="utf-8", newline=""))
    )
    assert items.response.tolist() == [row["response"] for row in rows]
    assert items.human.tolist() == [float(row["human"]) for row in rows]
    assert set(items.dataset) == {"my_data"}
    assert items.item_id.str.startswith("my_data/").all()
    assert len(items) == items.response.nunique() == 8
    assert (
        items.groupby("group_id").instruction.agg(["size", "nunique"]).values.tolist()
        == [[2, 1]] * 4
    )


def test_every_row_is_judged_by_every_criterion(two):
    items = two("instruction,response\na,x\nb,y\n")
    assert items.item_id.tolist() == [
        "mails/1/tone",
        "mails/1/length",
        "mails/2/tone",
        "mails/2/length",
    ]
    assert items.rubric_id.tolist() == ["tone", "len"] * 2
    assert items.text_id.tolist() == ["mails/1", "mails/1", "mails/2", "mails/2"]
    assert items.index.tolist() == [0, 1, 2, 3]


RATED = {("tone", 1, 3), ("length", 2, 1)}


@pytest.mark.parametrize(
    "table",
    [
        "instruction,response,human_tone_1,human_tone_2,human_length_1,human_length_2\n"
        "a,x,1,3,2,1\n",
        "instruction,response,criterion,human_1,human_2\na,x,tone,1,3\n"
        "a,x,length,2,1\n",
        "instruction,response,criterion,rater,human\na,x,tone,al,1\na,x,tone,bo,3\n"
        "a,x,length,al,2\na,x,length,bo,1\n",
        # the text's name in every row, as a tool writes it
        "item_id,instruction,response,criterion,human_1,human_2\n7,a,x,tone,1,3\n"
        "7,a,x,length,2,1\n",
        "item_id,instruction,response,criterion,rater,human\n7,a,x,tone,al,1\n"
        "7,a,x,tone,bo,3\n7,a,x,length,al,2\n7,a,x,length,bo,1\n",
    ],
)
def test_two_people_rate_two_criteria(two, table):
    items = two(table)
    # two people, not four of whom each rated one criterion
    assert {(c, *map(int, got)) for c, got in ratings(items)} == RATED
    assert items["text_id"].nunique() == 1
    assert items["item_id"].is_unique


def test_columns_with_peoples_names_are_read_by_the_way_out_of_the_error(two):
    table = (
        "instruction,response,human_tone_al,human_tone_bo,human_length_al,"
        "human_length_bo\na,x,1,3,2,1\n"
    )
    with pytest.raises(ValueError, match="does not name a criterion") as refused:
        two(table)
    columns = literal_eval(re.search(r"columns=(\{.*?\})", str(refused.value))[1])
    items = two(table, columns=columns)
    assert {(c, *map(int, got)) for c, got in ratings(items)} == RATED


def test_the_way_to_name_raters_of_two_criteria_works(two, capsys):
    raters = "tone_rater1,tone_rater2,length_rater1,length_rater2"
    table = f"instruction,response,{raters}\na,x,1,3,2,1\n"
    two(table)
    way = literal_eval(capsys.readouterr().out.partition("columns=")[2])
    items = two(table, columns=way)
    found = {(c, *(int(r) for r in got if r == r)) for c, got in ratings(items)}
    assert found == RATED


def test_a_criterion_column_picks_the_criterion(two):
    items = two(
        "instruction,response,criterion,human\na,x,tone,1\na,x,length,2\nb,y,tone,3\n"
    )
    assert items.rubric_id.tolist() == ["tone", "len", "tone"]
    assert items.human.tolist() == [1, 2, 3]
    assert items.text_id.nunique() == 2
    assert items.text_id[0] == items.text_id[1]


def test_ratings_by_criterion(two):
    items = two("instruction,response,human_tone,human_length\na,x,3,1\nb,y,1.5,2\n")
    assert items.human.tolist() == [3, 1, 1.5, 2]
    assert not any(c.startswith("human_") for c in items)


def test_a_criterion_nobody_rated_has_no_ratings(two):
    items = two("instruction,response,human_tone\na,x,3\nb,y,1\n")
    assert items.human.fillna(-1).tolist() == [3, -1, 1, -1]


def test_what_shares_a_prompt_shares_a_cluster_unless_all_do(two):
    shared = two("instruction,response\na,x\na,y\nb,z\n")
    assert shared.cluster_id.tolist() == [
        *["mails/prompt-1"] * 4,
        *["mails/prompt-2"] * 2,
    ]
    essays = two("instruction,response\na,x\na,y\na,z\n")
    assert essays.cluster_id.tolist() == essays.text_id.tolist()
    given_ = two("instruction,response,cluster_id\na,x,c1\na,y,c1\nb,z,c1\n")
    assert given_.cluster_id.nunique() == 1


def test_ids_and_other_columns_are_kept(two):
    items = two(
        "item_id,instruction,response,category,reference,mood\nq7,a,x,mail,best,glum\n"
    )
    assert items.item_id.tolist() == ["mails/q7/tone", "mails/q7/length"]
    assert items[["category", "reference", "mood"]].iloc[0].tolist() == [
        "mail",
        "best",
        "glum",
    ]


ODD = [
    "NA",
    "None",
    "null",
    "007",
    "1e5",
    "line one\r\nline two",
    "one\rtwo",
    "tab\there",
    'a "quoted", text',
    "😀 naïve ‮عربي‬ 日本語",
    "é",
    " space ",
    "=1+1",
    "\u2028x",
]


texts = st.text(
    st.characters(exclude_characters="\0", codec="utf-8"), min_size=1
).filter(str.strip)


@pytest.mark.in_turn
@settings(max_examples=50, deadline=None)
@given(st.lists(texts, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]))
@example(ODD, "\r\n")
def test_any_text_is_kept_to_the_letter(tmp_path_factory, responses, end):
    folder = tmp_path_factory.mktemp("own")
    (folder / "r.yml").write_text(TONE)
    with open(folder / "d.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerows(
            [("instruction", "response"), *(("Say it.", r) for r in responses)]
        )
    items = load("csv", path=folder / "d.csv", rubric=folder / "r.yml")
    assert items.response.tolist() == responses


HEAD = "instruction,response"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "instruction,respons\na,x\n",
            "mails.csv lacks 'response'.*{'respons': 'response'}",
        ),
        ("", "mails.csv is empty"),
        (
            f"{HEAD}\n",
            r"mails.csv has no rows below its header \(instruction, response\)",
        ),
        (
            "response;Response;instruction\nx;x;a\n",
            "two columns that could be 'response': 'respon",
        ),
        (
            "response,response,instruction\nx,x,a\n",
            "mails.csv has two columns 'response'",
        ),
        (f"{HEAD}\na,x\nb,y,z\n", "mails.csv is not a CSV .* fields in line 3, saw 3"),
        (
            f"{HEAD}\na,\nb, \n",
            "mails.csv: rows 1, 2, column 'response': '' is empty; .* name it",
        ),
        (
            f"{HEAD}\na,x\n,y\n",
            "row 2, column 'instruction': '' is empty; if cells .* are merged",
        ),
        (f"{HEAD},human\na,x,3\n", "does not say which of 2 criteria it rates"),
        (
            f"{HEAD},human_wit\na,x,3\n",
            "'human_wit' does not name a criterion of the rubric file",
        ),
        (
            f"{HEAD},human_tone\na,x,3\nb,y,bad\n",
            "'human': 'bad' is not a number, nor a",
        ),
        (
            f"{HEAD},item_id\na,x,7\nb,y,7.0\n",
            "has the ids '7' and '7.0', which are the same number",
        ),
        (
            f"{HEAD},human_tone\na,x,3\nb,y,4\n",
            "rows 2, column 'human': 4 is outside 1..3",
        ),
        (f"{HEAD},criterion\na,x,tone\nb,y,wit\n", "'wit' has no rubric. There are"),
        (
            f"{HEAD},item_id\na,x,q\nb,y,q\n",
            "column 'item_id': 'mails/q/tone' appears twice",
        ),
        (
            f"{HEAD}\na,caf".encode() + bytes(range(128, 160)) * 9,
            "mails.csv is not in UTF-8, and its encoding",
        ),
    ],
)
def test_bad_data_are_named_by_row_and_column(two, table, message):
    with pytest.raises(ValueError, match=message):
        two(table)


# As a spreadsheet in a country with decimal commas writes it: a byte order mark,
# semicolons, empty rows and an empty column at the end; levels from 0, and cells that
# nobody rated.
FROM_0 = (
    "[{criterion: tone, definition: 'Kind?', levels: {0: no!, 1: hm, 2: so so, 3: "
    "very}}]"
)
SHEET = (
    "instruction;response;human_tone;\r\na;x;0;\r\na;y, then "
    "z;;\r\nb;z;2,5;\r\n;;;\r\n;;;\r\n"
)


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + SHEET,
        SHEET.replace(", then", "").replace(",", ".").replace(";", "\t"),
    ],
    ids=["bom", "tabs"],
)
def test_what_a_spreadsheet_writes_is_read(own, text):
    items = own(text, FROM_0)
    assert items.human.fillna(-1).tolist() == [0, -1, 2.5]
    assert items.response.tolist()[::2] == ["x", "z"]
    assert items.text_id.tolist() == ["mails/1", "mails/2", "mails/3"]


def test_rows_keep_their_numbers_when_empty_ones_are_left_out(own):
    with pytest.raises(
        ValueError, match=r"row 3, column 'human': 'good' is not a number"
    ):
        own(SHEET.replace("a;y, then z;;", ";;;\r\na;y;good;"), FROM_0)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_other_kinds_of_files_are_read_as_text(tmp_path, kind):
    rows = {
        "instruction": ["a", "b"],
        "response": ["x", "007"],
        "human_tone": [0, None],
    }
    frame = pd.DataFrame(rows | {"id": [7, 8]})
    path = tmp_path / f"mails.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        path.write_text("\ufeff" + frame.to_json(orient="records", lines=True), "utf-8")
    (tmp_path / "r.yml").write_text(FROM_0)
    items = load("csv", path=path, rubric=tmp_path / "r.yml")
    assert items.response.tolist() == ["x", "007"]
    assert items.human.fillna(-1).tolist() == [0, -1]
    assert items.id.tolist() == ["7", "8"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "mails.jsonl",
            '{"instruction": "a", "response": "x"}\n{"in',
            "jsonl: line 2 is not",
        ),
        ("mails.jsonl", "[1]", "mails.jsonl does not hold JSON objects only"),
        ("mails.docx", "x", r"a table is a \.csv, .* not \.docx"),
        ("mails.csv", f'{HEAD}\na,"x\nb,y\n', "close every quote"),
    ],
)
def test_files_that_cannot_be_read_say_why(two, name, text, message):
    with pytest.raises(ValueError, match=message):
        two(text, name=name)


def test_references_by_the_labels_of_levels_go_to_the_score_of_each_criterion(capsys):
    """Two criteria name the same level by other scores;
    each text has a row under both.
    """
    rubric = [
        {
            "criterion": c,
            "definition": "?",
            "values": values,
            "levels": {"bad": "Bad.", "good": "Good."},
        }
        for c, values in (
            ("tone", {"bad": 1, "good": 2}),
            ("depth", {"bad": 0, "good": 5}),
        )
    ]
    rows = [
        {
            "instruction": f"{i}?",
            "response": f"Text {i}.",
            "reference_good": model,
            "human_tone": "good",
            "human_depth": "bad",
        }
        for i, model in enumerate(["Best.", "", "Better."])
    ]
    items = load("csv", path=rows, rubric=rubric)
    written = items.pivot(
        index="response", columns="criterion", values=["reference_2", "reference_5"]
    )
    assert written["reference_2"]["tone"].tolist() == ["Best.", "", "Better."]
    assert written["reference_5"]["depth"].tolist() == ["Best.", "", "Better."]
    assert (written["reference_2"]["depth"] == "").all()
    assert "reference_good" in capsys.readouterr().out
