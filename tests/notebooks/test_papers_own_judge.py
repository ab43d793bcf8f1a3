"""What RULERS and the scoring-bias paper show of their judges, shown of the reader's.

Compiled bundles in all their variants, own scales, figures and tables of the papers
with the reader's judge, and what a chapter says where something that it needs is
missing.
"""

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rubricnb.book import notebooks as book
from rubricnb.cli.commands import app

pytestmark = pytest.mark.slow
ROOT = book.find_root()
GRADER = {"judge": "simulated:grader", "order_judge": "simulated:grader", "n_draws": 3}
LEVELS = """
- criterion: help
  definition: "Does the reply help?"
  levels: {0: "Not at all.", 1: "Hardly.", 2: "In part.", 3: "It does.", 4: "Fully."}
"""
REWORDED = """
  paraphrased:
    definition: "Is the reply of use?"
    levels: {0: "None.", 1: "Little.", 2: "Some.", 3: "Much.", 4: "Full."}
"""


@pytest.fixture
def own(tmp_path):
    """Replies to sixteen mails, rated 0 to 4, and a bundle compiled for `rubric`."""

    def written(rubric):
        file = tmp_path / "data.csv"
        with file.open("w", newline="") as out:
            rows = csv.writer(out)
            rows.writerow(
                ["item_id", "group_id", "candidate", "instruction", "response", "human"]
            )
            for mail in range(16):
                for k, writer in enumerate("abc"):
                    name, rated = f"m{mail}{writer}", (mail + 2 * k) % 5
                    text = f"Reply {name}. " + "It helps. " * rated
                    rows.writerow(
                        [name, f"m{mail}", writer, f"Answer mail {mail}.", text, rated]
                    )
        (tmp_path / "rubric.yml").write_text(rubric)
        bundle = tmp_path / "bundle.json"
        arguments = [
            "compile",
            tmp_path / "rubric.yml",
            "--judge",
            "simulated:grader",
            "--output",
            bundle,
            "--n-items",
            6,
            "--traits",
            "tone,content",
        ]
        done = CliRunner().invoke(app, list(map(str, arguments)))
        assert done.exit_code == 0, done.output
        files = {"path": file, "rubric": tmp_path / "rubric.yml", "bundle": bundle}
        return {"dataset": "csv"} | {name: str(path) for name, path in files.items()}

    return written


def text_of(done, name):
    shown = book.glued(done)[name]
    return "".join(
        shown.get("text/html") or shown.get("text/markdown") or shown["text/plain"]
    )


def test_a_compiled_bundle_has_all_variants_on_a_scale_from_0(own):
    values = own(LEVELS + REWORDED) | GRADER
    done = book.execute(
        "18_rubric_sensitivity",
        values | {"n_items": 0, "n_ordered": 0},
        root=ROOT,
        cell_seconds=300,
    )
    kappas = text_of(done, "tab-qwk")
    for variant in ("standard", "criteria reversed", "levels reversed", "paraphrased"):
        assert variant in kappas
    assert "nan" not in kappas.lower()
    carried = text_of(done, "tab-carried")
    assert "learnt 0→4" in carried
    assert "learnt 4→0" in carried
    for name in ("error-own", "error-carried"):
        assert 0 <= float(text_of(done, name).strip("'")) < 4
    assert "All variants" in text_of(done, "variants")


def test_what_chapter_18_lacks_is_one_line(own):
    values = own(LEVELS) | GRADER | {"n_items": 0, "n_ordered": 9}
    done = book.execute("18_rubric_sensitivity", values, root=ROOT, cell_seconds=300)
    assert "compile RUBRIC --judge JUDGE" in text_of(done, "variants")
    assert "paraphrased" not in text_of(done, "tab-qwk")
    assert "needs" in text_of(done, "tab-carried")
    assert "for RULERS" in text_of(done, "given-orders")
    for name in ("error-own", "error-carried"):
        assert text_of(done, name).startswith("'Not asked: needs 40 rated texts")


def test_a_judge_of_the_paper_stands_beside_itself(own_file):
    values = {
        "dataset": "asap-2.0",
        "path": str(own_file["asap-2.0"]),
        "paper_judge": "GPT-4o",
        "methods": "rulers dhs mts autoscore",
        "n_draws": 3,
    }
    done = book.execute("17_calibration", values, root=ROOT, cell_seconds=300)
    table = text_of(done, "tab-table-3")
    # our row with its intervals, MTS of GPT-4o, and only below it that of GPT-4o-mini
    assert table.index("[") < table.index("0.4939") < table.index("0.5566")
    assert "fig-labels" in book.glued(done)


@pytest.mark.parametrize("layout", ["", "rubric-first"])
def test_correlations_of_every_condition_stand_beside_table_4(own, layout):
    values = own(LEVELS) | {
        "judge": "simulated:last-biased",
        "layout": layout,
        "draws": 20,
    }
    values.pop("bundle")
    done = book.execute(
        "13_score_ids_and_rubric_order", values, root=ROOT, cell_seconds=300
    )
    table = text_of(done, "tab-table-4")
    for condition in ("baseline", "descending", "random", "letter", "roman"):
        assert f"csv {condition}" in table
    assert text_of(done, "layout") == f"'has the rubric {layout[7:] or 'last'}'"


def test_references_that_no_item_has_all_of_are_not_the_judges_fault(tmp_path):
    import rubricnb as rb

    items = rb.load("minibench", n_items=30)
    attempts = [
        {
            "item_id": item,
            "target": 1 + k % 4,
            "accepted": True,
            "text": f"Answer {k}.",
            "round": 1,
        }
        for k, item in enumerate(items.item_id)
    ]
    file = Path(tmp_path, "references.csv")
    with file.open("w", newline="") as out:
        rows = csv.DictWriter(out, attempts[0])
        rows.writeheader()
        rows.writerows(attempts)
    values = {
        "judge": "simulated:unbiased",
        "n_items": 30,
        "criterion": "helpfulness",
        "references": str(file),
    }
    with pytest.raises(
        book.BookError, match="no item has an accepted reference of every score"
    ):
        book.execute("14_reference_answers", values, root=ROOT)
