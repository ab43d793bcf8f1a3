"""Pages load what they use: icons as SVG,
mathematics and experiments only where there are any.

The theme loads Font Awesome (1.5 MB) for a dozen icons, and the search with its index
on every page, although only the page of results searches. Both are taken off the
finished pages, with the scripts of what a page does not have. The icons that style
sheets draw themselves come from a font of 1,400; it is cut to those that they name.
Pictures below the first screen load when they come near.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from pathlib import Path

from fontTools import subset
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ICON = re.compile(r'<i class="([^"]*\bfa[bs]?\b[^"]*|[^"]*\bfa-[^"]*)"([^>]*)></i>')
SCRIPT = re.compile(r"<script\b[^>]*?(?:/>|>.*?</script>)\s*", re.S)
LINK = re.compile(
    r'<link\b[^>]*rel="(?:preload|stylesheet)"[^>]*>\s*'
    r'|<link\b[^>]*href="[^"]*\.css[^"]*"[^>]*>\s*'
)
IMAGE = re.compile(r"<img\b(?![^>]*\bloading=)")
DRAWN = re.compile(
    r'[,{]"?([a-z][a-z0-9-]*)"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]*)"\]'
)
ICON_RULES = re.compile(r"(?:\.fa-[\w-]+:before,?)+\{content:[^{}]*\}")
# An icon in a style sheet, as itself or by its number:
# the private characters of a font of icons.
IN_STYLES = re.compile(r"[\ue000-\uf8ff]|\\(f[0-9a-f]{3})\b")
# Browsers break a line behind every hyphen, those of --output included.
COMMANDS = re.compile(
    r'<div class="highlight-(?:bash|shell|console|text|none) .*?</pre>', re.S
)
HYPHENED = re.compile(r"(?<!\"pre\">)(?<=[\s>])[^\s<>]*-[^\s<>]*(?=[\s<])")
EAGER = 2  # pictures of the first screen, the logo among them
# What a script or a style sheet needs on a page to do anything there.
NEEDED: dict[str, Callable[[str], bool]] = {
    "fontawesome": lambda page: False,
    "searchtools.js": lambda page: 'id="search-results"' in page,
    "language_data.js": lambda page: 'id="search-results"' in page,
    "searchindex.js": lambda page: 'id="search-results"' in page,
    "mathjax": lambda page: 'class="math' in page,
    "MathJax": lambda page: 'class="math' in page,
    "audit-here.js": lambda page: 'id="audit-form"' in page,
    "explorables.js": lambda page: bool(
        re.search('class="(?:explorable|picture)"', page)
    ),
    "pictures.js": lambda page: 'class="picture"' in page,
    "clipboard.min.js": lambda page: 'class="highlight"' in page,
    "copybutton.js": lambda page: 'class="highlight"' in page,
    "copybutton.css": lambda page: 'class="highlight"' in page,
    "design-tabs.js": lambda page: "sd-tab-" in page,
    "sphinx-design.min.css": lambda page: 'class="sd-' in page or " sd-" in page,
    "mystnb.": lambda page: 'class="cell' in page,
    "proof.css": lambda page: 'class="proof' in page,
    "exercise.css": lambda page: "exercise" in page or "solution" in page,
}


def lighter(page: str, icons: Mapping[str, str]) -> str:
    """Take off a finished page what it loads and does not use; draw its icons in it.

    >>> script = '<script src="searchindex.js"></script>'
    >>> lighter(script + '<p><i class="fas fa-bars"></i></p>', {"bars": "<svg/>"})
    '<p><svg class="icon fas fa-bars"/></p>'
    """
    body = SCRIPT.sub("", LINK.sub("", page))
    unused = [name for name, needed in NEEDED.items() if not needed(body)]

    def kept(tag: re.Match[str]) -> str:
        return "" if any(name in tag[0] for name in unused) else tag[0]

    page = LINK.sub(kept, SCRIPT.sub(kept, page))
    page = ICON.sub(partial(_icon, icons), page)
    page = COMMANDS.sub(_unbroken, page)
    parts = IMAGE.split(page)
    return "".join(
        part
        + ("" if k == len(parts) - 1 else "<img" + ' loading="lazy"' * (k >= EAGER))
        for k, part in enumerate(parts)
    )


def _unbroken(commands: re.Match[str]) -> str:
    """Keep each word of a command on one line;
    the style sheet has the rule for ``pre``.
    """
    tag, pre, code = commands[0].partition("<pre>")
    return tag + pre + HYPHENED.sub(r'<span class="pre">\g<0></span>', code)


def _icon(icons: Mapping[str, str], tag: re.Match[str]) -> str:
    names = [c.removeprefix("fa-") for c in tag[1].split() if c.startswith("fa-")]
    (name,) = [n for n in names if n not in ("solid", "brands", "regular", "lg")]
    if name not in icons:
        raise ExtensionError(f"no icon {name!r} in the theme's fontawesome.js")
    return icons[name].replace("<svg", f'<svg class="icon {escape(tag[1])}"{tag[2]}', 1)


def drawings(script: str) -> dict[str, str]:
    """Return the icons that Font Awesome's script draws:
    name → SVG; solid ones before outlines.

    >>> drawings('{bars:[448,512,["navicon"],"f0c9","M0 96z"]}')["bars"]
    '<svg viewBox="0 0 448 512" aria-hidden="true"><path d="M0 96z"/></svg>'
    """
    return {
        name: f'<svg viewBox="0 0 {w} {h}" aria-hidden="true"><path d="{path}"/></svg>'
        for name, w, h, path in DRAWN.findall(script)
    }


def lighten(app: Sphinx, exception: Exception | None) -> None:
    """Rewrite the finished pages, which a build without changes leaves as they are."""
    static = Path(app.outdir, "_static")
    script = static / "scripts" / "fontawesome.js"
    if exception or app.builder.name != "html" or not script.is_file():
        return
    icons = drawings(script.read_text("utf-8"))
    for path in Path(app.outdir).rglob("*.html"):
        if static not in path.parents:
            page = path.read_text("utf-8")
            if "fontawesome.js" in page or "<i class=" in page:
                path.write_text(lighter(page, icons), "utf-8")
    styles = static / "styles" / "pydata-sphinx-theme.css"
    rules = ICON_RULES.sub("", styles.read_text("utf-8"))  # of all icons there are
    styles.write_text(
        rules.replace(
            'fa-solid-900.woff2) format("woff2")', 'fa-solid-900.woff) format("woff")'
        ),
        "utf-8",
    )
    cut_font(
        static / "vendor" / "fontawesome" / "webfonts" / "fa-solid-900.ttf",
        named(static),
    )


def named(static: Path) -> set[int]:
    """Return the icons that style sheets draw, by their number in Unicode."""
    sheets = [path for path in static.rglob("*.css") if "fontawesome" not in path.parts]
    icons = [
        icon
        for sheet in sheets
        for icon in IN_STYLES.finditer(sheet.read_text("utf-8"))
    ]
    return {int(icon[1], 16) if icon[1] else ord(icon[0]) for icon in icons}


def cut_font(font: Path, characters: set[int]) -> None:
    """Write a font of some characters beside a font, as WOFF."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells every table
    options = subset.Options(flavor="woff", layout_features=[], notdef_outline=True)
    whole = subset.load_font(str(font), options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=characters)
    cutter.subset(whole)
    subset.save_font(whole, str(font.with_suffix(".woff")), options)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
