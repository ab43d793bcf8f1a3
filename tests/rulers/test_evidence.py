"""Units and quotes: what a judge may differ in, and what it may not."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.rulers.evidence import (
    SEGMENTATIONS,
    count_valid,
    fold,
    split_units,
    verify_quotes,
)

TEXT = (
    "Dr. Lee paid $3.5 million, e.g. for books. Was it worth it? Yes! “It is over,” "
    "she said — and left.\n\nThe second paragraph has no stop"
)
UNITS = split_units(TEXT)
texts = st.text(
    alphabet=st.characters(codec="utf-8", categories=("L", "N", "P", "Z")), min_size=1
).filter(lambda t: t.strip())


@pytest.mark.parametrize("into", SEGMENTATIONS)
@given(texts)
def test_all_of_the_text_is_in_the_units_and_nothing_else(into, text):
    units = split_units(text, into)
    assert units
    assert all(u.strip() == u and u for u in units)
    assert "".join("".join(units).split()) == "".join(text.split())


def test_only_the_naive_splitter_ends_a_sentence_in_a_number_or_abbreviation():
    assert UNITS[0] == "Dr. Lee paid $3.5 million, e.g. for books."
    assert UNITS[1:3] == ("Was it worth it?", "Yes!")
    assert UNITS[-1] == "The second paragraph has no stop"
    assert len(split_units(TEXT, "naive")) > len(UNITS)
    assert split_units(TEXT, "whole") == (TEXT,)
    with pytest.raises(ValueError, match="blank"):
        split_units(" \n ")


@pytest.mark.parametrize(
    ("unit", "quote", "status"),
    [
        (2, "Was it worth it?", "verified"),
        (1, "paid $3.5 million", "verified"),
        (4, '"It is over," she said', "verified"),  # straight for curly quotes
        (4, "she  said\n- and left", "verified"),  # white space and another dash
        # no-break and zero-width space
        (4, "she said\u00a0— and\u200b left", "verified"),
        (1, "PAID $3.5 MILLION", "not found"),  # letter case counts
        (1, "Was it worth it?", "wrong unit"),
        (0, "Was it worth it?", "wrong unit"),
        (2, "Was it worth it? Yes!", "wrong unit"),  # spans two units
        (1, "Dr. Lee bought a library", "not found"),
        (3, "Yes!", "too short"),
        (3, "", "too short"),
        (3, "  \n —  ", "too short"),
    ],
)
def test_what_becomes_of_a_quote(unit, quote, status):
    (found,) = verify_quotes([(unit, quote)], UNITS)
    assert found.status == status
    assert found.unit == unit


def test_the_slice_kept_is_the_texts_own_and_counts_once():
    cited = [
        (4, '"It is over," she said - and'),
        (2, "worth it? Yes!"),
        (1, "second paragraph"),
    ]
    assert [(q.text, q.found_in) for q in verify_quotes(cited, UNITS)] == [
        ("“It is over,” she said — and", 4),
        ("worth it? Yes!", 0),
        ("second paragraph", 5),
    ]
    twice = verify_quotes([(2, "Was it worth it?"), (2, "Was  it worth it?")], UNITS)
    assert count_valid(twice) == 1
    assert (
        count_valid(verify_quotes([(2, "Was it worth"), (4, "she said —")], UNITS)) == 2
    )


@given(texts, st.data())
def test_every_slice_of_a_unit_is_verified_and_given_back(text, data):
    units = split_units(text)
    number = data.draw(st.integers(1, len(units)))
    unit = units[number - 1]
    start = data.draw(st.integers(0, len(unit) - 1))
    quote = unit[start : data.draw(st.integers(start + 1, len(unit)))]
    if unicodedata.combining(quote[0]) or len(fold(quote)) < 8:
        return
    (found,) = verify_quotes([(number, quote)], units)
    if found.status == "verified":
        assert found.text in unit
        assert fold(found.text) == fold(quote) or fold(quote) in fold(found.text)
    if not cut_within_a_character(unit, start, start + len(quote)):
        assert found.status == "verified"


def cut_within_a_character(unit, start, end):
    """Whether a cut separates what is seen as one:
    a letter and its parts, a run of spaces.
    """
    parts = unit[:start], unit[start:end], unit[end:]
    if "".join(unicodedata.normalize("NFKC", part) for part in parts) != (
        unicodedata.normalize("NFKC", unit)
    ):
        return True
    cuts = [unit[k - 1 : k + 1] for k in (start, end) if 0 < k < len(unit)]
    return any(not any(c.isalnum() for c in pair) for pair in cuts)


@given(texts)
def test_composed_and_decomposed_texts_fold_alike(text):
    assert fold(unicodedata.normalize("NFD", text)) == fold(
        unicodedata.normalize("NFC", text)
    )
    assert fold(fold(text)) == fold(text)
