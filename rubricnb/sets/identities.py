"""Arithmetic inside the papers: what their tables say about their own statements.

Each expression of ``published/identities.yml`` recomputes one kind of statement from
`published` tables alone, for the rows of ``claims.csv`` whose ``kind`` is ``identity``
and whose ``recompute`` names it.
"""

from __future__ import annotations

import ast
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi, chi2, false_discovery_control, norm, spearmanr

from rubricnb.core.permutation import balanced
from rubricnb.core.support.settings import read_yaml
from rubricnb.core.support.spelling import nearest
from rubricnb.sets.papers import claims as _claims
from rubricnb.sets.papers import published

_FILE = Path(__file__).parent / "published" / "identities.yml"


def recompute(claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Recompute every identity among the claims.

    Parameters
    ----------
    claims
        Rows of `rubricnb.data.claims`; rows of the kind ``claim`` are left out.
        Default: all.

    Returns
    -------
    DataFrame
        claim_id and value, as `rubricnb.data.verdicts` takes them.

    Examples
    --------
    >>> from rubricnb.data import claims, verdicts
    >>> identities = claims("05").query("kind == 'identity'")
    >>> checked = verdicts(identities, recompute(identities)).set_index("claim_id")
    >>> checked.verdict["v2/ends-imply-chi2"]
    'the arithmetic holds'
    >>> checked.verdict["v2/direction/gemma-3-12b"]
    'the arithmetic fails'
    """
    claims = _claims() if claims is None else claims
    rows = claims[claims["kind"] == "identity"]
    values = [value(row.recompute, row.judge, row.dataset) for row in rows.itertuples()]
    return pd.DataFrame({"claim_id": rows["claim_id"].to_numpy(), "value": values})


def value(name: str, judge: str = "", dataset: str = "") -> float:
    """Evaluate one expression of ``published/identities.yml``.

    Parameters
    ----------
    name
        Its name there (``recompute`` of ``claims.csv``).
    judge, dataset
        What it is about, as in ``claims.csv``; datasets may be joined by ``+``.
        Default: all.

    Examples
    --------
    >>> round(value("mean_cramers_v", "Gemma-3-27B"), 3)
    0.114
    """
    return float(_evaluated(name, judge, dataset))


def _evaluated(name: str, judge: str, dataset: str) -> Any:
    """Evaluate an expression after those that it names, with the builtins below."""
    expressions = _expressions()
    if name not in expressions:
        raise ValueError(
            f"no identity is named {name!r}{nearest(name, expressions)} See "
            f"{_FILE.name}"
        )
    tree = ast.parse(expressions[name], mode="eval")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    scope = {
        **_FUNCTIONS,
        "judge": judge,
        "dataset": dataset,
        "table": published,
        "asked": partial(_asked, judge=judge, dataset=dataset),
        **{n: _evaluated(n, judge, dataset) for n in names if n in expressions},
    }
    # numpy loads its own parts when first asked for a mean
    builtins = {"__import__": __import__}
    return eval(compile(tree, name, "eval"), {"__builtins__": builtins, **scope})


@cache
def _expressions() -> dict[str, str]:
    groups = read_yaml(_FILE).values()
    return {name: text for group in groups for name, text in group.items()}


def _asked(frame: pd.DataFrame, *by: str, judge: str, dataset: str) -> pd.DataFrame:
    """Keep the rows about the claim's judge and dataset, or about one of the two."""
    by = by or ("judge", "dataset")
    if judge and "judge" in by:
        frame = frame[frame["judge"] == judge]
    if dataset and "dataset" in by:
        # Printed names become the names that `rubricnb.data.load` knows.
        slugs = (
            frame["dataset"]
            .str.lower()
            .str.removesuffix("-bench")
            .replace("mt", "mt-bench")
        )
        frame = frame[slugs.isin(dataset.split("+"))]
    return frame


def _least_squares(cells: pd.DataFrame) -> Any:
    """Least sum of squared distances from 20 %, given the first and last position."""
    rounding = np.linspace(-0.05, 0.05, 11)
    first = cells["pos1_pct"].to_numpy()[:, None, None] - 20 + rounding[:, None]
    last = cells["pos5_pct"].to_numpy()[:, None, None] - 20 + rounding
    return (first**2 + last**2 + (first + last) ** 2 / 3).min(axis=(1, 2))


def _costs(shares: pd.DataFrame) -> pd.Series:
    """Bias Cost (×100) of each balanced order, from shares: score by position."""
    orders = balanced(5).orderings()
    away = (shares - 20).abs().to_numpy()[orders - 1, np.arange(5)]
    return pd.Series(
        away.sum(axis=1), index=[str(o.tolist()).replace(" ", "") for o in orders]
    )


_NAMED = (
    *(_claims, combinations, false_discovery_control, spearmanr),
    *(np.diff, np.sign, np.sqrt, pd.Series, float, int, len, min, sum),
)
_FUNCTIONS: dict[str, Any] = {function.__name__: function for function in _NAMED} | {
    "balanced": lambda n: balanced(int(n)).orderings(),
    "chi": chi,
    "chi2": chi2,
    "costs": _costs,
    "least_squares": _least_squares,
    "norm": norm,
}
