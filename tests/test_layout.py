"""What book/layout.md says of the way of an item is so."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
WAY = re.findall(
    r"^\|[^|]*\| \d `(rubricnb/[\w/]+\.py)` \|", (ROOT / "book/layout.md").read_text("utf-8"), re.M
)


def imported(path):
    """Modules of the package that a module names in its imports, wherever they stand."""
    for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            module = name.replace(".", "/") + ".py"
            if name.startswith("rubricnb.") and (ROOT / module).is_file():
                yield module


def reached(path):
    """All modules that a module loads, through others too."""
    found, open_ = set(), [path]
    while open_:
        new = set(imported(open_.pop())) - found
        found |= new
        open_ += new
    return found


def test_an_item_passes_at_most_six_modules_and_none_of_them_reaches_another():
    assert WAY[0] == "rubricnb/data/catalogue.py"
    assert WAY[-1] == "rubricnb/statistics/position.py"
    assert 2 < len(WAY) <= 6
    for module in WAY:
        assert reached(module) & set(WAY) == set(), module


def test_what_rb_run_calls_hands_an_item_through_the_modules_between():
    assert set(WAY[2:5]) <= set(imported("rubricnb/judging/run.py"))


def test_no_data_reach_above_themselves():
    for path in (ROOT / "rubricnb/data").rglob("*.py"):
        above = {m for m in imported(path.relative_to(ROOT)) if "/judging/" in m or "/rulers/" in m}
        assert above == set(), path
