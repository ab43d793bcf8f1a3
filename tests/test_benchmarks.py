"""The command that measures: what it knows, and what it does without a package."""

import sys

from benchmarks import rows_of
from benchmarks.__main__ import benchmarks, main


def test_what_benchmarks_share_is_none_of_them():
    assert {"large", "decisions", "host_work"} < set(benchmarks())
    assert not {"arms", "stand_in"} & set(benchmarks())


def test_a_benchmark_without_what_it_needs_is_left_out(tmp_path, monkeypatch, capsys):
    """The weights of vLLM's environment are not in a folder that is empty."""
    monkeypatch.setattr("benchmarks.host_work.MODEL", str(tmp_path / "none"))
    monkeypatch.setattr("benchmarks.__main__.apart", rows_of)
    monkeypatch.setattr(sys, "argv", ["", "host_work", "--json", str(tmp_path / "f")])
    assert main() == 0
    assert "left out: host_work" in capsys.readouterr().out
