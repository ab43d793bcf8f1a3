"""How the benchmarks measure and keep what they find; what they find is theirs."""

import json
import time

import pytest

import rubricnb as rb
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


def test_a_benchmark_without_its_datasets_is_left_out_and_the_rest_goes_on(
    tmp_path, monkeypatch, capsys
):
    kept = tmp_path / "b.json"
    monkeypatch.setattr("sys.argv", ["b", "budget", "sharing", "--json", str(kept)])
    monkeypatch.setenv("RUBRICNB_MIRROR", str(tmp_path / "none"))
    monkeypatch.setattr(command, "apart", needs_datasets)
    assert command.main() == 0
    printed = capsys.readouterr().out
    assert "left out: " in printed
    assert printed.endswith("left out, for want of datasets: budget (set RUBRICNB_MIRROR)\n")
    assert [row["benchmark"] for row in json.loads(kept.read_text())["rows"]] == ["sharing"]


def needs_datasets(name):
    if name == "budget":
        rb.load("hanna")
    return [{"what": "speed", "value": 1, "unit": "/s", "limit": "", "met": None}]
