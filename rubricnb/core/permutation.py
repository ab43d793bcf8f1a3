"""How a rubric's options are reordered: designs, and the counts of their balance.

A *design* says in which orderings a judge sees the n options of a rubric (Setting 1 of
arXiv:2602.02219) or the n criteria of a prompt (Setting 2). An ordering lists what is
at position 1, 2, …, n; everything counts from 1. ``[3, 1, 2]`` shows option 3 first.
Frames write the scores instead of the numbers of the options: on a scale of 1, 3 and 5
this is ``5-1-3``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import factorial
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rubricnb.core.support.hashing import hash64, mix64
from rubricnb.core.support.spelling import one_of
from rubricnb.core.support.types import FloatArray, IntArray

DesignName = Literal[
    "balanced",
    "williams",
    "first",
    "shuffled",
    "rotated",
    "fixed",
    "descending",
    "single",
    "placebo",
]
_REPEATED = ("shuffled", "fixed", "placebo")  # of any number of reads
# a slip of the keyboard must not fill the memory
_MOST_OPTIONS, _MOST_READS = 1_000, 10_000


@dataclass(frozen=True)
class Design:
    """A named set of k orderings of n options. The functions below make the usual ones.

    The names without a function:

    * ``descending``: (n, …, 1), once (*Descending-Numeric* of arXiv:2506.22316).
    * ``first``: the k orderings to ask first, where 2n are too many. Two are the
      ascending list and its mirror image; an even k are such opposite pairs, their
      starts spread over the places, so a preference that rises or falls evenly from
      place to place cancels. n of them are the first rows of `williams`, and 2n all its
      rows.
    * ``rotated``: one read per item, the 2n orderings of `balanced` dealt out over
      prompts. The candidates of a prompt share its ordering, so a preference for places
      favours none of them, and over all prompts it cancels from the mean of each: the
      calls of one read, the balance of 2n. Prompts (``group_id``, or ``cluster_id``
      where nothing competes) are shuffled by the seed of the plan, and the g-th gets
      ordering g mod 2n; so some multiple of 2n prompts is best.

    Attributes
    ----------
    name
        The ``design`` column of requests and judgments.
    n
        Number of options, 2 to 1,000.
    k
        Number of reads per item, up to 10,000. For ``first``: 1, an even number up to
        2n (for even n: n), or n.
    order
        The one ordering shown, for ``single``; else ``None``.

    Raises
    ------
    ValueError
        A name, n or k that no design has.

    Examples
    --------
    >>> Design("descending", 3).orderings().tolist()
    [[3, 2, 1]]
    >>> Design("first", 5, 4).orderings().tolist()
    [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [3, 4, 5, 1, 2], [2, 1, 5, 4, 3]]
    >>> import rubricnb as rb
    >>> requests = rb.plan(rb.load("minibench"), rb.Design("rotated", 5))
    >>> len(requests), requests["ordering"].nunique()
    (180, 10)
    """

    name: DesignName
    n: int
    k: int = 1
    order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        one_of("design", self.name, get_args(DesignName))
        for name, given, least, most, what in (
            ("n", self.n, 2, _MOST_OPTIONS, "options"),
            ("k", self.k, 1, _MOST_READS, "reads"),
        ):
            if given not in range(least, most + 1):
                raise ValueError(
                    f"{name} = {given!r}: give a whole number of {what} from {least} "
                    f"to {most:,}"
                )
        most = len(_williams(self.n))
        numbers = {
            "balanced": [2 * self.n],
            "williams": [most],
            "first": sorted({1, self.n, *range(2, most + 1, 2)}),
        }.get(self.name, [self.k] if self.name in _REPEATED else [1])
        if self.k not in numbers:
            raise ValueError(
                f"k = {self.k}: of {self.n} options {self.name} shows "
                f"{', '.join(map(str, numbers))} orderings"
            )

    @property
    def per_item(self) -> bool:
        """Whether every item draws orderings of its own (``shuffled`` only)."""
        return self.name == "shuffled"

    def orderings(self, item_id: str | None = None, seed: int = 0) -> IntArray:
        """Return the orderings, one row per read.

        Parameters
        ----------
        item_id
            Needed by ``shuffled``, whose orderings are drawn per item; ignored by the
            others.
        seed
            Seed of that draw.

        Returns
        -------
        ndarray of int, shape (k, n)
            Row j lists the option at position 1, …, n in read j + 1. Of ``rotated`` all
            that are dealt out, shape (2n, n): an item gets one of them.

        Raises
        ------
        ValueError
            ``shuffled`` without an ``item_id``.

        Examples
        --------
        >>> shuffled(5, 2).orderings("hanna/001/coherence", seed=0).tolist()
        [[5, 1, 4, 3, 2], [4, 1, 5, 2, 3]]
        """
        up = np.arange(1, self.n + 1)
        match self.name:
            case "balanced" | "rotated":
                return np.vstack([_rotations(up), _rotations(up[::-1])])
            case "williams":
                return _williams(self.n)
            case "first" if self.k in (self.n, 2 * self.n):
                return _williams(self.n)[: self.k]
            case "first":
                pairs = max(self.k // 2, 1)
                rows = _rotations(up)[np.arange(pairs) * self.n // pairs]
                both = np.stack([rows, rows[:, ::-1]], axis=1)
                return both.reshape(-1, self.n)[: self.k]
            case "shuffled":
                if item_id is None:
                    raise ValueError(
                        "shuffled draws orderings for each item: pass "
                        "orderings(item_id=…, seed=…)"
                    )
                return _shuffled(self.n, self.k, item_id, seed)
            case "fixed" | "placebo":
                return np.tile(up, (self.k, 1))
            case "descending":
                return up[None, ::-1].copy()
            case "single":
                return np.array([self.order])


def balanced(n: int) -> Design:
    """The papers' BALANCED: n forward, n reverse rotations (arXiv:2602.02219, §3.1).

    Every option appears exactly twice at every position. At n = 2 these are two
    distinct orderings, each twice. Neighbours are *not* balanced: see `williams`.

    Parameters
    ----------
    n
        Number of options, 2 or more.

    Examples
    --------
    >>> balanced(3).orderings()
    array([[1, 2, 3],
           [2, 3, 1],
           [3, 1, 2],
           [3, 2, 1],
           [2, 1, 3],
           [1, 3, 2]])
    """
    return Design("balanced", n, 2 * n)


def williams(n: int) -> Design:
    """A Williams square: balanced in position and in which option comes before which.

    n orderings for even n, 2n for odd n (Williams 1949). Every ordered pair of options
    is adjacent equally often: once for even n, twice for odd n.

    Parameters
    ----------
    n
        Number of options, 2 or more.

    Examples
    --------
    >>> williams(4).orderings().tolist()
    [[1, 2, 4, 3], [2, 3, 1, 4], [3, 4, 2, 1], [4, 1, 3, 2]]
    """
    return Design("williams", n, n if n % 2 == 0 else 2 * n)


def shuffled(n: int, k: int = 1) -> Design:
    """Random orderings, k drawn for each item, distinct as long as n! allows.

    Our reading of the papers' RANDOM ("K orderings drawn at random",
    arXiv:2602.02219v2, §4.3), which does not say whether they are drawn for each item.

    Each item has a random stream of its own, hashed from the seed and its id, so its
    orderings do not depend on the other items. Beyond n! orderings (n = 2 or 3 at k =
    10) whole rounds of all n! are drawn again.

    Parameters
    ----------
    n
        Number of options, 2 or more.
    k
        Reads per item, 1 or more.

    Examples
    --------
    >>> len({tuple(o) for o in shuffled(5, 10).orderings("item", seed=1)})
    10
    """
    return Design("shuffled", n, k)


def fixed(n: int, k: int = 1) -> Design:
    """The papers' FIXED: (1, …, n), k times.

    A deterministic judge gives k copies of one read: its number of effective reads is
    1.

    Examples
    --------
    >>> fixed(3, 2).orderings().tolist()
    [[1, 2, 3], [1, 2, 3]]
    """
    return Design("fixed", n, k)


def single(order: ArrayLike) -> Design:
    """One given ordering, once.

    Parameters
    ----------
    order
        A permutation of 1, …, n.

    Raises
    ------
    ValueError
        `order` is not such a permutation.

    Examples
    --------
    >>> single([3, 1, 2]).orderings().tolist()
    [[3, 1, 2]]
    """
    options = np.asarray(order).ravel().tolist()
    if sorted(options) != list(range(1, len(options) + 1)) or len(options) < 2:
        raise ValueError(
            f"order {options} is not a permutation of 1..{max(len(options), 2)}"
        )
    return Design("single", len(options), 1, tuple(int(o) for o in options))


def placebo(n: int, k: int = 1) -> Design:
    """(1, …, n) under k meaning-free edits: the control for every order effect.

    The edits (a blank line, ``Score 1 :``, a header's synonym, a trailing space and
    their combinations) are `rubricnb.core.prompts.render.PLACEBO_EDITS`;
    ``ordering_index`` j takes the j-th.

    Parameters
    ----------
    n
        Number of options, 2 or more.
    k
        Number of edits, 1 to 15.

    Examples
    --------
    >>> placebo(3, 2).orderings().tolist()
    [[1, 2, 3], [1, 2, 3]]
    """
    if not 1 <= k <= 15:
        raise ValueError(f"k = {k}: there are 15 placebo edits, so k is 1 to 15")
    return Design("placebo", n, k)


def position_counts(orderings: ArrayLike) -> IntArray:
    """Count how often each option is at each position.

    Parameters
    ----------
    orderings
        Array (k, n), as a design gives it.

    Returns
    -------
    ndarray of int, shape (n, n)
        Row o - 1, column p - 1: reads that show option o at position p.

    Examples
    --------
    >>> position_counts(balanced(3).orderings()).tolist()
    [[2, 2, 2], [2, 2, 2], [2, 2, 2]]
    """
    o = np.asarray(orderings)
    n = o.shape[1]
    counts = np.zeros((n, n), dtype=np.int64)
    np.add.at(counts, (o - 1, np.broadcast_to(np.arange(n), o.shape)), 1)
    return counts


def neighbour_counts(orderings: ArrayLike) -> IntArray:
    """Count how often each option directly precedes each other option.

    Parameters
    ----------
    orderings
        Array (k, n), as a design gives it.

    Returns
    -------
    ndarray of int, shape (n, n)
        Row a - 1, column b - 1: reads that show a directly before b. The diagonal is 0.

    Examples
    --------
    The cyclic set covers 10 of the 20 ordered pairs at n = 5; Williams covers all of
    them.

    >>> int((neighbour_counts(balanced(5).orderings()) > 0).sum())
    10
    >>> int((neighbour_counts(williams(5).orderings()) > 0).sum())
    20
    """
    o = np.asarray(orderings)
    counts = np.zeros((o.shape[1], o.shape[1]), dtype=np.int64)
    np.add.at(counts, (o[:, :-1] - 1, o[:, 1:] - 1), 1)
    return counts


def code(orderings: ArrayLike) -> list[str]:
    """Write orderings as the short codes that frames carry.

    Examples
    --------
    >>> code([[2, 3, 1]]), code([[1, 0.5, 0]])
    (['2-3-1'], ['1-0.5-0'])
    """
    rows = np.atleast_2d(np.asarray(orderings)).tolist()
    return ["-".join(f"{number:.15g}" for number in row) for row in rows]


def decode(ordering: str) -> tuple[float, ...]:
    """Read one such code; the numbers are int if all of them are whole.

    Examples
    --------
    >>> decode("2-3-1"), decode("1-0.5-0"), decode("-1-0-1")
    ((2, 3, 1), (1.0, 0.5, 0.0), (-1, 0, 1))
    """
    parts = re.split(r"(?<=\d)-", ordering)
    return tuple(map(float if "." in ordering else int, parts))


def ranks(orderings: ArrayLike) -> IntArray:
    """Return orderings of scores as orderings of options: 5-1-3 is 3-1-2."""
    return np.argsort(np.argsort(orderings, axis=-1), axis=-1) + 1


def levels_above(values: ArrayLike, scale: ArrayLike) -> FloatArray:
    """Count how many levels each value lies above the lowest of an ascending scale.

    A fraction between two levels; NaN off a scale whose levels are not one point apart.

    Examples
    --------
    >>> levels_above([1, 3, 4, 9], [1, 3, 5, 7]).tolist()
    [0.0, 1.0, 1.5, nan]
    """
    x, levels = np.asarray(values, float), np.asarray(scale, float)
    if (np.diff(levels) == 1).all():
        return np.asarray(x - (levels[0] if len(levels) else 0))
    return np.asarray(
        np.interp(x, levels, np.arange(len(levels)), left=np.nan, right=np.nan)
    )


def directions(orderings: IntArray) -> IntArray:
    """1 for rotations of 1…n, -1 for those of n…1; 0 for others and for n = 2."""
    n = orderings.shape[1]
    if n < 3:
        return np.zeros(len(orderings), dtype=np.int64)
    step = (np.roll(orderings, -1, axis=1) - orderings) % n
    forward, reverse = (step == 1).all(axis=1), (step == n - 1).all(axis=1)
    return forward.astype(np.int64) - reverse.astype(np.int64)


def _rotations(order: IntArray) -> IntArray:
    n = len(order)
    return order[(np.arange(n)[:, None] + np.arange(n)) % n]


def _williams(n: int) -> IntArray:
    # The zig-zag 0, 1, n-1, 2, n-2, … has every difference mod n once, so its n shifts
    # hold every ordered pair once (even n) or, together with their mirror images, twice
    # (odd n).
    zigzag = [(j + 1) // 2 if j % 2 else (n - j // 2) % n for j in range(n)]
    square = (np.array(zigzag) + np.arange(n)[:, None]) % n + 1
    return square if n % 2 == 0 else np.vstack([square, square[:, ::-1]])


def _shuffled(n: int, k: int, item_id: str, seed: int) -> IntArray:
    stream = mix64(hash64([item_id]), hash64([seed]), n)
    rng = np.random.default_rng(int(stream[0]))
    total = factorial(n)
    drawn: list[tuple[int, ...]] = []
    seen: set[tuple[int, ...]] = set()
    while len(drawn) < k:
        if len(seen) == total:
            seen.clear()
        order = tuple(int(o) for o in rng.permutation(n) + 1)
        if order not in seen:
            seen.add(order)
            drawn.append(order)
    return np.array(drawn, dtype=np.int64)
