import json
from importlib.util import find_spec

import pandas as pd
import pytest
import yaml
from endpoint import completion, endpoint
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb.core.results import results_folder
from rubricnb.core.run import RunInterrupted
from rubricnb.engines.openai import JudgeError
from rubricnb.rulers.grades import recorded_grades
from studies import __main__ as asking
from studies.cost import study_cost
from studies.gradings import record_gradings
from studies.study import design_of, read_study, requests_of, study

PLANS = [
    {
        "dataset": "minibench",
        "n_items": 15,
        "designs": ["balanced(5)", "shuffled(5, 2)"],
    },
    {"dataset": "minibench", "n_items": 15, "setting": 2, "designs": ["williams(3)"]},
]

GRADED = {"gradings": [{"dataset": "minibench", "n_items": 15}]}
GRADER = {"spec": "simulated:grader", "model": "planted", "licence": "none"}


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setenv("RUBRICNB_RESULTS", str(tmp_path / "results"))
    (tmp_path / "params").mkdir()

    def write(**content):
        (tmp_path / "params" / "mine.yml").write_text(yaml.safe_dump(content))

    return write


def test_a_study_records_every_plan_and_a_second_run_asks_nothing(write):
    judge = {"spec": "simulated:last-biased", "model": "planted", "licence": "none"}
    write(judges=[judge], plans=PLANS)
    study("mine", store=":memory:")
    recorded = rb.recorded("simulated:last-biased", "minibench", study="mine")
    assert recorded.groupby("design", observed=True).size().to_dict() == {
        "balanced": 150,
        "shuffled": 30,
        "williams": 90,
    }
    again = rb.run(requests_of(PLANS[0]), "simulated:last-biased", store=":memory:")
    assert (again["source"] == "recorded").all()


def test_a_study_that_could_not_be_recorded_asks_nothing(write, tmp_path):
    asked = []

    def answer(payload, headers):
        asked.append(payload)
        return 200, completion("Fine. [RESULT] 2"), {}

    with endpoint(answer) as (url, _):
        judge = {"spec": f"openai:m@{url}", "model": "m", "licence": "none"}
        plan = {"dataset": "minibench", "n_items": 5, "designs": ["fixed(5, 1)"]}
        write(judges=[judge], plans=[plan | {"readout": "feedback"}])
        study("mine", tmp_path / "replies.sqlite")
        there = len(asked)
        assert there == 5
        (card,) = (tmp_path / "results").rglob("run.json")
        card.write_text(card.read_text().replace(url, "http://localhost:1/v1"))
        with pytest.raises(ValueError, match="cannot share a folder"):
            study("mine", tmp_path / "other.sqlite")
    assert len(asked) == there


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"judges": [{"speck": "x"}], "plans": []},
            "judges has an unknown entry 'speck'",
        ),
        ({"plans": PLANS}, "an entry of mine.yml lacks 'judges'"),
        (
            {"judges": [], "plans": [{"dataset": "x"}]},
            "an entry of plans lacks 'designs'",
        ),
        (
            {"judges": [], "plans": [{"dataset": "x", "designs": ["balanced(5"]}]},
            r'"balanced\(5" is not a design',
        ),
        (
            {"judges": [GRADER], "plans": [PLANS[0] | {"models": ["someone"]}]},
            "has no plan for the judge 'planted'",
        ),
    ],
)
def test_what_is_wrong_in_a_study_s_file_is_named_before_anything_is_asked(
    write, content, message
):
    write(**content)
    with pytest.raises(ValueError, match=message):
        read_study("mine")
    write(judges=[], plans=[])
    with pytest.raises(ValueError, match=r"no study .other..*there are: mine"):
        study("other")


@pytest.mark.parametrize("text", ["balanced(5", "eval('1')", "balanced(x)"])
def test_only_designs_are_read(text):
    with pytest.raises(ValueError, match=r"not a design|malformed"):
        design_of(text)
    assert design_of("balanced(5)") == rb.balanced(5)
    assert design_of("fixed(3, 4)") == rb.fixed(3, 4)
    assert design_of("descending(5)") == rb.Design("descending", 5)
    assert design_of("first(5, 4)") == rb.Design("first", 5, 4)
    assert design_of("single([2, 1])") == rb.permutation.single([2, 1])


@pytest.fixture
def hosted():
    """A judge behind an endpoint, at a cent a call: it answers with 1000 tokens."""
    answer = completion("Fine. [RESULT] 2")
    answer["usage"] = {"prompt_tokens": 0, "completion_tokens": 1000}
    with endpoint(lambda payload, headers: (200, answer, {})) as (url, received):
        entry = {"spec": f"openai:m@{url}", "licence": "none", "price": [0, 0, 10]}
        yield entry | {"model": "one"}, received


