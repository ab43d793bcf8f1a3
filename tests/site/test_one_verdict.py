"""No two pages give opposite verdicts on one statement,
nor two values from the same data.
"""

from collections import defaultdict

from bs4 import BeautifulSoup

from rubricnb.book import notebooks as book

HTML = book.find_root() / "_build" / "html"
OPPOSITE = ({"replicates", "does not"}, {"the count holds", "the count fails"})


def verdicts(pages):
    """The statement and what the paper says → page and row, from every table."""
    found = defaultdict(list)
    for name, text in pages:
        for table in BeautifulSoup(text, "html.parser").select("table"):
            rows = [
                [" ".join(cell.get_text(" ").split()) for cell in row.select("th, td")]
                for row in table.select("tr")
            ]
            if rows and {"statement", "paper says", "verdict"} <= set(rows[0]):
                for cells in rows[1:]:
                    row = dict(zip(rows[0], cells, strict=True))
                    found[row["statement"], row["paper says"]].append((name, row))
    return found


def conflicts(found):
    """Opposite verdicts; and different values where both rows name the same data."""
    for (statement, _), rows in found.items():
        said = {row["verdict"] for _, row in rows}
        if any(pair <= said for pair in OPPOSITE):
            yield statement, rows
        by_data = defaultdict(set)
        for _, row in rows:
            by_data[row.get("texts")].add((row["we find"], row["verdict"]))
        yield from (
            (statement, rows) for d, values in by_data.items() if d and len(values) > 1
        )


def test_pages_agree_on_every_statement():
    pages = [(p.name, p.read_text("utf-8")) for p in sorted(HTML.rglob("*.html"))]
    found = verdicts(pages)
    assert any(len({name for name, _ in rows}) > 1 for rows in found.values())
    assert list(conflicts(found)) == []


def test_an_opposite_verdict_and_another_value_are_found():
    row = "<tr><td>it helps</td><td>= 1</td><td>{}</td><td>{}</td><td>a</td></tr>"
    page = (
        "<table><tr><th>statement</th><th>paper says</th><th>we find</th>"
        "<th>verdict</th><th>texts</th></tr>{}</table>"
    )
    one, opposite, apart = (
        page.format(row.format(*cells))
        for cells in (("1", "replicates"), ("0", "does not"), ("0.9", "replicates"))
    )
    assert list(conflicts(verdicts([("a", one), ("b", opposite)])))
    assert list(conflicts(verdicts([("a", one), ("b", apart)])))
    assert not list(conflicts(verdicts([("a", one), ("b", one)])))
