"""Recordings by llama.cpp before every read had one routine of attention.

Its routine for 64 or more uncached tokens gives other probabilities than that for
fewer. Where the recorded answer has one criterion, the order of the levels must not
decide which of them a read had.
"""

import pandas as pd
import pytest

from rubricnb.core.results import recorded, results_folder

FEWEST = 64
# What could not be asked again: by study, judge and number of levels, the share of reads
# that had the routine for fewer tokens. The pages that show them name it.
LEFT = {
    ("every-order", "qwen2.5-coder-1.5b-instruct-embedded", 5): 0.75,
    ("minibench", "qwen2.5-coder-1.5b-instruct-embedded", 2): 0.775,
    ("minibench", "qwen2.5-coder-1.5b-instruct-embedded", 3): 0.63,
    ("scoring", "qwen2.5-coder-1.5b-instruct-embedded", 5): 0.06,
}
STUDIES = ("minibench", "every-order", "scales", "scoring", "reference", "qwen-1.5b")


def short_reads():
    for path in sorted(results_folder().glob("*/*-embedded/*.parquet")):
        if (study := path.parent.parent.name) not in STUDIES:
            continue
        reads = recorded(path.parent.name, path.stem, study)
        reads = reads[reads["template"].astype(str) == "rubric"]
        left = reads["prompt_tokens"] - reads["cached_tokens"]
        for levels, short in (left < FEWEST).groupby(reads["n_options"]):
            yield (study, path.parent.name, int(levels)), path.stem, short.mean()


def test_recorded_reads_of_one_criterion_had_one_routine_or_say_how_many_did_not():
    found = pd.DataFrame(short_reads(), columns=["key", "dataset", "share"])
    assert len(found) > 12
    shares = dict(found.loc[found.share > 0, ["key", "share"]].to_numpy())
    assert shares == pytest.approx(LEFT, abs=0.005)