def test_one_allowance_holds_for_all_plans_of_a_study(write, hosted, tmp_path):
    judge, received = hosted
    plans = [part | {"readout": "feedback"} for part in PLANS[:1] + PLANS[:1]]
    plans[1]["designs"] = ["balanced(3)"]
    write(judges=[judge | {"options": {"concurrency": 4}}], plans=plans)
    store = tmp_path / "s.sqlite"
    with pytest.raises(RunInterrupted, match=r"max_cost=\$2\.00 allows"):
        # the first plan costs $1.80, the second $0.90
        study("mine", store, max_cost=2.0)
    assert 190 <= len(received) <= 200
    assert (results_folder() / "mine").exists()  # the first plan is recorded
    with pytest.raises(RunInterrupted, match="stopped after 30 calls"):
        study("mine", store, max_calls=30)
    study("mine", store, max_cost=1.0)
    assert len(received) == 177 + 90


def test_a_judge_that_refuses_does_not_keep_the_others_from_being_asked(
    write, tmp_path, capsys
):
    def answer(payload, headers):
        if payload["model"] == "refused":
            return 401, {"error": {"message": "no credit"}}, {}
        return 200, completion("[RESULT] 2") | {"model": payload["model"]}, {}

    with endpoint(answer) as (url, _):
        judges = [
            {"spec": f"openai:{name}@{url}", "model": name, "licence": "none"}
            for name in ("refused", "good")
        ]
        absent = {
            "spec": "embedded:/no/such.gguf",
            "model": "absent",
            "licence": "none",
        }
        judges.insert(0, absent)
        plans = [{"dataset": "minibench", "n_items": 5, "designs": ["fixed(5, 1)"]}]
        write(judges=judges, plans=[part | {"readout": "feedback"} for part in plans])
        with pytest.raises(
            JudgeError, match=r"2 of 3 judges .*again.*no weights.*no credit"
        ):
            study("mine", tmp_path / "s.sqlite")
        assert "refused: " in capsys.readouterr().out
        assert len(rb.recorded(f"openai:good@{url}", "minibench", study="mine")) == 5


def test_gradings_too_go_on_to_the_other_judges_and_keep_to_an_allowance(
    write, tmp_path, capsys
):
    refusal = 401, {"error": {"message": "no credit"}}, {}
    with endpoint(lambda payload, headers: refusal) as (url, _):
        specs = ("embedded:/no/such.gguf", f"openai:refused@{url}", "simulated:grader")
        write(
            judges=[GRADER | {"spec": spec, "model": spec[:8]} for spec in specs],
            **GRADED,
        )
        with pytest.raises(
            JudgeError, match=r"2 of 3 judges .*again.*no weights.*no credit"
        ):
            record_gradings("mine", tmp_path / "s.sqlite")
    assert "embedded: " in capsys.readouterr().out
    assert len(recorded_grades("simulated:grader", "minibench").scores) == 15
    write(judges=[GRADER], **GRADED)
    with pytest.raises(RunInterrupted, match="stopped after 3 calls"):
        record_gradings("mine", tmp_path / "other.sqlite", max_calls=3)


@pytest.mark.skipif(bool(find_spec("vllm")), reason="vLLM is installed here")
def test_what_is_not_installed_is_one_clear_line(write):
    write(judges=[{"spec": "vllm:x", "model": "x", "licence": "none"}], plans=PLANS)
    done = CliRunner().invoke(asking.app, ["run", "mine"])
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert "error: vLLM is not installed: python -m pip" in done.output


@pytest.mark.parametrize(
    ("record", "content"),
    [
        (study, {"plans": [PLANS[0] | {"readout": "feedback"}]}),
        (record_gradings, GRADED),
    ],
)
def test_a_price_that_is_not_known_is_said_before_anything_is_asked(
    write, hosted, tmp_path, record, content
):
    judge, received = hosted
    unknown = {
        "spec": "openai:m@https://example.org/v1",
        "model": "two",
        "licence": "none",
    }
    write(judges=[judge, unknown], **content)
    with pytest.raises(ValueError, match=r"max_cost needs a price.*example\.org"):
        record("mine", tmp_path / "s.sqlite", max_cost=1.0)
    assert not received


