from importlib.util import find_spec

import pytest
import yaml
from endpoint import completion, endpoint
from typer.testing import CliRunner

import rubricnb as rb
from rubricnb import cli
from rubricnb.judging.openai import JudgeError
from rubricnb.judging.results import results_folder
from rubricnb.judging.run import RunInterrupted
from rubricnb.judging.study import design_of, read_study, requests_of, study, study_cost
from rubricnb.rulers import record_gradings, recorded_grades

PLANS = [
    {"dataset": "minibench", "n_items": 15, "designs": ["balanced(5)", "shuffled(5, 2)"]},
    {"dataset": "minibench", "n_items": 15, "setting": 2, "designs": ["williams(3)"]},
]


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
        "balanced": 150, "shuffled": 30, "williams": 90,
    }  # fmt: skip
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
        with pytest.raises(ValueError, match="must not mix"):
            study("mine", tmp_path / "other.sqlite")
    assert len(asked) == there


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"judges": [{"speck": "x"}], "plans": []}, "judges has an unknown entry 'speck'"),
        ({"judges": [], "plans": [{"designz": []}]}, "plans has an unknown entry 'designz'"),
        ({"judges": [], "plans": [], "plan": 1}, "mine.yml has an unknown entry 'plan'"),
        ({"plans": PLANS}, "an entry of mine.yml lacks 'judges'"),
        ({"judges": [{"spec": "x", "model": "y"}]}, "an entry of judges lacks 'licence'"),
        ({"judges": [], "plans": [{"dataset": "x"}]}, "an entry of plans lacks 'designs'"),
        (
            {"judges": [], "plans": [{"dataset": "x", "designs": ["balanced(5"]}]},
            r'"balanced\(5" is not a design',
        ),
        (
            {
                "judges": [{"spec": "x", "model": "y", "licence": "z"}],
                "plans": [PLANS[0] | {"models": ["someone"]}],
            },
            "no plan is for the judge 'y'",
        ),
    ],
)
def test_what_is_wrong_in_a_study_s_file_is_named_before_anything_is_asked(write, content, message):
    write(**content)
    with pytest.raises(ValueError, match=message):
        read_study("mine")


def test_an_unknown_study_is_named_with_those_there_are(write):
    write(judges=[], plans=[])
    with pytest.raises(ValueError, match=r"no study .other..*there are: mine"):
        study("other")


@pytest.mark.parametrize("text", ["balanced", "balanced(5", "eval('1')", "balanced(x)", "1 + 1"])
def test_only_designs_are_read(text):
    with pytest.raises(ValueError, match=r"not a design|malformed"):
        design_of(text)


@pytest.mark.parametrize("design", [rb.balanced(5), rb.fixed(3, 4), rb.single([2, 1])])
def test_designs_are_read_as_written(design):
    text = {"balanced": "balanced(5)", "fixed": "fixed(3, 4)", "single": "single([2, 1])"}
    assert design_of(text[design.name]) == design


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
        study("mine", store, max_cost=2.0)  # the first plan costs $1.80, the second $0.90
    assert 190 <= len(received) <= 200
    assert (results_folder() / "mine").exists()  # the first plan is recorded
    with pytest.raises(RunInterrupted, match="stopped after 30 calls"):
        study("mine", store, max_calls=30)
    study("mine", store, max_cost=1.0)
    assert len(received) == 177 + 90


def test_a_judge_that_refuses_does_not_keep_the_others_from_being_asked(write, tmp_path, capsys):
    def answer(payload, headers):
        if payload["model"] == "refused":
            return 401, {"error": {"message": "no credit"}}, {}
        return 200, completion("[RESULT] 2") | {"model": payload["model"]}, {}

    with endpoint(answer) as (url, _):
        judges = [
            {"spec": f"openai:{name}@{url}", "model": name, "licence": "none"}
            for name in ("refused", "good")
        ]
        absent = {"spec": "embedded:/no/such.gguf", "model": "absent", "licence": "none"}
        judges.insert(0, absent)
        plans = [{"dataset": "minibench", "n_items": 5, "designs": ["fixed(5, 1)"]}]
        write(judges=judges, plans=[part | {"readout": "feedback"} for part in plans])
        with pytest.raises(JudgeError, match=r"2 of 3 judges .*again.*no weights.*no credit"):
            study("mine", tmp_path / "s.sqlite")
        assert "refused: " in capsys.readouterr().out
        assert len(rb.recorded(f"openai:good@{url}", "minibench", study="mine")) == 5


