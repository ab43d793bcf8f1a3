"""How noisy are judges that people use? From others' recordings:
``python -m studies.noisy``.

Everything is computed from the pinned files that `rubricnb.load_recording` reads. What
is written are aggregates: ``results/recordings/noisy_*.csv``, without a row of any
single item.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.data import load_recording
from rubricnb.statistics import within_item_sd
from rubricnb.statistics.losses import left_out
from studies.intervals import loss_row, mean_row, ratio_row
from studies.recording import write_tables

Array = NDArray[np.float64]
RESPONSES, READS = 4, 8
PAIRS = [(a, b) for a in range(RESPONSES) for b in range(a + 1, RESPONSES)]
_ARM = ["judge", "temperature"]
_CANDIDATES = ["right", "wrong-1", "wrong-2", "wrong-3"]


def arms(judgments: pd.DataFrame) -> dict[tuple[str, float], pd.DataFrame]:
    """Return the reads under the plain prompt,
    by judge and temperature (NaN: not known).
    """
    base = judgments[judgments["template"] == "base"]
    return {
        (str(judge), round(float(temperature), 2)): part
        for (judge, temperature), part in base.groupby(
            _ARM, observed=True, dropna=False
        )
    }


def scores_of(arm: pd.DataFrame) -> tuple[Array, list[str]]:
    """Return the scores of one arm, prompts × responses × reads (NaN:
    none), and the prompts.

    Raises
    ------
    ValueError
        A prompt whose four responses do not have eight reads each.
    """
    code, prompts = pd.factorize(arm["group_id"].astype(str), sort=True)
    place = pd.Categorical(arm["candidate"], _CANDIDATES).codes
    read = arm["replicate"].to_numpy() - 1
    filled = np.zeros((len(prompts), RESPONSES, READS), dtype=int)
    out = np.full(filled.shape, np.nan)
    np.add.at(filled, (code, place, read), 1)
    out[code, place, read] = (
        arm["score"].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    )
    if (filled != 1).any():
        where = prompts[(filled != 1).any(axis=(1, 2))][0]
        raise ValueError(f"prompt {where} does not have 8 reads of each of 4 responses")
    return out, list(prompts)


def moved(scores: Array) -> tuple[Array, Array]:
    """Per prompt: responses with all reads that have more than one score;
    responses with all.
    """
    whole = np.isfinite(scores).all(axis=2)
    spread = scores.max(axis=2) - scores.min(axis=2)
    return ((spread > 0) & whole).sum(axis=1).astype(float), whole.sum(axis=1).astype(
        float
    )


def read_pairs(scores: Array, least: float = 0.5) -> tuple[Array, Array]:
    """Per prompt: pairs of reads of a response that differ by at least `least`;
    all such pairs.
    """
    differ, known = np.zeros(len(scores)), np.zeros(len(scores))
    for a in range(scores.shape[2]):
        for b in range(a + 1, scores.shape[2]):
            gap = np.abs(scores[:, :, a] - scores[:, :, b])
            differ += (gap >= least).sum(axis=1)  # false where either is missing
            known += np.isfinite(gap).sum(axis=1)
    return differ, known


def best(scores: Array) -> NDArray[np.int64]:
    """Response with the highest score along axis 1;
    4 where several share it, −1 if one is missing.

    Examples
    --------
    >>> best(np.array([[3.0, 5, 2, 1], [4, 4, 2, 1], [4, np.nan, 2, 1]])).tolist()
    [1, 4, -1]
    """
    known, top = _top(scores)
    return np.where(
        ~known, -1, np.where(top.sum(axis=1) > 1, RESPONSES, top.argmax(axis=1))
    )


def right(scores: Array) -> tuple[Array, Array]:
    """Credit for the right response (index 0) along axis 1:
    ties split, and ties counted wrong.

    NaN where a response has no score.

    Examples
    --------
    >>> split, strict = right(np.array([[5.0, 5, 2, 1], [5, 4, 2, 1], [1, 2, 2, 2]]))
    >>> split.tolist(), strict.tolist()
    ([0.5, 1.0, 0.0], [0.0, 1.0, 0.0])
    """
    known, top = _top(scores)
    split = np.where(top[:, 0], 1 / top.sum(axis=1), 0.0)
    return np.where(known, split, np.nan), np.where(known, split == 1, np.nan)


def _top(scores: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether all responses along axis 1 have a score,
    and which of them has the highest.
    """
    known = np.isfinite(scores)
    filled = np.where(known, scores, -np.inf)
    return np.asarray(known.all(axis=1)), np.isclose(
        filled, filled.max(axis=1, keepdims=True)
    )


