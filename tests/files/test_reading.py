"""What a file means is written down, asked where it may be two things, and kept."""

import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app

LOGS = Path(__file__).parent / "logs"
OPEN = [
    # what is read, its scale, and what each of the two answers gives
    (
        'item_id,score,human\na,4,"3,4"\nb,2,"2,5"\n',
        (1, 5),
        {"comma: decimal": [3.4, 2.5], "comma: list": [3.5, 3.5]},
        "human",
    ),
    (
        "item_id,score,error\na,4,spelling\nb,1,grammar\nc,2,\n",
        (1, 5),
        {"rows: failed": [None, None, 2], "rows: scored": [4, 1, 2]},
        "score",
    ),
    (
        "item_id,criterion,score\na,taste,4\na,safe,fine\n",
        (1, 5),
        {"scores: lost": [4, None]},
        "score",
    ),
]


@pytest.mark.parametrize(("text", "scale", "wanted", "column"), OPEN)
def test_each_way_out_of_a_question_works_when_it_is_followed(
    tmp_path, text, scale, wanted, column
):
    """The lines are taken from the refusal itself, as a reader copies them."""
    file = tmp_path / "log.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match="nothing is computed") as refused:
        rb.judgments(file, scale=scale)
    lines = re.findall(r"(?m)^ {4}(.+?) {4}#", str(refused.value))
    assert [line.partition(" ")[2] for line in lines] == [*wanted]
    for line, values in zip(lines, wanted.values(), strict=True):
        mine = rb.judgments(rb.reading(file, scale=scale, decide=[line]))
        found = mine[column] if column in mine else mine.rated[column]
        given = [None if pd.isna(v) else float(v) for v in found]
        assert given == values
        kept = tmp_path / "reading.yml"
        rb.reading(file, scale=scale, decide=[line]).save(kept)
        done = CliRunner().invoke(
            app,
            ["read", str(file), "--scale", *map(str, scale), "--reading", str(kept)],
        )
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: text.replace("human", "human,more").replace("5\n", "5,x\n"),
            "the column 'more' is new",
        ),
        (lambda text: text.replace(",human", ",mark"), "the column 'human' is gone"),
        (lambda text: text.replace("n/a", "unsure"), "'unsure'"),
        (lambda text: text.replace(",", ";"), "separator was ,, is ;"),
        (lambda text: text + "c,5,none\n", "'none' (missing) in 'human'"),
    ],
)
def test_a_file_that_no_longer_fits_its_reading_is_refused_with_the_difference(
    tmp_path, change, said
):
    file, kept = tmp_path / "log.csv", tmp_path / "reading.yml"
    file.write_text(text := "item_id,score,human\na,4,5\nb,2,n/a\n")
    rb.reading(file, scale=(1, 5)).save(kept)
    again = rb.reading(file, scale=(1, 5), decide=kept)
    assert rb.judgments(again).score.tolist() == [4, 2]
    file.write_text(text.replace("4", "3"))  # other numbers are no other file
    assert rb.judgments(rb.reading(file, scale=(1, 5), decide=kept)).score[1] == 3
    file.write_text(change(text))
    with pytest.raises(ValueError, match=re.escape(said)):
        rb.reading(file, scale=(1, 5), decide=kept).result()


def test_another_scale_is_a_difference(tmp_path):
    file, kept = tmp_path / "log.csv", tmp_path / "reading.yml"
    file.write_text("item_id,score\na,4\nb,2\n")
    rb.reading(file, scale=(1, 5)).save(kept)
    with pytest.raises(ValueError, match=r"scale was 1\.\.5, is 0\.\.10"):
        rb.judgments(rb.reading(file, scale=(0, 10), decide=kept))


def test_a_reading_names_roles_and_classes_with_first_examples(tmp_path):
    log = pd.DataFrame(
        {"Item_ID": list("abc"), "value": ["4", "n/a", "2.5"], "note": "x"}
    )
    read = rb.reading(log, scale=(1, 5), columns={"value": "score"})
    known = yaml.safe_load(str(read))
    assert known["columns"]["Item_ID"] == {"role": "item_id", "why": "its name"}
    assert known["columns"]["note"] == {"role": "own"}
    value = known["columns"]["value"]
    assert (value["role"], value["why"]) == ("score", "named by you")
    assert value["values"]["number"] == {"count": 2, "first": "4"}
    assert value["values"]["missing"]["words"] == ["n/a"]
    assert len(read.lines) == 3


def test_an_audit_of_a_log_says_what_was_read(tmp_path):
    rng = np.random.default_rng(0)
    human = rng.integers(1, 6, 40)
    log = pd.DataFrame(
        {"item_id": range(40), "score": np.clip(human + rng.integers(-1, 2, 40), 1, 5)}
    )
    found = rb.audit(judgments=rb.judgments(log.assign(human=human), scale=(1, 5)))
    assert found.design["read"][0] == "the table: 40 rows, scale 1..5"
    found.save(tmp_path / "a.html")
    assert "What was read" in (tmp_path / "a.html").read_text("utf-8")


RETYPED = {
    "text": lambda value: value if isinstance(value, str) else json.dumps(value),
    "object": lambda value: {"value": value},
}


