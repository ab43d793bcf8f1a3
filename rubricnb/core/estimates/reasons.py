"""Why a number is unknown or doubtful: a code with its numbers, and a sentence.

A statistic tells its `Reason`\\ s by code and numbers, never as text. Whoever needs to
know which they are looks at the codes; `SENTENCES` has the words, and `join` is called
where they are printed. Nothing reads a sentence back, so that its words may change. A
code that is about one estimate begins with its name: ``rho.untested``.

Every table of ours has both columns, side by side: ``reason``, the sentences as one
text, for readers, and ``codes``, a tuple of `Reason`\\ s. A `Reason` is a string, its
code, which also knows its ``numbers``. So pandas treats codes as the strings they are::

    table["codes"].explode().value_counts()
    table[table["codes"].map(lambda codes: "few_clusters" in codes)]

A second column was chosen over ``DataFrame.attrs``, which belong to a whole table: they
are lost or refer to other rows once it is filtered, sorted or joined, and rows are what
has reasons.

To add a reason, add its code to `SENTENCES` and return ``Reason("code", number=…)``
from the function that finds it; the row is completed with ``row | because(first,
second, …)``, which takes single reasons, tuples of them, and None.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from rubricnb.core.support.types import Json, Row

SENTENCES: dict[str, str] = {
    # Clusters and events
    "one_cluster": "one cluster: intervals need two",
    "few_clusters": "{n:.0f} {unit}: intervals may be too narrow",
    "few_clusters_alike": (
        "{n:.0f} {unit}, {alike:.0%} of scores alike: intervals may be too narrow"
    ),
    "rare_events": "{names}: fewer than {least} events",
    "no_interval.alike": "no interval, as every cluster is alike: {names}",
    # What a comparison left out
    "lost": (
        "{lost} of {asked} {what} have a score under {name}, but none under {lacking}, "
        "and are left out ({name} scores them {lost_mean:.2f} on average, the others "
        "{kept_mean:.2f})"
    ),
    "left_out": (
        "{lost} of {asked} {what} lack a score under some condition and are left out "
        "(their other scores are {lost_mean:.2f} on average, those of the others "
        "{kept_mean:.2f})"
    ),
    "absent": (
        "{n} {what} are judged under {name} alone and left out ({name} scores them "
        "{lost_mean:.2f} on average, the others {kept_mean:.2f}): if their answers "
        "were lost, pass their rows, too, without a score"
    ),
    "lost_reads": (
        "{lost} of {asked} reads under {name} have no score although their items are "
        "kept ({other} scores the items of the lost reads {lost_mean:.2f} on average, "
        "those of the others {kept_mean:.2f})"
    ),
    "left_out_reads": (
        "{lost} of {asked} reads have no score although their items are kept (the "
        "other scores of these items are {lost_mean:.2f} on average, those of the "
        "others {kept_mean:.2f})"
    ),
    "open_sign": (
        "{of}: with the lost ones anywhere between {lowest:g} and {highest:g} it may "
        "lie between {low:+.2f} and {high:+.2f}, so its sign is not known"
    ),
    "lost_by_order": (
        "{lost} of {asked} reads have no score, from {least:.0%} of those in the order "
        "{fewest} to {most:.0%} in {order}; {source} their items {lost_mean:.2f} on "
        "average, and those of the others {kept_mean:.2f}"
    ),
    "lost_in_all_orders": (
        "{lost} of {asked} reads have no score, {most:.0%} of those in every order; "
        "{source} their items {lost_mean:.2f} on average, and those of the others "
        "{kept_mean:.2f}"
    ),
    "open_share": (
        "with the lost reads at this position or at none its share lies between "
        "{low:.0%} and {high:.0%}, so a preference is not shown"
    ),
    "r_of_all": (
        "over all rated items that each side scored, r is {a:.2f} (a) and {b:.2f} (b), "
        "which need not be the same items"
    ),
    "r_turned": (
        "the lost items turn the sign: over all that each side scored, a − b is "
        "{delta:+.2f}"
    ),
    "r_one_of_all": (
        "r of one read is {all:.2f} over every item that it scored, and {kept:.2f} "
        "over the kept"
    ),
    "lost_prompts": (
        "{lost} of {asked} candidates have a score on one side only: {prompts} of "
        "{all} prompts lack one, and {winners} the winner of the side that scored it"
    ),
    "flip_strict.bounds": (
        "with the prompts that lack a candidate counted as unchanged or as changed, "
        "flip_strict is {low:.2f} to {high:.2f}"
    ),
    "no_equivalence.lost": (
        "no verdict of equivalence, as more than {most:.0%} of the {what} are lost"
    ),
    "noted": "{n} of {asked} answers carry the note {note!r}",
    "flat": "{n} of {asked} answers give every level the same probability",
    "unread": (
        "{n} of {asked} texts have the same probabilities as a different text of their "
        "instruction in every read: the server may cut long texts. Shorten them, or "
        "use a server with a longer context"
    ),
    # What was read
    "no_read": "no read was parsed",
    "no_scores": "no scores",
    "equal_scores": "all scores are equal",
    "unjudged": "no judgments of {side!r}",
    "unmatched": (
        "none of the {judged} judged items (the first: {first}) is among the items, "
        "matched by {names}; pass the items that were judged, or their judgments only"
    ),
    # Ratings
    "unrated": "no item has both a score and a human rating",
    "no_ratings": "items have no 'human' ratings",
    "other_scale": "ratings of {n} of {all} items are on another scale: left out",
    "unscored": (
        "{lost} of {rated} rated items have no score and are left out (people rate "
        "them {lost_mean:.2f} on average, the scored ones {scored_mean:.2f}): this is "
        "about scored items only"
    ),
    "unscored_reads": (
        "{lost} of {asked} reads of rated items have no score although the items are "
        "kept (people rate the items of the lost reads {lost_mean:.2f} on average, "
        "those of the others {kept_mean:.2f})"
    ),
    # Correlations
    "one_item": "one item: a correlation needs at least three",
    "equal_sides": "all {sides} are equal",
    "no_interval.perfect": "|r| = 1 has no interval",
    "no_interval.undefined": (
        "no interval: without {lacking} of {n} clusters, one at a time, all scores or "
        "ratings are equal, and r is undefined"
    ),
    "no_interval.perfect_without": "no interval: without one of the clusters |r| = 1",
    "no_interval.r_alike": (
        "no interval: r is the same whichever cluster is left out, as the clusters are "
        "alike"
    ),
    "rho.untested": "rho: without an interval or a p, for so few clusters",
    "r_macro.constant": "r_macro: in some criterion a side is constant",
    "intercept": (
        "the intercept is {intercept:.2f} [{intercept_low:.2f}, {intercept_high:.2f}]; "
        "calibrated are 1 and 0"
    ),
    "ceiling.no_ratings": "items have no single ratings",
    "ceiling.single_ratings": "fewer than two items have several ratings",
    "ceiling.equal": "all items are rated alike",
    # Differences between two correlations
    "unshared": "no item has a score on both sides and a human rating",
    "r_undefined": "r is undefined: the ratings or a side's scores are all equal",
    "same_scores": "both sides give the same scores: there is nothing to test",
    "k_effective.one_ordering": "k_effective: neither side shows several orderings",
    "k_effective.equal": "k_effective: no item's reads differ",
    # Averages of several reads
    "unread_or_unrated": "no item has all reads parsed and a human rating",
    "r_undefined_reads": (
        "for some reads r is undefined: their scores, or the ratings, are all equal"
    ),
    "no_interval.some_k": (
        "no interval for some k: without some cluster r is undefined, ±1, or the same"
    ),
    "r_expected.few": "r_expected: needs two reads of three items that differ",
    "gain.none": "gain: r does not change with K",
    "few_complete": "{n} items with all of {reads} reads: three with two are needed",
    "one_score": "all reads give one score",
    "not_told_apart": "texts are not shown to differ beyond noise",
    "no_interval.noise": (
        "without some cluster texts do not differ beyond noise: no interval"
    ),
    "no_interval.unchanged": (
        "no answer changes: no interval (one in up to {most:.0%} of texts could be "
        "missed)"
    ),
    "no_verdict": "{n} clusters: a verdict needs {least}",
    # Positions
    "chi2.probabilities": "chi2 needs counts, not probabilities",
    "chi2.unbalanced": "chi2 needs every score equally often at every position",
    "no_test": "one cluster: the test and intervals need two",
    "unchanged": "no answer changes with the ordering",
    "blind": (
        "the orderings leave nothing to permute (one of each direction): a preference "
        "for a position cannot be told from one for a direction; ask several rotations "
        "(balanced), or compare the mean scores (order_effect)"
    ),
    "half_blind": (
        "these orderings leave some positions uncompared: p_within is about the "
        "others, and sizes need more orderings (balanced)"
    ),
    "blind.lost": (
        "so many reads are lost that no text has answers under two orderings to "
        "exchange: nothing can be permuted"
    ),
    "half_blind.lost": (
        "lost reads leave some positions uncompared: p_within is about the others, and "
        "sizes need more answers"
    ),
    "log_preference.many_reads": (
        "log preference: too many reads, on too many levels, for the exact likelihood"
    ),
    "log_preference.infinite": (
        "log preference: no finite estimate, as some positions always win over others "
        "where answers change"
    ),
    "log_preference.no_read": "log preference: no read was parsed",
    "log_preference.certain": "log preference: every answer is certain or the same",
    "log_preference.no_convergence": "log preference: no convergence",
    "log_preference.unchanged": "log preference: no answer changes with the ordering",
    "log_preference.no_interval": (
        "log preference: no interval, as without one of the clusters there is no "
        "estimate"
    ),
    "log_preference.blind": "log preference: some positions cannot be compared",
    "mde.none": "mde: even the largest V, 1, would not be found with 80 % power",
    "never_shown": "this score never stood at this position",
    "never_given": "this score was never given",
    "cost.unknown": "score {scores}: never given, or not at every position",
    "cost_null.unknown": "cost_null: the table has no share_null_sd",
    "no_probabilities": "no read has probabilities",
    "no_interval.one_prompt": (
        "some score was at some position for one prompt only: no interval"
    ),
    # Criteria
    "incomplete_texts": "no text has a parsed read at every position",
    "friedman.unchanged": "no block's score changes with the position",
    "p_within.one_cluster": "one cluster: p_within and p_equivalent need two",
    "p_equivalent.alike": (
        "p_equivalent: two positions differ by the same in every cluster"
    ),
    # Orders
    "one_ordering_each": (
        "every item was seen in one ordering, so there is no order effect to measure; "
        "pass judgments of a design with several orderings"
    ),
    "incomplete_items": "no item has a parsed read under every ordering",
    "spread_null.unpermuted": (
        "spread_null: one ordering of each direction, nothing can be permuted"
    ),
    "one_direction": "ascending and descending were not both shown",
    "single_reads": "no item has two parsed reads",
    "few_complete_items": "fewer than two items have a read under every ordering",
    "one_ordering": "one ordering: what orderings do is not known (see error_budget)",
    "reask_included": "item × ordering contains re-ask",
    "phi.noise": "reliability, phi: the items do not differ beyond noise",
    "phi.zero": "phi: 0 without any cluster as well, which is no interval",
    "phi.no_interval": (
        "phi: no interval, without some cluster the items do not differ beyond noise"
    ),
    # Rankings
    "no_prompt": "no prompt has two candidates scored on both sides",
    "kendall_tau.tied": "kendall_tau: in every prompt a side ties all",
    "no_halves": "no two halves of {control} reads",
    "same_difference": "the same difference in every cluster",
    # Conditions
    "no_placebo": "no placebo reads to compare with",
    "placebo_itself": "this is the placebo",
    "unparsed": "no item was parsed under both",
    "flip_rate.no_ties": "expected scores never tie: no flip rate",
    "off_scale": "{share:.3g} % of the {what} lie off the scale {lowest}..{highest}",
    # Annotators and systems
    "few_annotated": "no annotator has {least} items on which another one rated too",
    "no_interval.bias": "no interval of the bias, as every cluster is alike",
    "equal_differences": "all differences are equal",
    "slope.equal_ratings": "all human ratings are equal: no slope",
    "few_systems": "{n} systems: a ranking needs three",
    "equal_systems": "all systems have one mean on a side",
    "systems_apart": (
        "their own shifts go from {lowest:+.2f} to {highest:+.2f}; τ of the two "
        "rankings is {tau:.2f}"
    ),
    "no_interval.systems": "all systems shift alike: no spread, not certainty",
    "no_interval.resamples": (
        "all resamples rank the systems alike: no spread, not certainty"
    ),
    "tau.low": (
        "the systems are close: resampling alone lowers τ by {lower:.2f}, so τ and its "
        "interval lie too low"
    ),
    # Labels
    "few_labels": "{n} labels: four are needed",
    "no_labels": "no judged item has a label",
    "all_labelled": "every text is labelled: nothing is left to estimate",
    "few_labelled_clusters": "{n} labelled clusters: an interval needs three",
    "no_interval.equal_labels": "all labels are equal: no interval",
    "no_interval.no_error": (
        "the judge's scores predict every label without an error: no interval (errors "
        "in up to {most:.0%} of the texts would often show in none of these labels)"
    ),
    "labels_alone": (
        "the judge gives all labelled texts one score: the labels stand alone"
    ),
    "criterion_unlabelled": (
        "no label is about the criterion {criteria}, whose ratings are taken to follow "
        "the scores as the others do: group by=['criterion']"
    ),
    "looks_chosen": (
        "the judge scores the labelled texts {side} than the others, by {errors:.1f} "
        "standard errors: the labels look chosen, and the estimate assumes a random "
        "draw"
    ),
    "needed.few_labels": "{n} labels: four are needed to see how they spread",
    "needed.few_clusters": (
        "labels of fewer than three clusters do not show how they spread"
    ),
    "needed.no_spread": "the labels so far leave no spread to plan with",
    "needed.all": "all texts must be labelled",
    "unknown_texts": (
        "it is not known which items judge one text under several criteria: ask by "
        "criterion"
    ),
    "few_systems_labelled": "{n} systems: a line through their means needs {least}",
    "few_labels_of_system": "{system} has {n} labels: every system needs two",
    "no_interval.on_line": "labels of a system never differ from the line: no interval",
    "off_line": (
        "lies {points:.2f} points {side} the line through the other systems (p < .05, "
        "all systems tested): the judge treats it differently, its labels count"
    ),
    # Error budgets, and plans made with them
    "not_crossed": "sources are not crossed: none can be told apart",
    "no_interval.not_crossed": (
        "no interval: without {lacking} of {n} clusters, one at a time, sources cannot "
        "be told apart"
    ),
    "no_interval.nothing_varies": (
        "no interval of the share: without {lacking} of {n} clusters, one at a time, "
        "no variance is above 0"
    ),
    "unseen": "one {source} only: not seen",
    "part_of": "part of {source}",
    "contains": "contains {sources}",
    "left_undetected": (
        "{source} may be 0 [{low:.2g}, {high:.2g}] and is not planned with: at most, "
        "differences below {most:.2g} stay undetected on any number of prompts"
    ),
    "no_plan": "no variance between texts to plan with",
    "never_enough": "no number of prompts is enough",
    "no_interval.budget": (
        "no interval: the budget is of few clusters, or was read from a file"
    ),
    # Advice
    "labels.none": "no labels",
    "equal_scores_or_ratings": "all scores or all ratings are equal",
    "no_exception": "the same whichever of {n} clusters are used",
    "one_exception": "of {n} clusters one alone keeps it from ±1",
    "no_exception.rated": (
        "no score differs from its rating in {n} clusters, so one does in fewer than "
        "{most:.1%} of others (95 %)"
    ),
    "no_interval.r": "r has no interval",
    "apart.unknown": "the reads so far do not show whether it tells texts apart",
    "slope_of_people": "a point of people's is {slope:.2f}{ends} of the judge's",
    "no_balanced": "no balanced orders: ask twenty texts in rb.balanced(n)",
    "one_ordering_so_far": (
        "one ordering so far (an interrupted run?): finish rb.balanced(n) for some "
        "texts"
    ),
    "ask_probabilities": "no option probabilities: ask with readout='logprobs'",
    "few_read_fully": "{n} texts have all reads: three are needed",
    "texts_alike": "texts do not differ beyond noise",
    # Labels and evidence of RULERS
    "refused": "{text}",
    # Audits
    "too_few": "{n:.0f} {unit}: too few to say anything about other texts",
    "commonest_error": "most common error: {status}, {n:,}",
    "right_scale": "is this the right scale?",
    "constant_criteria": "in every criterion a side is constant",
    "criteria_left_out": "without {criteria}",
    "reversed_scale": "with a reversed scale a level means nothing",
    "one_scale": (
        "Are both on one scale? The scores are {scores}, the ratings {ratings}"
    ),
    "same_score": "every text with a score gets the same one ({scores})",
    "mostly": "{share:.0%} of the {what} are {value:g}",
    "mean_of_reads": (
        "each score is the mean of {n:.3g} reads; of a single read r is {r}"
    ),
    "systems_close": (
        "in the ratings, neighbouring systems lie less than {points:g} points apart"
    ),
    "own_reliability": "in a {retest}, its own r is {r}",
    "criteria_correlate": (
        "two criteria correlate by {judge:.2f} in its scores and by {people:.2f} in "
        "the ratings, both corrected for reliability ({judge_reliability:.2f} and "
        "{people_reliability:.2f})"
    ),
    "not_asked_twice": (
        "no prompt was asked twice in both audits, so nothing says how many answers "
        "differ when asked again"
    ),
    "same_words": (
        "only asked again in the same words, and a judge that repeats itself passes "
        "that whatever it scores: reword the prompt"
    ),
    "unmoved": (
        "no probability moved, and a model that does not see such edits passes that "
        "whatever it scores"
    ),
    "repeats": "it repeats its answers",
    "no_common_text": "no text has a score under both",
    "moved_alike": "every cluster moved alike, which does not show that others would",
    "kappa_undefined": (
        "a kappa is not defined: no test item has both labels, or all are equal"
    ),
    "no_interval.same_difference": "every cluster has the same difference: no interval",
    "no_interval.repeats": "every score repeats: no interval",
    "read_once": "every item was read once: ask for replicates",
}
"""The sentence of each code, in which its numbers are named."""


class Share(float):
    """A number whose percentage is 0 or 100 in print only if it is exactly that.

    One that is not known says so.

    Examples
    --------
    >>> [f"{Share(x):.0%}" for x in (0.0, 0.0004, 0.256, 0.9996, 1.0)]
    ['0 %', '0.04 %', '26 %', '99.96 %', '100 %']
    >>> f"{Share('nan'):.2f}"
    'unknown'
    """

    def __format__(self, spec: str) -> str:
        """Write a percentage with the digits that this takes, if with more than asked.

        `spec` is that of a float.
        """
        rest = 100 * min(abs(self), abs(1 - self))
        # less is a rounding error of the share itself
        digits = max(-math.floor(math.log10(rest)), 0) if rest > 1e-9 else 0
        return (
            "unknown"
            if math.isnan(self)
            else f"{100 * self:.{max(digits, int(spec[1:-1]))}f} %"
            if spec.endswith("%")
            else super().__format__(spec)
        )


class Reason(str):
    """Why a number is unknown or doubtful: its code, which is its value as a string.

    Parameters
    ----------
    code
        A key of `SENTENCES`.
    **numbers
        The numbers, and names, that the sentence gives; kept as ``numbers``.

    Raises
    ------
    ValueError
        An unknown code, or a number of the sentence is lacking.

    Examples
    --------
    >>> few = Reason("few_clusters", n=7.0, unit="effective clusters")
    >>> few == "few_clusters", few.numbers["n"]
    (True, 7.0)
    >>> few.sentence
    '7 effective clusters: intervals may be too narrow'
    """

    numbers: dict[str, Any]
    sentence: str

    def __new__(cls, code: str, **numbers: Any) -> Reason:
        """Check that the code has a sentence, and that its numbers are given."""
        numbers = {
            # JSON has a null for what is not known
            k: Share(math.nan if v is None else v)
            if isinstance(v, float | None)
            else v.item()
            if isinstance(v, np.generic)
            else v
            for k, v in numbers.items()
        }
        if code not in SENTENCES:
            raise ValueError(
                f"no sentence for the reason {code!r}: add it to SENTENCES"
            )
        reason = super().__new__(cls, code)
        reason.numbers = numbers
        try:
            reason.sentence = SENTENCES[code].format(**numbers)
        except KeyError as lacking:
            raise ValueError(
                f"the reason {code!r} needs the number {lacking}"
            ) from None
        return reason

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle with the numbers."""
        return partial(type(self), str(self), **self.numbers), ()


