"""A room stands on those below it alone: with those above it deleted, they work."""

import ast
import os
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rubricnb as rb
from rubricnb.book.notebooks import find_root
from tools.clone import Clone
from tools.ratchet import n_statements
from tools.rooms import layers

PACKAGE = Path(rb.__file__).parent
LAYERS = layers(Clone(find_root()))
# Imports what is left, then plans, judges and tests minibench with its own engine.
STUDY = '''
import pickle, pkgutil, sys, zlib
from importlib import import_module
import numpy as np
import rubricnb
for module in pkgutil.walk_packages(rubricnb.__path__, "rubricnb."):
    import_module(module.name)
from rubricnb.core.contract import Reply
from rubricnb.core.estimates.intervals import named_mean
from rubricnb.core.permutation import balanced
from rubricnb.core.plan import plan
from rubricnb.core.run import run

class Early:
    """Takes the first or the second option, whatever it says."""
    slug, source, identity, deterministic = "early", "live", "early 1", True
    readouts, concurrency = ("feedback",), 1

    def answer(self, requests):
        for request in requests:
            taken = request.choices[zlib.crc32(request.item_id.encode()) % 2]
            yield Reply(request.request_id, f"Feedback: so. [RESULT] {taken}")

    def close(self):
        pass

items = pickle.load(open(sys.argv[1], "rb"))
if "sets" in sys.argv[2:]:
    items = rubricnb.load("minibench", n_items=20)
judged = run(plan(items, balanced(5)), Early(), store=":memory:")
assert set(judged["status"]) == {"ok"} and set(judged["position"]) == {1, 2}
scores = judged.drop_duplicates("item_id").score.to_numpy()
found = named_mean("score", scores, np.arange(len(scores)))
assert found["score_low"] < found["score"] < found["score_high"], found
if "statistics" in sys.argv[2:]:
    assert rubricnb.statistics.position_bias(judged)["cramers_v"].item() > 0.5
'''


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """Minibench as a file, for rooms below the one that loads it."""
    path = tmp_path_factory.mktemp("items") / "minibench.pickle"
    path.write_bytes(pickle.dumps(rb.load("minibench", n_items=20)))
    return path


def left_with(n_layers, folder):
    """Copy the package without what is above the lowest layers; return its rooms."""
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for room in (room for layer in LAYERS[n_layers:] for room in layer):
        place = folder / room
        shutil.rmtree(place) if place.is_dir() else place.with_suffix(".py").unlink()
    return [room for layer in LAYERS[:n_layers] for room in layer]


def in_copy(copy, *command):
    return subprocess.run(
        [sys.executable, *command],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("n_layers", range(1, len(LAYERS) + 1))
def test_rooms_work_without_those_above_them(n_layers, items, tmp_path):
    rooms = left_with(n_layers, tmp_path / "rubricnb")
    done = in_copy(tmp_path, "-c", STUDY, items, *rooms)
    assert done.returncode == 0, done.stderr[-2000:]


def closure(name):
    """Return the modules that are loaded with one, by name."""
    program = (
        f"import sys, {name}\nprint(*(m for m in sys.modules if "
        f"m.startswith('rubricnb.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def statements(modules):
    files = (Path(sys.modules[m].__file__) for m in modules if m in sys.modules)
    return sum(n_statements(ast.parse(file.read_text("utf-8"))) for file in files)


@pytest.mark.parametrize(
    ("name", "most_modules", "most_statements"),
    # aimed at 810 and 2,370; a limit that the next change has to lower, not to raise
    [("rubricnb.core.plan", None, 813), ("rubricnb.core.run", 36, 2420)],
)
def test_planning_and_running_load_little(name, most_modules, most_statements):
    modules = closure(name)
    for module in modules:
        import_module(module)
    assert most_modules is None or len(modules) <= most_modules, modules
    assert statements(modules) <= most_statements
