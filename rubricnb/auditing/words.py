"""How a result is said, as plain text; the page escapes it.

A row is a mapping with the columns of `rubricnb.auditing.Audit.rows`. NaN is the only
number that is not itself, and is printed as a dash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rubricnb.auditing.terms import (
    ABSENT,
    ADVERSE,
    ALPHA,
    FAILS,
    FOUND,
    MEASURES,
    MODERATE,
    MODERATE_LEVEL,
    NOTED,
    REVERSED,
    SMALL,
    STRONG,
    UNCLEAR,
    WEAK,
)
from rubricnb.core.estimates.intervals import FEW_CLUSTERS
from rubricnb.core.estimates.losses import MOST_LOST, losses_of, share_lost
from rubricnb.core.estimates.reasons import Share, join
from rubricnb.core.support.types import Records, Row

TITLES = {
    "texts": "Does it agree with people, and with itself?",
    "noise": "What changes when nothing should",
    "order": "The position of an option",
    "labels": "The names of the scores",
    "reference": "Which reference is shown",
    "criteria": "In which order criteria are asked",
    "against": "What differs from the other audit",
}
VARIED = {
    "edits": ("after rewording", "the prompt is reworded"),
    "blanks": ("under blanks", "blanks and line breaks are added"),
    "order": ("after reordering", "the options are reordered"),
    "labels": ("under other labels", "the scores are called by other names"),
    "reference": ("with another reference", "another reference is shown"),
    "repeat": ("in the same words", "it is asked again"),
}
"""What differed between two prompts: in the name of a retest, and in a sentence."""
LOST_SCORES = (
    "Get a score from the answers that were lost (the prompt, the parser, the limit of "
    "tokens); more texts do not help."
)
LOST_AND_FEW = (
    "Get a score from the answers that were lost (the prompt, the parser, the limit of "
    "tokens), and then judge more texts, in more clusters."
)
REWORD = "Reword the prompt; more texts do not help."
MORE_TEXTS = "Judge more texts, in more clusters, before relying on either answer."
TURN_SCALE = (
    "The scale seems to run the other way: check in the import and in the rubric which "
    "end is best."
)
MOSTLY_TIED = 0.95
"""Share of tied pairs of texts of a cluster from which the first sentence names it."""


def retest_of(varied: Sequence[str]) -> str:
    """Name a retest by what was varied.

    >>> retest_of(["edits", "order"])
    'retest after rewording and after reordering'
    """
    return f"retest {listed([VARIED[name][0] for name in varied])}"


def _when(row: Row) -> str:
    """Say when texts are ranked alike; of what shows nothing, when they would be."""
    names = row["varied"].split() or ["edits"]
    if row["verdict"] == UNCLEAR and _UNTOLD & {*row["codes"]}:
        names = ["edits"]
    return f"when {listed([VARIED[name][1] for name in names])}"


_UNTOLD = {"same_words", "unmoved"}
"""Codes of a retest that a judge passes whatever it scores."""


def number(x: float, digits: int = 2) -> str:
    """Write a number with its sign.

    >>> number(-0.456), number(-0.001), number(float("nan"))
    ('−0.46', '+0.00', '–')
    """
    return "–" if x != x else f"{x:+z.{digits}f}".replace("-", "−")


def percent(x: float, digits: int = 0) -> str:
    """Write a share; 0 % and 100 % are exact.

    >>> percent(0.256), percent(0.9996)
    ('26 %', '99.96 %')
    """
    return "–" if x != x else f"{Share(x):.{digits}%}".replace("-", "−")


def p_value(x: float) -> str:
    """Write a p-value with three decimals."""
    if x != x:
        return "–"
    return "< 0.001" if x < 0.001 else f"{x:.3f}"


def effective(n: float) -> str:
    """Name so many effective clusters."""
    return "effective cluster" if round(n) == 1 else "effective clusters"


def listed(parts: Sequence[str]) -> str:
    """Join with commas and an and.

    >>> listed(["tone", "depth", "accuracy"])
    'tone, depth and accuracy'
    """
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def size(row: Row) -> str:
    """Write an effect in its unit, with its interval if there is one.

    >>> size({"unit": "r", "effect": 0.5, "low": 0.41, "high": 0.58})
    'r +0.50 [+0.41, +0.58]'
    >>> size({"unit": "r", "effect": 1.0, "low": 0.997, "high": 1.0})
    'r +1.000 [+0.997, +1.000]'
    >>> none = {"low": float("nan"), "high": float("nan")}
    >>> size({"unit": "share of scores", "effect": 0.5, **none})
    '50 % of scores'
    """
    write, digits = (percent, 0) if _is_share(row) else (number, 2)
    low, high = row["low"], row["high"]
    while low < high and write(low, digits) == write(high, digits):
        digits += 1  # no interval is of one number
    estimate = write(row["effect"], digits)
    if estimate == "–":
        return "not known"
    unit = row["unit"].replace("share ", "")
    # r, κ, τ stand before their number
    text = f"{unit} {estimate}" if len(unit) == 1 else f"{estimate} {unit}"
    if low != low:
        return text
    return f"{text} [{write(low, digits)}, {write(high, digits)}]"


def _is_share(row: Row) -> bool:
    return bool(row["unit"].startswith("share"))


def sentence(row: Row) -> str:
    """Say what was measured, its verdict, how many scores change, and what was lost."""
    row = {**row, "reason": beyond_losses(row)}
    kind, verdict = MEASURES[row["measure"]]["kind"], row["verdict"]
    if row["measure"] == "parsed":
        verdict = NOTED
    elif kind == "effect" and verdict == FOUND and not is_large(row):
        verdict = "scrambled"
    form = _RESULTS.get(f"{kind}: {verdict}", _RESULTS[verdict])
    on = f" ({row['criterion']})" if row["criterion"] else ""
    own = {
        "claim": MEASURES[row["measure"]]["claim"].format(
            row["question"], "avoids" if row["effect"] < 0 else "prefers", _when(row)
        )
        + on,
        "on": on,
        "measured": size(row),
        "why": f" ({row['reason']})" if row["reason"] else "",
        "doubt": _doubt(row),
        "mover": mover(row),
        "limit": "a quarter" if _is_share(row) else f"{row['margin']:g}",
        "many": "too many are lost" if lost_doubt(row) else "too few clusters",
    }
    result = (form.format(**{**row, **own}) + _changed_scores(row)).strip()
    lost = [code.sentence for code in losses_of(row["codes"])]
    return " ".join([result, *(f"{said[0].upper()}{said[1:]}." for said in lost)])


_RESULTS = {
    FAILS: "Fails: {reason}{on}.",
    NOTED: "{claim}: {measured}{why}.",
    f"noise: {FOUND}": "{claim}: {measured}, more than {limit}{why}.",
    f"noise: {ABSENT}": "{claim}: {measured}, shown to be less than {limit}{why}.",
    f"noise: {UNCLEAR}": (
        "{claim}: {measured}; {many} to say whether it is more than {limit}{why}."
    ),
    STRONG: "{claim}, {verdict}ly: {measured}{why}.",
    MODERATE: "{claim}, {verdict}ly: {measured}{why}.",
    WEAK: "Weak: “{claim}”. Measured: {measured}{why}.",
    REVERSED: "Reversed: the opposite of “{claim}” holds. Measured: {measured}{why}.",
    FOUND: "{claim}: {measured}{why}.",
    "scrambled": (
        "With {mover}, more scores change than matter, though on average by "
        "{measured}{why}."
    ),
    SMALL: "{claim}, but too little to matter: {measured}{why}.",
    ABSENT: (
        "Not found: “{claim}”. The effect is {measured}, too small to matter{why}."
    ),
    UNCLEAR: "Inconclusive: “{claim}”. Measured: {measured}{doubt}.",
}
"""What is said of a verdict, and of one on a kind of measure."""


def beyond_losses(row: Row) -> str:
    """Say a row's reasons, but for those about lost answers."""
    lost = losses_of(row["codes"])
    return join(code for code in row["codes"] if code not in lost)