Reasons = tuple[Reason, ...]
Why = Reason | Iterable[Reason] | None


def collect(*why: Why) -> Reasons:
    """Put reasons one after another, each once.

    Examples
    --------
    >>> one = Reason("one_cluster")
    >>> collect(one, None, (one, Reason("no_interval.alike", names="r")))
    ('one_cluster', 'no_interval.alike')
    """
    found: dict[tuple[str, str], Reason] = {}
    for part in why:
        for reason in [part] if isinstance(part, Reason) else part or ():
            found.setdefault((str(reason), reason.sentence), reason)
    return tuple(found.values())


def join(*why: Why) -> str:
    """Return the sentences, for readers.

    Examples
    --------
    >>> join(Reason("one_cluster"), Reason("no_interval.alike", names="r"))
    'one cluster: intervals need two; no interval, as every cluster is alike: r'
    """
    return "; ".join(reason.sentence for reason in collect(*why))


def because(*why: Why) -> Row:
    """Return the two columns about reasons: ``reason``, a text, and ``codes``.

    Examples
    --------
    >>> because(None, Reason("one_cluster"))
    {'reason': 'one cluster: intervals need two', 'codes': ('one_cluster',)}
    """
    codes = collect(*why)
    return {"reason": join(codes), "codes": codes}


