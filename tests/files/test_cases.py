"""Tables, rubrics and answers as people bring them:
the right value, or a way out, by name.

Each file of ``cases/`` holds cases of a kind: what came, and what is right. A case has
files, and is loaded as texts, as scores, or both; what is refused is refused on the
command line as well.
"""

import re
from pathlib import Path

import pandas as pd
import pytest
import yaml
from endpoint import completion, endpoint
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.cli.commands import app
from rubricnb.core.thoughts import without_thoughts
from rubricnb.files.rubrics import read_rubrics

CASES = Path(__file__).parent / "cases"
QUALITY = {
    "criterion": "quality",
    "definition": "How good is the reply?",
    "levels": {1: "Useless.", 2: "Weak.", 3: "Fair.", 4: "Good.", 5: "Excellent."},
}


class _Loader(yaml.SafeLoader):
    """YAML in which None, yes and no are words, as in a file of rubrics."""


_Loader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:bool"]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def content(name):
    return yaml.load((CASES / f"{name}.yml").read_text("utf-8"), _Loader)


TABLES = [
    pytest.param(case, id=f"{kind}: {case['name']}")
    for kind in ("ratings", "rows", "files", "reading")
    for case in content(kind)
]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(case):
    """Write a case's files; return the names of its texts and its log."""
    Path("rubric.yml").write_text(yaml.safe_dump(case.get("rubric", QUALITY)), "utf-8")
    names = {}
    for name, text in case["files"].items():
        Path(name).write_text(text, "utf-8")
        if case.get("parquet") == name:
            name = f"{Path(name).stem}.parquet"
            pd.read_json(case["parquet"], lines=True).to_parquet(name)
        names[Path(name).stem] = name
    return names


def refusal(*asked):
    """Return the words with which something is refused, "" if it is not."""
    try:
        read(*asked)
    except ValueError as refused:
        return str(refused)
    return ""


def read(case, names, decide=()):
    """Read a case by the Python door; return what it gives, by column."""
    items, found = None, {}
    decide = decide or case.get("decide", ())
    if "texts" in case:
        known = rb.reading(
            names["texts"], rubric="rubric.yml", decide=decide, **case["texts"]
        )
        items = rb.load("csv", path=known, rubric="rubric.yml")
        found |= {name: items[name].tolist() for name in items}
    if "scores" in case:
        how = dict(case["scores"])
        scale = how.get("scale")
        how["scale"] = tuple(scale) if isinstance(scale, list) else scale
        mine = rb.judgments(rb.reading(names["log"], items, decide=decide, **how))
        found |= {name: mine.rated[name].tolist() for name in mine.rated}
        found |= {name: mine[name].tolist() for name in mine}
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("case", TABLES)
def test_a_table_gives_the_right_value_or_a_way_out(desk, case, capsys):
    names = written(case)
    if refused := case.get("refused"):
        with pytest.raises(ValueError, match=f"(?s){refused}") as raised:
            read(case, names)
        for line in re.findall(r"(?m)^ {4}(.+?) {4}#", str(raised.value)):
            assert line not in refusal(case, names, [line])
        return
    found = read(case, names)
    for name, values in case.get("gives", {}).items():
        given = [
            None if not isinstance(v, tuple) and pd.isna(v) else v for v in found[name]
        ]
        given = [
            [None if pd.isna(one) else one for one in v] if isinstance(v, tuple) else v
            for v in given
        ]
        assert given == values, name
    if "clusters" in case:
        assert len(set(found["cluster_id"])) == case["clusters"]
    if said := case.get("said"):
        assert re.search(said, capsys.readouterr().out)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "case", [param for param in TABLES if "refused" in param.values[0]]
)
def test_the_command_refuses_it_and_advises_its_own_options(desk, case):
    names, how = written(case), case.get("scores", {}) | case.get("texts", {})
    arguments = ["audit", "--force", "--output", "page.html"]
    if "texts" in case:
        arguments += ["--path", names["texts"], "--rubric", "rubric.yml"]
    arguments += (
        ["--judgments", names["log"]]
        if "scores" in case
        else ["--judge", "simulated:unbiased"]
    )
    scale = how.get("scale")
    if isinstance(scale, str):
        pytest.skip("the command takes two numbers")
    arguments += ["--scale", *map(str, scale)] if scale else []
    if columns := how.get("columns"):
        arguments += [
            "--columns",
            ",".join(f"{old}={new}" for old, new in columns.items()),
        ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert not re.search(r"\b(columns|scale|failed|scores)=", done.output)
    assert "Traceback" not in done.output
    assert case.get("command", "") in done.output
    assert not Path("page.html").exists()


@pytest.mark.parametrize(
    "case", content("labels"), ids=lambda case: "/".join(case["labels"])
)
def test_labels_have_known_scores_or_none(case):
    levels = {label: f"Level {label}." for label in case["labels"]}
    rubric = {"criterion": "taste", "definition": "How good?", "levels": levels}
    if "refused" in case:
        with pytest.raises(ValueError, match=case["refused"]):
            read_rubrics(rubric)
        return
    assert read_rubrics(rubric)["score"].tolist() == case["scores"]


PROMPT = """Dish: {{ instruction }}
Reply: {{ response }}
{{ definition }}
{% for label, text in options %}{{ label }}: {{ text }}
{% endfor %}Grade it.
"""


def verdict(says, parser, reply="Boil it."):
    Path("prompt.jinja").write_text(PROMPT)
    items = rb.load(
        "csv", path=[{"instruction": "Rice?", "response": reply}], rubric=QUALITY
    )
    how = {"parser": parser, "template": "prompt.jinja"} if parser else {}
    judge = rb.open_judge(lambda messages: says, name="quotes", **how)
    got = rb.run(rb.plan(items, rb.fixed(5, 1)), judge, store=":memory:")
    return None if pd.isna(got.score[0]) else int(got.score[0])


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "case", content("answers")["answers"], ids=lambda case: case["says"][:60]
)
def test_a_quoted_score_is_not_the_judges(desk, case):
    assert (
        verdict(case["says"], case["parser"], content("answers")["reply"])
        == case["score"]
    )


