"""How the benchmarks measure and keep what they find; what they find is theirs."""

import json
import time

import pytest

from benchmarks import __main__ as command
from benchmarks import timed


def test_times_are_medians():
    naps = iter([0, 3, 0, 0.2])  # the first turn warms up
    (spent,) = timed(lambda: time.sleep(next(naps)), repeats=3)
    assert 0.2 <= spent.wall < 1  # their mean is more than one


def test_what_is_measured_is_kept_when_a_later_benchmark_fails(tmp_path, monkeypatch):
    def apart(name):
        if name == "rulers":
            raise RuntimeError("no model")
        return [{"what": "speed", "value": 1, "unit": "/s", "limit": "", "met": None}]

    monkeypatch.setattr(command, "apart", apart)
    kept = tmp_path / "b.json"
    monkeypatch.setattr("sys.argv", ["b", "budget", "rulers", "--json", str(kept)])
    with pytest.raises(RuntimeError):
        command.main()
    assert [row["benchmark"] for row in json.loads(kept.read_text())["rows"]] == ["budget"]