# What logs/ has none of: a reply without a verdict, an option that is no level.
VOTE = {"judge_id": "m", "error": None, "value": 0.0}
OWN_LOGS = {
    "promptfoo_no_verdict.json": [
        {
            "testIdx": number,
            "gradingResult": {"componentResults": [part | {"assertion": asked}]},
        }
        for asked in [{"type": "llm-rubric", "value": "Is it kind?"}]
        for number, part in enumerate(
            [
                {"score": 1, "reason": "Grading passed"},
                {"score": 0, "reason": "late", "metadata": {"graderError": True}},
                {"score": 0.5, "reason": "It is half kind."},
            ]
        )
    ],
    "autorubric.json": [
        {
            "item_idx": number,
            "report": {"report": [{"name": "a", "options": levels, "votes": [vote]}]},
        }
        for levels in [[{"value": 0.0, "na": False}, {"value": 0.0, "na": True}]]
        for number, vote in enumerate(
            [
                VOTE | {"na": True},
                VOTE | {"na": False, "error": "late"},
                VOTE | {"na": False, "value": 1.0},
            ]
        )
    ],
}


@pytest.mark.parametrize("how", ["renamed", "text", "object"])
@pytest.mark.parametrize(
    "name",
    ["inspect_replies.json", "promptfoo.json", "deepeval_test_run.json", *OWN_LOGS],
)
@pytest.mark.in_turn
def test_a_mutated_export_never_changes_a_number_unasked(tmp_path, name, how):
    """One key renamed, or its values retyped: what is left are numbers of before."""
    text = json.dumps(OWN_LOGS.get(name)) if name in OWN_LOGS else ""
    text = text or (LOGS / name).read_text("utf-8")
    (tmp_path / name).write_text(text, "utf-8")
    right = _scores(tmp_path / name)
    keys = sorted(set(re.findall(r'"([A-Za-z_]+)":', text)))
    for key in keys:
        file = tmp_path / name
        changed = text.replace(f'"{key}":', f'"{key}_":')
        if how != "renamed":
            changed = json.dumps(_retyped(json.loads(text), key, RETYPED[how]))
        file.write_text(changed, "utf-8")
        try:
            found = _scores(file)
        except (ValueError, KeyError):
            continue
        assert Counter(found.dropna()) <= Counter(right.dropna()), key


def _retyped(node, key, how):
    """The same document, in which each number or text under a key is another type."""
    if isinstance(node, list):
        return [_retyped(one, key, how) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        name: how(value)
        if name == key and not isinstance(value, dict | list)
        else _retyped(value, key, how)
        for name, value in node.items()
    }


def _scores(file):
    scale = {"i": (0, 3), "a": (0, 1)}.get(file.name[0])
    return rb.judgments(file, scale=scale).score.astype(float)


@st.composite
def tables(draw):
    """Ratings by several people, as somebody's program or sheet may write them."""
    n, people = draw(st.integers(2, 6)), draw(st.integers(1, 4))
    steps = draw(st.sampled_from([1, 0.5]))
    levels = [k * steps for k in range(int(1 / steps), int(5 / steps) + 1)]
    cell = st.one_of(st.none(), st.sampled_from(levels))
    rows = draw(st.lists(st.tuples(*[cell] * people), min_size=n, max_size=n))
    scores = draw(st.lists(st.sampled_from(levels), min_size=n, max_size=n))
    form = draw(st.sampled_from(["csv", "semicolons", "tsv", "jsonl", "named"]))
    word = draw(st.sampled_from(["", "n/a", "None", "NaN"]))
    order = draw(st.permutations(range(people)))
    return rows, scores, form, word, order


@settings(max_examples=80, deadline=None)
@given(tables())
def test_what_was_written_is_read_back_or_refused(tmp_path_factory, table):
    rows, scores, form, word, order = table
    names = [f"human_{k + 1}" for k in order]
    folder = tmp_path_factory.mktemp("log")
    comma = form == "semicolons"

    def written(value):
        text = word if value is None else f"{value:g}"
        return text.replace(".", ",") if comma else text

    if form in ("jsonl", "named"):
        file = folder / "log.jsonl"
        lines = []
        for number, (row, score) in enumerate(zip(rows, scores, strict=True)):
            record = {"item_id": f"t{number}", "score": score}
            people = {f"human_{k + 1}": row[k] for k in order}
            record |= {"human_ratings": people} if form == "named" else people
            lines.append(json.dumps(record))
        file.write_text("\n".join(lines))
    else:
        file = folder / ("log.tsv" if form == "tsv" else "log.csv")
        mark = {"csv": ",", "semicolons": ";", "tsv": "\t"}[form]
        out = io.StringIO()
        print(*["item_id", "score", *names], sep=mark, file=out)
        for number, (row, score) in enumerate(zip(rows, scores, strict=True)):
            cells = [written(score), *(written(row[k]) for k in order)]
            print(*[f"t{number}", *cells], sep=mark, file=out)
        file.write_text(out.getvalue())
    try:
        mine = rb.judgments(file, scale=(1, 5))
    except ValueError:
        return
    assert mine.score.tolist() == scores
    for found, row in zip(mine.rated.human_ratings, rows, strict=True):
        if all(value is None for value in row):
            assert found is None or pd.isna(found)
        else:
            wanted = [np.nan if value is None else value for value in row]
            assert found == pytest.approx(wanted, nan_ok=True)
