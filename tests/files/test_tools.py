"""How `rb.judgments` reads a file of each shape in ``findings/tools.csv``.

The inputs have the tools' shapes and our own words. `READS` has a function for each
line of the file; ``tests/test_what_your_tool_did.py`` compares the two.
"""

import json

import pandas as pd
import pytest

import rubricnb as rb


def csv(folder, text, **options):
    path = folder / "scores.csv"
    path.write_text(text)
    return rb.judgments(path, **options)


def jsonl(folder, rows, **options):
    path = folder / "scores.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return rb.judgments(path, **options)


def scores(judgments):
    """Scores in row order; None where there is none."""
    return [None if pd.isna(score) else float(score) for score in judgments.score]


def inspect_log(folder, scorers, samples, results=None):
    about = {"task": "texts", "model": "mock/writer", "scorers": scorers}
    log = {"version": 2, "status": "success", "eval": about, "samples": samples}
    path = folder / "log.json"
    path.write_text(json.dumps(log | {"results": results or {}}))
    return path


def rubric_items(folder, levels):
    """Three texts, and a rubric whose levels have the labels of a tool."""
    rubric = {
        "rubric_id": "tone",
        "criterion": "tone",
        "definition": "Is the reply kind?",
        "levels": levels,
        "values": {label: value for value, label in enumerate(levels, 1)},
    }
    (folder / "rubric.yml").write_text(json.dumps([rubric]))
    (folder / "texts.csv").write_text(
        "text_id,instruction,response\n"
        + "".join(f"{name},Reply.,Reply {name}.\n" for name in "abcd")
    )
    return rb.load("csv", path=folder / "texts.csv", rubric=folder / "rubric.yml")


def promptfoo(folder, parts):
    asked = {"type": "llm-rubric", "value": "Is the reply kind?", "metric": "kind"}
    results = [
        {
            "promptIdx": 0,
            "testIdx": number,
            "provider": {"id": "local"},
            "vars": {"mail": f"mail {number}"},
            "testCase": {"vars": {"mail": f"mail {number}"}},
            "response": {"output": f"reply {number}"},
            "gradingResult": {"componentResults": [part | {"assertion": asked}]},
        }
        for number, part in enumerate(parts)
    ]
    path = folder / "results.json"
    path.write_text(json.dumps({"results": {"version": 3, "results": results}}))
    return path


def promptfoo_no_verdict(folder, capsys):
    parts = [
        {"pass": True, "score": 1, "reason": "Grading passed"},
        {"pass": True, "score": 1, "reason": "It thanks the customer."},
        {"pass": False, "score": 0, "reason": "It blames the customer."},
    ]
    mine = rb.judgments(promptfoo(folder, parts))
    assert scores(mine) == [None, 1, 0]
    assert mine.status.tolist() == ["unparsed", "ok", "ok"]
    assert "1 of 3 scores are unparsed" in capsys.readouterr().out


def promptfoo_csv_failures(folder, capsys):
    table = (
        "mail,[local] reply,Status,Score,Named Scores,Grader Reason\n"
        "mail 0,reply 0,PASS,1.00,,kind\nmail 1,reply 1,FAIL,0.00,,no JSON\n"
    )
    with pytest.raises(ValueError, match=r"lacks 'item_id'|JSON"):
        csv(folder, table)
    part = {"pass": False, "score": 0, "reason": "The grader's reply is not JSON"}
    mine = rb.judgments(
        promptfoo(folder, [part | {"metadata": {"graderError": True}}, part])
    )
    assert mine.status.tolist() == ["error", "ok"]


def inspect_epochs(folder, capsys):
    samples = [
        {"id": name, "epoch": epoch, "scores": {"grade": {"value": value}}}
        for name in ("a", "b")
        for epoch, value in enumerate(("C", float("nan"), float("nan")), 1)
    ]
    mine = rb.judgments(inspect_log(folder, [{"name": "grade"}], samples), scale=(0, 1))
    assert scores(mine) == [1, None, None] * 2
    assert mine.replicate.tolist() == [1, 2, 3] * 2
    assert mine.status.tolist() == ["ok", "unparsed", "unparsed"] * 2


def inspect_one_name_twice(folder, capsys):
    name = "model_graded_qa"
    models = {name: "mock/one", f"{name}1": "mock/two"}
    scorers = [{"name": name, "options": {"model": model}} for model in models.values()]
    results = {
        "scores": [
            {"name": key, "scorer": name, "params": {"model": model}}
            for key, model in models.items()
        ]
    }
    graded = {name: {"value": "C"}, f"{name}1": {"value": "I"}}
    samples = [{"id": text, "epoch": 1, "scores": graded} for text in "abc"]
    mine = rb.judgments(inspect_log(folder, scorers, samples, results), scale=(0, 1))
    assert set(zip(mine.judge, mine.score, strict=True)) == {
        ("mock/one", 1),
        ("mock/two", 0),
    }


