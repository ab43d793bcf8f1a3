import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault(  # before anything draws
    "MATPLOTLIBRC", str(Path(__file__).parents[1] / "rubricnb" / "matplotlibrc")
)
# These machines are slow and noisy: hypothesis must judge results, not times.
settings.register_profile(
    "rubricnb", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("rubricnb")


@pytest.fixture(autouse=True)
def own_store(tmp_path_factory, monkeypatch):
    """Every test has a store of its own: none reads or fills the user's."""
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path_factory.mktemp("store") / "replies.sqlite"))


@pytest.fixture
def mirror(monkeypatch):
    """The public datasets, from a folder that mirrors them: no test needs a network."""
    folder = os.environ.get("RUBRICNB_MIRROR") or Path(__file__).parents[2] / "shared" / "datasets"
    if not Path(folder, "github").is_dir():
        pytest.skip("needs the datasets: set RUBRICNB_MIRROR to a folder that mirrors them")
    monkeypatch.setenv("RUBRICNB_MIRROR", str(folder))