@pytest.mark.parametrize(("begins", "ends"), content("answers")["marks"])
def test_nothing_inside_a_thought_is_an_answer(begins, ends):
    assert (
        without_thoughts(f'{begins}Maybe {{"score": 2}}? {ends}So: 4').strip()
        == "So: 4"
    )
    assert without_thoughts(f'{begins}Maybe {{"score": 2}}? Or more') == ""


@pytest.fixture(scope="module")
def ten():
    levels = {k: f"Level {k}." for k in range(1, 11)}
    return rb.load(
        "csv",
        path=[{"instruction": "Rice?", "response": "Boil it."}],
        rubric=QUALITY | {"levels": levels},
    )


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "case", content("endings"), ids=lambda case: f"{case['reason']} {case['says']}"
)
def test_a_reason_to_finish_says_whether_the_end_is_there(ten, case):
    answer = (200, completion(case["says"], case["reason"]), {})
    with endpoint(lambda payload, headers: answer) as (url, _):
        judge = rb.open_judge(f"openai:m@{url}", retries=0, server="other")
        got = rb.run(
            rb.plan(ten, rb.fixed(10, 1), readout="feedback"), judge, store=":memory:"
        )
        judge.close()
    assert got.status.tolist() == [case["status"]]


def test_an_answer_that_is_all_thought_says_where_its_text_is(ten, capsys):
    answer = (200, completion("", reasoning="It is fine. [RESULT] 4"), {})
    with endpoint(lambda payload, headers: answer) as (url, _):
        judge = rb.open_judge(f"openai:m@{url}", retries=0, server="other")
        got = rb.run(
            rb.plan(ten, rb.fixed(10, 1), readout="feedback"), judge, store=":memory:"
        )
        judge.close()
    assert got.status.tolist() == ["error"]
    assert "all its text is in 'reasoning'" in "".join(capsys.readouterr())


MIXED = [
    {
        "criterion": "tone",
        "definition": "Is it kind?",
        "weight": 2,
        "levels": {1: "Rude.", 2: "Neutral.", 3: "Kind."},
    },
    {
        "criterion": "safe",
        "definition": "Is it safe?",
        "levels": {"yes": "Safe.", "no": "Not."},
    },
]


@pytest.mark.in_turn
def test_criteria_of_several_scales_are_audited(desk):
    """Numbers beside yes and no, and a weight that only one criterion has."""
    rows = [
        {
            "text_id": f"t{i:02d}",
            "instruction": f"Ask {i}?",
            "response": f"Reply {i:02d}.",
            "human_tone": 1 + i % 3,
            "human_safe": ["yes", "no"][i % 2],
        }
        for i in range(24)
    ]
    items = rb.load("csv", path=rows, rubric=MIXED)

    def honest(messages):
        text = messages[-1]["content"]
        number = int(re.search(r"Reply (\d\d)", text)[1])
        return (
            "[RESULT] "
            f"{1 + number % 3 if 'kind' in text else ['yes', 'no'][number % 2]}"
        )

    found = rb.audit(honest, items, store=":memory:", readout="feedback")
    agreement = found.rows[found.rows.measure == "agreement"]
    assert (agreement.effect == 1).all()
    log = [
        {"text_id": row["text_id"], "criterion": c, "score": row[f"human_{c}"]}
        for row in rows
        for c in ("tone", "safe")
    ]
    mine = rb.judgments(log, items)
    assert rb.agreement(mine, mine.rated)["r"].tolist() == pytest.approx([1, 1])
    found = rb.audit(judgments=mine)
    assert (found.rows[found.rows.measure == "agreement"].effect > 0.999).all()