def means_of(scores: Array, k: int) -> Array:
    """Means of k reads that follow one another, in a circle:
    prompts × responses × 8 windows.
    """
    return np.mean([np.roll(scores, -shift, axis=2) for shift in range(k)], axis=0)


def noise(judgments: pd.DataFrame) -> pd.DataFrame:
    """Tell how much scores, and the best of four,
    move between the reads of every arm.
    """
    rows = []
    for (judge, temperature), arm in arms(judgments).items():
        scores, prompts = scores_of(arm)
        winner = best(scores)
        whole = (winner >= 0).all(axis=1).astype(float)
        changes = (winner.max(axis=1) > winner.min(axis=1)) * whole
        found = {
            "moved": ratio_row(*moved(scores)),
            "pair_differs": ratio_row(*read_pairs(scores)),
            "pair_differs_2": ratio_row(*read_pairs(scores, 2)),
            "best_moved": ratio_row(changes, whole),
            "best_pair_differs": ratio_row(*read_pairs(_labelled(winner))),
            "tied": ratio_row(
                (winner == RESPONSES).sum(axis=1), (winner >= 0).sum(axis=1)
            ),
        }
        spread = within_item_sd(arm[arm["status"] == "ok"], by=["judge"]).iloc[0]
        found["sd"] = {
            "value": spread["sd"],
            "low": spread["sd_low"],
            "high": spread["sd_high"],
        }
        n = {"n_prompts": len(prompts), "missing": int(np.isnan(scores).sum())}
        rows += [
            {"judge": judge, "temperature": temperature, "quantity": q, **v, **n}
            for q, v in found.items()
        ]
    return pd.DataFrame(rows)


def _labelled(winner: NDArray[np.int64]) -> Array:
    return np.where(winner >= 0, winner, np.nan).astype(float)[:, None, :]


def reads(judgments: pd.DataFrame) -> pd.DataFrame:
    """Tell what the mean of k reads is worth: right answers,
    and whether its winner repeats.
    """
    rows = []
    for (judge, temperature), arm in arms(judgments).items():
        scores, _ = scores_of(arm)
        # the same prompts for every k
        scores = scores[np.isfinite(scores).all(axis=(1, 2))]
        one = np.ones(len(scores))
        credit, severe = {}, {}
        for k in range(1, READS + 1):
            means = means_of(scores, k)
            split, strict = (c.mean(axis=1) for c in right(means))
            credit[k], severe[k] = split, strict
            found = {
                "right_split": ratio_row(split, one),
                "right_strict": ratio_row(strict, one),
            }
            if k > 1:
                found["gain_split"] = ratio_row(split - credit[1], one)
                found["gain_strict"] = ratio_row(strict - severe[1], one)
            if 2 * k <= READS:
                winner = best(means)
                same = (winner == np.roll(winner, -k, axis=1)).mean(axis=1)
                found["winner_repeats"] = ratio_row(same, one)
            rows += [
                {
                    "judge": judge,
                    "temperature": temperature,
                    "k": k,
                    "quantity": q,
                    **v,
                    "n_prompts": len(scores),
                }
                for q, v in found.items()
            ]
    return pd.DataFrame(rows)


def losses(judgments: pd.DataFrame) -> pd.DataFrame:
    """Count the prompts that lack a read, which all but `noise` and `leads` leave out.

    ``lost`` of ``asked``; ``lost_mean`` and ``kept_mean``: the mean of their other
    scores. Arm NaN: of all arms of a judge, whose requests are compared on the prompts
    that none of them lacks.
    """
    rows = []
    for (judge, temperature), arm in arms(judgments).items():
        scores, _ = scores_of(arm)
        rows.append({"judge": judge, "temperature": temperature, **_loss(scores)})
    every = np.concatenate(
        list(_on_common_prompts(judgments, "gpt-5.4").values()), axis=2
    )
    rows.append({"judge": "gpt-5.4", "temperature": np.nan, **_loss(every)})
    return pd.DataFrame(rows)


def _loss(scores: Array) -> dict[str, float]:
    flat = scores.reshape(len(scores), -1)
    whole = np.asarray(np.isfinite(flat).all(axis=1))
    return loss_row(len(flat), *left_out(flat, whole, "prompts"))


