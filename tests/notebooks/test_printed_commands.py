"""What a chapter prints for a shell is executed as printed,
with few items and a local judge.

The commands about position bias fill tables and are run by test_paper_tables.py.
"""

import pytest
from bs4 import BeautifulSoup
from commands import ROOT, printed, run
from endpoint import endpoint
from test_paper_tables import LINES, judged

from rubricnb.book import notebooks as book
from tools import building
from tools.due import due

SMALL = {
    "n_draws": 3,
    "n_calibration": 12,
    "n_reasked": 6,
    "n_ordered": 6,
    "methods": "rulers dhs",
}
COMMANDS = [
    command
    for stem in building.notebooks(ROOT)
    for command in printed(stem)
    if (stem, command.output)
    not in {(line.stem, line.command) for line in LINES.values()}
]


def of_due_chapters():
    read = {page.removeprefix("notebooks/") for page in due().pages}
    for command in COMMANDS:
        marks = () if command.stem in read else pytest.mark.slow
        yield pytest.param(command, marks=marks, id=str(command))


@pytest.mark.in_turn
@pytest.mark.parametrize("command", list(of_due_chapters()))
def test_a_printed_command_runs(
    command, mirror, own_file, tmp_path, monkeypatch, warnings_of
):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    known = {parameter.name for parameter in book.parameters(command.stem, ROOT)}
    few = {name: value for name, value in SMALL.items() if name in known}
    if "n_items" in known and "path" not in command.values:
        few["n_items"] = 30
    if "path" in command.values:  # its file is the reader's own
        few["path"] = str(own_file[command.values["dataset"]])
    with endpoint(judged) as (url, received):
        for name in {"judge", "order_judge"} & set(command.values):
            few[name] = f"openai:m@{url}"
        done = run(command, tmp_path, **few)
    assert bool(received) == ("judge" in command.values)
    assert [said for said in warnings_of(done) if "Warning" in said] == []
    assert book.glued(done)


def test_every_chapter_with_a_command_is_among_them():
    stems = {command.stem.split("_")[0] for command in COMMANDS}
    assert {"03", "13", "14", "15", "16", "17", "18"} <= stems


EVERY = [command for stem in building.notebooks(ROOT) for command in printed(stem)]
# In any run, since no item of this run is counted. What else fails, fails because of
# what was drawn.
FAILS_ALWAYS = (
    "values that a checklist decision can take",
    "items that come with a reference answer (mt-bench)",
    "items that come with a reference answer (vicuna)",
    "different hand-crafted rubrics",
)


def verdicts_of(done):
    """Statement → verdict, of what the page shows; nothing if it ended before."""
    shown = book.glued(done).get("tab-verdicts")
    if shown is None:
        return {}
    table = BeautifulSoup("".join(shown["text/html"]), "html.parser")
    rows = [[cell.get_text() for cell in row("td")] for row in table("tr")]
    return {row[0]: row[3] for row in rows if row}


@pytest.mark.slow
@pytest.mark.parametrize("n_items", [1, 16])
@pytest.mark.parametrize("command", EVERY, ids=str)
def test_too_few_texts_get_no_verdict(
    command, n_items, mirror, own_file, tmp_path, monkeypatch
):
    """One text has no interval; a draw says nothing of the size of its set."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    known = {parameter.name for parameter in book.parameters(command.stem, ROOT)}
    few = {name: value for name, value in SMALL.items() if name in known}
    few |= {"n_items": n_items} if "n_items" in known else {}
    if "path" in command.values:
        few["path"] = str(own_file[command.values["dataset"]])
    with endpoint(judged, owned_by="vllm") as (url, _):
        for name in {"judge", "order_judge"} & set(command.values):
            few[name] = f"openai:qwen3-32b@{url}"
        if command.stem.startswith("10") and n_items == 1:
            with pytest.raises(AssertionError, match="an order needs two: raise n_it"):
                run(command, tmp_path, **few)
            return
        done = run(command, tmp_path, **few)
    found = verdicts_of(done)
    failed = [said for said, verdict in found.items() if verdict == "the count fails"]
    assert [said for said in failed if not any(x in said for x in FAILS_ALWAYS)] == []
    if n_items == 1:
        decided = {"replicates", "does not"}
        assert [said for said, verdict in found.items() if verdict in decided] == []
