"""A datasheet describes one judge,
and the gate refuses it when that judge is another one.
"""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.auditing.record import read_audit
from rubricnb.cli.commands import app
from rubricnb.testing import assert_judge

PROMPT = (
    "{{ response }}\n{% for label, text in options %}\n{{ label }}: {{ text }}\n{% "
    "endfor %}\n"
)
JUDGE = (
    "--judge simulated:first-biased -o seed=3 --path my_data.csv --rubric "
    "my_rubric.yml "
    r"--template prompt.jinja --parser \[RESULT\]\s(\w+)"
)
# part → where its text is, what is changed in it to what, and what the gate shows
CHANGES = {
    "template": (
        "prompt.jinja",
        "Grade",
        "Mark",
        r"text was .*Grade .* and is .*Mark ",
    ),
    "rubric": (
        "my_rubric.yml",
        "degree 2",
        "grade 2",
        r"kind, score 2 was .*to degree 2",
    ),
    "parser": ("", r"\s(", r"\s*(", r"reads was .*\\s\(.* and is .*\\s\*\("),
    "model": ("", "seed=3", "seed=4", r"identity was .*\"seed\": 3, .*\"seed\": 4, "),
}


@pytest.fixture
def found(thirty_rows, monkeypatch):
    """The audit in the datasheet of a team's judge with its own prompt,
    rubric and parser.
    """
    monkeypatch.chdir(thirty_rows())
    Path("prompt.jinja").write_text(f"{PROMPT}Grade {{{{ criterion }}}}. [RESULT]")
    done = audit(f"{JUDGE} --datasheet datasheet.html")
    assert done.stdout.endswith("written: datasheet.html and datasheet.json\n"), (
        done.output
    )
    return read_audit("datasheet.json")


def audit(line):
    return CliRunner().invoke(app, ["audit", *line.split()])


@pytest.mark.in_turn
def test_the_page_says_what_was_tested_and_loads_nothing(found):
    page = Path("datasheet.html").read_text("utf-8")
    assert not re.search(r"@import|url\(|<script|(src|href)=", page)
    for shown in (
        found.hashes["all"],
        found.sentence,
        "Grade {{ criterion }}",
        r"\[RESULT\]\s(",
    ):
        assert shown in page
    # no judged text
    assert "goodbye" not in page + Path("datasheet.json").read_text("utf-8")
    ladder = page.split("<h2>Ladder of quality</h2>")[1].split("</table>")[0]
    for level, own in found.cells.dropna(subset=["human", "baseline"]).groupby("human"):
        gap = f"{(own.baseline - level).mean():+.2f}".replace("-", "−")
        assert f'<th scope="row">{level:g}</th><td>{gap} [' in ladder
    pairs = found.cells.merge(found.cells, on=["criterion", "cluster_id"])
    pairs = pairs[pairs.item_id_x < pairs.item_id_y]
    tied = (pairs.baseline_x == pairs.baseline_y).mean()
    assert found.charts["ties"]["n"] == 60
    assert found.charts["ties"]["effect"] == pytest.approx(tied, rel=1e-12)


@pytest.mark.in_turn
def test_the_gate_passes_the_same_judge_and_names_the_part_that_changed(found):
    gate = f"{JUDGE} --check datasheet.json"
    assert audit(gate).exit_code == 0
    assert "parsed" in audit(f"{gate} --fail-on parsed>0.5").stderr
    for part, (file, old, new, said) in CHANGES.items():
        text = Path(file).read_text("utf-8") if file else gate
        if file:
            Path(file).write_text(text.replace(old, new), "utf-8")
        done = audit(gate if file else gate.replace(old, new))
        assert done.exit_code == 3
        assert re.findall(r"the (\w+) has changed since the audit", done.stderr) == [
            part
        ]
        assert re.search(f"{said}.*Restore it, or audit the judge again", done.stderr)
        if file:
            Path(file).write_text(text, "utf-8")
    assert audit(gate).exit_code == 0


@pytest.mark.in_turn
def test_a_damaged_or_foreign_file_is_refused_in_one_line(found):
    whole = Path("datasheet.json").read_text("utf-8")
    better = json.dumps(json.loads(whole) | {"status": {"ok": 9}})
    foreign = '{"schema": "other/1"}'
    said = {
        whole[:-99]: "JSONDecodeError",
        better: "edited or damaged",
        foreign: "schema is",
    }
    for text, why in said.items():
        Path("datasheet.json").write_text(text, "utf-8")
        done = audit(f"{JUDGE} --check datasheet.json")
        assert (done.exit_code, done.stderr.strip().count("\n")) == (1, 0)
        assert why in done.stderr


def test_judgments_made_elsewhere_have_no_datasheet():
    items = rb.load("minibench", n_items=15)
    log = rb.simulate(rb.plan(items, rb.fixed(5, 1)), items, "unbiased")
    found = rb.audit(judgments=log, items=items)
    with pytest.raises(ValueError, match="judgments were made elsewhere"):
        found.save("never.html", datasheet=True)
    with pytest.raises(ValueError, match="does not record prompt, rubric and parser"):
        assert_judge(found, judge="simulated:unbiased", items=items)
    done = audit("--judge simulated:unbiased --check a.json --against b.json")
    assert "leave out --against" in done.stderr