def lost_doubt(row: Row) -> str:
    """Say how lost scores, and not the number of texts, leave a row undecided."""
    if row["verdict"] != UNCLEAR or "too_few" in row["codes"]:
        return ""
    if is_large(row):
        return "its sign is not known, as the lost scores could turn it"
    decides = row["scrambled"] is True or row["p_equivalent"] < ALPHA
    hides = "open_share" in row["codes"] and row["p_equivalent"] == 1
    is_level = MEASURES[row["measure"]]["kind"] == "level"
    if (decides or hides or is_level) and share_lost(row["codes"]) > MOST_LOST:
        return f"more than {percent(MOST_LOST)} have no score on a side"
    return "the lost reads could hide a preference that matters" if hides else ""


def advice(row: Row) -> str:
    """Advise what to do about a row; of one that is open, what can decide it."""
    if row["verdict"] == REVERSED or "reversed_scale" in row["codes"]:
        return TURN_SCALE
    if row["verdict"] != UNCLEAR:
        kind = row["act"] if row["verdict"] in ADVERSE else "calm"
        return MEASURES[row["measure"]][kind]
    if _UNTOLD & {*row["codes"]} and "too_few" not in row["codes"]:
        return REWORD
    if lost_doubt(row):
        return LOST_SCORES
    return LOST_AND_FEW if share_lost(row["codes"]) > MOST_LOST else MORE_TEXTS


