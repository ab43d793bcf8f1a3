"""Each room imports from below alone, and what lies outside the rooms is named."""

import shutil
from itertools import pairwise

import pytest

from rubricnb.book.notebooks import find_root
from tools.clone import Clone
from tools.rooms import CONTRACTS, broken, layers

ROOT = find_root()
LAYERS = layers(Clone(ROOT))
STEPS = [
    (low, high) for lower, upper in pairwise(LAYERS) for low in lower for high in upper
]


@pytest.fixture
def clone(tmp_path):
    """The package and its contracts, to be changed."""
    shutil.copytree(ROOT / "rubricnb", tmp_path / "rubricnb")
    shutil.copy(ROOT / CONTRACTS, tmp_path)
    return Clone(tmp_path)


def said_of(clone, path, text):
    (clone.root / path).parent.mkdir(exist_ok=True)
    (clone.root / path).write_text(text, "utf-8")
    return " ".join(broken(clone))


@pytest.mark.parametrize(("low", "high"), STEPS)
def test_an_import_from_above_is_named_with_the_way_out(clone, low, high):
    package = (clone.root / "rubricnb" / low).is_dir()
    path = f"rubricnb/{low}/planted.py" if package else f"rubricnb/{low}.py"
    said = said_of(clone, path, f"def f():\n    import rubricnb.{high}\n")
    assert f"rubricnb.{low} is not allowed to import rubricnb.{high}" in said
    assert "Move the whole function into the lower room" in said


@pytest.mark.parametrize("path", ["rubricnb/stray.py", "rubricnb/attic/__init__.py"])
def test_a_module_or_a_room_outside_the_contract_is_named(clone, path):
    said = said_of(clone, path, '"""Planted."""\n')
    name = path.removesuffix("/__init__.py").removesuffix(".py").replace("/", ".")
    assert f"not listed as layers: - {name}" in said
    assert "A module belongs into a room; a new room is a line of .importlinter" in said


def test_a_room_of_the_contract_that_is_not_there_is_named(clone):
    shutil.rmtree(clone.root / "rubricnb" / "corrections")
    assert "rubricnb.corrections does not exist" in " ".join(broken(clone))


def test_a_circle_inside_a_room_is_named(clone):
    said_of(clone, "rubricnb/core/one.py", "import rubricnb.core.two\n")
    said = said_of(clone, "rubricnb/core/two.py", "import rubricnb.core.one\n")
    assert "No cycles are allowed in rubricnb.core" in said
    assert "Move what both need into a module below both." in said
