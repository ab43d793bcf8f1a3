"""A file in any supported form is read back to what was written, or refused."""

import json
from math import isnan

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rubricnb as rb

NUMBERS = [[*map(str, range(1, 6))], ["0", "1", "2"], ["-1", "0", "1"]]
NUMBERS += [[f"{k / 2:g}" for k in range(2, 11)], ["0", "25", "50", "75", "100"]]
SCALES = [
    *({label: float(label) for label in labels} for labels in NUMBERS),
    {"poor": 1, "fair": 2, "good": 3},
    {"C": 1, "B": 2, "A": 3},
    {"no": 0, "yes": 1},
    {"1": 4, "2": 3, "3": 2, "4": 1},  # grades, 1 is the best
    {"None": 3, "Small": 2, "Large": 1},
    {"not at all": 1, "well, a bit": 2, "very much": 3},
]
MARKS = {"csv": ",", "semicolons": ";", "tsv": "\t"}
FORMS = (*MARKS, "jsonl", "json", "parquet", "frame", "list")
RATINGS = ("columns", "numbered", "mapping", "rows", "list", "spaces")


@st.composite
def worlds(draw):
    """Scores and ratings by people with gaps, and the way in which they are written."""
    labels = draw(st.sampled_from(SCALES))
    people = draw(st.permutations(["ann", "bob", "cid"][: draw(st.integers(1, 3))]))
    cell = st.one_of(st.sampled_from([*labels]), st.none())
    row = st.fixed_dictionaries(dict.fromkeys(sorted(people), cell))
    rows = draw(st.lists(row, min_size=2, max_size=5))
    score = st.sampled_from([*labels])
    return {
        "labels": labels,
        "people": people,
        "rows": rows,
        "scores": draw(st.lists(score, min_size=len(rows), max_size=len(rows))),
        "form": draw(st.sampled_from(FORMS)),
        "ratings": draw(st.sampled_from(RATINGS)),
        "word": draw(st.sampled_from(["", "n/a", "NaN"])),
        "is_typed": draw(st.booleans()),
        "case": draw(st.sampled_from([str, str.upper, str.lower])),
        "pad": draw(st.sampled_from(["", " "])),
    }


def written(world, label):
    """A label as a program or a sheet writes it: a number, a text, or a gap."""
    if label is None:
        return None
    number = float(label) if label.lstrip("-").replace(".", "").isdigit() else None
    if number is None:
        return world["pad"] + world["case"](label) + world["pad"]
    if world["is_typed"]:
        return int(number) if number.is_integer() else number
    text = label.replace(".", ",") if world["form"] == "semicolons" else label
    return world["pad"] + text + world["pad"]


def rows_of(world, known):
    is_flat = world["form"] in MARKS
    for base, row in zip(known, world["rows"], strict=True):
        own = {name: written(world, row[name]) for name in world["people"]}
        cells = [written(world, label) for label in row.values()]
        match world["ratings"]:
            case "columns":
                yield base | own
            case "numbered":
                yield base | {f"human_{k}": cell for k, cell in enumerate(cells, 1)}
            case "mapping":
                yield base | {"human_ratings": json.dumps(own) if is_flat else own}
            case "list":
                yield base | {"human_ratings": json.dumps(cells) if is_flat else cells}
            case "spaces":
                texts = ["" if cell is None else str(cell).strip() for cell in cells]
                yield base | {"human_ratings": " ".join(texts)}
            case _:
                yield from (base | {"rater": n, "human": own[n]} for n in own)


def saved(world, rows, folder):
    frame, form = pd.DataFrame(rows), world["form"]
    if form in ("frame", "list"):
        return frame if form == "frame" else rows
    if mark := MARKS.get(form):
        file = folder / ("t.tsv" if form == "tsv" else "t.csv")
        decimal = "," if form == "semicolons" else "."
        frame.to_csv(file, index=False, sep=mark, na_rep=world["word"], decimal=decimal)
        return file
    file = folder / f"t.{form}"
    if form == "parquet":
        frame.to_parquet(file)
    else:
        lines = map(json.dumps, rows)
        file.write_text(json.dumps(rows) if form == "json" else "\n".join(lines))
    return file


def check_ratings(found, world):
    """Nothing but the ratings that were given, each in its person's place."""
    for given_, row in zip(found, world["rows"], strict=True):
        wanted = [
            float("nan") if label is None else world["labels"][label]
            for label in row.values()
        ]
        if all(map(isnan, wanted)):
            assert given_ is None or pd.isna(given_)
            continue
        got = [*given_] if isinstance(given_, tuple) else [given_]
        if world["ratings"] in ("list", "spaces", "rows"):  # not all have names or gaps
            got, wanted = ([v for v in own if not isnan(v)] for own in (got, wanted))
        assert got == pytest.approx(wanted, nan_ok=True)


@pytest.mark.in_turn
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds())
def test_what_is_written_in_any_form_is_read_back_or_refused(tmp_path_factory, world):
    labels = world["labels"]
    rubric = {"criterion": "taste", "definition": "Is it good?"}
    rubric |= {"levels": {k: f"Level {k}." for k in labels}, "values": labels}
    texts = [
        {"item_id": f"t{k}", "instruction": f"Ask {k}?", "response": f"Reply {k}."}
        for k in range(len(world["rows"]))
    ]
    scores = [
        {"item_id": f"t{k}", "score": written(world, label)}
        for k, label in enumerate(world["scores"])
    ]
    folder = tmp_path_factory.mktemp("written")
    is_named = world["ratings"] == "columns"
    columns = dict.fromkeys(world["people"], "human_ratings") if is_named else None
    try:
        source = saved(world, list(rows_of(world, texts)), folder)
        items = rb.load("csv", path=source, rubric=rubric, columns=columns)
        bare = rb.load("csv", path=texts, rubric=rubric)
        source = saved(world, list(rows_of(world, scores)), folder)
        mine = rb.judgments(source, bare, columns=columns)
    except ValueError:
        return
    assert items["response"].tolist() == [row["response"] for row in texts]
    wanted = [labels[label] for label in world["scores"]]
    assert mine["score"].astype(float).tolist() == wanted
    for found in (items, mine.rated):
        if "human_ratings" in found or "human" in found:
            check_ratings(found.get("human_ratings", found.get("human")), world)
