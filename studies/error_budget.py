"""What to buy: texts, reads or judges? ``python -m studies.error_budget`` recomputes.

The error budgets of judges that others recorded (eight reads of GPT-5.4 and Claude,
five forms of GPT-3.5, four of ChatGPT on stories, eleven judges of SummEval) and of the
people beside them; and, half of the prompts against the other, whether what such a
budget predicts is what one finds. What is written to
``results/recordings/error_budget*.csv`` are aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

import rubricnb as rb
from rubricnb.core.support.types import FloatArray, IntArray
from rubricnb.corrections.error_budget import left_out, rows_of, variance_of_difference
from studies import forms, noisy, replace
from studies.intervals import jackknife_row
from studies.recording import write_tables

COLUMN = {
    "re-read": "replicate",
    "form": "template",
    "judge": "judge",
    "rater": "rater",
}
DRAWS = 2_000
SPLITS = 40


@dataclass(frozen=True)
class Cell:
    """Scores of one judge, or of people: prompts × candidates × levels of a facet."""

    recording: str
    who: str
    criterion: str
    facet: str
    x: FloatArray

    @property
    def names(self) -> dict[str, str]:
        """Columns that identify a cell."""
        return {
            "recording": self.recording,
            "who": self.who,
            "criterion": self.criterion,
            "facet": self.facet,
        }

    def frame(self, prompts: IntArray | None = None) -> pd.DataFrame:
        """Judgments of some prompts; what is missing is left out."""
        x = self.x if prompts is None else self.x[prompts]
        prompt, candidate, level = (a.ravel() for a in np.indices(x.shape))
        table = pd.DataFrame(
            {
                "item_id": prompt * x.shape[1] + candidate,
                "cluster_id": prompt,
                "candidate": candidate,
                COLUMN[self.facet]: level,
                "score": x.ravel(),
            }
        )
        return table[np.isfinite(x.ravel())]

    def budget(self, prompts: IntArray | None = None) -> pd.DataFrame:
        """Its error budget."""
        return rb.error_budget(self.frame(prompts), by=[])


def cells() -> list[Cell]:
    """Load every recording as cells."""
    return [*reads(), *asked_in_forms(), *judges_and_people()]


def reads() -> Iterator[Cell]:
    """Eight reads of three wrong responses, as systems of like quality, by arm."""
    for (judge, temperature), arm in noisy.arms(
        rb.load_recording("rewardbench-reads")
    ).items():
        scores, _ = noisy.scores_of(arm)
        at = "" if np.isnan(temperature) else f", T = {temperature:g}"
        yield Cell("rewardbench-reads", judge + at, "all", "re-read", scores[:, 1:])


def asked_in_forms() -> Iterator[Cell]:
    """Judges of a set in several forms, and HANNA's raters, by criterion.

    HANNA's other judges are left out: many of their scores are means over failed reads.
    """
    for name, judge in (("summeval-gpt", forms.GPT), ("hanna-llm", "ChatGPT")):
        recording = rb.load_recording(name)
        once = forms.first_reads(recording[recording["judge"] == judge])
        yield from _by_criterion(name, judge, "form", once, "template")
        if name == "hanna-llm":
            yield from _people(name, recording.rated)


def judges_and_people() -> Iterator[Cell]:
    """SummEval's eleven judges in one form each, and its experts, by criterion."""
    judgments, items = replace.loaded()
    own = judgments[judgments["judge"].isin(replace.NAMES.values())]
    yield from _by_criterion("summeval", "eleven judges", "judge", own, "judge")
    yield from _people("summeval", items)


def _people(name: str, items: pd.DataFrame) -> Iterator[Cell]:
    each = items.dropna(subset=["human_ratings"]).explode("human_ratings")
    each = each.assign(
        rater=each.groupby("item_id").cumcount(), score=each["human_ratings"]
    )
    yield from _by_criterion(name, "people", "rater", each, "rater")


def _by_criterion(
    name: str, who: str, facet: str, frame: pd.DataFrame, column: str
) -> Iterator[Cell]:
    keys = ["cluster_id", "candidate", column]
    text = frame.astype(dict.fromkeys(keys, str))
    for criterion, own in text.groupby("criterion", observed=True):
        if own.duplicated(keys).any():
            raise ValueError(
                f"{name}: a text of {who} appears twice in one {facet}, {criterion}"
            )
        wide = own.set_index(keys)["score"].astype(float).unstack(keys[1:])
        levels = [sorted(own[k].unique()) for k in keys[1:]]
        wide = wide.reindex(columns=pd.MultiIndex.from_product(levels))
        x = wide.to_numpy().reshape(len(wide), *map(len, levels))
        yield Cell(name, who, str(criterion), facet, x)


def parts(of: list[Cell]) -> pd.DataFrame:
    """The budget of every cell."""
    columns = [
        "source",
        "variance",
        "low",
        "high",
        "share",
        "share_low",
        "share_high",
        "n_levels",
        "n_reads",
        "n_items",
        "n_clusters",
        "reason",
    ]
    return pd.concat(
        [cell.budget()[columns].assign(**cell.names) for cell in of], ignore_index=True
    )[[*of[0].names, *columns]]


