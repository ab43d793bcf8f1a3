"""The line about a page's numbers, and the table of verdicts."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.book import tables
from rubricnb.sets.papers import verdicts


@pytest.mark.parametrize(
    ("text", "page"),
    [
        ("-0.3 and +0.1", "−0.3 and +0.1"),
        ("from -2 to -.5 [-1, 3]", "from −2 to −.5 [−1, 3]"),
        (
            "3-1-2 by gpt-4, 2-3 reads, --n-items",
            "3-1-2 by gpt-4, 2-3 reads, --n-items",
        ),
    ],
)
def test_a_sentence_has_a_true_minus_and_keeps_its_hyphens(text, page, monkeypatch):
    kept = {}
    monkeypatch.setattr(tables, "_keep", kept.__setitem__)
    tables.say(said=text)
    tables.tell("told", text)
    assert (kept["said"], kept["told"].data) == (page, page)


def test_an_estimate_that_is_not_known_says_why():
    items = rb.load("minibench")
    judgments = rb.simulate(rb.plan(items, rb.balanced(5)), items, "unbiased")
    known = rb.agreement(judgments, items).iloc[0]
    assert tables.estimate(known, "r", ".3f") == (
        f"{known.r:.3f} [{known.r_low:.3f}, {known.r_high:.3f}]"
    )
    one_text = judgments[judgments["cluster_id"] == judgments["cluster_id"].iloc[0]]
    row = rb.agreement(one_text, items).iloc[0]
    assert tables.estimate(row, "r") == f"{row.r:.2f} (one cluster: intervals need two)"
    row = rb.agreement(judgments, items.assign(human=3.0)).iloc[0]
    assert tables.estimate(row, "r") == f"({row.reason})"
    assert "nan" not in tables.estimate(row, "rho", scale=100, unit=" %")


def test_a_number_of_numpy_is_said_as_a_number(monkeypatch):
    import myst_nb

    said = {}
    monkeypatch.setattr(
        myst_nb, "glue", lambda name, value, display: said.update({name: value})
    )
    rb.say({"share": np.float64(0.5)}, n_texts=np.int64(3), judge="GPT-4o")
    assert [*map(repr, said.values())] == ["0.5", "3", "'GPT-4o'"]


def test_line_lists_every_judge_and_source():
    judgments = pd.DataFrame(
        {
            "source": ["recorded", "live"],
            "judge": ["a", "b"],
            "dataset": ["hanna", "hanna"],
            "readout": ["score", "score"],
            "cluster_id": ["1", "2"],
            "score": [None, 2],
        }
    )
    line = tables.numbers_of(judgments)
    assert "recorded and live" in line
    assert "a and b" in line
    assert "designed quality" not in line
    assert "NaN" not in line
    assert "All texts belong to one cluster" in tables.numbers_of(
        judgments.assign(cluster_id="1")
    )


def test_table_leaves_out_judges_that_were_not_measured_unless_asked():
    rows = verdicts(
        rb.data.claims("04"), pd.DataFrame({"claim_id": ["v2/4.2/sizes"], "value": [2]})
    )
    rows.loc[rows.index[:3], "judge"] = "Gemma-3-27B"
    assert len(tables.says_finds(rows)) == len(rows) - 3
    everything = tables.says_finds(rows, unmeasured=True)
    assert len(everything) == len(rows)
    finds = everything["we find"]
    assert (
        finds[everything["statement"].str.contains("H100")]
        .item()
        .startswith("a property")
    )
    assert (finds == "not measured here").sum() == len(rows) - 2


def test_table_prints_interval_and_tolerance():
    said = rb.data.claims("05").query("claim_id == 'v2/table-2/gemma-3-27b/hanna/pos5'")
    found = pd.DataFrame(
        {"claim_id": said["claim_id"], "value": [29.0], "low": [28.0], "high": [30.0]}
    )
    row = tables.says_finds(verdicts(said, found)).iloc[0]
    assert row["paper says"] == "= 29.3 ± 2"
    assert row["we find"] == "29 [28, 30]"


HOSTILE = "<img src=x onerror=alert(1)> & <b>"


def test_whatever_stands_in_a_styler_is_shown_as_text():
    columns = pd.MultiIndex.from_product(
        [[HOSTILE], ["a", HOSTILE]], names=[HOSTILE, None]
    )
    index = pd.Index(["i", HOSTILE], name=HOSTILE)
    frame = pd.DataFrame([["x", [HOSTILE]], [HOSTILE, {HOSTILE: 1}]], index, columns)
    for styler in (
        frame.style,
        frame.style.format(na_rep="–"),
        frame.style.hide(axis="index"),
    ):
        assert "<img" in styler.to_html()
        assert "<img" not in tables.styled(styler)
        assert "<b>" not in tables.styled(styler)
        assert styler.data.equals(frame)


def test_a_styler_without_markup_looks_as_it_would():
    frame = pd.DataFrame(
        {"n": [1, 2], "r": [0.123456, None], "name": ["a", None]}, index=[7, 8]
    )
    for styler in (
        frame.style,
        frame.style.hide(axis="index").format({"r": "{:+.2f}"}, na_rep="NaN"),
        frame.style.format("{:.0%}", subset=["r"]).format(precision=1, subset=["n"]),
    ):
        styler.set_uuid("same")
        assert tables.styled(styler) == styler.to_html()


@pytest.mark.in_turn
def test_every_notebook_that_imports_the_package_shows_stylers_as_text():
    program = f"""
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
import pandas as pd, rubricnb
shown, _ = shell.display_formatter.format(pd.DataFrame({{"a": [{HOSTILE!r}]}}).style)
print(shown["text/html"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "&lt;img" in done.stdout
    assert "<img" not in done.stdout


def test_a_name_is_no_markup_in_the_line_about_numbers():
    items = rb.load("minibench", n_items=5)
    judgments = rb.simulate(rb.plan(items, rb.fixed(5, 1)), items, "unbiased")
    hostile = judgments.assign(dataset=f"{HOSTILE} [a](b) `c` {{{{d}}}} $e$")
    line = tables.numbers_of(hostile)
    assert r"\<img src=x onerror=alert(1)> \& \<b> \[a](b) \`c\` \{\{d}} \$e\$" in line


FILLED = """
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
shown = shell.display_pub.outputs
import rubricnb as rb

rb.say(n_texts=9)
rb.pages.fill(
    "{glue:text}`n-texts` texts, {glue:text}`share:.0%`.\\n\\n{glue:text}`own`"
)
rb.say(share=0.25)
rb.tell("own", "**Better.**")
rb.say(n_texts=8)
rb.say({"n": 1})  # nothing that the paragraphs name
rb.say(share=float("nan"), needs="`logprobs`")
for output in shown:
    text = output["data"].get("text/markdown")
    if text:
        print(output.get("update", False), output["transient"]["display_id"] ==
              shown[0]["transient"]["display_id"], text.replace("\\n\\n", " | "))
"""


@pytest.mark.in_turn
def test_a_class_reads_the_numbers_of_its_run_as_they_become_known(tmp_path):
    """Without MyST-NB, as a class has it."""
    program = "import sys; sys.modules['myst_nb'] = None\n" + FILLED
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"IPYTHONDIR": str(tmp_path)},
    )
    assert done.stdout.splitlines() == [
        "False True 9 texts, …. | …",
        "True True 9 texts, 25%. | …",
        "True True 9 texts, 25%. | **Better.**",
        "True True 8 texts, 25%. | **Better.**",
        "True True Not asked: needs `logprobs`. | **Better.**",
    ]


def test_judgments_without_a_score_are_refused_with_all_judges_that_gave_none():
    frames = [
        pd.DataFrame({"judge": [name], "score": [np.nan], "status": ["error"]})
        for name in ("one", "two")
    ]
    with pytest.raises(
        tables.CannotShow, match="one and two gave no score in any of 2"
    ):
        tables.check_answered(*frames)


def test_a_rounded_zero_has_no_minus_but_an_end_shows_its_side():
    row = {"r": -0.0001, "r_low": -0.0002, "r_high": 0.1}
    assert tables.estimate(row, "r", "+.3f") == "+0.000 [−0.000, 0.100]"
    assert tables.signed(-0.0001) == "+0.00"