def because_each(*rows: Why) -> dict[str, list[Any]]:
    """Return the same two columns for several rows, from the reasons of each.

    Examples
    --------
    >>> because_each(None, Reason("one_cluster"))["codes"]
    [(), ('one_cluster',)]
    """
    codes = [collect(why) for why in rows]
    return {"reason": [join(own) for own in codes], "codes": codes}


def stored(codes: Iterable[Reason]) -> list[Json]:
    """Return reasons as a JSON document keeps them: each code with its numbers.

    Examples
    --------
    >>> stored([Reason("few_systems", n=2)])
    [{'code': 'few_systems', 'n': 2}]
    """
    return [{"code": str(code), **code.numbers} for code in codes]


def unstored(kept: Iterable[Mapping[str, Any]] | None, text: str) -> Reasons:
    """Read reasons that were `stored`; of codes unknown here, the `text` is left.

    Examples
    --------
    >>> unstored([{"code": "few_systems", "n": 2}], "")
    ('few_systems',)
    """
    unknown = (Reason("refused", text=text),) if text else ()
    try:
        return unknown if kept is None else tuple(Reason(**reason) for reason in kept)
    except ValueError:
        return unknown


def without(codes: Iterable[Reason], *names: str) -> Reasons:
    """Leave out some codes, or all about some estimates (``rho`` of ``rho.untested``).

    Examples
    --------
    >>> without((Reason("one_cluster"), Reason("rho.untested")), "rho")
    ('one_cluster',)
    """
    return tuple(
        code for code in codes if not {str(code), code.partition(".")[0]} & {*names}
    )
