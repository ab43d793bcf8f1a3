import pytest
from hypothesis import HealthCheck, settings

# These machines are slow and noisy: hypothesis must judge results, not times.
settings.register_profile(
    "rubricnb", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("rubricnb")


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory, monkeypatch):
    """Every test has a store of its own: none reads or fills the user's."""
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path_factory.mktemp("store") / "replies.sqlite"))