def test_gradings_too_go_on_to_the_other_judges(write, tmp_path, capsys):
    refusal = 401, {"error": {"message": "no credit"}}, {}
    with endpoint(lambda payload, headers: refusal) as (url, _):
        specs = ("embedded:/no/such.gguf", f"openai:refused@{url}", "simulated:grader")
        judges = [{"spec": spec, "model": spec[:8], "licence": "none"} for spec in specs]
        write(judges=judges, gradings=[{"dataset": "minibench", "n_items": 15}])
        with pytest.raises(JudgeError, match=r"2 of 3 judges .*again.*no weights.*no credit"):
            record_gradings("mine", tmp_path / "s.sqlite")
    assert "embedded: " in capsys.readouterr().out
    assert len(recorded_grades("simulated:grader", "minibench").scores) == 15


def test_a_price_that_gradings_lack_is_said_before_anything_is_asked(write, tmp_path):
    judge = {"spec": "simulated:grader", "model": "planted", "licence": "none"}
    unknown = {"spec": "openai:m@https://example.org/v1", "model": "two", "licence": "none"}
    write(judges=[judge, unknown], gradings=[{"dataset": "minibench", "n_items": 15}])
    with pytest.raises(ValueError, match=r"max_cost needs a price.*example\.org"):
        record_gradings("mine", tmp_path / "s.sqlite", max_cost=1.0)
    assert not (tmp_path / "s.sqlite").exists()


@pytest.mark.skipif(bool(find_spec("vllm")), reason="vLLM is installed here")
def test_what_is_not_installed_is_one_clear_line(write):
    write(judges=[{"spec": "vllm:x", "model": "x", "licence": "none"}], plans=PLANS)
    done = CliRunner().invoke(cli.app, ["study", "mine"])
    assert (done.exit_code, type(done.exception)) == (1, SystemExit)
    assert "error: vLLM is not installed: python -m pip" in done.output


def test_a_price_that_is_not_known_is_said_before_anything_is_asked(write, hosted, tmp_path):
    judge, received = hosted
    unknown = {"spec": "openai:m@https://example.org/v1", "model": "two", "licence": "none"}
    write(judges=[judge, unknown], plans=[PLANS[0] | {"readout": "feedback"}])
    with pytest.raises(ValueError, match=r"max_cost needs a price.*example\.org"):
        study("mine", tmp_path / "s.sqlite", max_cost=1.0)
    assert not received


def test_the_cost_of_a_study_is_summed_before_anything_is_sent(write, hosted, tmp_path):
    judge, received = hosted
    write(judges=[judge, judge | {"model": "two"}], plans=[PLANS[0] | {"readout": "feedback"}])
    cost = study_cost("mine")
    assert cost["calls"].tolist() == [177, 177]  # three shuffles are among the balanced orderings
    assert cost["price"].sum() == pytest.approx(2 * 177 * 200 * 10 / 1e6)
    shown = CliRunner().invoke(cli.app, ["study", "mine", "--cost"])
    assert "one: 177 calls" in shown.output
    assert "all together: 354 calls" in shown.output
    assert "about 0.71 US dollars" in shown.output
    assert not received
    stopped = CliRunner().invoke(cli.app, ["study", "mine", "--max-calls", "7"])
    assert stopped.exit_code == 1
    assert "stopped after 7 calls" in stopped.output
    assert len(received) == 7


def test_gradings_keep_to_an_allowance_too(write, tmp_path):
    judge = {"spec": "simulated:grader", "model": "planted", "licence": "none"}
    write(judges=[judge], gradings=[{"dataset": "minibench", "n_items": 15}])
    with pytest.raises(RunInterrupted, match="stopped after 3 calls"):
        record_gradings("mine", tmp_path / "s.sqlite", max_calls=3)
    with pytest.raises(ValueError, match=r"gradings, whose calls depend on answers"):
        study_cost("mine")