def leads(judgments: pd.DataFrame, most: int = 4) -> pd.DataFrame:
    """Tell what another read says of a lead: of the same response,
    of neither, of the other.

    ``other`` is the temperature of that other read: the same, of the same request where
    there was one, or that of another request, for the judge that was asked at several.
    """
    rows = []

    def add(judge: str, temperature: float, other: float, counts: Array) -> None:
        for lead in range(most + 1):
            total = counts[:, lead].sum(axis=1)
            for column, outcome in enumerate(("kept", "tie", "reversed")):
                if lead or column < 2:
                    name = outcome if lead else ("some lead", "tie")[column]
                    key = {"judge": judge, "temperature": temperature, "other": other}
                    found = ratio_row(counts[:, lead, column], total)
                    rows.append(
                        {
                            **key,
                            "lead": lead,
                            "outcome": name,
                            **found,
                            "n": int(total.sum()),
                        }
                    )

    for (judge, temperature), arm in arms(judgments).items():
        scores, _ = scores_of(arm)
        add(judge, temperature, temperature, lead_counts(scores, scores, most))
    cells = together(judgments, "gpt-5.4")
    for temperature, other in ((0.0, 0.7), (1.0, 0.7)):
        counts = lead_counts(cells[temperature], cells[other], most)
        add("gpt-5.4", temperature, other, counts)
    return pd.DataFrame(rows)


def lead_counts(scores: Array, others: Array, most: int) -> Array:
    """Per prompt and lead in one read (0 … most or more):
    ordered pairs of reads by outcome.

    Of a lead the outcomes are kept, tie, reversed; of no lead: some lead, tie, nothing.
    Where both are the same reads, none is compared with itself.
    """
    counts = np.zeros((len(scores), most + 1, 3))
    prompt = np.arange(len(scores))
    for a, b in PAIRS:
        gaps, again = scores[:, a] - scores[:, b], others[:, a] - others[:, b]
        for first in range(gaps.shape[1]):
            for other in range(again.shape[1]):
                if scores is others and first == other:
                    continue
                gap, second = gaps[:, first], again[:, other]
                known = np.isfinite(gap) & np.isfinite(second)
                lead = np.minimum(np.abs(gap[known]), most).astype(int)
                agrees = np.sign(gap[known]) * np.sign(second[known])
                outcome = np.where(agrees > 0, 0, np.where(agrees < 0, 2, 1))
                outcome = np.where(lead == 0, (second[known] == 0) * 1, outcome)
                np.add.at(counts, (prompt[known], lead, outcome), 1)
    return counts


