"""The slides in Chromium, network off: every one fits,
its pictures load, the keys turn them.
"""

import pytest

from rubricnb.book import notebooks as book

DECKS = sorted((book.find_root() / "_build" / "html" / "slides").glob("*.html"))
OVERFULL = """() => [...document.querySelectorAll('.slides > section')]
  .map((slide, i) => {
    Reveal.slide(i);
    return [i + 1, slide.scrollHeight, slide.scrollWidth];
  })
  .filter(([, height, width]) => height > 700 || width > 1181)"""


def test_every_deck_is_built():
    assert [d.stem for d in DECKS] == sorted(
        p.stem for p in (book.find_root() / "slides").glob("*.md")
    )


@pytest.mark.parametrize("deck", DECKS, ids=lambda path: path.stem)
def test_deck_shows_whole_slides_and_turns_them(readers, deck):
    reader = readers["desktop", "light"]
    page = reader.open(deck.as_uri())
    page.wait_for_function("() => window.Reveal && Reveal.isReady()")
    page.wait_for_function(
        "() => window.MathJax && MathJax.startup && MathJax.startup.promise"
    )
    page.evaluate("() => MathJax.startup.promise")
    assert (
        page.evaluate(
            "() => [...document.images].filter(i => !i.naturalWidth || !i.alt).length"
        )
        == 0
    )
    assert (
        page.evaluate(
            r"() => document.querySelector('.slides').innerText.includes('\\(')"
        )
        is False
    )
    assert page.evaluate(OVERFULL) == []
    page.evaluate("() => Reveal.slide(0)")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("() => Reveal.getIndices().h") == 1
    assert reader.trouble == []
