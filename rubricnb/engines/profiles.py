"""Parameters of simulated judges, planted by hand or fitted to a printed table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from rubricnb.core.support.settings import read_yaml
from rubricnb.core.support.spelling import nearest

Spread: TypeAlias = float  # 0 or more
Share: TypeAlias = float  # from 0 to 1
Numbers: TypeAlias = tuple[float, ...]
Rows: TypeAlias = tuple[Numbers, ...]
Shifts: TypeAlias = tuple[tuple[str, float], ...]
Rates: TypeAlias = tuple[tuple[str, Share], ...]


@dataclass(frozen=True)
class Profile:
    """One simulated judge's parameters; `rubricnb.engines.generative` has the model.

    Attributes
    ----------
    name
        What follows ``simulated:`` in the judge's slug.
    sharpness
        β, 0 or more; 0 is a judge that looks at preferences only.
    score_preference, position_preference
        α and γ in logits, at equally spaced points from the first to the last score or
        position.
    interaction
        δ in logits: one row per score, one column per position; empty is none.
    direction
        D in score points: mean latent quality under ascending minus under descending
        options.
    criterion_position
        ρ in score points, at equally spaced points from the first to the last
        criterion.
    center, human_weight
        μ in score points; λ, what one point of the human rating is worth.
    label_shift
        Pairs (labels, score points): what the latent quality gains where the options
        are called so.
    reference_pull
        Share of the way (0 to 1) that the latent quality moves to the score of a
        reference shown.
    quality_sd, text_share
        Of the quality drawn where no human rated: its standard deviation in score
        points, and the share of its variance (0 to 1) that the criteria of a text have
        in common.
    text_error, item_error
        σ_T and σ_I in score points.
    cluster_order_noise, order_noise, wording_noise
        σ_G, σ_E and σ_W in score points.
    unparsed
        Pairs (ordering, rate): share of its ``feedback`` answers that end without a
        score. The ordering ``"*"`` means every one not named.
    draw
        Which of the judges that share these parameters this is: mixed into every random
        stream.
    source
        What the profile was fitted to, or what it is for.

    Raises
    ------
    ValueError
        A value that its parameter cannot have.

    Examples
    --------
    >>> open_profile("first-biased").position_preference
    (1.0, 0.25, -0.25, -0.5, -0.5)
    """

    name: str
    sharpness: Spread = 4.0
    score_preference: Numbers = (0.0,)
    position_preference: Numbers = (0.0,)
    interaction: Rows = ()
    direction: float = 0.0
    criterion_position: Numbers = (0.0,)
    label_shift: Shifts = ()
    reference_pull: Share = 0.0
    center: float = 3.0
    human_weight: float = 0.8
    quality_sd: Spread = 0.9
    text_share: Share = 0.5
    text_error: Spread = 0.4
    item_error: Spread = 0.4
    cluster_order_noise: Spread = 0.1
    order_noise: Spread = 0.25
    wording_noise: Spread = 0.1
    unparsed: Rates = ()
    draw: int = 0
    source: str = ""

    def __post_init__(self) -> None:
        # An integer and a list become what the same judge has elsewhere: its identity,
        # and so the keys of its answers, must not depend on how it was written.
        for parameter in fields(self):
            given, (kind, form) = getattr(self, parameter.name), _KINDS[parameter.type]
            try:
                value = _read(form, given)
            except (TypeError, ValueError):
                raise ValueError(
                    f"profile {self.name!r}: {parameter.name} = {given!r} is not {kind}"
                ) from None
            object.__setattr__(self, parameter.name, value)


@cache
def profiles() -> dict[str, Profile]:
    """Return every profile by name: the planted ones, then those fitted to the papers.

    Fitted profiles are called ``v2/JUDGE/DATASET`` (arXiv:2602.02219v2, Table 2) and
    ``v1/JUDGE`` (v1, Table 5). They reproduce the printed shares; they replicate
    nothing.

    Examples
    --------
    >>> [name for name in profiles() if "/" not in name]
    ['unbiased', 'first-biased', 'last-biased', 'middle-averse', 'criterion-biased', \
'reference-pulled', 'letter-strict']
    """
    return {
        name: Profile(name, **values["parameters"])
        for file in ("planted.yml", "profiles.yml")
        for name, values in read_yaml(Path(__file__).with_name(file)).items()
    }


def open_profile(name: str) -> Profile:
    """Return one profile.

    Parameters
    ----------
    name
        A key of `profiles`.

    Raises
    ------
    ValueError
        No such profile; names the nearest ones.

    Examples
    --------
    >>> open_profile("unbaised")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: no simulated profile 'unbaised'; did you mean 'unbiased' or ...
    """
    known = profiles()
    if name in known:
        return known[name]
    planted = ", ".join(one for one in known if "/" not in one)
    raise ValueError(
        f"no simulated profile {name!r}{nearest(name, known)} Planted are: {planted}"
    )


def _read(form: Any, value: Any) -> Any:
    """Return a value in a form: a type, the range of a number, or a list of forms.

    A list of one form is a list of any length, whose parts all have that form.
    """
    if isinstance(form, list):
        forms = form if len(form) > 1 else form * len(value)
        return tuple(_read(*one) for one in zip(forms, value, strict=True))
    if isinstance(form, tuple):
        low, high = form
        found = float(value)
        is_valid = low <= found <= high
    else:
        found = form(value)
        is_valid = found == value
    if not is_valid:
        raise ValueError
    return found


_ANY, _SHARE = (-math.inf, math.inf), (0, 1)
_KINDS: Mapping[Any, tuple[str, Any]] = {
    "str": ("a text", str),
    "int": ("a whole number", int),
    "float": ("a number", _ANY),
    "Spread": ("a number of 0 or more", (0, math.inf)),
    "Share": ("a number from 0 to 1", _SHARE),
    "Numbers": ("a list of numbers", [_ANY]),
    "Rows": ("a list of lists of numbers", [[_ANY]]),
    "Shifts": ("a list of pairs (labels, number)", [[str, _ANY]]),
    "Rates": ("a list of pairs (ordering, number from 0 to 1)", [[str, _SHARE]]),
}