def inspect_letters(folder, capsys):
    grades = {"A": "Kind.", "B": "Polite.", "C": "Curt.", "D": "Rude."}
    items = rubric_items(folder, grades)
    samples = [
        {"id": text, "epoch": 1, "scores": {"tone": {"value": grade}}}
        for text, grade in zip("abcd", "ABCD", strict=True)
    ]
    results = {"scores": [{"name": "tone", "metrics": {"mean": {"value": 0.25}}}]}
    log = inspect_log(folder, [{"name": "tone"}], samples, results)
    assert scores(rb.judgments(log, items)) == [1, 2, 3, 4]


def mlflow_mean(folder, capsys):
    table = "trace_id,tone/value\na,5\nb,4\nc,unsure\nd,1\n"
    columns = {"trace_id": "item_id", "tone/value": "tone"}
    mine = csv(folder, table, scale=(1, 5), columns=columns, scores=["tone"])
    assert scores(mine) == [5, 4, None, 1]
    assert "1 of 4 scores are unparsed" in capsys.readouterr().out


def phoenix_first_error(folder, capsys):
    table = "context.span_id,score\na,1\nb,0\nc,\nd,\n"
    mine = csv(folder, table, scale=(0, 1), columns={"context.span_id": "item_id"})
    assert scores(mine) == [1, 0, None, None]
    assert "2 of 4 scores are unparsed" in capsys.readouterr().out


def ragas_range(folder, capsys):
    table, columns = "user_input,kind\na,3\nb,9\nc,5\n", {"user_input": "item_id"}
    mine = csv(folder, table, scale=(1, 5), columns=columns, scores=["kind"])
    assert mine.status.tolist() == ["ok", "out_of_range", "ok"]
    assert "off the scale 1..5), the first in row 2: 9" in capsys.readouterr().out


def lm_eval_texts(folder, capsys):
    def read(values):
        rows = [{"doc_id": n, "value": value} for n, value in enumerate(values)]
        columns = {"doc_id": "item_id", "value": "score"}
        return jsonl(folder, rows, scale=(-5, 1), columns=columns)

    assert scores(read(["-1.0", "0.5"])) == [-1, 0.5]
    for values in (["False", "True"], [[1, "[0.2 0.8]"], [0, "[0.6 0.4]"]]):
        with pytest.raises(ValueError, match="is not a number"):
            read(values)


def autorubric_cannot_assess(folder, capsys):
    rows = [
        {"item_id": "a", "score": 1.0, "label": "kind", "na": False},
        {"item_id": "b", "score": 0.0, "label": "Cannot assess", "na": True},
        {"item_id": "c", "score": 0.5, "label": "curt", "na": False},
    ]
    assert scores(jsonl(folder, rows, scale=(0, 1))) == [1, None, 0.5]


def harness_lowest_score(folder, capsys):
    table = "item_id,score,error\na,4,\nb,1,timeout\nc,5,\n"
    mine = csv(folder, table, scale=(1, 5))
    assert scores(mine) == [4, None, 5]
    table = "item_id,score,parse_error\na,4,false\nb,1,true\nc,5,false\n"
    assert scores(csv(folder, table, scale=(1, 5))) == [4, None, 5]


def decision_uniform(folder, capsys):
    third = 1 / 3
    rows = [
        {"item_id": "a", "score": 2, "probabilities": [0.1, 0.7, 0.2], "status": "ok"},
        {"item_id": "b", "score": None, "probabilities": [third] * 3},
        {"item_id": "c", "score": 2, "status": "refused"},
    ]
    mine = jsonl(folder, rows, scale=(1, 3))
    assert scores(mine) == [2, None, None]
    assert mine.status.tolist()[2] == "refused"


def decision_name_echoed(folder, capsys):
    mine = csv(folder, "item_id,score,judge\na,1,nobody\nb,2,nobody\n", scale=(1, 3))
    assert set(mine.judge) == {"nobody"}


def deepeval_tens(folder, capsys):
    cases = [
        {
            "name": f"case {number}",
            "input": "Explain it.",
            "actualOutput": f"Explanation {number}.",
            "metricsData": [
                {"name": "clarity [GEval]", "score": score, "evaluationModel": "local"}
            ],
        }
        for number, score in enumerate((0.5, 1.0))
    ]
    path = folder / "test_run.json"
    path.write_text(json.dumps({"testCases": cases}))
    assert scores(rb.judgments(path)) == [0.5, 1.0]


def trulens_smallest(folder, capsys):
    replies = [
        "It meets 2 of 3 points. Score: 8",
        "Score: 7",
        "It has 3 parts. Score: 9",
    ]
    rows = [
        {"item_id": str(n), "score": score, "reply": reply}
        for n, (score, reply) in enumerate(zip((2, 7, 3), replies, strict=True))
    ]
    assert scores(jsonl(folder, rows, scale=(0, 10))) == [2, 7, 3]
    again = [{"item_id": row["item_id"], "score": row["reply"]} for row in rows]
    mine = jsonl(folder, again, scale=(0, 10), parser=r"Score: (\d+)")
    assert scores(mine) == [8, 7, 9]


