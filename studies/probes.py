"""Scoring bias of three API judges that others probed: ``-m studies.probes``.

From the recording ``scoring-probes``, of which only aggregates are kept. A probe
changes one thing in the prompt; the unchanged prompt was asked five times, so every
change is compared with asking again. The five runs are interchangeable: a change is
measured from the mean of all five.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from rubricnb.core.estimates.intervals import (
    correlation,
    fisher_jackknife_t,
    jackknife,
    moments,
    named_mean,
)
from rubricnb.core.results import recorded
from rubricnb.sets.others import load_recording
from rubricnb.statistics.scoring_bias import stability
from studies.intervals import ENDS
from studies.recording import write_tables

NAME = "scoring-probes"
API, OPEN = f"{NAME}-api", f"{NAME}-open"
REVERSED, THREE_ANCHORS = "rubric_order/reversed", "rubric_order/random"
# run 1 … 5
PROBES = ("rubric_order", "score_id", "reference_answer", "authority", "verbosity")
# of 13 and 14
SMALL = ("smollm2-135m-instruct-embedded", "qwen2.5-coder-1.5b-instruct-embedded")


def tables(judgments: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Compute every table of the chapter, by the name of its file.

    Parameters
    ----------
    judgments
        ``rb.load_recording("scoring-probes")``.
    """
    # By name, whatever order the file names them in.
    judgments = judgments.astype({"judge": "str"})
    api = judgments[judgments["dataset"] == API]
    by_judge = list(api.groupby("judge", observed=True))
    return {
        "changes": pd.concat(
            [changes(part).assign(judge=name) for name, part in by_judge]
        ),
        "controls": pd.concat(
            [controls(part).assign(judge=name) for name, part in by_judge]
        ),
        "deltas": pd.concat(
            [deltas(part).assign(judge=name) for name, part in by_judge]
        ),
        "plausible": pd.DataFrame(
            [{"judge": name, **plausible(part)} for name, part in by_judge]
        ),
        "labels": pd.DataFrame(
            [{"judge": name, **labels(part)} for name, part in by_judge]
        ),
        "open": open_models(judgments[judgments["dataset"] == OPEN]),
        "small": pd.concat([small(judge) for judge in SMALL]),
    }


def wide(part: pd.DataFrame, value: str = "raw") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a judge's five control runs (items × runs) and variants."""
    control = part[part["template"] == "control"]
    others = part[part["template"] != "control"]
    return (
        control.pivot(index="item_id", columns="replicate", values=value),
        others.pivot(index="item_id", columns="template", values=value),
    )


def changes(part: pd.DataFrame) -> pd.DataFrame:
    """Measure what every change of the prompt does to one judge.

    Returns
    -------
    DataFrame
        One row per variant, the reversed scale twice (``mapped``: 6 − s, or as
        recorded): the ``mean``; its ``shift`` from the mean of the five control runs;
        ``shift_own`` from the run of the same probe; ``mad``, the mean absolute
        difference from a single control run, with that of two control runs
        (``mad_reask``) and the ``excess`` of the one over the other; ``r`` with the
        mean of the controls. 95 % intervals over items.
    """
    control, variant = wide(part)
    own = dict(zip(PROBES, control.columns, strict=True))
    again = reask(control)
    rows = []
    for name in variant.columns.drop(THREE_ANCHORS):
        for mapped in (True, False) if name == REVERSED else (True,):
            score = variant[name].to_numpy()
            if name == REVERSED and mapped:
                score = 6 - score
            apart = np.abs(control.sub(score, axis=0)).mean(axis=1).to_numpy()
            middle = control.mean(axis=1).to_numpy()
            rows.append(
                {
                    "variant": name,
                    "mapped": mapped,
                    "n_items": len(score),
                    "mean": score.mean(),
                    **mean("shift", score - middle),
                    "shift_own": (score - control[own[name.split("/")[0]]]).mean(),
                    "mad": apart.mean(),
                    "mad_reask": again.mean(),
                    **mean("excess", apart - again),
                    **pearson("r", score, middle),
                }
            )
    return pd.DataFrame(rows)


