"""A reader's own judge, texts and scale:
every chapter's page tells the truth about them.

The judge is an endpoint on this machine that prefers the last line of any list.
"""

import re
from pathlib import Path
from zlib import crc32

import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from closely import slow_unless_due
from endpoint import completion, endpoint
from last_line import prefers_the_last_line

import rubricnb as rb
from rubricnb.book import notebooks as book
from rubricnb.book.glue import is_unknown
from rubricnb.rulers.compile import compile_rubric
from tools.onepage import one_page

ROOT = book.find_root()
DECLARED = {
    path.stem: {parameter.name for parameter in book.parameters(path.stem, ROOT)}
    for path in sorted((ROOT / "notebooks").glob("*.md"))
}
JUDGED = [stem for stem, names in DECLARED.items() if {"judge", "path"} <= names]
RULERS = [stem for stem in JUDGED if "bundle" in DECLARED[stem]]
SMALL = {
    "n_copies": 3,
    "splits": 5,
    "studies": 2,
    "draws": 2,
    "n_draws": 3,
    "n_units": 12,
    "n_items": 30,
    "n_again": 6,
    "n_reasked": 6,
    "n_ordered": 6,
    "live_judge": "simulated:grader",
}
# readout: levels of the reader's scale, from 0
SCALES = {"feedback": 5, "logprobs": 10}
BLOCK = re.compile(r"^:{3,}\{div\} (?:answer|story)\n(.*?)^:{3,}$", re.M | re.S)
SHOWN = re.compile(r"\{glue:figure\} (\S+)")
LIVE = re.compile(r"\{glue:text\}`([^`:]+)")
OURS = re.compile(
    "|".join(rf"\b{re.escape(n)}\b" for n in set(rb.judging.judges()["name"]))
)
# A scale, a size or a judge that a page of another run would state wrongly.
TYPED = re.compile(
    r"\b(?:ten|five) (?:\w+ )?(?:orders|orderings|rotations|reads|probabilities)\b"
    r"|\bof the ten\b|× 10\b|\b1 to 5\b|\b1[ -]2[ -]3[ -]4[ -]5\b|prompt of minibench"
    r"|million parameters|judge above|default judge|would be 20\b"
)


@pytest.fixture
def run(own_data, monkeypatch, tmp_path):
    """Execute a chapter on a reader's judge and data;
    the URL of an endpoint, or a judge's name.
    """
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))

    def executed(stem, url, readout="feedback", n=5, **more):
        judge = f"openai:m@{url}" if url.startswith("http") else url
        values = (
            own_data(n)
            | SMALL
            | {"judge": judge, "readout": readout, "n_options": n}
            | more
        )
        if stem in RULERS:
            values |= {
                "judge": "simulated:grader",
                "bundle": compiled(values, tmp_path),
            }
        given = {
            name: value for name, value in values.items() if name in DECLARED[stem]
        }
        return book.execute(stem, given, root=ROOT, cell_seconds=300)

    return executed


def compiled(values, folder):
    """The file of a bundle of the reader's rubric."""
    rubrics = rb.load("csv", path=values["path"], rubric=values["rubric"]).rubrics
    grader = rb.open_judge("simulated:grader")
    bundle = compile_rubric(
        rubrics, grader, name="replies", n_items=6, store=":memory:"
    )
    return str(bundle.save(folder / "replies.json"))


def sentences(page):
    """The paragraphs, list items and captions of a page,
    without its tables and its code.
    """
    soup = BeautifulSoup(page, "html.parser")
    for part in soup.select("table, pre, code, summary"):
        part.decompose()
    return [
        " ".join(part.get_text(" ").split())
        for part in soup.select("p, li, figcaption")
    ]


def unknown_cells(page):
    """Cells of tables that say in code that a value is not known."""
    cells = BeautifulSoup(page, "html.parser").select("td")
    return [
        c for c in cells if re.fullmatch(r"nan|inf|none|<na>", c.text.strip(), re.I)
    ]


def own_run(notebook):
    """The block with which the page of an executed chapter begins."""
    return str(BeautifulSoup(one_page(notebook), "html.parser").select_one(".own"))


def drawn(shown):
    """What a reader sees: without the ids that pandas draws for each table."""
    return re.sub(r"T_[0-9a-f]{5}|0x[0-9a-f]+", "", str(shown))


def prose_of(stem):
    text = (ROOT / "notebooks" / f"{stem}.md").read_text("utf-8")
    return re.sub(r"^`{3,}\{code-cell\}.*?^`{3,}$", "", text, flags=re.M | re.S)


@pytest.mark.parametrize("stem", slow_unless_due(JUDGED))
def test_a_page_is_true_of_a_readers_judge_texts_and_scale(stem, run, warnings_of):
    with endpoint(prefers_the_last_line) as (url, _):
        done = {readout: run(stem, url, readout, n) for readout, n in SCALES.items()}
    found = {readout: book.glued(notebook) for readout, notebook in done.items()}
    prose = prose_of(stem)
    for name in SHOWN.findall("\n".join(BLOCK.findall(prose))):
        assert found["feedback"][name] == found["logprobs"][name], (
            f"{name} is the reader's"
        )
    one, other = found.values()
    live = {n for n in one.keys() & other.keys() if drawn(one[n]) != drawn(other[n])}
    for paragraph in prose.split("\n\n"):
        if OURS.search(paragraph) or TYPED.search(paragraph):
            named = {*LIVE.findall(paragraph), *SHOWN.findall(paragraph)}
            assert not live & named, paragraph
    for notebook in done.values():
        assert warnings_of(notebook) == []
        for sentence in sentences(one_page(notebook)):
            assert not re.search(
                r"\b(nan|inf|NaN)\b|:::|\{[a-z:]+\}`|object at", sentence
            ), sentence
        assert not unknown_cells(one_page(notebook))
    # what is missing on top of a page says what it needs
    lacking = [s for s in sentences(own_run(done["logprobs"])) if is_unknown(s)]
    assert all(s.startswith("Not asked: needs ") for s in lacking), lacking


