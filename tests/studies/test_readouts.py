"""The two readouts of one judge: tables recompute, and a planted difference is found."""

import pandas as pd

from studies import readouts


def test_only_reads_with_a_score_in_both_readouts_are_compared():
    frame = readouts.reads("minibench")
    paired = readouts.both(frame)
    written = frame[(frame.design == "balanced") & (frame.readout == "feedback")]
    assert len(paired) == written.score.notna().sum()
    row = paired.iloc[0]
    same = frame[(frame.item_id == row.item_id) & (frame.ordering_index == row.ordering_index)]
    same = same[same.design == "balanced"].set_index("readout").score
    assert (same["feedback"], same["logprobs"]) == (row.written, row.score)


def test_a_judge_that_writes_what_is_most_probable_has_no_difference(monkeypatch):
    frame = readouts.reads("minibench")
    probable = frame[frame.readout == "logprobs"]
    copied = probable.assign(readout="feedback")
    monkeypatch.setattr(readouts, "reads", lambda dataset: pd.concat([probable, copied]))
    found = readouts.pairs().set_index("measure").estimate
    assert found["same_score"] == 1
    assert found["absolute_difference"] == 0