def reask(control: pd.DataFrame) -> np.ndarray:
    """Return per item the mean absolute difference of two control runs."""
    pairs = [
        np.abs(control[a] - control[b]) for a, b in combinations(control.columns, 2)
    ]
    return np.asarray(np.mean(pairs, axis=0))


def controls(part: pd.DataFrame) -> pd.DataFrame:
    """Hold each control run against the mean of the other four: ``shift``."""
    control, _ = wide(part)
    rows = []
    for run in control:
        rest = control.drop(columns=run).mean(axis=1)
        shift = mean("shift", (control[run] - rest).to_numpy())
        rows.append({"run": run, "mean": control[run].mean(), **shift})
    return pd.DataFrame(rows)


def deltas(part: pd.DataFrame) -> pd.DataFrame:
    """Recompute the authors' Δ, the highest less the lowest mean of a probe's variants.

    ``published`` takes all as recorded; ``mapped`` turns the reversed scale round and
    leaves out the one of three anchors; ``reask`` is the Δ of three control runs, on
    average over all triples.
    """
    control, variant = wide(part)
    runs = control.mean()
    again = np.mean([np.ptp(list(three)) for three in combinations(runs, 3)])
    means = variant.mean()
    rows = []
    for number, probe in zip(runs.index, PROBES, strict=True):
        found = {n: m for n, m in means.items() if str(n).startswith(f"{probe}/")}
        mended = {
            n: 6 - m if n == REVERSED else m
            for n, m in found.items()
            if n != THREE_ANCHORS
        }
        row = {"probe": probe, "published": np.ptp([runs[number], *found.values()])}
        rows.append(
            row | {"mapped": np.ptp([runs[number], *mended.values()]), "reask": again}
        )
    return pd.DataFrame(rows)


def labels(part: pd.DataFrame) -> dict[str, float]:
    """Hold a judge's letter and word for an answer against each other and the score.

    ``r_letter``, ``r_word``: with the mean of the controls; ``r_both``: of letter and
    word; ``apart``: answers whose letter and word lie two points or more apart. For
    comparison ``r_turned`` and ``apart_turned``: the reversed scale, mapped back, with
    the controls.
    """
    control, variant = wide(part)
    middle = control.mean(axis=1).to_numpy()
    letter = variant["score_id/letter"].to_numpy()
    word = variant["score_id/descriptive"].to_numpy()
    turned = 6 - variant[REVERSED].to_numpy()
    return {
        "n_items": len(middle),
        "r_letter": r(letter, middle),
        "r_word": r(word, middle),
        "r_both": r(letter, word),
        "r_turned": r(turned, middle),
        "apart": int((np.abs(letter - word) >= 2).sum()),
        "apart_turned": int((np.abs(turned - middle) >= 2).sum()),
    }


def as_read(tokens: dict[str, float], labels: str = "EDCBA") -> float:
    """Return the expected score that the authors' code makes of first tokens.

    It strips the tokens and keeps the last of those that are then alike. Providers list
    them from the likeliest down, so that a label with a rare twin (" B" beside "B")
    counts as its twin does.
    """
    kept = {token.strip(): p for token, p in tokens.items()}
    p = np.array([kept.get(label, 0.0) for label in labels])
    return float(p @ np.arange(1, len(labels) + 1) / p.sum())


def plausible(part: pd.DataFrame, seed: int = 0) -> dict[str, float]:
    """Count reads whose expected score and entropy fit no distribution of labels.

    ``shuffled`` is the share that would be found if entropies belonged to other items
    of the same prompt: what the count would notice.
    """
    rng = np.random.default_rng(seed)
    low, high = entropy_bounds(part["raw"].to_numpy())
    entropy = part["entropy"].to_numpy()
    cells = part.groupby(["template", "replicate"], observed=True)["entropy"]
    other = cells.transform(lambda x: rng.permutation(x.to_numpy())).to_numpy()
    tolerance = 2e-3  # four digits are recorded
    outside = [(h < low - tolerance) | (h > high + tolerance) for h in (entropy, other)]
    return {
        "n_reads": len(part),
        "impossible": int(outside[0].sum()),
        "shuffled": float(outside[1].mean()),
    }


