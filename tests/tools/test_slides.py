"""Decks: what a slide shows is what a notebook glued."""

import base64
import html
import re

import nbformat
import pytest
from cells import SVG, glued

from rubricnb.book import notebooks as book
from tools import slides


@pytest.fixture
def executed():
    code = nbformat.v4.new_code_cell(
        outputs=[
            glued("share", text_plain="0.53846"),
            glued("judge", text_plain="'a <judge>'"),
            glued("text", text_plain=repr("It's so.")),
            glued("fig-a", **{"image_svg+xml": SVG}),
            nbformat.v4.new_output("stream", text="progress"),
        ]
    )
    figure = (
        '```{glue:figure} fig-a\n:name: fig-x-a\n:alt: Two "bars".\nA caption.\n```'
    )
    return {
        "05_x": nbformat.v4.new_notebook(
            cells=[code, nbformat.v4.new_markdown_cell(figure)]
        )
    }


def test_slides_carry_values_and_figures_of_the_run(executed):
    page = slides.deck(
        '# T\n\n{{ value("05_x", "share", ".2f") }} by {{ value("05_x", "judge") '
        "}}\n\n---\n\n"
        '{{ figure("05_x", "fig-a") }}\n\nNote: slowly',
        executed,
    )
    assert "0.54 by a &lt;judge&gt;" in page
    assert "<p>It's so.</p>" in html.unescape(
        slides.deck('{{ value("05_x", "text") }}', executed)
    )
    assert base64.b64encode(SVG.encode()).decode() in page
    assert 'alt="Two &quot;bars&quot;."' in page
    assert page.count("<section>") == 2
    assert page.index("slowly") > page.index('<aside class="notes">')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{{ value("06_y", "share") }}', "no executed notebook '06_y'"),
        ('{{ value("05_x", "shares") }}', "does not glue 'shares'"),
    ],
)
def test_a_slide_cannot_show_what_no_run_has_shown(executed, text, message):
    with pytest.raises(ValueError, match=message):
        slides.deck(text, executed)


def test_mathematics_is_left_to_the_typesetter(executed):
    assert r"\(a&lt;b_1\)" in slides.deck("# $a<b_1$", executed)
    assert r"\[x\]" in slides.deck("$$x$$", executed)


ROOT = book.find_root()


def test_what_a_slide_quotes_of_the_position_bias_paper_stands_in_it(not_in_paper):
    deck = (ROOT / "slides/2-position-bias.md").read_text("utf-8")
    quoted = re.findall(r'"([^"]{20,})"', re.sub("{{.*?}}", "", deck))
    assert len(quoted) == 2
    assert [not_in_paper("v2", quote) for quote in quoted] == [[], []]
