"""Texts that try to act on a page, in Chromium: what it runs,
not what a parser thinks it runs.
"""

import sys

import pandas as pd
import pytest

from rubricnb.book import notebooks as book
from rubricnb.book import tables

HIT = "window.hit = true"
IMAGE = f"<img src=x onerror='{HIT}'>"
ATTACKS = [
    f"<!-->{IMAGE}",
    f"<!--->{IMAGE}",
    f"<!--a--!>{IMAGE}",
    f"<![CDATA[>{IMAGE}]]>",
    f"<?php >{IMAGE}",
    f"<!x>{IMAGE}",
    f"</style>{IMAGE}",
    f"</td></table>{IMAGE}",
    f"<script>{HIT}</script>",
    f"<svg onload='{HIT}'><style>{IMAGE}</style></svg>",
    f'<math><mi><table><mglyph><style><!--</style><img title="--&gt;{IMAGE}">',
    f'<noscript><p title="</noscript>{IMAGE}">',
    f'<iframe srcdoc="{IMAGE}"></iframe>',
    f"<details open ontoggle='{HIT}'>",
]


@pytest.fixture(scope="module")
def journal():
    sys.path.insert(0, str(book.find_root() / "_ext"))
    from book_rules import journal

    yield journal
    sys.path.pop(0)


def runs(
    browser, html, tags="img,script,svg,math,iframe,details,noscript,style,[style]"
):
    """Whether anything has run in a page with this content,
    or stands there that could.
    """
    page = browser.new_page()
    try:
        page.set_content(f"<!DOCTYPE html><html><body>{html}</body></html>")
        page.wait_for_timeout(100)
        return page.evaluate(f"!!window.hit || !!document.querySelector('{tags}')")
    finally:
        page.close()


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_browser_runs_what_a_table_says(attack, browser, journal):
    frame = pd.DataFrame(
        {"text": ["harmless", attack], attack: [1, 2]}, index=["a", attack]
    )
    frame.index.name = attack
    stylers = [frame.style, frame.style.hide(axis="index").format(precision=1)]
    assert runs(browser, stylers[0].to_html(), "img,iframe"), (
        "this test would see nothing"
    )
    shown = [frame.to_html(), attack, f"<style>{attack}</style><table></table>"]
    shown += [html for s in stylers for html in (s.to_html(), tables.styled(s))]
    assert not runs(browser, "".join(map(journal, shown)))
    # In JupyterLab nothing else stands between.
    styled = "".join(map(tables.styled, stylers))
    assert not runs(browser, styled, "img,script,svg,iframe")
