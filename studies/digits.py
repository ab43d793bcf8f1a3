"""What a digit in a text does to a question whose levels are named by digits.

All five levels have one text, so that only their names differ, and the levels of a
``choice`` are named "level 1" to "level 5". Chapter 30 reads the table that
``python -m studies.digits decision:MODEL@URL …`` writes, once for each server
(``params/decisions.yml`` says how they are started).
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from rubricnb.auditing.draw import some_items
from rubricnb.core.judge import open_judge
from rubricnb.core.permutation import fixed
from rubricnb.core.plan import plan
from rubricnb.core.run import run
from rubricnb.sets.catalogue import load
from studies.recording import write_tables

DIGITS = (1, 2, 3, 4, 5)


def digits(judge: str) -> pd.DataFrame:
    """Ask about every text of minibench without a digit at its end, and with each.

    Parameters
    ----------
    judge
        The spec of a decision model.

    Returns
    -------
    DataFrame
        A row a digit: ``chosen``, the share of the texts in which the level of this
        digit is the most probable, and ``moved``, the largest change of a probability
        that the digit makes.

    Examples
    --------
    >>> digits("decision:sparrow-nano-general-v1.1@http://127.0.0.1:8000/v1")
    ... # doctest: +SKIP
    """
    items = load("minibench")
    items = some_items(items, ~items["text_id"].duplicated())
    engine = open_judge(judge, kind="choice", check_model=False)
    probabilities = []
    for ending in ("", *(f" {digit}" for digit in DIGITS)):
        texts = some_items(items, np.ones(len(items), dtype=bool))
        texts["response"] = texts["response"].astype("str") + ending
        asked = plan(texts, fixed(5, 1), variant="identical", readout="logprobs")
        reads = run(asked, engine, store=":memory:")
        probabilities.append(reads.filter(like="probability_").to_numpy(float))
    without, *others = probabilities
    return pd.DataFrame(
        {
            "judge": engine.slug,
            "digit": digit,
            "n_texts": len(items),
            "chosen": np.mean(found.argmax(axis=1) == digit - 1),
            "moved": np.abs(found - without).max(),
        }
        for digit, found in zip(DIGITS, others, strict=True)
    )


if __name__ == "__main__":
    write_tables({"decision_digits": pd.concat(map(digits, sys.argv[1:]))})