def pydantic_evals_names(folder, capsys):
    rows = [
        {"item_id": "a", "criterion": "tone", "source": "strict", "score": 1},
        {"item_id": "b", "criterion": "tone", "source": "mild", "score": 5},
        {"item_id": "b", "criterion": "tone_2", "source": "strict", "score": 1},
    ]
    mine = jsonl(folder, rows, scale=(1, 5), columns={"source": "judge"})
    assert mine.groupby("judge", observed=True).score.unique().map(list).to_dict() == {
        "mild": [5],
        "strict": [1],
    }


def langfuse_average(folder, capsys):
    values = (5, 4, None, None, 3)
    rows = [{"item_id": str(n), "score": score} for n, score in enumerate(values)]
    assert scores(jsonl(folder, rows, scale=(1, 5))) == [5, 4, None, None, 3]
    assert "2 of 5 scores are unparsed" in capsys.readouterr().out


def langfuse_failed_task(folder, capsys):
    levels = {"bad": "It is rude.", "fair": "It is curt.", "good": "It is kind."}
    items = rubric_items(folder, levels)
    assert len(items) == 4
    mine = csv(folder, "text_id,score\na,1\nb,3\n", items=items)
    assert set(items.item_id) - set(mine.item_id) == {
        "texts/c/tone",
        "texts/d/tone",
    }


def evidently_categories(folder, capsys):
    items = rubric_items(folder, {"BAD": "It is rude.", "GOOD": "It is kind."})
    mine = csv(folder, "text_id,score\na,GOOD\nb,MIXED\nc,BAD\n", items=items)
    assert scores(mine) == [2, None, 1]
    assert "1 of 3 scores are unparsed" in capsys.readouterr().out
    mine = csv(folder, "item_id,score\na,0.9\nb,0.8\nc,5\n", scale=(0, 1))
    assert mine.status.tolist() == ["ok", "ok", "out_of_range"]


def label_studio_skips(folder, capsys):
    table = (
        'item_id,score,human\n1,4,"[{""rating"":5}]"\n2,4,"[{""rating"":2}]"\n3,4,\n'
    )
    rated = csv(folder, table, scale=(1, 5)).rated.human
    assert rated.tolist()[:2] == [5, 2]
    assert pd.isna(rated.tolist()[2])


def alpaca_draw(folder, capsys):
    rows = [
        {"instruction": name, "output_2": "Yes.", "annotator": "w", "preference": value}
        for name, value in zip("abcd", [1, 2, 0, 1.5], strict=True)
    ]
    columns = {"preference": "score", "instruction": "item_id", "annotator": "judge"}
    read = jsonl(folder, rows, scale=(1, 2), columns=columns)
    assert scores(read) == [1, 2, None, 1.5]
    assert list(read.status) == ["ok", "ok", "out_of_range", "ok"]
    assert "off the scale 1..2" in capsys.readouterr().out


def duckdb_orders(folder, capsys):
    frame = pd.DataFrame({"item_id": list("abc"), "score": [1, 2, 3]})
    orders = pd.to_datetime(["2003-01-02", "2001-02-03", "2002-03-01"])
    with pytest.raises(ValueError, match=r"'ordering'.*order"):
        rb.judgments(frame.assign(ordering=orders), scale=(1, 3))
    mine = rb.judgments(
        frame.assign(ordering=["3-1-2", "1-2-3", "2-3-1"]), scale=(1, 3)
    )
    assert mine.ordering.astype(str).tolist() == ["3-1-2", "1-2-3", "2-3-1"]


def duckdb_words(folder, capsys):
    frame = pd.DataFrame({"item_id": list("abc"), "score": [True, False, True]})
    assert scores(rb.judgments(frame, scale=(0, 1))) == [1, 0, 1]
    assert "True" in capsys.readouterr().out
    with pytest.raises(ValueError, match="'True' is not a number"):
        rb.judgments(frame, scale=(1, 5))


def polars_grades(folder, capsys):
    levels = {"low": "It is rude.", "medium": "It is curt.", "high": "It is kind."}
    items = rubric_items(folder, levels)
    table = "text_id,score\na,low\nb,medium\nc,high\nd,low\n"
    assert scores(csv(folder, table, items=items)) == [1, 2, 3, 1]


READS = {
    test.__name__.replace("_", "-"): test
    for test in (
        promptfoo_no_verdict,
        promptfoo_csv_failures,
        inspect_epochs,
        inspect_one_name_twice,
        inspect_letters,
        mlflow_mean,
        phoenix_first_error,
        ragas_range,
        lm_eval_texts,
        autorubric_cannot_assess,
        harness_lowest_score,
        decision_uniform,
        decision_name_echoed,
        deepeval_tens,
        trulens_smallest,
        pydantic_evals_names,
        langfuse_average,
        langfuse_failed_task,
        evidently_categories,
        label_studio_skips,
        alpaca_draw,
        duckdb_orders,
        duckdb_words,
        polars_grades,
    )
}


@pytest.mark.parametrize("line", READS)
def test_a_file_of_this_shape_is_read_as_the_page_says(line, tmp_path, capsys):
    READS[line](tmp_path, capsys)
