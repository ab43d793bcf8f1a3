import pytest
import yaml

import rubricnb as rb
from rubricnb.judging.study import design_of, read_study, requests_of, study

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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"judges": [{"speck": "x"}], "plans": []}, "judges has an unknown entry 'speck'"),
        ({"judges": [], "plans": [{"designz": []}]}, "plans has an unknown entry 'designz'"),
        ({"judges": [], "plans": [], "plan": 1}, "mine.yml has an unknown entry 'plan'"),
    ],
)
def test_an_unknown_entry_is_named(write, content, message):
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
