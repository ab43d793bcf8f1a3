"""Eight judges of known kind, asked as a user would: the audit says of each what it is."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import rubricnb as rb

RUBRIC = """\
- {rubric_id: a, criterion: quality, definition: "Is it good?", levels:
   {1: Bad., 2: Poor., 3: Fair., 4: Good., 5: Great.}}
"""
PROMPTS, TEXTS = 40, 3


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    """Forty prompts with three rated texts each; longer texts are rated a little higher."""
    folder = tmp_path_factory.mktemp("known")
    rng = np.random.default_rng(0)
    human = rng.permutation(np.resize(range(1, 6), PROMPTS * TEXTS))
    words = np.argsort(np.argsort(0.23 * human + rng.normal(0, 1.3, len(human))))
    pd.DataFrame({
        "instruction": [f"Question {i // TEXTS}?" for i in range(len(human))],
        "response": [f"Text {i}." + " word" * n for i, n in enumerate(words)],
        "human": human,
    }).to_csv(folder / "d.csv", index=False)
    (folder / "r.yml").write_text(RUBRIC)
    return rb.load("csv", path=folder / "d.csv", rubric=folder / "r.yml")


def named(prompt, score):
    """The score as this prompt calls it."""
    if "Score A:" in prompt:
        return "EDCBA"[score - 1]
    return ["i", "ii", "iii", "iv", "v"][score - 1] if "Score ii:" in prompt else str(score)


def judge_of(kind, items):
    """A function from messages to an answer, of one of the eight kinds."""
    human = dict(enumerate(items.human.astype(int)))
    length = {i: len(text) for i, text in enumerate(items.response)}
    fifths = np.quantile(list(length.values()), [0.2, 0.4, 0.6, 0.8])
    rng = np.random.default_rng(1)
    one_off = {i: int(k) for i, k in enumerate(rng.choice([-1, 0, 1], len(human), p=[0.1, 0.8, 0.1]))}

    def score(prompt):
        i = int(re.search(r"Text (\d+)\.", prompt)[1])
        if kind == "near-truth":
            return human[i] + (rng.random() < 0.05) - (rng.random() < 0.05)
        if kind == "noisy":
            return round(human[i] + rng.normal(0, 2))
        if kind == "generous":
            return human[i] + 1
        if kind == "constant":
            return 3
        if kind == "length":
            return 1 + int(np.searchsorted(fifths, length[i]))
        if kind == "hash":
            return 1 + int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 5
        if kind == "reversed":
            return 6 - human[i] + (rng.random() < 0.05)
        return human[i] + one_off[i]  # never changes its mind

    def judge(messages):
        prompt = messages[-1]["content"]
        return f"[RESULT] {named(prompt, int(np.clip(score(prompt), 1, 5)))}"

    return judge


KINDS = ["near-truth", "noisy", "generous", "constant", "length", "hash", "reversed", "unchanging"]
