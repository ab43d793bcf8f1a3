"""All studies, cell by cell: simulated, tallied on disk, recorded."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy import stats

import rubricnb
from rubricnb.core.results import results_folder
from studies.validity.advice import _cells_of_advice, _do_orders_pay
from studies.validity.intervals import (
    _HARD,
    _correlations,
    _few_shares,
    _hard,
    _preference,
    _rare_flips,
    _share_intervals,
    _variance,
)
from studies.validity.labels import _cells_of_labels
from studies.validity.losses import _cells_of_losses
from studies.validity.people import _against_raters, _with_labels
from studies.validity.planted import _SIZES, PREFERENCE, _Cell, _Judge
from studies.validity.tests import (
    _clustered,
    _criterion_position,
    _detectable,
    _detectable_mean,
    _duplicated,
    _independent,
    _rare_difference,
)

PIECE = 100
_COLUMNS = ["piece", "kind", "quantity", "method", "truth", "n", "sum", "squares"]
_KEYS = ["kind", "quantity", "method", "truth"]


def validity(
    cells: Sequence[str] | None = None,
    replications: int | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
) -> pd.DataFrame:
    """Simulate studies and tally how often tests reject and intervals hold the truth.

    Parameters
    ----------
    cells
        Names from `cell_names`; default: all.
    replications
        Simulated studies per cell; by default what each cell plans (4,000, fewer where
        one study is costly). What is costly within a cell (a bootstrap) is done in the
        first ones only.
    seed
        Every replication has a stream of its own, from seed, cell and its number.
    folder
        Keep tallies there, one CSV a cell, and do not repeat a piece that is there.

    Returns
    -------
    DataFrame
        One row per quantity and method of a cell:

        * ``cell``; ``kind``: ``size`` (rejections at 5 % without an effect), ``power``
          (with one), ``coverage`` (of 95 % intervals), ``outside`` (estimates outside
          their own), ``doubted`` (results whose ``reason`` says that the interval may
          be too narrow or rests on few events) or ``recovery`` (mean estimate);
        * ``quantity``: what is tested or estimated; ``method``: who does it;
        * ``truth``: what `rate` should be (.05, .95, the planted value; NaN for power);
        * ``rate`` with ``low, high``: 95 % interval over the replications, Wilson's for
          shares, normal for means; ``replications``: those in which it was defined.

    Raises
    ------
    ValueError
        A name that is not a cell's.

    Notes
    -----
    The papers' methods: arXiv:2602.02219v2, §4.4.

    Examples
    --------
    >>> found = validity(["size/independent/1"], replications=20)
    >>> found.method.tolist()
    ['χ² of the papers', 'cluster permutation']
    >>> found.replications.tolist()
    [20, 20]
    """
    known = _cells()
    unknown = set(cells or ()) - set(known)
    if unknown:
        raise ValueError(f"no cell {min(unknown)!r}; there are: {', '.join(known)}")
    frames = []
    for name in cells or known:
        tally = _tally(name, replications or known[name].replications, seed, folder)
        frames.append(_rates(tally).assign(cell=name))
    result = pd.concat(frames, ignore_index=True)
    return result[["cell", *_KEYS, "rate", "low", "high", "replications"]]


def cell_names() -> list[str]:
    """Return the names of all cells.

    Examples
    --------
    >>> cell_names()[0]
    'size/independent/0.05'
    """
    return list(_cells())


def record_validity(
    folder: str | Path | None = None, replications: int | None = None, seed: int = 0
) -> Path:
    """Run the whole study and record ``validity.csv`` and ``run.json``; resumes.

    Parameters
    ----------
    folder
        Default: ``results/validity``.
    replications, seed
        As in `validity`.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ValueError
        The folder holds the tallies of another seed.
    """
    folder = Path(folder) if folder else results_folder() / "validity"
    path = folder / "run.json"
    earlier_run = (
        json.loads(path.read_text())
        if path.exists()
        else {"seconds": 0.0, "seed": seed}
    )
    if earlier_run["seed"] != seed:
        raise ValueError(
            f"{folder} holds tallies of seed {earlier_run['seed']}; give another folder"
        )
    start_time = process_time()
    facts: dict[str, Any] = {
        "study": "validity",
        "seed": seed,
        "package": rubricnb.__version__,
    }
    facts |= {"python": platform.python_version(), "numpy": np.__version__}
    facts |= {"machine": f"{platform.system()} {platform.machine()}"}
    frames = []
    for name, cell in _cells().items():
        frames.append(validity([name], replications, seed, folder))
        seconds = round(earlier_run["seconds"] + process_time() - start_time, 1)
        facts |= {"recorded": datetime.now(UTC).date().isoformat(), "seconds": seconds}
        facts["replications"] = facts.get("replications", {}) | {
            name: replications or cell.replications
        }
        path.write_text(json.dumps(facts, indent=1) + "\n")
    table = pd.concat(frames, ignore_index=True)
    table.to_csv(
        folder / "validity.csv", index=False, float_format="%.6g", lineterminator="\n"
    )
    return folder


@cache
def _cells() -> dict[str, _Cell]:
    """All cells, cheap ones first."""
    cells = {}
    for concentration in (0.05, 0.2, 1.0, 5.0):
        cells[f"size/independent/{concentration:g}"] = _Cell(
            partial(_independent, _Judge(concentration))
        )
    cells["size/shared-noise"] = _Cell(partial(_clustered, _Judge(text_noise=1.0)))
    cells["size/duplicated"] = _Cell(_duplicated)
    cells["size/direction"] = _Cell(partial(_clustered, _Judge(reverse_shift=0.5)))
    for concentration in (0.2, 1.0):
        for scale in (0.5, 1.0):
            planted = _Judge(concentration, tuple(scale * g for g in PREFERENCE))
            cells[f"power/{concentration:g}/{scale:g}"] = _Cell(
                partial(_independent, planted), 1_000
            )
    for concentration in (0.2, 1.0):
        cells[f"power/{concentration:g}/mde"] = _Cell(
            partial(_detectable, concentration)
        )
    for n in (10, 20, 40, 96):
        cells[f"coverage/r/{n}"] = _Cell(partial(_correlations, n))
    for n in (10, 20, 40, 96):
        cells[f"coverage/shares/{n}"] = _Cell(partial(_share_intervals, n))
    for name in ("6", "uneven"):
        cells[f"coverage/shares/{name}"] = _Cell(partial(_few_shares, _SIZES[name]))
    for name in ("6", "20", "60", "uneven"):
        cells[f"coverage/flips/{name}"] = _Cell(partial(_rare_flips, _SIZES[name]))
    for levels, names in _HARD.items():
        for name in names:
            simulate = partial(_hard, levels, _SIZES[name])
            cells[f"coverage/{levels}/{name}"] = _Cell(simulate, 400, 200)
    for name in ("10", "20", "40", "96", "uneven"):
        cells[f"labels/{name}"] = _Cell(partial(_with_labels, _SIZES[name]), 2_000)
        cells[f"raters/{name}"] = _Cell(partial(_against_raters, _SIZES[name]), 2_000)
    cells |= _cells_of_labels()
    for n in (20, 60):
        cells[f"orders/{n}"] = _Cell(partial(_do_orders_pay, n), 2_000)
    for n in (5, 20, 40, 160):
        cells[f"equivalence/{n}"] = _Cell(partial(_rare_difference, n))
    for n in (4, 6, 10, 20):
        cells[f"detectable/{n}"] = _Cell(partial(_detectable_mean, n))
    cells["criterion/none"] = _Cell(partial(_criterion_position, 0.0))
    cells["criterion/planted"] = _Cell(partial(_criterion_position, 0.4))
    cells["recovery/variance"] = _Cell(_variance, 1_000)
    for concentration in (0.2, 1.0):
        cells[f"recovery/preference/{concentration:g}"] = _Cell(
            partial(_preference, concentration), 400
        )
    return cells | _cells_of_advice() | _cells_of_losses()


def _tally(
    name: str, replications: int, seed: int, folder: str | Path | None
) -> pd.DataFrame:
    """Sums over pieces of replications: read from disk, new ones appended."""
    cell = _cells()[name]
    path = Path(folder) / f"{name.replace('/', '-')}.csv" if folder else None
    stored = (
        pd.read_csv(path) if path and path.exists() else pd.DataFrame(columns=_COLUMNS)
    )
    pieces = []
    for start in range(0, replications, PIECE):
        stop = min(start + PIECE, replications)
        piece_name = f"{start}-{stop}"
        piece = stored[stored["piece"] == piece_name]
        if piece.empty:
            piece = _piece(name, cell, range(start, stop), seed).assign(
                piece=piece_name
            )[_COLUMNS]
            if path:
                stored = piece if stored.empty else pd.concat([stored, piece])
                _write(stored, path)
        pieces.append(piece)
    return pd.concat(pieces, ignore_index=True)


def _write(table: pd.DataFrame, path: Path) -> None:
    """Replace the file as a whole: a piece is there or it is not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_suffix(".tmp")
    table.to_csv(partial_file, index=False, lineterminator="\n")
    partial_file.replace(path)


