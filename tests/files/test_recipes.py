"""Every line that the pages on data print for a tool runs on a file of that tool."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import rubricnb as rb

ROOT, HERE = Path(__file__).parents[2], Path(__file__).parent
LINE = re.compile(r"`(rb\.(?:load|judgments)\(.+?\))`")
WANTED = {  # rows, and how many of them have a score
    "log.csv": (4, 4),
    "wide.csv": (4, 4),
    "failed.csv": (2, 1),
    "log_rated.csv": (2, 2),
    "logs/replies.eval": (32, 31),
    "results.json": (16, 13),
    "test_run.json": (8, 5),
    "phoenix_frame.csv": (2, 1),
    "report.json": (3, 3),
    "langfuse_scores.csv": (6, 5),
    "mlflow.csv": (4, 4),
    "ragas.csv": (3, 2),
    "gpt-4_single.jsonl": (5, 4),
    "output_items.json": (4, 4),
    "annotations.json": (3, 2),
    "judges.csv": (4, 4),
    "yes_no.csv": (2, 2),
    "said.csv": (2, 2),
    "langsmith.csv": (2, 2),
    "langfuse_observations.csv": (3, 3),
    "phoenix.csv": (2, 2),
    "samples_qa.jsonl": (2, 2),
    "reversed.jsonl": (4, 3),
    "jev.jsonl": (3, 3),
    "mails.csv": 2,
    "rated.csv": 2,
    "augmented_biggen.json": 1,
    "augmented_flask.json": 1,
}
FILES = {
    "log.csv": "id,value\na,1\na,2\nb,4\nb,5\n",
    "wide.csv": "item_id,tone,accuracy\na,1,2\nb,4,5\n",
    "failed.csv": "item_id,score\na,4\nb,-1\n",
    "log_rated.csv": "item_id,score,rater_1,rater_2\na,4,3,4\nb,2,1,2\n",
    "judges.csv": "item_id,human,gpt,haiku\na,4,4,2\nb,2,2,3\n",
    "yes_no.csv": "item_id,score\na,yes\nb,no\n",
    "said.csv": "item_id,score\na,Fine. Score: 4\nb,2 faults. Score: 4.5\n",
    "langfuse_observations.csv": "id,name,value,source,traceId,observationId\n"
    "s1,tone,1,EVAL,t1,o1\ns2,tone,0.5,EVAL,t1,o2\ns3,tone,0,EVAL,t2,o3\n",
    "phoenix.csv": "context.span_id,context.trace_id,name,label,score,explanation\n"
    "s1,t1,relevance,good,1,It fits.\ns1,t1,tone,bad,0,It shouts.\n",
    "phoenix_frame.csv": ",input,output,kind_execution_details,kind_score\n"
    "0,a,Hello.,\"{'status': 'COMPLETED'}\",\"{'name': 'kind', 'score': 0.8}\"\n"
    "1,b,Hey.,\"{'status': 'FAILED'}\",\n",
    "report.json": json.dumps(
        {
            "name": "mail",
            "cases": [
                {
                    "name": "c1",
                    "scores": {
                        "tone": {
                            "value": 0.0,
                            "source": {"name": "Kind", "arguments": [9]},
                        },
                        "tone_2": {"value": 1.0, "source": {"name": "Kind"}},
                    },
                },
                {
                    "name": "c2",
                    "scores": {"tone": {"value": 1.0, "source": {"name": "Kind"}}},
                },
            ],
        }
    ),
    "samples_qa.jsonl": '{"doc_id": 0, "filter": "strict", "exact_match": 1.0, '
    '"doc": {}}\n'
    '{"doc_id": 0, "filter": "flexible", "exact_match": 0.0, "doc": {}}\n',
    "langsmith.csv": "example_id,inputs.q,feedback.correctness\na,So?,1\nb,Why?,0.5\n",
    "mails.csv": "question,answer,rating\nHow?,So.,3\nWhy?,Because.,4\n",
    "rated.csv": (
        "instruction,response,rater_1,rater_2\nHow?,So.,3,4\nWhy?,Because.,4,\n"
    ),
}


def lines():
    for page in ("own-data", "judgments-elsewhere", "found-in-2026"):
        for line in LINE.findall((ROOT / f"book/{page}.md").read_text("utf-8")):
            name = re.search(
                r'(?:path=|judgments\(|reading\(|open\(|read_csv\()"([^"]+)"', line
            )[1]
            yield pytest.param(line, name, id=name)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    exports = [HERE / "exports", HERE.parent / "sets" / "exports"]
    for file in (file for folder in exports for file in folder.iterdir()):
        shutil.copy(file, tmp_path)
    (tmp_path / "logs").mkdir()
    shutil.copy(HERE / "logs/inspect_replies.eval", tmp_path / "logs/replies.eval")
    shutil.copy(HERE / "logs/promptfoo_repeat.json", tmp_path / "results.json")
    shutil.copy(HERE / "logs/deepeval_above_one.json", tmp_path / "test_run.json")
    shutil.copy(ROOT / "examples/own-data/my_rubric.yml", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("line", "name"), [*lines()])
def test_a_line_of_the_pages_reads_what_the_tool_wrote(desk, line, name):
    found = eval(line, {"rb": rb, "pd": pd, "json": json})
    wanted = WANTED[name]
    if isinstance(wanted, tuple):
        assert (len(found), found.score.notna().sum()) == wanted
        assert found.request_id.is_unique
    else:
        assert len(found) == wanted
        assert found.human.notna().all()


def test_every_file_of_the_pages_is_wanted():
    assert {param.values[1] for param in lines()} == set(WANTED)


@pytest.mark.in_turn
def test_an_audit_of_a_rubric_with_gaps_from_a_sheet_in_five_lines(desk, capsys):
    """A rubric of 1-3-5-7 and texts, as a spreadsheet saves them as Unicode text."""
    levels = [("kind", "Is it kind?", k, f"Level {k}.") for k in (1, 3, 5, 7)]
    rubric = pd.DataFrame(
        levels, columns=["criterion", "definition", "score", "description"]
    )
    texts = pd.DataFrame({"Instruction": [f"Ask {i}." for i in range(12)]})
    texts = texts.assign(
        Response=[f"Good day, {'dear ' * (i % 4)}sir." for i in range(12)]
    )
    texts["Human"] = [1 + 2 * (i % 4) for i in range(12)]
    for name, frame in (("rubric", rubric), ("texts", texts)):
        frame.to_csv(f"{name}.txt", sep="\t", index=False, encoding="utf-16")
    items = rb.load("csv", path="texts.txt", rubric="rubric.txt")
    found = rb.audit("simulated:first-biased", items, "audit.html", store=":memory:")
    assert "read as utf_16" in capsys.readouterr().out
    assert Path("audit.html").stat().st_size > 10_000
    assert found.rows.set_index("measure").effect["parsed"] == 1