def test_the_cost_of_a_study_is_summed_before_anything_is_sent(write, hosted, tmp_path):
    judge, received = hosted
    write(
        judges=[judge, judge | {"model": "two"}],
        plans=[PLANS[0] | {"readout": "feedback"}],
    )
    cost = study_cost("mine")
    # three shuffles are among the balanced orderings
    assert cost["calls"].tolist() == [177, 177]
    assert cost["price"].sum() == pytest.approx(2 * 177 * 200 * 10 / 1e6)
    shown = CliRunner().invoke(asking.app, ["run", "mine", "--cost"])
    assert "one: 177 calls" in shown.output
    assert "all together: 354 calls" in shown.output
    assert "about 0.71 US dollars" in shown.output
    assert not received
    stopped = CliRunner().invoke(asking.app, ["run", "mine", "--max-calls", "7"])
    assert stopped.exit_code == 1
    assert "stopped after 7 calls" in stopped.output
    assert len(received) == 7


def test_the_cost_of_gradings_counts_every_call_of_every_method(write, hosted):
    judge, received = hosted
    gradings = [
        {"dataset": "minibench", "methods": ["rulers", "dhs", "mts", "autoscore"]},
        {
            "dataset": "minibench",
            "n_items": 30,
            "methods": ["rulers"],
            "design": "williams(5)",
        },
        {"dataset": "minibench", "models": ["someone else"]},
    ]
    write(judges=[judge | {"price": [1, 1, 10]}], gradings=gradings)
    cost = study_cost("mine")
    assert cost["calls"].tolist() == [60 * (1 + 1 + 3 + 2), 10 * 10]
    assert (cost["prompt_tokens"] / cost["calls"]).between(300, 3000).all()
    assert cost["price"].gt(0).all()
    assert (
        "one: 520 calls"
        in CliRunner().invoke(asking.app, ["run", "mine", "--cost"]).output
    )
    assert not received


RUBRIC = {"criteria": "Is it right?"} | {
    f"score{k}_description": f"L{k}." for k in range(1, 6)
}


@pytest.fixture
def instances(tmp_path):
    """BiGGen's file, with two instances of which nobody has written low answers."""
    rows = [
        {
            "capability": "planning",
            "task": "travel",
            "instance_idx": i,
            "input": f"Plan {i}.",
            "reference_answer": "The plan.",
            "score_rubric": RUBRIC,
            "model_name": model,
            "response": f"{model} plans {i}.",
            "human_score": 3,
        }
        for i in range(2)
        for model in ("x", "y")
    ]
    path = tmp_path / "human_eval.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return {"dataset": "biggen", "path": str(path)}


def writes_and_reviews(asked):
    """Two models: what `b` reviews it accepts,
    what `a` reviews it finds to deserve a 5.
    """

    def answer(payload, headers):
        prompt, model = payload["messages"][-1]["content"], payload["model"]
        asked.append((model, prompt))
        if "###Response (Score " in prompt:
            text = (
                f"Deserves {prompt.partition('###Response (Score ')[2][0]}, says "
                f"{model}."
            )
        elif "###Response to evaluate:\nDeserves " in prompt:
            wanted = prompt.partition("###Response to evaluate:\nDeserves ")[2][0]
            text = f"So so. [RESULT] {wanted if model == 'b' else 5}"
        else:
            text = "Fine. [RESULT] 4"
        return 200, completion(text) | {"model": model}, {}

    return answer


def pair_at(url):
    return [
        {"spec": f"openai:{name}@{url}", "model": name.upper(), "licence": "none"}
        for name in "ab"
    ]


def test_two_judges_of_a_file_write_references_and_a_plan_shows_them(
    write, instances, tmp_path
):
    plan = instances | {
        "designs": ["fixed(5, 1)"],
        "readout": "feedback",
        "models": ["A"],
    }
    pair = instances | {"writer": "A", "reviewer": "B", "targets": [1, 2], "rounds": 2}
    asked = []
    with endpoint(writes_and_reviews(asked)) as (url, _):
        write(
            judges=pair_at(url),
            plans=[plan | {"reference": [1, 2, 5]}],
            references=[pair],
        )
        study("mine", tmp_path / "s.sqlite")
        attempts = pd.read_csv(
            results_folder() / "mine" / "a" / "references-biggen.csv"
        )
        assert attempts[
            ["writer", "reviewer"]
        ].drop_duplicates().to_numpy().tolist() == [["a", "b"]]
        assert attempts.accepted.all()
        assert "text" not in attempts
        reads = rb.recorded(f"openai:a@{url}", "biggen", study="mine")
        assert len(reads) == 4 * 3
        shown = [prompt for model, prompt in asked if "###Reference Answer" in prompt]
        assert sum("(Score 2):\nDeserves 2, says a." in prompt for prompt in shown) == 4
        assert sum("(Score 5):\nThe plan." in prompt for prompt in shown) == 4
        before = len(asked)
        study("mine", tmp_path / "s.sqlite")
        assert len(asked) == before