def variance(of: tuple[list[str], FloatArray], k: int, n: float) -> FloatArray:
    """Variance of two candidates' difference on n prompts: all, without each."""
    sources, variances = of
    levels = dict.fromkeys({"form", "judge", "rater"} & set(sources), k)
    falls, stays = variance_of_difference(sources, variances, levels, k)
    return np.asarray(falls / n + stays)


def prices(of: list[Cell]) -> pd.DataFrame:
    """What k reads, forms, judges or raters cost, against as many more prompts.

    ``calls``: by how many times more answers one needs with k of each text than with
    one, for the same variance of a difference as far as prompts can lower it.
    ``spared``: share of the prompts that k of each save. ``floor``: the difference that
    endless prompts in k levels would leave undetected, in points (2.80 standard errors:
    80 % power at 5 %); ``detectable_100`` the same with 100 prompts. Intervals: 95 %
    jackknife-t over prompts.
    """
    rows = []
    for cell in of:
        budget = left_out(rows_of(cell.budget()))
        power = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
        endless = {k: variance(budget, k, np.inf) for k in (1, 2, 4, 8)}
        hundred = {k: variance(budget, k, 100) for k in (1, 2, 4, 8)}
        for k in (1, 2, 4, 8):
            if k > cell.x.shape[2]:
                continue
            per = {j: 100 * (hundred[j] - endless[j]) for j in (1, k)}
            found = {
                "calls": k * per[k] / per[1],
                "spared": 1 - per[k] / per[1],
                "floor": power * np.sqrt(endless[k]),
                "detectable_100": power * np.sqrt(hundred[k]),
            }
            for quantity, value in found.items():
                rows.append(
                    {
                        **cell.names,
                        "k": k,
                        "quantity": quantity,
                        **jackknife_row(value),
                        "n_prompts": len(cell.x),
                    }
                )
    return pd.DataFrame(rows)


def coverage(
    of: list[Cell], draws: int = DRAWS, splits: int = SPLITS, seed: int = 0
) -> pd.DataFrame:
    """Predict from half of the prompts what a study of the other half will find.

    In each split one half gives the budget. Of the other half n prompts are drawn, two
    candidates and k levels; the budget says how far their difference may lie from that
    of the remaining prompts in the remaining levels, and ``held`` is how often it lies
    within the 95 % interval. ``ratio``: mean squared distance over the predicted
    variance. Prompts without all scores are left out. ``ignoring``: `held` if only what
    falls with the prompts is counted.
    """
    rows = []
    for number, cell in enumerate(of):
        x = cell.x[np.isfinite(cell.x).all(axis=(1, 2))]
        whole = Cell(**cell.names, x=x)
        rng = np.random.default_rng([seed, number])
        half, levels = len(x) // 2, x.shape[2]
        sizes = [n for n in (10, 25, 100) if 2 * n <= half]
        tally: dict[tuple[int, int], list[tuple[float, float, float]]] = {}
        for _ in range(splits):
            order = rng.permutation(len(x))
            sources, variances = left_out(rows_of(whole.budget(order[:half])))
            budget, other = (sources, variances[:, :1]), x[order[half:]]
            t = stats.t.ppf(0.975, half - 1)
            for n in sizes:
                for k in [k for k in (1, 4) if 2 * k <= levels]:
                    rest = len(other) - n
                    seen, left = (
                        variance(budget, level, size)[0]
                        for level, size in ((k, n), (levels - k, rest))
                    )
                    floors = [
                        variance(budget, level, np.inf)[0] for level in (k, levels - k)
                    ]
                    only = seen + left - sum(floors)
                    for _ in range(draws // splits):
                        gap = _gap(other, n, k, rng)
                        tally.setdefault((n, k), []).append(
                            (gap**2 / (seen + left), t**2, gap**2 / only)
                        )
        for (n, k), found in tally.items():
            ratio, limit, alone = np.array(found).T
            held = ratio <= limit
            ends = stats.binomtest(int(held.sum()), len(held)).proportion_ci(
                method="wilson"
            )
            rows.append(
                {
                    **cell.names,
                    "n": n,
                    "k": k,
                    "levels": levels,
                    "n_half": half,
                    "draws": len(held),
                    "held": held.mean(),
                    "held_low": ends.low,
                    "held_high": ends.high,
                    "ratio": ratio.mean(),
                    "ignoring": (alone <= limit).mean(),
                }
            )
    return pd.DataFrame(rows)


def _gap(x: FloatArray, n: int, k: int, rng: np.random.Generator) -> float:
    """Difference of two candidates on n prompts in k levels, minus the rest's."""
    prompt, level = rng.permutation(len(x)), rng.permutation(x.shape[2])
    a, b = rng.choice(x.shape[1], 2, replace=False)
    apart = x[prompt, a] - x[prompt, b]
    return float(apart[:n, level[:k]].mean() - apart[n:, level[k:]].mean())


def compute(
    of: list[Cell] | None = None, draws: int = DRAWS
) -> dict[str, pd.DataFrame]:
    """All tables of the chapter, by name of file."""
    of = cells() if of is None else of
    return {
        "error_budget_parts": parts(of),
        "error_budget_prices": prices(of),
        "error_budget_coverage": coverage(of, draws),
    }


if __name__ == "__main__":
    write_tables(compute())
