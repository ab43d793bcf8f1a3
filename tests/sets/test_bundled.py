"""What the bundled texts promise: their structure, their balance, and their length."""

import re
from collections import Counter
from importlib.resources import files
from itertools import chain
from pathlib import Path

import pytest
import yaml
from scipy.stats import spearmanr

DATA = files("rubricnb") / "sets"
OWN_DATA = Path(__file__).parents[2] / "examples" / "own-data"
LEVELS = range(1, 6)


def read(*path):
    return yaml.safe_load(DATA.joinpath(*path).read_text(encoding="utf-8"))


def rubrics(name):
    return read("rubrics", f"{name}.yml")


def words(text):
    return len(text.split())


MINIBENCH = read("bundled", "minibench.yml")
PROMPTS = MINIBENCH["prompts"]
ANSWERS = [
    (prompt["id"], level, prompt["responses"][level])
    for prompt in PROMPTS
    for level in LEVELS
]
ALL_RUBRICS = list(
    chain.from_iterable(rubrics(name) for name in ("minibench", "hanna", "summeval"))
)
OWN_RUBRICS = yaml.safe_load((OWN_DATA / "my_rubric.yml").read_text(encoding="utf-8"))


def strings(wording):
    return [wording["definition"], *wording["levels"].values()]


def normal(text):
    return re.sub(r"\W+", " ", text).strip().casefold()


@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda prompt: prompt["id"])
def test_every_prompt_has_one_candidate_per_level(prompt):
    assert set(prompt) == {"id", "category", "instruction", "responses"}
    assert list(prompt["responses"]) == list(LEVELS)
    assert sorted(
        answer["candidate"] for answer in prompt["responses"].values()
    ) == list("ABCDE")


def test_a_candidates_name_says_nothing_about_its_level():
    arrangements = {
        tuple(prompt["responses"][level]["candidate"] for level in LEVELS)
        for prompt in PROMPTS
    }
    assert len(arrangements) == len(PROMPTS)
    assert not arrangements & {tuple("ABCDE"), tuple("EDCBA")}
    counts = Counter((answer["candidate"], level) for _, level, answer in ANSWERS)
    # 12 prompts over 5 levels: as even as can be is 2 or 3 times each.
    assert all(
        counts[candidate, level] in (2, 3) for candidate in "ABCDE" for level in LEVELS
    )


def test_length_is_a_poor_guide_to_quality():
    """The ranks of length and level share at most 1/16 of their variance (|ρ| ≤ 1/4).

    Answers that are next to empty are short by nature, so the bound has to hold with
    level 1 and a weaker one without it, where only 48 texts are left.
    """
    lengths = [(level, words(answer["text"])) for _, level, answer in ANSWERS]
    assert abs(spearmanr(lengths).statistic) <= 0.25
    assert abs(spearmanr([pair for pair in lengths if pair[0] > 1]).statistic) <= 0.35


@pytest.mark.parametrize(
    "rubric", ALL_RUBRICS + OWN_RUBRICS, ids=lambda r: r["rubric_id"]
)
def test_a_rubric_is_complete_and_its_paraphrase_differs_everywhere(rubric):
    paraphrase = rubric["paraphrased"]
    assert set(rubric) == {
        "rubric_id",
        "criterion",
        "definition",
        "levels",
        "paraphrased",
    }
    assert set(paraphrase) == {"definition", "levels"}
    assert list(rubric["levels"]) == list(range(1, len(rubric["levels"]) + 1))
    assert list(paraphrase["levels"]) == list(rubric["levels"])
    both = [normal(text) for text in strings(rubric) + strings(paraphrase)]
    assert len(set(both)) == len(both)
    for wording in (rubric, paraphrase):
        assert re.fullmatch(r"[^.?]+\?", wording["definition"])  # one question
        assert all(
            text.endswith(".") and words(text) <= 25
            for text in wording["levels"].values()
        )


def test_texts_are_clean():
    """One line each, no stray blanks,
    none of the marks that the judge prompt itself uses.
    """
    texts = [answer["text"] for _, _, answer in ANSWERS]
    texts += [prompt["instruction"] for prompt in PROMPTS]
    for rubric in ALL_RUBRICS + OWN_RUBRICS:
        texts += strings(rubric) + strings(rubric["paraphrased"])
    for text in texts:
        assert text == " ".join(text.split())
        assert not re.search(r"\[RESULT\]|###|<\||Score \d|Feedback:", text)
