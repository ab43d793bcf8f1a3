import pytest

from rubricnb.judging.profiles import Profile, open_profile, profiles


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