def may_turn(row: Row) -> bool:
    """Whether lost scores could turn the sign of an effect, or undo a finding.

    Of a difference of correlations no bound is known, so a loss that is more than a
    detail counts. Lost pairs of answers may all be alike.
    """
    lost = share_lost(row["codes"])
    if row["unit"] in ("r", "κ", "points of r"):
        return lost > MOST_LOST
    if _is_share(row):
        return bool(row["low"] - lost * (1 + row["effect"]) <= row["margin"])
    return bool(row["p_open"] >= ALPHA)


_EDITED = "under neutral edits"


def _changed_scores(row: Row) -> str:
    """Say how many scores change; if none did, how many still may."""
    if row["flips"] != row["flips"] or row["n_clusters"] < 2:
        return ""
    if row["flips"] == 0 and losses_of(row["codes"]):
        return " No score that was given changed."
    if row["flips"] == 0:
        # Of n prompts none changes with probability (1 − u)ⁿ, if a share u of all do.
        most = 1 - ALPHA ** (1 / row["n_clusters"])
        return (
            f" No score changed in {row['n_clusters']} clusters, so one changes in "
            f"fewer than {percent(most, 1)} of others (95 %)."
        )
    text = f" {percent(row['flips'])} of the scores change"
    if row["flips_beyond"] == row["flips_beyond"]:
        control = "when asked again" if row["control"] == "reask" else _EDITED
        usual = max(row["flips"] - row["flips_beyond"], 0.0)
        text += f", {percent(usual)} {control}"
    return f"{text}."


def _doubt(row: Row) -> str:
    """Say why nothing is decided."""
    tested, margin = row["p_adjusted"] == row["p_adjusted"], row["margin"]
    doubt = "the interval includes zero and a moderate correlation"
    if lost := lost_doubt(row):
        doubt = lost
    elif margin == margin and row["p_adjusted"] < ALPHA:
        doubt = (
            f"it is there, and may be smaller or larger than the {margin:g} "
            f"{row['unit']} that matter"
        )
    elif row["low"] != row["low"]:
        doubt = ""  # the reason says why it has no interval
    elif tested and (row["low"] > 0 or row["high"] < 0):
        doubt = (
            "the interval excludes zero, but the p-value, adjusted for all "
            f"questions, is {p_value(row['p_adjusted'])}"
        )
    elif tested and -margin < row["low"] and row["high"] < margin:
        doubt = (
            "too few clusters to rule out that more than a quarter of the scores change"
        )
    elif tested:
        doubt = "the interval includes zero and effects that matter"
    elif row["low"] > 0:
        doubt = (
            f"above zero, but not shown to reach the {number(MODERATE_LEVEL)} of a "
            "moderate correlation"
        )
    return "".join(f"; {text}" for text in (doubt, row["reason"]) if text)


def is_large(row: Row) -> bool:
    """Whether an effect, or a share of scores, is shown to be as large as matters."""
    if MEASURES[row["measure"]]["kind"] == "noise":
        return bool(row["low"] > row["margin"])
    return bool(row["p_adjusted"] < ALPHA and abs(row["effect"]) >= row["margin"])


def mover(row: Row) -> str:
    """Name what moves the scores."""
    if row["section"] == "criteria":
        return f"the position of {row['question']}"
    if row["measure"] == "position" and not is_large(row):
        return "the order of the options"
    return f"{row['question']} order" if row["measure"] == "order" else row["question"]


def headline(audit: Any, first: Mapping[str, Records], effects: Records) -> str:
    """Say an audit in one sentence: what is good, what is bad, what is open.

    Parameters
    ----------
    audit
        A `rubricnb.auditing.Audit`.
    first
        Measure → what is said of it, on all criteria or on some.
    effects
        The rows about what moves its scores.
    """
    design = audit.design
    retest, agreement = first.get("discrimination", []), first.get("agreement", [])
    fails = [row for row in [*retest, *agreement] if row["verdict"] == FAILS]
    if fails and not fails[0]["on"]:
        why = fails[0]["codes"][0].sentence
        result = (
            f"{audit.judge} fails: {why}, so its scores say nothing about the texts."
        )
    else:
        result = _whole(audit, first, effects, fails)
    n = design["effective_clusters"]
    if n < FEW_CLUSTERS:
        are_one = (
            ""
            if design["alone"]
            else " (texts that share a prompt or a source are one)"
        )
        result += f" A first look: {n:.0f} {effective(n)}{are_one}."
    if not design["settings"] and design["alone"]:
        result += (
            " Each text counts as a cluster of its own; if texts share a prompt or a "
            "source, name it in a column group_id."
        )
    return result


