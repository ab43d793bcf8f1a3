"""The Done-when of an audit, as a user meets it: an empty folder,
one CSV, the lines of one page.

The CSV has thirty rows, semicolons and a byte order mark; its rubric four levels from 0
and two criteria; a third of the ratings is missing. What is run stands on the page
"Audit and gate".
"""

import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from endpoint import completion, endpoint
from typer.testing import CliRunner

from rubricnb.auditing.record import read_audit
from rubricnb.cli.commands import app

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "book/audit.md").read_text("utf-8")
WAYS = PAGE.split("\n## Four ways in\n")[1].split("\n## ")[0]
EMBEDDED, OWN_PROMPT, SCORES = re.findall(r"^```bash\n(.*)\n```", WAYS, re.M)
[FUNCTION] = re.findall(r"^```python\n(.*?)^```", WAYS, re.M | re.S)
TEMPLATE = """\
{% block system %}You grade replies: {{ definition }}{% endblock %}
{% block user %}
{{ response }}
{% for label, description in options %}
{{ label }} means {{ description }}
{% endfor %}
Answer with {"score": N}.
{% endblock %}
"""


def told(prompt):
    """How often the reply in a prompt says thanks: what its ratings are."""
    return prompt.count("thanks")


def label(prompt, score):
    """What a prompt calls a score; the highest one where there are fewer."""
    names = dict(
        re.findall(r"(\d+|\w+)(?: ?:| means) (?:kind|useful) to degree (\d+)", prompt)
    )
    degrees = {int(degree): name for name, degree in names.items()}
    return degrees.get(score, degrees[max(degrees)]) if degrees else score


def mine(messages):
    """Grade as people did; where several criteria are asked, say both."""
    prompt = messages[-1]["content"]
    score = told(prompt)
    return f"Fine. [kind] {score} [useful] {score} [RESULT] {label(prompt, score)}"


@pytest.fixture
def folder(thirty_rows, monkeypatch):
    monkeypatch.chdir(thirty_rows())
    return thirty_rows()


def audited(line, written=True):
    """Run a line of the page; what it wrote, and what it said."""
    done = CliRunner().invoke(app, shlex.split(line)[3:])
    assert done.exit_code == 0, done.output
    if not written:
        return done.output
    page = re.search(r"written: (\S+) and (\S+)", done.output)
    text = Path(page[1]).read_text("utf-8")
    assert "nan" not in re.sub(r"<[^>]+>", " ", text).split()
    return read_audit(page[2]), done.output


def on_all(found):
    """The rows about all criteria together, by measure."""
    return found.rows[found.rows.criterion == ""].set_index("measure")


def test_the_embedded_judge_is_audited(folder):
    """One text of one prompt for real; all that the page's line asks costs a minute."""
    few = EMBEDDED.replace("--n-items 10", "--n-items 2")
    assert few != EMBEDDED
    done = CliRunner().invoke(app, [*shlex.split(few)[3:]])
    assert done.exit_code == 1
    assert "1.0 effective clusters" in done.output  # nobody was asked
    found, _ = audited(f"{few} --force -o threads=1")
    assert found.judge == "smollm2-135m-instruct-embedded"
    assert found.design["n_items"] == 2
    assert found.rows.set_index("measure").effect["parsed"] == 1
    assert {"position", "order", "labels", "criteria", "edits"} <= set(
        found.rows.measure
    )
    scores = {
        float(level) for shares in found.charts["scores"].values() for level in shares
    }
    assert scores <= {0, 1, 2, 3}
    assert audited(f"{EMBEDDED} --cost", written=False).startswith("175 calls, about")


def test_a_function_is_audited(folder, capsys):
    scope = {"mine": mine}
    exec(compile(FUNCTION, "audit.md", "exec"), scope)
    rows = scope["found"].rows.set_index("question")
    assert rows.effect["agreement"] == pytest.approx(1)
    assert rows.verdict["agreement"] == "strong"
    assert rows.effect["mean score"] == 0  # scores from 0, as the ratings
    assert rows.effect["descending"] == 0
    assert scope["found"].design["n_items"] == 60
    assert scope["found"].cells.human.notna().sum() == 40  # a third is not rated
    assert read_audit("mine.json").sentence == scope["found"].sentence


def test_a_template_before_a_server_is_audited(folder):
    (folder / "my_prompt.jinja").write_text(TEMPLATE)

    def answer(payload, headers):
        system, user = (m["content"] for m in payload["messages"])
        assert system.startswith("You grade replies: ")
        score = json.dumps({"score": label(user, told(user))})
        return 200, completion(f"Well:\n```json\n{score}\n```"), {}

    with endpoint(answer) as (url, received):
        found, _ = audited(
            OWN_PROMPT.replace("MODEL@http://localhost:8000/v1", f"m@{url}")
        )
        assert received
    assert found.judge == "m-my_prompt"
    rows = on_all(found)
    assert rows.effect["agreement"] == pytest.approx(1)
    assert {"position", "order", "labels", "edits"} <= set(rows.index)
    assert "my_prompt.jinja has no slot criteria" in found.unseen["criteria"]