def _piece(name: str, cell: _Cell, numbers: range, seed: int) -> pd.DataFrame:
    rows = []
    for number in numbers:
        rng = np.random.default_rng([seed, crc32(name.encode()), number])
        rows += list(cell.simulate(rng, number < cell.n_costly))
    table = pd.DataFrame(rows, columns=[*_KEYS, "value"]).dropna(subset="value")
    table["square"] = table["value"] ** 2
    grouped = table.groupby(_KEYS, sort=False, dropna=False)
    return grouped.agg(
        n=("value", "size"), sum=("value", "sum"), squares=("square", "sum")
    ).reset_index()


def _rates(tally: pd.DataFrame) -> pd.DataFrame:
    totals = tally.groupby(_KEYS, sort=False, dropna=False)[
        ["n", "sum", "squares"]
    ].sum()
    totals = totals.reset_index()
    n, rate = totals["n"].astype(float), totals["sum"] / totals["n"]
    z = stats.norm.ppf(0.975)
    se = np.sqrt(np.maximum(totals["squares"] / n - rate**2, 0) / np.maximum(n - 1, 1))
    # Wilson's interval of a share: (p + z²/2n ± z √(p (1 − p)/n + z²/4n²)) / (1 + z²/n)
    half_width = (
        z
        * np.sqrt(np.maximum(rate * (1 - rate), 0) / n + z**2 / (4 * n**2))
        / (1 + z**2 / n)
    )
    center = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    is_mean = totals["kind"] == "recovery"
    totals["rate"] = rate
    totals["low"] = np.where(is_mean, rate - z * se, (center - half_width).round(12))
    totals["high"] = np.where(is_mean, rate + z * se, center + half_width)
    return totals.drop(columns=["sum", "squares"]).rename(columns={"n": "replications"})
