import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from rubricnb.sets import identities
from rubricnb.sets.papers import ERRATA as MEANINGS
from rubricnb.sets.papers import claims

sys.path.insert(0, str(Path(__file__).parents[2] / "_ext"))
from errata_list import CONSEQUENCES, STRONGEST, errata


@pytest.fixture(scope="module")
def table():
    return errata()


@pytest.mark.in_turn
def test_every_identity_stands_in_it_once(table):
    said = claims().query("kind == 'identity'")
    assert sorted(table.claim_id) == sorted(said.claim_id)


def test_what_fails_comes_first_and_has_its_kind_a_quotation_and_a_meaning(table):
    failing = table.verdict.str.startswith("the arithmetic fails")
    assert set(table.verdict[~failing]) == {"the arithmetic holds"}
    assert failing.sum() > 20
    assert list(failing) == sorted(failing, reverse=True)
    assert set(table.consequence[failing]) == set(CONSEQUENCES)
    assert (table.quote[failing].str.len() > 10).all()
    assert (table.meaning[failing].str.len() > 20).all()
    assert (table.loc[~failing, ["consequence", "quote", "meaning"]] == "").all().all()


def test_the_strongest_stand_by_paper_and_hold_all_contradictions(table):
    first = table.head(STRONGEST)
    assert (first.paper != first.paper.shift()).sum() == first.paper.nunique() == 4
    assert "contradicted" not in set(table.consequence[STRONGEST:])
    assert "slip" not in set(first.consequence)


@pytest.mark.parametrize("claim", list(pd.read_csv(MEANINGS).claim_id))
def test_a_quotation_stands_in_the_paper(claim, not_in_paper):
    quote = pd.read_csv(MEANINGS).set_index("claim_id").quote[claim]
    assert not_in_paper(claim.split("/")[0], quote) == []


def test_quotations_beside_the_repository_stand_in_the_paper(not_in_paper):
    page = (Path(__file__).parents[2] / "book" / "errata.md").read_text("utf-8")
    section = page.split("## Paper and repository")[1].split("\n## ")[0]
    quotes = re.findall(r'^\* "(.+?)" \(', section, re.M)
    assert len(quotes) == 2
    assert [not_in_paper("scoring", quote) for quote in quotes] == [[], []]


# Each was once called an error of the paper.
# What is kept depends on how its sentence is read.
READINGS = [
    "rulers/table-4/without-calibration",
    "v1/all-prefer-first/table-5",
    "v1/all-prefer-first/v2-table-2",
    "v2/significant/human-adjusted",
    "v2/significant/all-adjusted",
    "v2/appendix-c/effort/no-lever",
    "v2/4.4/invariant",
    "v1/5.2/stronger-gains-more",
    "scoring/4.3/reference/size",
    "v1/table-6/rank-from-table-4",
    "scoring/4.3/recommended-formats",
    "v1/table-6/ranks-better",
]


@pytest.mark.parametrize("claim", READINGS)
def test_what_depends_on_a_reading_is_called_a_reading(table, claim):
    row = table.set_index("claim_id").loc[claim]
    assert (row.consequence, row.verdict) == (
        "reading",
        "the arithmetic fails, as we read it",
    )


def test_what_the_papers_do_say_holds(table):
    """The sentence on scales is joint; leans within noise contradict no direction."""
    verdict = table.set_index("claim_id").verdict
    judges = ["gpt-oss-120b", "qwen3.5-9b"]
    for claim in [
        "v2/scales/inside-and-ends",
        *(f"v2/direction/{name}" for name in judges),
    ]:
        assert verdict[claim] == "the arithmetic holds"


def test_the_words_type_no_number(table):
    """Numbers come from the tables; the words may name judges and tables only."""
    names = r"Table \d|" + "|".join(re.escape(name) for name in set(table.judge) - {""})
    for claim, words in table.set_index("claim_id").meaning.items():
        assert not re.search(r"\d", re.sub(names, "", words)), claim


def test_no_word_is_left_about_a_claim_that_is_gone(table):
    words = pd.read_csv(MEANINGS)
    assert set(words.claim_id) == set(
        table.claim_id[table.verdict != "the arithmetic holds"]
    )
    assert words.claim_id.is_unique


@pytest.mark.in_turn
def test_a_new_failure_without_words_is_an_error(monkeypatch):
    wrong = identities._expressions() | {"threshold_of_chi2": "1.0"}
    monkeypatch.setattr(identities, "_expressions", lambda: wrong)
    with pytest.raises(ValueError, match=r"does not give a meaning.*v2/threshold"):
        errata()
