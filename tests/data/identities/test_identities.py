import inspect

import pytest

from rubricnb.data import claims, identities, verdicts


@pytest.mark.parametrize(
    "module", dict.fromkeys(identities.MODULES.values()), ids=lambda m: m.__name__
)
def test_every_identity_names_a_function_and_every_function_is_named(module):
    rows = claims().query("kind == 'identity'")
    named = set(rows[rows.paper.map(identities.MODULES) == module].recompute)
    functions = {
        name
        for name, member in inspect.getmembers(module, inspect.isfunction)
        if member.__module__ == module.__name__ and not name.startswith("_")
    }
    assert named == functions


def test_every_identity_has_a_verdict():
    rows = claims().query("kind == 'identity'")
    checked = verdicts(rows, identities.recompute())
    assert not (checked.verdict == "cannot say").any()
