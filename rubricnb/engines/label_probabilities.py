"""The probability of every label at the score's position, from token probabilities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from rubricnb.core.labels_in_text import Label

Probabilities = dict[str, float]
"""Probabilities by token, or by label."""
Chances = tuple[float, ...]
"""The probability of each label, in the labels' order."""
_NEGLIGIBLE = 1e-4  # a label prefix less probable than this is not followed further


class Step(NamedTuple):
    """One generated token, and the probabilities of its alternatives."""

    token: str
    alternatives: Probabilities


def label_probabilities(
    ask: Callable[[str, list[str]], Generator[Any, Any, list[Step]]],
    targets: Sequence[str],
) -> Generator[Any, Any, Chances]:
    """Probability of every whole label directly after a slot.

    A label may be several tokens ("10" begins like "1"; the space before it may be a
    token of its own), so its probability is the product over its tokens, summed over
    the ways to spell it; where one label begins another, it counts only if the longer
    one does *not* follow.

    Parameters
    ----------
    ask
        ``ask(prefix, rest)`` continues the answer after `prefix` by one of `rest`: a
        generator that yields what it needs to be answered, and returns the generated
        tokens, each with the probabilities of all that could have stood there.
    targets
        The labels as they would follow the slot: ``" 1"``, ``" 2"``, …

    Returns
    -------
    tuple of float
        One per target; their sum is the label mass (at most 1).

    Examples
    --------
    >>> def ask(prefix, rest):
    ...     alternatives = yield prefix
    ...     return [Step(max(alternatives, key=alternatives.get), alternatives)]
    >>> steps = label_probabilities(ask, [" 1", " 2", " 10"])
    >>> next(steps), steps.send({" 1": 0.6, " 2": 0.3})
    ('', ' 1')
    >>> try:
    ...     steps.send({"0": 0.5, ".": 0.5})
    ... except StopIteration as done:
    ...     done.value
    (0.3, 0.3, 0.3)
    """
    seen: dict[str, Probabilities] = {}
    begun = {target[:n] for target in targets for n in range(len(target))}
    reached = _reached(seen)
    while open_ends := [
        p for p, w in reached.items() if p in begun - seen.keys() and w >= _NEGLIGIBLE
    ]:
        prefix = open_ends[0]
        rest = [
            t[len(prefix) :] for t in targets if t.startswith(prefix) and t != prefix
        ]
        for token, alternatives in (yield from ask(prefix, rest)):
            seen[prefix] = alternatives
            prefix += token
            if prefix not in begun or prefix in seen:
                break
        else:
            if open_ends[0] not in seen:
                raise ValueError(
                    "the endpoint gave no log-probabilities: choose readout 'score' or "
                    "'feedback', or a model that has log-probabilities"
                )
        reached = _reached(seen)
    longer = begun.union(targets)
    goes_on = (
        sum(p for more, p in seen.get(t, {}).items() if more and t + more in longer)
        for t in targets
    )
    return tuple(
        reached[target] * (1 - on) for target, on in zip(targets, goes_on, strict=True)
    )


def _reached(seen: dict[str, Probabilities]) -> Probabilities:
    """Probability of every text that the tokens seen spell, in all ways together."""
    reached = defaultdict(float, {"": 1.0})
    for prefix in sorted(seen, key=len):
        for token, probability in seen[prefix].items():
            if token:
                reached[prefix + token] += reached[prefix] * probability
    return reached


def probabilities_at(
    steps: Sequence[Step], label: Label | None, choices: Sequence[str]
) -> Chances:
    """Probabilities of the labels at the token where free text writes its score.

    Parameters
    ----------
    steps
        The generated tokens with their alternatives.
    label
        The label in their text (`rubricnb.core.labels_in_text.last_label`).
    choices
        The labels.

    Returns
    -------
    tuple of float
        One per label; zeros where no label on the scale was written, or one of several
        tokens; and where a label such as 1 is probable, and may be the beginning of
        one such as 10 that is no token here.

    Examples
    --------
    >>> score = Step("4", {"4": 0.7, "5": 0.2})
    >>> steps = [Step("[RESULT]", {}), Step(" ", {" ": 1.0}), score]
    >>> probabilities_at(steps, Label(1, 9, 10), ["4", "5"])
    (0.7, 0.2)
    """
    end = 0
    for step in steps:
        start, end = end, end + len(step.token)
        if label is None or label.position is None or end <= label.start:
            continue
        if start > label.start or end < label.end:
            break
        folded: Probabilities = defaultdict(float)
        for token, probability in step.alternatives.items():
            folded[token.strip(" :*_\n")] += probability
        absent = set(choices) - folded.keys()
        unsure = sum(
            probability
            for name, probability in folded.items()
            if name in choices and any(one.startswith(name) for one in absent)
        )
        if unsure >= _NEGLIGIBLE:
            break
        return tuple(folded[choice] for choice in choices)
    return (0.0,) * len(choices)