def entropy_bounds(expected: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entropy's lowest and highest value, in bits, at an expected score.

    Entropy is concave, so the lowest is at a corner of what is possible, which has two
    scores; the highest is that of probabilities that grow or fall geometrically along
    the scale.
    """
    scores = np.arange(1, 6)
    low = np.full(len(expected), np.inf)
    for a, b in combinations(scores, 2):
        between = (expected >= a) & (expected <= b)
        p = np.clip((expected - a) / (b - a), 0, 1)
        low = np.where(
            between, np.minimum(low, _entropy(np.stack([p, 1 - p], axis=-1))), low
        )
    weights = np.exp(np.linspace(-40, 40, 20_001)[:, None] * (scores - 3))
    weights /= weights.sum(axis=1, keepdims=True)
    return low, np.interp(expected, weights @ scores, _entropy(weights))


def _entropy(p: np.ndarray) -> np.ndarray:
    return np.asarray(-(p * np.log2(np.where(p > 0, p, 1))).sum(axis=-1))


def open_models(part: pd.DataFrame) -> pd.DataFrame:
    """Say how much probability open models put on labels, and if they obey a reversal.

    ``mass`` (mean), ``mass_low`` and ``mass_high`` over the variants; ``r`` of the
    reversed scale as recorded with the control: −1 would be obedience. ``as_recorded``
    and ``mapped``: mean absolute distances from the control. ``median_of_variants``:
    the mass, over all models.
    """
    rows = []
    for judge, reads in part.groupby("judge", observed=True):
        control, variant = wide(reads)
        middle, turned = control.mean(axis=1).to_numpy(), variant[REVERSED].to_numpy()
        mass = (
            reads.groupby(["template", "replicate"], observed=True)["label_mass"]
            .first()
            .tolist()
        )
        rows.append(
            {
                "judge": judge,
                "n_variants": len(mass),
                "mass": np.mean(mass),
                "mass_low": np.min(mass),
                "mass_high": np.max(mass),
                "masses": mass,
                "r": r(turned, middle),
                "as_recorded": np.abs(turned - middle).mean(),
                "mapped": np.abs(6 - turned - middle).mean(),
            }
        )
    every = [m for row in rows for m in row.pop("masses")]
    return pd.DataFrame(rows).assign(median_of_variants=np.median(every))


def small(judge: str) -> pd.DataFrame:
    """Measure the same three changes for one of the book's judges."""
    judgments = recorded(judge, "minibench", "scoring")
    judgments = judgments.query("layout == 'rubric-last' and exemplar == 'none'")
    found = stability(judgments, value="expected_score")
    chosen = {
        "order of the rubric": (found["design"] == "descending")
        & (found["labels"] == "numeric")
        & (found["reference_score"] == "none"),
        "letters": (found["design"] == "fixed")
        & (found["labels"] == "letter")
        & (found["reference_score"] == "none"),
        "full-mark reference answer": (found["design"] == "fixed")
        & (found["labels"] == "numeric")
        & (found["reference_score"] == "5"),
    }
    columns = ["n_items", "n_clusters", "shift", "shift_low", "shift_high"]
    rows = [found[which][columns].assign(change=name) for name, which in chosen.items()]
    mass = judgments["label_mass"].median()
    return pd.concat(rows)[["change", *columns]].assign(judge=judge, label_mass=mass)


def mean(name: str, values: np.ndarray) -> dict[str, float]:
    """Return a mean over items with its 95 % t interval; each item is a cluster."""
    return named_mean(name, values, np.arange(len(values)), parts=ENDS)


def pearson(name: str, x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return r with its 95 % jackknife interval on Fisher's z scale."""
    found = jackknife(moments(x, y), np.arange(len(x)), correlation, fisher_jackknife_t)
    return found.named(name, *ENDS)


def r(x: np.ndarray, y: np.ndarray) -> float:
    """Return r."""
    return pearson("r", x, y)["r"]


if __name__ == "__main__":
    found = tables(load_recording(NAME))
    write_tables(
        {n: t[["judge", *t.columns.drop("judge")]] for n, t in found.items()}, "probes_"
    )