def test_scores_that_were_made_elsewhere_are_audited(folder):
    rows = [
        {
            "text_id": f"m{i}",
            "criterion": name,
            "read": read,
            "score": (i // 3 + 2 * (i % 3)) % 4,
        }
        for i in range(30)
        for name in ("kind", "useful")
        for read in (1, 2)
    ]
    log = pd.DataFrame(rows)
    log.loc[::10, "score"] = (log.score[::10] + 1) % 4
    log.to_csv("my_scores.csv", index=False, sep=";", encoding="utf-8-sig")
    found, said = audited(SCORES)
    measured = on_all(found)
    assert measured.effect["agreement"] > 0.5
    assert measured.effect["reask"] == pytest.approx(0.2)
    assert measured.n_clusters["agreement"] == 10
    assert "have no item" not in said
    assert "ascending and descending order were not compared" in found.unseen["order"]


@pytest.mark.parametrize("levels", [(4, 6), (5, 2)])
def test_criteria_of_different_scales_are_audited_each_on_its_own(
    thirty_rows, monkeypatch, levels
):
    folder = thirty_rows(levels)
    monkeypatch.chdir(folder)

    def answer(payload, headers):
        user = payload["messages"][-1]["content"]
        return 200, completion(f"Fine. [RESULT] {label(user, told(user))}"), {}

    with endpoint(answer) as (url, _):
        found, _ = audited(
            f"python -m rubricnb audit --judge openai:m@{url} --path my_data.csv "
            "--rubric my_rubric.yml -o concurrency=8"
        )
    rows = found.rows.set_index("question")
    assert rows.effect["agreement"] == pytest.approx(1)
    assert rows.effect["mean score"] == 0
    assert {f"{n}" for n in levels} == {
        q.split(" of ")[1] for q in rows.index if " of " in q
    }
    assert "several criteria of one scale" in found.unseen["criteria"]


def test_references_count_from_0_where_the_levels_do(folder, capsys):
    """A judge that gives every text the score
    of its reference follows it point by point.
    """
    import rubricnb as rb

    table = pd.read_csv("my_data.csv", sep=";", dtype=str, encoding="utf-8-sig").dropna(
        how="all"
    )
    for k in range(4):
        table[f"reference_{k}"] = f"A reply of degree {k}."
    table.to_csv("my_data.csv", sep=";", index=False, encoding="utf-8-sig")
    items = rb.load("csv", path="my_data.csv", rubric="my_rubric.yml")

    def follows(messages):
        prompt = messages[-1]["content"]
        shown = re.search(r"A reply of degree (\d)", prompt)
        return (
            "Fine. [RESULT] "
            f"{label(prompt, int(shown[1]) if shown else min(2, told(prompt)))}"
        )

    rows = rb.audit(follows, items).rows.set_index("measure")
    assert rows.question["reference"] == "reference 2 against 1"
    assert rows.effect["reference"] == pytest.approx(1)
    plain = items.response.str.count("thanks").clip(upper=2).mean()
    assert rows.effect["full_mark"] == pytest.approx(3 - plain)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "",
            "no judge given: use --judge embedded, --judge openai:MODEL, or "
            "--judgments FILE",
        ),
        ("--judge simulated:unbiased --path my_dta.csv", "there is no my_dta.csv"),
        (
            "--judge simulated:unbiased --output no/a.html",
            "no/a.html cannot be written: No such file",
        ),
        ("--judge simulated:unbiased --datasheet .", "name a page that ends in .html"),
        ("--judge simulated:unbiased --against no.json", "there is no no.json"),
        (
            "--judge simulated:unbiased -o sed=1",
            "has no option 'sed'; did you mean 'seed'?",
        ),
        ("--judge opnai:x", "opnai"),
        (
            "--judge simulated:unbiased --parser (",
            "parser '(' is not a regular expression: missing )",
        ),
        ("--judge simulated:unbiased --n-prompts 3", "3.0 effective clusters"),
        ("--judgments my_data.csv", "lacks 'score'. Its columns: text_id, candidate"),
    ],
)
def test_what_a_new_user_gets_wrong_is_one_line(folder, line, message):
    known = (
        "" if "--judgments" in line else "--path my_data.csv --rubric my_rubric.yml "
    )
    done = CliRunner().invoke(app, ["audit", *f"{known}{line}".split()])
    assert done.exit_code == 1
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(folder.glob("*.html"))


def test_compile_says_which_option_it_does_not_take(folder):
    line = ["compile", "my_rubric.yml", "--judge", "openai:m", "-o", "thinking=off"]
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 1
    assert "leave out thinking" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_cost_is_that_of_ones_own_prompt(folder):
    """It cannot show several criteria at once, so it is asked less;
    a long one costs more.
    """
    long = TEMPLATE.replace(
        "You grade replies", "You grade. " * 2_000 + "You grade replies"
    )
    line = (
        "audit --judge openai:gpt-4.1-mini --path my_data.csv --rubric my_rubric.yml "
        "--cost"
    )
    said = []
    for name, text in (("", ""), ("short.jinja", TEMPLATE), ("long.jinja", long)):
        (folder / "long.jinja").write_text(long)
        (folder / "short.jinja").write_text(TEMPLATE)
        own = ["--template", name, "--parser", r"Score: (\d)"] if text else []
        done = CliRunner().invoke(app, [*line.split(), *own])
        assert done.exit_code == 0, done.output
        assert "US dollars" in done.output
        said.append(
            [
                int(n.replace(",", ""))
                for n in re.findall(r"([\d,]+) (?:calls|tokens)", done.output)
            ]
        )
    book, short, long = said
    assert short[0] == long[0] < book[0]
    assert long[1] > 5 * short[1]