def _whole(
    audit: Any, first: Mapping[str, Records], effects: Records, fails: Records
) -> str:
    designed = audit.design["truth"] == "designed"
    people = "the designed quality" if designed else "people"
    tied = audit.charts["ties"]["effect"]
    found = [row for row in effects if row["verdict"] == FOUND]
    n_open = sum(row["verdict"] == UNCLEAR for row in effects)
    agreement = first.get("agreement", [])
    good = _said(_IN_ITS_FAVOUR, first, people)
    if not agreement:
        good.append("was not compared with people")
    if effects and not found and not n_open:
        good.append("moves with nothing that was varied by more than matters")
    bad = [f"never varies its score{row['on']}" for row in fails[:1]]
    if any(row["verdict"] not in (STRONG, MODERATE) for row in agreement):
        first = {**first, "kappa": []}
    bad += _said(_AGAINST, first, people)
    if tied is not None and tied >= MOSTLY_TIED:
        bad.append(
            f"gives the same score to {percent(tied)} of the pairs of texts of one "
            "cluster"
        )
    bad += _said(_NOISY, first, people)[:1]
    if found:
        bad.append(f"moves with {', '.join(map(mover, found))}")
    share = first["parsed"][0]["effect"]
    parsed = f"gave a score in {percent(share)} of its answers, " if share < 1 else ""
    but = ", but " if good and bad else ""
    end = "" if effects else "; it was not asked what moves its scores"
    if n_open:
        questions = f"{n_open} of {len(effects)} questions"
        end = f"; inconclusive: {questions} about what moves its scores"
    return f"{audit.judge} {parsed}{listed(good)}{but}{listed(bad)}{end}."


def _said(
    forms: Iterable[tuple[str, str, str]], first: Mapping[str, Records], people: str
) -> list[str]:
    """Say what each form has about a measure with its verdict."""
    said = []
    for measure, verdict, form in forms:
        for row in first.get(measure, []):
            if row["verdict"] == verdict and "unmoved" not in row["codes"]:
                own = {
                    "people": people,
                    "when": _when(row),
                    "why": f"r {row['sizes']}"
                    if row["effect"] == row["effect"]
                    else row["reason"],
                    "points": row["sizes"].translate(_NO_SIGN),
                    "side": "higher" if row["effect"] > 0 else "lower",
                    "share": percent(row["effect"]),
                    "scales": " (are both on one scale?)"
                    if "one_scale" in row["codes"]
                    else "",
                }
                said.append(form.format(**{**row, **own}))
    return said


_RANKS_ALIKE = "ranks texts alike{on} {when}"
_AGREES = "agrees {verdict}ly with {people}{on} (r {sizes})"
_IN_ITS_FAVOUR = (
    ("discrimination", MODERATE, _RANKS_ALIKE),
    ("discrimination", STRONG, _RANKS_ALIKE),
    ("agreement", MODERATE, _AGREES),
    ("agreement", STRONG, _AGREES),
)
_AGAINST = (
    (
        "agreement",
        REVERSED,
        "gives low scores{on} where {people} would give high ones (r {sizes}: the "
        "scale seems to run the other way)",
    ),
    ("discrimination", WEAK, "hardly ranks texts alike{on} {when} (r {sizes})"),
    ("discrimination", UNCLEAR, "was not shown to rank texts alike{on} {when}"),
    ("agreement", WEAK, "agrees at best weakly with {people}{on} (r {sizes})"),
    (
        "agreement",
        UNCLEAR,
        "was not shown to agree at least moderately with {people}{on} ({why})",
    ),
    ("kappa", WEAK, "hardly matches their level{on} (κ {sizes})"),
    ("bias", FOUND, "scores {points} points {side} than {people}{on}{scales}"),
    ("halo", FOUND, "tells criteria less apart than people do (r {sizes} higher)"),
)
_NOISY = (
    ("edits", FOUND, "changes {share} of its scores under neutral edits"),
    ("reask", FOUND, "changes {share} of its scores when asked again"),
)
"""Of a measure and its verdict in the first sentence: in its favour, against it."""


_NO_SIGN = str.maketrans("", "", "+−")
