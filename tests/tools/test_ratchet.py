"""The ratchet sees what is planted, and takes down no more than has fallen."""

import pytest
from typer.testing import CliRunner

from rubricnb.book.notebooks import find_root
from tools import ratchet
from tools.__main__ import app
from tools.clone import Clone
from tools.doors import private_imports

ROOT = find_root()
LONG = "\n\ndef planted(x):\n" + "    x += 1\n" * 49
CELL = "```{code-cell} ipython3\n:tags: [hide-input]\n\nplanted = 1\n\n# why\n```\n\n"
SHOWN = CELL.replace(":tags: [hide-input]\n\n", "")


@pytest.fixture(scope="module")
def now():
    return ratchet.counts(Clone(ROOT))


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("path", "planted", "more"),
    [
        ("studies/cost.py", "\nX = 1\n", {("studies", "nodes"): 3}),
        ("studies/cost.py", "\nimport os\n", {}),
        ("studies/cost.py", LONG, {("studies", "nodes"): 149}),
        (
            "studies/cost.py",
            LONG + "    return x\n",
            {("studies", "nodes"): 151, ("studies", "long functions"): 1},
        ),
        (
            "rubricnb/core/run.py",
            "\nX = 1\n",
            {("rubricnb", "nodes"): 3, ("rubricnb/core", "nodes"): 3, ratchet.CORE: 1},
        ),
        (
            "_ext/public_names.py",
            "\nfrom rubricnb.engines.vllm import _open\n",
            {("_ext", "private imports"): 1},
        ),
        (
            "notebooks/02_balanced_permutation.md",
            CELL,
            {("notebooks", "lines of code"): 2, ("notebooks", "hidden lines"): 2},
        ),
        (
            "notebooks/02_balanced_permutation.md",
            SHOWN,
            {("notebooks", "lines of code"): 2},
        ),
    ],
)
def test_what_is_planted_is_counted_and_named(now, path, planted, more):
    text = (ROOT / path).read_text("utf-8") + planted
    found = ratchet.counts(Clone(ROOT, {path: text}))
    assert {key: n - now[key] for key, n in found.items() if n != now[key]} == more
    sentences = [*ratchet.raised(found, now)]
    assert len(sentences) == len(more)
    for (room, what), n in more.items():
        at = now[room, what]
        said = f"{room} has {at + n} {what}, {n} more than the {at} of"
        assert sum(line.startswith(said) for line in sentences) == 1
    listed = {*ratchet.long_functions(Clone(ROOT, {path: text}))}
    (*long,) = listed - {*ratchet.long_functions(Clone(ROOT))}
    assert len(long) == sum(
        n for (_, what), n in more.items() if what.startswith("long")
    )
    assert all(line.startswith(f"{path}: ") for line in long)


@pytest.mark.in_turn
def test_the_table_falls_and_never_rises(now):
    key = ("tools", "nodes")
    loose = ratchet.lowered(now, {**now, key: now[key] + 9})
    tight = ratchet.lowered(now, {**now, key: now[key] - 9})
    assert ratchet.limits(loose) == now
    assert ratchet.limits(tight)[key] == now[key] - 9


def test_the_row_of_the_core_is_written_by_a_person_alone(now):
    key, n = ratchet.CORE, now[ratchet.CORE]
    for most in (n - 1, n, n + 9):
        written = ratchet.limits(ratchet.lowered(now, {**now, key: most}))
        assert written[key] == most
    (said,) = ratchet.raised(now, {**now, key: n - 1})
    assert "No commit raises this row; a person may" in said


@pytest.mark.in_turn
def test_the_command_prints_every_number(now):
    done = CliRunner().invoke(app, ["ratchet"])
    assert done.exit_code == 0
    n_long = sum(n for (_, what), n in now.items() if what == "long functions")
    assert len(done.output.splitlines()) == len(now) + n_long


def test_a_private_name_is_found_however_it_is_reached():
    texts = {
        "a/__init__.py": "_of_the_package = 1",
        "a/_module.py": "name = 1",
        "a/one.py": "_name = 1\n__dunder__ = 1",
        "a/two.py": "from a.one import _name\nfrom a._module import name",
        "a/sub/three.py": "from a import _of_the_package",
        "b/four.py": "import a.one\nimport numpy._core\na.one._name\na.one.__dunder__",
        "b/five.py": "import a.one as other\nother._name.more",
        "b/six.py": "from a._module import name\nname._own",
        "b/seven.py": "from a import _module as module\nmodule.name",
    }
    assert {*private_imports(texts)} == {
        ("a/sub/three.py", 1, "a._of_the_package"),
        ("b/four.py", 3, "a.one._name"),
        ("b/five.py", 2, "a.one._name"),
        ("b/six.py", 1, "a._module.name"),
        ("b/seven.py", 1, "a._module"),
        ("b/seven.py", 2, "a._module.name"),
    }
