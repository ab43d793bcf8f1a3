import re

import pandas as pd
import pytest

from rubricnb.data import claims
from rubricnb.data.errata import CONSEQUENCES, errata
from rubricnb.data.identities import position_bias


@pytest.fixture(scope="module")
def table():
    return errata()


def test_every_identity_stands_in_it_once(table):
    identities = claims().query("kind == 'identity'")
    assert sorted(table.claim_id) == sorted(identities.claim_id)


def test_what_fails_comes_first_by_weight_and_says_what_it_means(table):
    failing = table.verdict == "does not hold"
    assert failing.sum() > 20
    assert list(failing) == sorted(failing, reverse=True)
    weights = [CONSEQUENCES.index(name) for name in table.consequence[failing]]
    assert weights == sorted(weights)
    assert (table.meaning[failing].str.len() > 20).all()
    assert (table.meaning[~failing] == "").all()


def test_the_words_type_no_number(table):
    """Numbers come from the tables; the words may name judges and tables only."""
    names = r"Table \d|" + "|".join(re.escape(name) for name in set(table.judge) - {""})
    for claim, words in table.set_index("claim_id").meaning.items():
        assert not re.search(r"\d", re.sub(names, "", words)), claim


def test_no_word_is_left_about_a_claim_that_is_gone(table):
    words = pd.read_csv(errata.__globals__["_MEANINGS"])
    assert set(words.claim_id) == set(table.claim_id[table.verdict == "does not hold"])
    assert words.claim_id.is_unique


def test_a_new_failure_without_words_is_an_error(monkeypatch):
    monkeypatch.setattr(position_bias, "threshold_of_chi2", lambda *_: 1.0)
    with pytest.raises(ValueError, match=r"does not say what it means.*v2/threshold"):
        errata()
