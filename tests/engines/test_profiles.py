import json
import re
from dataclasses import asdict

import pytest

from rubricnb.engines.profiles import Profile, open_profile, profiles
from rubricnb.engines.simulated import SimulatedJudge


def test_every_fitted_profile_of_both_papers_is_there():
    names = [name.split("/") for name in profiles()]
    assert sum(name[0] == "v2" for name in names) == 24
    assert sum(name[0] == "v1" for name in names) == 7
    assert sum(len(name) == 1 for name in names) == 7


def test_fitted_profiles_say_what_they_were_fitted_to():
    fitted = [p for name, p in profiles().items() if "/" in name]
    assert all(p.source.startswith("arXiv:2602.02219v") for p in fitted)


def test_an_unknown_name_offers_the_nearest():
    with pytest.raises(ValueError, match="v2/gemma-3-27b/hanna"):
        open_profile("v2/gemma-27b/hanna")


@pytest.mark.parametrize(
    "name", ["sharpness", "order_noise", "text_error", "quality_sd"]
)
def test_a_spread_below_zero_is_refused(name):
    with pytest.raises(ValueError, match=name):
        Profile("x", **{name: -0.1})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("center", "three", "a number"),
        ("text_share", 1.1, "a number from 0 to 1"),
        ("text_share", float("nan"), "a number from 0 to 1"),
        ("draw", 0.5, "a whole number"),
        ("source", 7, "a text"),
        ("position_preference", 1.0, "a list of numbers"),
        ("interaction", [1.0], "a list of lists of numbers"),
        ("unparsed", [("*", 2)], "a list of pairs (ordering, number from 0 to 1)"),
        ("label_shift", ["letter"], "a list of pairs (labels, number)"),
    ],
)
def test_a_value_of_another_kind_is_refused(name, value, kind):
    with pytest.raises(ValueError, match=re.escape(f"profile 'x': {name} = ")) as told:
        Profile("x", **{name: value})
    assert str(told.value).endswith(f" is not {kind}")


def test_a_profile_is_the_same_judge_however_it_is_written():
    written = Profile("x", draw=1.0, center=3, position_preference=[1, 0])
    read = Profile("x", draw=1, center=3.0, position_preference=(1.0, 0.0))
    assert json.dumps(asdict(written)) == json.dumps(asdict(read))
    assert SimulatedJudge(written).identity == SimulatedJudge(read).identity