def test_a_judge_that_reviews_itself_is_said(write, instances, tmp_path, capsys):
    plan = instances | {"designs": ["fixed(5, 1)"], "readout": "feedback"}
    alone = instances | {
        "writer": "A",
        "reviewer": "itself",
        "targets": [1],
        "rounds": 2,
    }
    with endpoint(writes_and_reviews([])) as (url, _):
        write(judges=pair_at(url)[:1], plans=[plan], references=[alone])
        study("mine", tmp_path / "s.sqlite")
    assert (
        "A writes references and reviews itself; no other judge sees"
        in capsys.readouterr().out
    )
    attempts = pd.read_csv(results_folder() / "mine" / "a" / "references-biggen.csv")
    assert (attempts.writer == attempts.reviewer).all()
    assert not attempts.accepted.any()  # two rounds for each of two instances
    assert len(attempts) == 4


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (
            {"writer": "A"},
            "'A' would review itself; name a different judge as reviewer, or write",
        ),
        (
            {"writer": "A", "reviewer": "C"},
            "the reviewer 'C' is not one of the study's judges",
        ),
        ({"reviewer": "A"}, "an entry of references lacks 'writer'"),
    ],
)
def test_a_pair_that_is_none_is_named_before_anything_is_asked(
    write, instances, pair, message
):
    plan = instances | {"designs": ["fixed(5, 1)"]}
    write(
        judges=pair_at("http://localhost:1/v1"),
        plans=[plan],
        references=[instances | pair],
    )
    with pytest.raises(ValueError, match=message):
        study("mine")


def test_items_without_a_written_reference_are_left_out_and_all_of_them_is_an_error(
    write, instances, tmp_path, capsys
):
    plan = instances | {
        "designs": ["fixed(5, 1)"],
        "readout": "feedback",
        "reference": [1],
    }
    alone = instances | {
        "writer": "A",
        "reviewer": "itself",
        "targets": [1],
        "rounds": 1,
    }
    with endpoint(writes_and_reviews([])) as (url, _):
        write(judges=pair_at(url)[:1], plans=[plan], references=[alone])
        with pytest.raises(
            ValueError, match="no item of 'biggen' has all these references"
        ):
            study("mine", tmp_path / "s.sqlite")
    assert (
        "accepted for 0 of 4 items; the others are left out" in capsys.readouterr().out
    )


def test_each_of_two_judges_is_paid_its_own_price(write, instances, tmp_path):
    pair = instances | {"writer": "A", "reviewer": "B", "targets": [1], "rounds": 1}
    asked = []
    with endpoint(writes_and_reviews(asked)) as (url, _):
        one, two = pair_at(url)
        plan = instances | {
            "designs": ["fixed(5, 1)"],
            "readout": "feedback",
            "models": ["A"],
        }
        # $7 a review
        judges = [one | {"price": [0, 0, 0]}, two | {"price": [0, 0, 1e6]}]
        write(judges=judges, plans=[plan], references=[pair])
        with pytest.raises(RunInterrupted, match=r"max_cost=\$5\.00 allows"):
            study("mine", tmp_path / "s.sqlite", max_cost=5.0)
    assert {model for model, _ in asked} == {"a"}


def test_a_file_that_is_not_there_stops_the_study_and_not_its_estimate(
    write, hosted, instances
):
    judge, received = hosted
    missing = {
        "dataset": "biggen",
        "path": "no/such.parquet",
        "designs": ["fixed(5, 1)"],
    }
    known = instances | {
        "designs": ["fixed(5, 1)"],
        "readout": "feedback",
        "reference": [1, 5],
    }
    pair = {"writer": "one", "reviewer": "itself", "targets": [1]}
    write(judges=[judge], plans=[known, missing], references=[instances | pair])
    with pytest.raises(
        ValueError, match=r"no no/such\.parquet; put the file of 'biggen' there"
    ):
        study("mine")
    shown = CliRunner().invoke(asking.app, ["run", "mine", "--cost"]).output
    assert "one: 8 calls" in shown
    assert "US dollars" in shown
    assert "biggen is not counted: there is no no/such.parquet" in shown
    assert "references are not counted: their number depends on the reviews" in shown
    write(judges=[judge], gradings=[{"dataset": "dress", "path": "no/such.tsv"}])
    with pytest.raises(
        ValueError, match=r"no/such\.tsv; put the file of 'dress' there"
    ):
        record_gradings("mine")
    assert not received