def requests(
    judgments: pd.DataFrame, judge: str = "gpt-5.4", level: float = 1.0
) -> pd.DataFrame:
    """Compare reads that came in one request with those of another request,
    at another temperature.

    A request brought eight reads, so each arm is another request. Per pair of arms:
    ``expected``, what two means of eight should differ by (variance) if all reads were
    independent, ``beyond``, what they differ by more, ``sharpened``, the same with the
    commonest of the first arm's eight scores in place of their mean, much as
    temperature 0 would give it (the commonest of eight is noisy itself, so this is
    rather too large). Per arm: ``reads``, the variance of reads within a request;
    ``request``, the part of `beyond` that is this arm's when two arms' parts add up
    (least squares); ``total``, their sum; ``worth``, how many reads of separate
    requests have the variance of the mean of eight of one. Against the arm `level`:
    ``total_minus``, ``right_minus`` (right answers of a single read, ties split),
    ``right_8_minus``. ``request`` holds all that distinguishes two requests, the
    temperature included, so ``worth`` is a lower bound.
    """
    cells = together(judgments, judge)
    temperatures = list(cells)
    pairs = [(a, b) for n, a in enumerate(temperatures) for b in temperatures[n + 1 :]]
    n = len(cells[level])
    size = np.full(n, float(RESPONSES))
    within = {t: s.var(axis=2, ddof=1).sum(axis=1) for t, s in cells.items()}
    rows: list[dict[str, object]] = []

    def add(t: float, other: float, quantity: str, found: dict[str, float]) -> None:
        rows.append(
            {
                "judge": judge,
                "temperature": t,
                "other": other,
                "quantity": quantity,
                **found,
                "n_prompts": n,
            }
        )

    beyond = []
    for a, b in pairs:
        gap = cells[a].mean(axis=2) - cells[b].mean(axis=2)
        expected = (within[a] + within[b]) / READS
        beyond.append(((gap - gap.mean()) ** 2).sum(axis=1) - expected)
        add(a, b, "expected", ratio_row(expected, size))
        add(a, b, "beyond", ratio_row(beyond[-1], size))
        add(a, b, "shift", ratio_row(gap.sum(axis=1), size))
    # Are neighbouring temperatures nearer to one another? 0
    # if what is beyond adds up by arms.
    found = dict(zip(pairs, beyond, strict=True))
    w, x, y, z = temperatures
    others = found[w, y] + found[x, z] + found[w, z] + found[x, y]
    add(w, z, "neighbours", ratio_row(found[w, x] + found[y, z] - others / 2, size))
    add(x, z, "beyond_minus_nearer", ratio_row(found[x, z] - found[x, y], size))
    # What sharpening alone does: an arm's commonest scores
    # against the reads of the next arm.
    gap = commonest(cells[y]) - cells[z].mean(axis=2)
    sharpened = ((gap - gap.mean()) ** 2).sum(axis=1) - within[z] / READS
    add(y, z, "sharpened", ratio_row(sharpened, size))
    design = np.array([[float(t in pair) for t in temperatures] for pair in pairs])
    request = dict(
        zip(temperatures, np.linalg.pinv(design) @ np.array(beyond), strict=True)
    )
    credit = {t: right(s)[0] for t, s in cells.items()}
    whole = {t: right(s.mean(axis=2, keepdims=True))[0][:, 0] for t, s in cells.items()}
    for t in temperatures:
        total = within[t] + request[t]
        add(t, t, "reads", ratio_row(within[t], size))
        add(t, t, "request", ratio_row(request[t], size))
        add(t, t, "total", ratio_row(total, size))
        add(t, t, "worth", ratio_row(total, within[t] / READS + request[t]))
        if t != level:
            add(
                t,
                level,
                "total_minus",
                ratio_row(total - within[level] - request[level], size),
            )
            one = (credit[t] - credit[level]).mean(axis=1)
            add(t, level, "right_minus", ratio_row(one, np.ones(n)))
            add(
                t,
                level,
                "right_8_minus",
                ratio_row(whole[t] - whole[level], np.ones(n)),
            )
    warm = [cells[t] for t in temperatures if t > 0]
    for each in (1, 2):
        mixed = np.mean([means_of(s, each) for s in warm], axis=0)
        alone = np.mean([right(means_of(s, each * len(warm)))[0] for s in warm], axis=0)
        gain = (right(mixed)[0] - alone).mean(axis=1)
        add(
            level,
            level,
            f"right_spread_{each * len(warm)}",
            ratio_row(gain, np.ones(n)),
        )
    return pd.DataFrame(rows)


def commonest(scores: Array) -> Array:
    """Return the score that most of a response's reads gave; the mean of several."""
    given = (scores[..., None] == np.unique(scores)).sum(axis=2)
    most = given == given.max(axis=2, keepdims=True)
    found: Array = (most * np.unique(scores)).sum(axis=2) / most.sum(axis=2)
    return found


def together(judgments: pd.DataFrame, judge: str) -> dict[float, Array]:
    """Return a judge's scores by temperature, on the prompts that all have in full."""
    cells = _on_common_prompts(judgments, judge)
    whole = np.isfinite(np.stack(list(cells.values()))).all(axis=(0, 2, 3))
    return {t: s[whole] for t, s in sorted(cells.items())}


def _on_common_prompts(judgments: pd.DataFrame, judge: str) -> dict[float, Array]:
    found = {
        t: scores_of(arm) for (name, t), arm in arms(judgments).items() if name == judge
    }
    common = sorted(set.intersection(*(set(prompts) for _, prompts in found.values())))
    return {t: s[pd.Index(p).get_indexer(common)] for t, (s, p) in found.items()}


def differences(judgments: pd.DataFrame) -> pd.DataFrame:
    """Split the variance of a difference of two responses to one prompt:
    prompts and reads.

    Over the three pairs of the wrong responses, which stand for two systems of like
    quality: ``between`` is the variance over prompts of the difference itself,
    ``reads`` what one read of each adds. Of the right response against a wrong one the
    same.
    """
    rows = []
    for (judge, temperature), arm in arms(judgments).items():
        scores, _ = scores_of(arm)
        scores = scores[np.isfinite(scores).all(axis=(1, 2))]
        for kind, pairs in {
            "wrong, wrong": PAIRS[3:],
            "right, wrong": PAIRS[:3],
        }.items():
            between, within = zip(
                *(split(scores[:, a], scores[:, b]) for a, b in pairs), strict=True
            )
            b, w = np.mean(between, axis=0), np.mean(within, axis=0)  # per prompt
            one = np.ones(len(scores))
            parts = {"between": (b, one), "reads": (w, one), "reads_share": (w, b + w)}
            for q, part in parts.items():
                rows.append(
                    {
                        "judge": judge,
                        "temperature": temperature,
                        "pair": kind,
                        "quantity": q,
                        **ratio_row(*part),
                        "n_prompts": len(scores),
                    }
                )
    return pd.DataFrame(rows)