NOTHING = {
    "a judge that answers nothing": lambda payload, headers: (200, completion(""), {}),
    "a judge without probabilities": lambda payload, headers: prefers_the_last_line(
        {**payload, "logprobs": False}, headers
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", NOTHING)
@pytest.mark.parametrize(
    "stem", [stem for stem in JUDGED if stem not in RULERS and stem[:2] != "03"]
)
def test_what_cannot_be_shown_is_one_line_and_the_end(stem, what, run):
    with endpoint(NOTHING[what]) as (url, _):
        page, failure = "", ""
        try:
            page = one_page(run(stem, url, "logprobs"))
        except book.BookError as error:
            failure = str(error).strip().splitlines()[-1]
    if failure:
        assert CANNOT.match(failure), failure
    else:  # it asked only for what the judge can give
        assert not any(map(is_unknown, sentences(page)))


def refuses_some(payload, headers):
    """Refuse about one request in six; the others get a score and no probabilities."""
    if crc32(payload["messages"][0]["content"].encode()) % 6 == 0:
        return 200, completion("I would rather not."), {}
    return prefers_the_last_line({**payload, "logprobs": False}, headers)


def rows_of(shown, name):
    """The cells of each row of a shown table."""
    table = BeautifulSoup(shown[name]["text/html"], "html.parser")
    return [[c.text.strip() for c in row.select("th, td")] for row in table("tr")]


@pytest.mark.slow
def test_written_scores_are_no_argmax_and_lost_reads_give_no_verdict(run):
    with endpoint(refuses_some) as (url, _):
        bias, gain = (
            book.glued(run(stem, url, "feedback", 4))
            for stem in ("05_position_bias", "07_when_permutation_helps")
        )
    kinds = {row[0]: row for row in rows_of(bias, "tab-null")}
    assert "our judge, score" in kinds
    assert kinds["stubborn, argmax"][-1] == "–", "it changes its score"
    head, *fair = rows_of(gain, "tab-fair")
    assert {row[head.index("read as")] for row in fair} == {"score"}
    assert {row[head.index("p, equivalent")] for row in fair} == {"–"}
    assert "no verdict of equivalence" in gain["doubts"]["text/plain"]
    (same,) = (r for r in rows_of(gain, "tab-verdicts") if "Balanced ≈" in r[0])
    assert same[-1] == "cannot say"
    assert "no interval" in same[-2]


LOST = {
    "08_how_many_orderings": "items only those with a rating and all 8 reads are used",
    "11_rank_reversal": "Reads without a score: ",
}


@pytest.mark.slow
@pytest.mark.parametrize("stem", LOST)
def test_lost_reads_are_said_once_and_a_score_is_no_argmax(stem, run):
    with endpoint(refuses_some) as (url, _):
        page = one_page(run(stem, url, n=4))
    assert "under a have no score" not in page
    assert any(LOST[stem] in said for said in sentences(page))
    own = [s for s in sentences(page) if "our judge" in s.lower() and "simul" not in s]
    assert own
    assert not any(re.search("argmax|likeliest", said) for said in own)


FILES = {
    "without ratings": lambda rows, rubric: (rows.drop(columns=RATINGS), rubric),
    "one criterion": lambda rows, rubric: (rows.drop(columns=RATINGS[1]), rubric[:1]),
    "one prompt": lambda rows, rubric: (
        rows[rows["instruction"] == "Answer mail 0."],
        rubric,
    ),
}
CANNOT = re.compile(
    r"This page ends here: m gave no score in any of|"
    r"JudgeError: \S+ m refused: it gave no log-probabilities: choose readout|"
    r"JudgeError: \S+ m: not one answer so far could be used"
)
RATINGS = ["human_kind", "human_useful"]
SAID = re.compile(r"(?:ValueError|CannotShow): .+|This page ends here: .+")


@pytest.fixture
def poor_file(own_data, tmp_path):
    """Own data that lack something."""

    def written(lack):
        given = own_data(5)
        rows = pd.read_csv(given["path"], sep=";").dropna(subset="text_id")
        rubric = yaml.safe_load(Path(given["rubric"]).read_text("utf-8"))
        rows, rubric = FILES[lack](rows, rubric)
        rows.to_csv(tmp_path / "poor.csv", index=False)
        (tmp_path / "poor.yml").write_text(yaml.safe_dump(rubric), "utf-8")
        return {
            "path": str(tmp_path / "poor.csv"),
            "rubric": str(tmp_path / "poor.yml"),
        }

    return written


@pytest.mark.slow
@pytest.mark.parametrize("lack", FILES)
@pytest.mark.parametrize("stem", JUDGED)
def test_a_file_that_lacks_something_gives_lines_and_no_nan(stem, lack, run, poor_file):
    page, failure = "", ""
    try:
        page = one_page(run(stem, "simulated:first-biased", **poor_file(lack)))
    except book.BookError as error:
        failure = str(error).strip().splitlines()[-1]
    if failure:
        assert SAID.match(failure), failure
    else:
        assert not [
            said for said in sentences(page) if re.search(r"\b(nan|inf|NaN)\b", said)
        ]
