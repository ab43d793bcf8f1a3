"""Label probabilities, against an enumeration of a small language model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubricnb.core.labels_in_text import Label
from rubricnb.engines.label_probabilities import (
    Step,
    label_probabilities,
    probabilities_at,
)


def enumerated(model, targets, text=""):
    """Probability that the model writes each target and then does
    not go on to a longer one.
    """

    def probability_of(target, prefix=""):
        if prefix == target:
            longer = [t for t in targets if t.startswith(target) and t != target]
            return 1 - sum(
                p
                for token, p in model(prefix).items()
                if any(t.startswith(prefix + token) for t in longer)
            )
        return sum(
            p * probability_of(target, prefix + token)
            for token, p in model(prefix).items()
            if token and target.startswith(prefix + token)
        )

    return [probability_of(t) for t in targets]


@given(st.integers(2, 12), st.randoms(use_true_random=False), st.booleans())
def test_label_probabilities_equal_those_of_the_model_however_it_spells(n, rng, spaced):
    targets = [f" {i}" for i in range(1, n + 1)]
    pieces = [
        " ",
        *(f" {i}" for i in range(1, 10) if not spaced),
        *"0123456789",
        ".",
        "\n",
    ]

    def model(prefix, table={}):  # noqa: B006
        if (id(rng), prefix) not in table:
            weights = [rng.uniform(0.1, 1) for _ in pieces]
            table[id(rng), prefix] = {
                t: w / sum(weights) for t, w in zip(pieces, weights, strict=True)
            }
        return table[id(rng), prefix]

    def continue_(prefix, rest):
        steps = []
        while rest:
            fits = {
                t: p
                for t, p in model(prefix).items()
                if any(r.startswith(t) for r in rest)
            }
            token = max(fits, key=fits.get)
            steps.append(Step(token, model(prefix)))
            prefix += token
            rest = [r[len(token) :] for r in rest if r.startswith(token) and r != token]
        return steps
        yield  # it has no question

    with pytest.raises(StopIteration) as done:
        next(label_probabilities(continue_, targets))
    found = done.value.value
    assert found == pytest.approx(enumerated(model, targets), abs=1e-3)
    assert sum(found) <= 1 + 1e-9


def test_probabilities_are_those_of_the_token_that_is_the_label():
    steps = [
        Step("[RESULT] ", {}),
        Step("1", {"1": 0.9}),
        Step(" [RESULT]:", {}),
        Step(" **", {}),
        Step("2", {"2": 0.6, "1": 0.2}),
        Step("0", {"0": 1.0}),
    ]
    assert probabilities_at(steps, Label(1, 9, 10), ["1", "2"]) == (0.9, 0.0)
    assert probabilities_at(steps, Label(2, 23, 24), ["1", "2"]) == (0.2, 0.6)
    for nothing in (None, Label(None, 23, 24), Label(2, 23, 25)):  # 20 is two tokens
        assert probabilities_at(steps, nothing, ["1", "2"]) == (0.0, 0.0)


TEN = [*map(str, range(1, 11))]


@pytest.mark.parametrize(
    ("choices", "alternatives", "is_known"),
    [
        (TEN, {"9": 0.5, "1": 0.5}, False),  # a token a digit: 1 may begin 10
        (TEN, {"9": 0.5, "1": 0.3, "10": 0.2}, True),
        (TEN, {"9": 0.9, "1": 5e-5}, True),
        (TEN[:9], {"9": 0.5, "1": 0.5}, True),
        (["i", "ii", "iii"], {"ii": 0.6, "i": 0.3}, False),
        (["i", "ii", "iii"], {"iii": 0.6, "ii": 0.2, "i": 0.1}, True),
        (["good", "good enough"], {"good": 0.6, "bad": 0.1}, False),
    ],
)
def test_a_label_that_may_begin_another_is_known_where_both_are_tokens(
    choices, alternatives, is_known
):
    written = max(alternatives, key=alternatives.get)
    label = Label(choices.index(written) + 1, 9, 9 + len(written))
    steps = [Step("[RESULT] ", {}), Step(written, alternatives)]
    expected = tuple(alternatives.get(c, 0.0) if is_known else 0.0 for c in choices)
    assert probabilities_at(steps, label, choices) == expected


def test_without_probabilities_the_error_names_other_readouts():
    def gives_none(prefix, rest):
        return []
        yield  # it has no question

    with pytest.raises(ValueError, match="choose readout 'score' or 'feedback'"):
        next(label_probabilities(gives_none, [" 1", " 2"]))
