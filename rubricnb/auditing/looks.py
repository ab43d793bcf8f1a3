"""Two looks: what the first prompts decide is not asked of the others.

The plain prompt is asked about every text at once: agreement with people has one look.
What moves the scores is asked about a third of the prompts first, and about the others
only as far as a question is open then. A question that is looked at twice has two
chances to be wrong, so both looks share its 5 % evenly (Bonferroni): interval and
verdict of either are at 97.5 %. If A₁ and A₂ are the events that the first and that the
second look are wrong, the look at which one stops is wrong with probability at most
P(A₁) + P(A₂) = 2.5 % + 2.5 %, whenever one stops and however the looks depend on one
another. Pocock's (1977) bounds for two looks, 2.94 % each, would need normal estimates
and looks of known sizes; clusters of unequal size have neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from rubricnb.auditing.plan import FULL_MARK, references_of, requests_for
from rubricnb.auditing.terms import UNCLEAR
from rubricnb.core.cost import estimate_cost
from rubricnb.core.frames import Items, Requests
from rubricnb.core.judge import Judge, JudgeLike, PriceLike, describe
from rubricnb.core.judgments import join
from rubricnb.core.rendering import askable
from rubricnb.core.support.naming import condition_names

PLAIN_PROMPT, EDITS = "the plain prompt", "neutral edits"
TURNED, DESCENDING = "balanced orders", "descending order"
LETTERS, ROMAN = "letters", "Roman numerals"
GRADED, FULL = "references", "full-mark references"
TOGETHER = "several criteria in a call"

Ask = Callable[[Requests], pd.DataFrame]


class Asked(NamedTuple):
    """What was asked in both looks, and the number of prompts by purpose."""

    answers: list[pd.DataFrame]
    first: dict[str, int]
    second: dict[str, int]


def purposes(requests: Requests) -> pd.Series:
    """Name what each request is asked for."""
    shown, _ = references_of(requests)
    changes = requests[["design", "labels"]].assign(reference_score=shown)
    purpose = condition_names(changes).astype("object").map(_PURPOSES).fillna(GRADED)
    return purpose.mask(requests["template"].astype("str") == "criteria", TOGETHER)


_PURPOSES = {
    "baseline": PLAIN_PROMPT,
    "placebo": EDITS,
    "balanced": TURNED,
    "descending": DESCENDING,
    "letters": LETTERS,
    "Roman numerals": ROMAN,
    FULL_MARK: FULL,
}


def still_open(rows: pd.DataFrame) -> set[str]:
    """Name what must be asked about more texts, from the rows that are inconclusive."""
    unclear = rows[rows["verdict"] == UNCLEAR]
    needed = {need for name in unclear["measure"] for need in _NEEDS.get(name, ())}
    return needed | {*unclear["question"][unclear["measure"] == "labels"]}


_NEEDS = {
    "discrimination": (EDITS,),
    "edits": (EDITS,),
    "position": (EDITS, TURNED),
    "order": (EDITS, DESCENDING),
    "labels": (EDITS,),  # and the labels that the question names
    "full_mark": (EDITS, FULL),
    "reference": (GRADED,),
    "criteria": (TOGETHER,),
}


def ask_in_looks(
    planned: Sequence[Requests],
    first_items: Items,
    ask: Ask,
    rows_of: Callable[[list[pd.DataFrame], Items], pd.DataFrame],
) -> Asked:
    """Ask about the first items in every way, and about the others as far as needed.

    Parameters
    ----------
    planned
        All that may be asked, of the parts of `requests_for`, with their readout.
    first_items
        From `requests_for`.
    ask
        Requests → judgments.
    rows_of
        Judgments of the first items → the rows of their audit.
    """
    answers, first_answers, looked = [], [], []
    first: Counter[str] = Counter()
    second: Counter[str] = Counter()
    for part in planned:
        is_first, name = about(part, first_items), purposes(part)
        now = is_first | (name == PLAIN_PROMPT)
        judged = ask(part[now.to_numpy()])
        first.update(_counted(judged, part, name))
        of_first = part["request_id"][is_first.to_numpy()]
        first_answers.append(judged[judged["request_id"].isin(of_first)])
        answers.append(judged)
        looked.append((part, name, now))
    if not all(now.all() for *_, now in looked):
        needed = still_open(rows_of(first_answers, first_items))
        for k, (part, name, now) in enumerate(looked):
            is_open = name.isin(needed)
            later = part[(is_open & ~now).to_numpy()]
            if len(later):
                more = ask(later)
                second.update(_counted(more, part, name))
                both = part[(is_open | now).to_numpy()]
                answers[k] = join(both, answers[k], more)
    return Asked(answers, dict(first), dict(second))


def about(requests: Requests, items: Items) -> pd.Series:
    """Which requests are about some items; those of several criteria name the text."""
    names = {*items["item_id"], *items["text_id"]}
    return requests["item_id"].astype("object").isin(names)


def _counted(answers: pd.DataFrame, asked: Requests, name: pd.Series) -> Counter[str]:
    """Number of distinct prompts by purpose; a copy of a greedy answer is none."""
    of = dict(zip(asked["request_id"], name, strict=True))
    return Counter(answers.drop_duplicates("key")["request_id"].map(of))


def audit_cost(
    judge: JudgeLike,
    items: Items,
    price: PriceLike | None = None,
    looks: int = 2,
    **how: Any,
) -> pd.DataFrame:
    """Estimate what an audit would cost, as `estimate_cost`, before anything is sent.

    Returns
    -------
    DataFrame
        A row for each setting and look. ``look`` 2 is what the second look costs if the
        first decides nothing; ``purposes`` has the calls by what they are for.

    Examples
    --------
    >>> import rubricnb as rb
    >>> cost = audit_cost("openai:gpt-4.1", rb.load("minibench", n_items=15))
    >>> int(cost.requests.sum()), cost.look.unique().tolist()
    (391, [1])
    """
    described = describe(judge, price)
    first_items, parts = requests_for(items, looks, **how)
    planned = [askable(part, described)[0] for part in parts]
    return estimated([p for p in planned if len(p)], first_items, described)


def estimated(
    planned: Sequence[Requests], first_items: Items, judge: Judge
) -> pd.DataFrame:
    """Estimate the cost of both looks at all that may be asked."""
    rows = []
    for part in planned:
        name = purposes(part)
        at_once = about(part, first_items) | (name == PLAIN_PROMPT)
        for look, asked in ((1, at_once), (2, ~at_once)):
            if asked.any():
                own = part[asked.to_numpy()]
                cost = estimate_cost(own, judge)
                # The ascending list is one of the balanced orders, and a deterministic
                # judge is asked once for a repeated prompt: these are one call.
                edit = own["ordering_index"].where(own["design"] == "placebo", 0)
                prompts = own[[c for c in _OF_PROMPT if c in own]].assign(edit=edit)
                every = ~prompts.assign(replicate=own["replicate"]).duplicated()
                calls = cost["calls"].iloc[0]
                kept = min(
                    (every, ~prompts.duplicated()),
                    key=lambda kept: abs(kept.sum() - calls),
                )
                counts = name[kept[kept].index].value_counts().to_dict()
                rows.append(cost.assign(look=look, purposes=[counts]))
    return pd.concat(rows, ignore_index=True)


_OF_PROMPT = (
    "item_id",
    "ordering",
    "criterion_ordering",
    "labels",
    "reference_score",
    "template",
)


def cost_in_words(cost: pd.DataFrame) -> str:
    """Say for what the calls of an estimate are made."""
    counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for look, purpose in zip(cost["look"], cost["purposes"], strict=True):
        counts[look - 1].update(purpose)
    return in_words(*counts, "at most ")


def in_words(
    first: Mapping[str, int], second: Mapping[str, int], most: str = ""
) -> str:
    """Say for what so many calls are made.

    >>> in_words({"the plain prompt": 90, "neutral edits": 40}, {"letters": 80})
    '90 for the plain prompt, 40 for neutral edits, 80 for a second look (letters)'
    """
    said = [f"{n:,} for {purpose}" for purpose, n in first.items()]
    if second:
        what = ", ".join(second)
        said.append(f"{most}{sum(second.values()):,} for a second look ({what})")
    return ", ".join(said)


def calls_in_words(design: Mapping[str, Any]) -> str:
    """Say how many prompts were asked for what, and how two looks share their 5 %.

    >>> calls = {"first": {"letters": 1200}, "second": {}}
    >>> calls_in_words({"looks": 1, "calls": calls})
    '1,200 different prompts: 1,200 for letters.'
    """
    first, second = design["calls"]["first"], design["calls"]["second"]
    n = sum(first.values()) + sum(second.values())
    text = f"{n:,} different prompts: {in_words(first, second)}."
    return text if design["looks"] == 1 else f"{text} {_TWICE}"


_TWICE = (
    "What moves the scores was looked at twice: first on a part of the prompts, and "
    "then, where that was inconclusive, on all. These intervals are at 97.5 %, and "
    "these p are doubled, so that both looks together are wrong as rarely as one look "
    "at 95 %."
)
