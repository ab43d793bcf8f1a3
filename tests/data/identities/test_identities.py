import inspect
import re
from pathlib import Path

import pytest

from rubricnb.data import claims, identities, verdicts


@pytest.mark.parametrize(
    "module", dict.fromkeys(identities.MODULES.values()), ids=lambda m: m.__name__
)
def test_every_identity_names_a_function_and_every_function_is_named_or_shown(module):
    rows = claims().query("kind == 'identity'")
    named = set(rows[rows.paper.map(identities.MODULES) == module].recompute)
    functions = {
        name
        for name, member in inspect.getmembers(module, inspect.isfunction)
        if member.__module__ == module.__name__ and not name.startswith("_")
    }
    short = module.__name__.rpartition(".")[2]
    pages = (Path(__file__).parents[3] / "notebooks").glob("*.md")
    shown = {f for p in pages for f in re.findall(rf"identities\.{short}\.(\w+)\(", p.read_text())}
    assert named <= functions <= named | shown


def test_every_identity_has_a_verdict():
    rows = claims().query("kind == 'identity'")
    checked = verdicts(rows, identities.recompute())
    assert not (checked.verdict == "cannot say").any()