def split(one: Array, other: Array) -> tuple[Array, Array]:
    """Per prompt, summands whose means are the variance of a difference:
    between, and of one read.

    Reads of the two responses are not paired: each adds its own variance.
    """
    n, k = one.shape
    within = one.var(axis=1, ddof=1) + other.var(axis=1, ddof=1)
    gap = one.mean(axis=1) - other.mean(axis=1)
    return (gap - gap.mean()) ** 2 * n / (n - 1) - within / k, within


def asked_again(judgments: pd.DataFrame) -> pd.DataFrame:
    """Compare the answers of cells that were asked twice by accident,
    by form and criterion.
    """
    cell = judgments[
        ["judge", "template", "criterion", "item_id", "cluster_id"]
    ].astype(str)
    frame = cell.assign(
        read=judgments["replicate"], score=judgments["score"].astype("Float64")
    )
    keys = list(cell)
    again = frame[frame["read"] == 2].drop(columns="read")
    both = again.merge(
        frame[frame["read"] == 1], on=keys, suffixes=("_2", "_1"), validate="1:1"
    )
    both["shift"] = (both["score_2"] - both["score_1"]).astype(float)
    whole = both.assign(template="all", criterion="all")
    rows = []
    for (judge, form, criterion), part in pd.concat([whole, both]).groupby(
        ["judge", "template", "criterion"], sort=False
    ):
        cluster = pd.factorize(part["cluster_id"])[0]
        n = {"n_items": len(part), "n_clusters": int(cluster.max() + 1)}
        gap = part["shift"].to_numpy()
        for name, value, bounds in (
            ("differs", (gap != 0) * 1.0, (0.0, 1.0)),
            ("differs_2", (np.abs(gap) >= 2) * 1.0, (0.0, 1.0)),
            ("shift", gap, None),
        ):
            rows.append(
                {
                    "judge": judge,
                    "form": form,
                    "criterion": criterion,
                    "quantity": name,
                    **mean_row(value, cluster, bounds),
                    "count": int((value != 0).sum()),
                    **n,
                }
            )
    return pd.DataFrame(rows)


def three_reads(judgments: pd.DataFrame) -> pd.DataFrame:
    """Tell how GPT-4's three reads of an item differ."""
    rows = []
    for dataset, part in judgments.groupby("dataset", observed=True):
        wide = part.astype({"item_id": str, "cluster_id": str}).pivot(
            index=["cluster_id", "item_id"], columns="ordering_index", values="score"
        )
        scores = wide.to_numpy(np.float64, na_value=np.nan)
        cluster = pd.factorize(wide.index.get_level_values("cluster_id"))[0]
        a, b = np.triu_indices(scores.shape[1], 1)
        gaps = np.abs(scores[:, a] - scores[:, b])
        for name, value in {
            "moved": (np.ptp(scores, axis=1) > 0) * 1.0,
            "pair_differs": (gaps > 0).mean(axis=1),
            "pair_differs_2": (gaps >= 2).mean(axis=1),
        }.items():
            rows.append(
                {
                    "judge": "gpt-4",
                    "dataset": dataset,
                    "quantity": name,
                    **mean_row(value, cluster, (0.0, 1.0)),
                    "count": int((value > 0).sum()),
                    "n_items": len(scores),
                    "n_clusters": int(cluster.max() + 1),
                }
            )
    return pd.DataFrame(rows)


def compute() -> dict[str, pd.DataFrame]:
    """Compute all tables from the pinned files."""
    rewardbench = load_recording("rewardbench-reads")
    tables: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
        "noisy_reads": noise,
        "noisy_means": reads,
        "noisy_leads": leads,
        "noisy_requests": requests,
        "noisy_differences": differences,
        "noisy_lost": losses,
    }
    found = {name: table(rewardbench) for name, table in tables.items()}
    found["noisy_reask"] = asked_again(load_recording("summeval-gpt"))
    found["noisy_gpt4"] = three_reads(load_recording("prometheus-gpt4"))
    return {name: table.round(5) for name, table in found.items()}


if __name__ == "__main__":
    write_tables(compute())
