import re
from pathlib import Path

import pytest
import yaml

from rubricnb.sets import identities
from rubricnb.sets.papers import claims, verdicts

PAGES = list((Path(__file__).parents[3] / "notebooks").glob("*.md"))


def test_every_identity_names_an_expression_and_every_expression_is_named_or_shown():
    named = set(claims().query("kind == 'identity'").recompute)
    groups = yaml.safe_load(identities._FILE.read_text())
    frames = groups.pop("frames")
    names = [name for group in groups.values() for name in group]
    assert len({*names, *frames}) == len([*names, *frames])
    shown = {
        f
        for p in PAGES
        for f in re.findall(r'identities\.value\("(\w+)"', p.read_text())
    }
    assert named <= set(names) <= named | shown
    text = " ".join(identities._expressions().values())
    assert [name for name in frames if not re.search(rf"\b{name}\b", text)] == []


@pytest.mark.in_turn
def test_every_identity_has_a_verdict():
    rows = claims().query("kind == 'identity'")
    checked = verdicts(rows, identities.recompute())
    assert not (checked.verdict == "cannot say").any()


def test_an_expression_reaches_its_functions_only(monkeypatch):
    monkeypatch.setattr(
        identities, "_expressions", lambda: {"bad": "open('/etc/hosts')"}
    )
    with pytest.raises(NameError, match="open"):
        identities.value("bad")


def test_an_unknown_name_is_an_error():
    with pytest.raises(ValueError, match="did you mean 'mean_flip_rate'"):
        identities.value("mean_flip_rates")
