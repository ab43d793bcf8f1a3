"""How noisy are judges that people use? ``python -m studies.noisy``.

Everything is computed from the pinned files that `rubricnb.load_recording` reads. What
is written are aggregates: ``results/recordings/noisy_*.csv``, without a row of any
single item.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rubricnb.core.estimates.losses import left_out
from rubricnb.sets.others import load_recording
from rubricnb.statistics.variation import within_item_sd
from studies.intervals import loss_row, mean_row, ratio_row
from studies.recording import write_tables

Array = NDArray[np.float64]
RESPONSES, READS = 4, 8
PAIRS = [(a, b) for a in range(RESPONSES) for b in range(a + 1, RESPONSES)]
_ARM = ["judge", "temperature"]
_CANDIDATES = ["right", "wrong-1", "wrong-2", "wrong-3"]


def arms(judgments: pd.DataFrame) -> dict[tuple[str, float], pd.DataFrame]:
    """Return the reads under the plain prompt, by judge and temperature."""
    plain = judgments[judgments["template"] == "base"]
    return {
        (str(judge), round(float(temperature), 2)): arm
        for (judge, temperature), arm in plain.groupby(
            _ARM, observed=True, dropna=False
        )
    }


def scores_of(arm: pd.DataFrame) -> tuple[Array, list[str]]:
    """Return an arm's scores, prompts × responses × reads, and the prompts.

    Raises
    ------
    ValueError
        A prompt whose four responses do not have eight reads each.
    """
    prompt_code, prompts = pd.factorize(arm["group_id"].astype(str), sort=True)
    response = pd.Categorical(arm["candidate"], _CANDIDATES).codes
    read = arm["replicate"].to_numpy() - 1
    n_reads = np.zeros((len(prompts), RESPONSES, READS), dtype=int)
    scores = np.full(n_reads.shape, np.nan)
    np.add.at(n_reads, (prompt_code, response, read), 1)
    scores[prompt_code, response, read] = (
        arm["score"].astype("Float64").to_numpy(np.float64, na_value=np.nan)
    )
    if (n_reads != 1).any():
        incomplete = prompts[(n_reads != 1).any(axis=(1, 2))][0]
        raise ValueError(
            f"prompt {incomplete} does not have 8 reads of each of 4 responses"
        )
    return scores, list(prompts)


def moved(scores: Array) -> tuple[Array, Array]:
    """Per prompt: responses with all reads, and those whose scores differ."""
    is_complete = np.isfinite(scores).all(axis=2)
    ranges = scores.max(axis=2) - scores.min(axis=2)
    return ((ranges > 0) & is_complete).sum(axis=1).astype(float), is_complete.sum(
        axis=1
    ).astype(float)


def read_pairs(scores: Array, least: float = 0.5) -> tuple[Array, Array]:
    """Per prompt: pairs of a response's reads that differ by `least`; all pairs."""
    differ, comparable = np.zeros(len(scores)), np.zeros(len(scores))
    for a in range(scores.shape[2]):
        for b in range(a + 1, scores.shape[2]):
            gaps = np.abs(scores[:, :, a] - scores[:, :, b])
            differ += (gaps >= least).sum(axis=1)  # false where either is missing
            comparable += np.isfinite(gaps).sum(axis=1)
    return differ, comparable


def best(scores: Array) -> NDArray[np.int64]:
    """Response with the highest score along axis 1; 4: a tie, −1: one is missing.

    Examples
    --------
    >>> best(np.array([[3.0, 5, 2, 1], [4, 4, 2, 1], [4, np.nan, 2, 1]])).tolist()
    [1, 4, -1]
    """
    is_complete, is_top = _top(scores)
    return np.where(
        ~is_complete,
        -1,
        np.where(is_top.sum(axis=1) > 1, RESPONSES, is_top.argmax(axis=1)),
    )


def right(scores: Array) -> tuple[Array, Array]:
    """Credit for the right response (index 0) along axis 1: ties split, or wrong.

    NaN where a response has no score.

    Examples
    --------
    >>> split, strict = right(np.array([[5.0, 5, 2, 1], [5, 4, 2, 1], [1, 2, 2, 2]]))
    >>> split.tolist(), strict.tolist()
    ([0.5, 1.0, 0.0], [0.0, 1.0, 0.0])
    """
    is_complete, is_top = _top(scores)
    credit = np.where(is_top[:, 0], 1 / is_top.sum(axis=1), 0.0)
    return np.where(is_complete, credit, np.nan), np.where(
        is_complete, credit == 1, np.nan
    )


def _top(scores: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether all responses along axis 1 have a score, and which has the highest."""
    has_score = np.isfinite(scores)
    filled = np.where(has_score, scores, -np.inf)
    return np.asarray(has_score.all(axis=1)), np.isclose(
        filled, filled.max(axis=1, keepdims=True)
    )


def means_of(scores: Array, k: int) -> Array:
    """Means of k reads in a row, in a circle: prompts × responses × 8 windows."""
    return np.mean([np.roll(scores, -shift, axis=2) for shift in range(k)], axis=0)


def noise(judgments: pd.DataFrame) -> pd.DataFrame:
    """Tell how much scores, and the best of four, move between an arm's reads."""
    rows = []
    for (judge, temperature), arm in arms(judgments).items():
        scores, prompts = scores_of(arm)
        winner = best(scores)
        is_complete = (winner >= 0).all(axis=1).astype(float)
        is_moved = (winner.max(axis=1) > winner.min(axis=1)) * is_complete
        rows_by_quantity = {
            "moved": ratio_row(*moved(scores)),
            "pair_differs": ratio_row(*read_pairs(scores)),
            "pair_differs_2": ratio_row(*read_pairs(scores, 2)),
            "best_moved": ratio_row(is_moved, is_complete),
            "best_pair_differs": ratio_row(*read_pairs(_labelled(winner))),
            "tied": ratio_row(
                (winner == RESPONSES).sum(axis=1), (winner >= 0).sum(axis=1)
            ),
        }
        spread = within_item_sd(arm[arm["status"] == "ok"], by=["judge"]).iloc[0]
        rows_by_quantity["sd"] = {
            "value": spread["sd"],
            "low": spread["sd_low"],
            "high": spread["sd_high"],
        }
        counts = {"n_prompts": len(prompts), "missing": int(np.isnan(scores).sum())}
        rows += [
            {
                "judge": judge,
                "temperature": temperature,
                "quantity": quantity,
                **row,
                **counts,
            }
            for quantity, row in rows_by_quantity.items()
        ]
    return pd.DataFrame(rows)


def _labelled(winner: NDArray[np.int64]) -> Array:
    return np.where(winner >= 0, winner, np.nan).astype(float)[:, None, :]


def reads(judgments: pd.DataFrame) -> pd.DataFrame:
    """Tell what the mean of k reads is worth: right answers, repeated winners."""
    rows = []
    for (judge, temperature), arm in arms(judgments).items():
        scores, _ = scores_of(arm)
        # the same prompts for every k
        scores = scores[np.isfinite(scores).all(axis=(1, 2))]
        ones = np.ones(len(scores))
        split_by_k, strict_by_k = {}, {}
        for k in range(1, READS + 1):
            means = means_of(scores, k)
            split, strict = (credit.mean(axis=1) for credit in right(means))
            split_by_k[k], strict_by_k[k] = split, strict
            rows_by_quantity = {
                "right_split": ratio_row(split, ones),
                "right_strict": ratio_row(strict, ones),
            }
            if k > 1:
                rows_by_quantity["gain_split"] = ratio_row(split - split_by_k[1], ones)
                rows_by_quantity["gain_strict"] = ratio_row(
                    strict - strict_by_k[1], ones
                )
            if 2 * k <= READS:
                winner = best(means)
                repeats = (winner == np.roll(winner, -k, axis=1)).mean(axis=1)
                rows_by_quantity["winner_repeats"] = ratio_row(repeats, ones)
            rows += [
                {
                    "judge": judge,
                    "temperature": temperature,
                    "k": k,
                    "quantity": quantity,
                    **row,
                    "n_prompts": len(scores),
                }
                for quantity, row in rows_by_quantity.items()
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
    all_arms = np.concatenate(
        list(_on_common_prompts(judgments, "gpt-5.4").values()), axis=2
    )
    rows.append({"judge": "gpt-5.4", "temperature": np.nan, **_loss(all_arms)})
    return pd.DataFrame(rows)


def _loss(scores: Array) -> dict[str, float]:
    flat_scores = scores.reshape(len(scores), -1)
    is_complete = np.asarray(np.isfinite(flat_scores).all(axis=1))
    return loss_row(len(flat_scores), *left_out(flat_scores, is_complete, "prompts"))


def leads(judgments: pd.DataFrame, most: int = 4) -> pd.DataFrame:
    """Tell what another read says of a lead: the same response, neither, another.

    ``other`` is the temperature of that other read: the same, of the same request where
    there was one, or that of another request, for the judge that was asked at several.
    """
    rows = []

    def add(judge: str, temperature: float, other: float, counts: Array) -> None:
        for lead in range(most + 1):
            n_pairs = counts[:, lead].sum(axis=1)
            for column, outcome in enumerate(("kept", "tie", "reversed")):
                if lead or column < 2:
                    name = outcome if lead else ("some lead", "tie")[column]
                    key = {"judge": judge, "temperature": temperature, "other": other}
                    ratio = ratio_row(counts[:, lead, column], n_pairs)
                    rows.append(
                        {
                            **key,
                            "lead": lead,
                            "outcome": name,
                            **ratio,
                            "n": int(n_pairs.sum()),
                        }
                    )

    for (judge, temperature), arm in arms(judgments).items():
        scores, _ = scores_of(arm)
        add(judge, temperature, temperature, lead_counts(scores, scores, most))
    scores_at = together(judgments, "gpt-5.4")
    for temperature, other in ((0.0, 0.7), (1.0, 0.7)):
        counts = lead_counts(scores_at[temperature], scores_at[other], most)
        add("gpt-5.4", temperature, other, counts)
    return pd.DataFrame(rows)


def lead_counts(scores: Array, others: Array, most: int) -> Array:
    """Per prompt and lead in one read (0 … most or more): pairs by outcome.

    Of a lead the outcomes are kept, tie, reversed; of no lead: some lead, tie, nothing.
    Where both are the same reads, none is compared with itself.
    """
    counts = np.zeros((len(scores), most + 1, 3))
    prompt = np.arange(len(scores))
    for a, b in PAIRS:
        gaps, other_gaps = scores[:, a] - scores[:, b], others[:, a] - others[:, b]
        for first in range(gaps.shape[1]):
            for other in range(other_gaps.shape[1]):
                if scores is others and first == other:
                    continue
                first_gap, second_gap = gaps[:, first], other_gaps[:, other]
                known = np.isfinite(first_gap) & np.isfinite(second_gap)
                lead = np.minimum(np.abs(first_gap[known]), most).astype(int)
                agrees = np.sign(first_gap[known]) * np.sign(second_gap[known])
                outcome = np.where(agrees > 0, 0, np.where(agrees < 0, 2, 1))
                outcome = np.where(lead == 0, (second_gap[known] == 0) * 1, outcome)
                np.add.at(counts, (prompt[known], lead, outcome), 1)
    return counts


def requests(
    judgments: pd.DataFrame, judge: str = "gpt-5.4", level: float = 1.0
) -> pd.DataFrame:
    """Compare reads of one request with those of another, at another temperature.

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
    scores_at = together(judgments, judge)
    temperatures = list(scores_at)
    pairs = [(a, b) for n, a in enumerate(temperatures) for b in temperatures[n + 1 :]]
    n = len(scores_at[level])
    n_responses = np.full(n, float(RESPONSES))
    within = {t: s.var(axis=2, ddof=1).sum(axis=1) for t, s in scores_at.items()}
    rows: list[dict[str, object]] = []

    def add(t: float, other: float, quantity: str, ratio: dict[str, float]) -> None:
        rows.append(
            {
                "judge": judge,
                "temperature": t,
                "other": other,
                "quantity": quantity,
                **ratio,
                "n_prompts": n,
            }
        )

    # Var(mean a − mean b) = (within a + within b) / 8 + what lies beyond
    beyond_by_pair = []
    for a, b in pairs:
        gap = scores_at[a].mean(axis=2) - scores_at[b].mean(axis=2)
        expected = (within[a] + within[b]) / READS
        beyond_by_pair.append(((gap - gap.mean()) ** 2).sum(axis=1) - expected)
        add(a, b, "expected", ratio_row(expected, n_responses))
        add(a, b, "beyond", ratio_row(beyond_by_pair[-1], n_responses))
        add(a, b, "shift", ratio_row(gap.sum(axis=1), n_responses))
    # Are neighbouring temperatures nearer to one another? 0
    # if what is beyond adds up by arms.
    beyond_of = dict(zip(pairs, beyond_by_pair, strict=True))
    w, x, y, z = temperatures  # ascending
    not_neighbours = (
        beyond_of[w, y] + beyond_of[x, z] + beyond_of[w, z] + beyond_of[x, y]
    )
    add(
        w,
        z,
        "neighbours",
        ratio_row(beyond_of[w, x] + beyond_of[y, z] - not_neighbours / 2, n_responses),
    )
    add(
        x,
        z,
        "beyond_minus_nearer",
        ratio_row(beyond_of[x, z] - beyond_of[x, y], n_responses),
    )
    # What sharpening alone does: an arm's commonest scores
    # against the reads of the next arm.
    gap = commonest(scores_at[y]) - scores_at[z].mean(axis=2)
    sharpened = ((gap - gap.mean()) ** 2).sum(axis=1) - within[z] / READS
    add(y, z, "sharpened", ratio_row(sharpened, n_responses))
    # Least squares for beyond[a, b] = request[a] + request[b]
    design = np.array([[float(t in pair) for t in temperatures] for pair in pairs])
    request_variance = dict(
        zip(
            temperatures, np.linalg.pinv(design) @ np.array(beyond_by_pair), strict=True
        )
    )
    credit_of_one = {t: right(s)[0] for t, s in scores_at.items()}
    credit_of_eight = {
        t: right(s.mean(axis=2, keepdims=True))[0][:, 0] for t, s in scores_at.items()
    }
    for t in temperatures:
        total = within[t] + request_variance[t]
        add(t, t, "reads", ratio_row(within[t], n_responses))
        add(t, t, "request", ratio_row(request_variance[t], n_responses))
        add(t, t, "total", ratio_row(total, n_responses))
        add(t, t, "worth", ratio_row(total, within[t] / READS + request_variance[t]))
        if t != level:
            add(
                t,
                level,
                "total_minus",
                ratio_row(total - within[level] - request_variance[level], n_responses),
            )
            right_change = (credit_of_one[t] - credit_of_one[level]).mean(axis=1)
            add(t, level, "right_minus", ratio_row(right_change, np.ones(n)))
            add(
                t,
                level,
                "right_8_minus",
                ratio_row(credit_of_eight[t] - credit_of_eight[level], np.ones(n)),
            )
    warm_arms = [scores_at[t] for t in temperatures if t > 0]
    for k in (1, 2):
        mixed = np.mean([means_of(s, k) for s in warm_arms], axis=0)
        unmixed = np.mean(
            [right(means_of(s, k * len(warm_arms)))[0] for s in warm_arms], axis=0
        )
        gains = (right(mixed)[0] - unmixed).mean(axis=1)
        add(
            level,
            level,
            f"right_spread_{k * len(warm_arms)}",
            ratio_row(gains, np.ones(n)),
        )
    return pd.DataFrame(rows)


def commonest(scores: Array) -> Array:
    """Return the score that most of a response's reads gave; the mean of several."""
    counts = (scores[..., None] == np.unique(scores)).sum(axis=2)
    is_commonest = counts == counts.max(axis=2, keepdims=True)
    means: Array = (is_commonest * np.unique(scores)).sum(axis=2) / is_commonest.sum(
        axis=2
    )
    return means


def together(judgments: pd.DataFrame, judge: str) -> dict[float, Array]:
    """Return a judge's scores by temperature, on the prompts that all have in full."""
    scores_at = _on_common_prompts(judgments, judge)
    is_complete = np.isfinite(np.stack(list(scores_at.values()))).all(axis=(0, 2, 3))
    return {t: s[is_complete] for t, s in sorted(scores_at.items())}


def _on_common_prompts(judgments: pd.DataFrame, judge: str) -> dict[float, Array]:
    arms_of_judge = {
        t: scores_of(arm) for (name, t), arm in arms(judgments).items() if name == judge
    }
    common = sorted(
        set.intersection(*(set(prompts) for _, prompts in arms_of_judge.values()))
    )
    return {
        t: s[pd.Index(p).get_indexer(common)] for t, (s, p) in arms_of_judge.items()
    }


def differences(judgments: pd.DataFrame) -> pd.DataFrame:
    """Split the variance of two responses' difference: prompts and reads.

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
            # per prompt
            mean_between, mean_within = (
                np.mean(between, axis=0),
                np.mean(within, axis=0),
            )
            ones = np.ones(len(scores))
            ratios = {
                "between": (mean_between, ones),
                "reads": (mean_within, ones),
                "reads_share": (mean_within, mean_between + mean_within),
            }
            for quantity, ratio in ratios.items():
                rows.append(
                    {
                        "judge": judge,
                        "temperature": temperature,
                        "pair": kind,
                        "quantity": quantity,
                        **ratio_row(*ratio),
                        "n_prompts": len(scores),
                    }
                )
    return pd.DataFrame(rows)


def split(one: Array, other: Array) -> tuple[Array, Array]:
    """Per prompt, summands of a difference's variance: between, and of one read.

    Reads of the two responses are not paired: each adds its own variance.
    """
    # (gap − mean gap)² n / (n − 1) has the mean between + within / k.
    n, k = one.shape
    within = one.var(axis=1, ddof=1) + other.var(axis=1, ddof=1)
    gap = one.mean(axis=1) - other.mean(axis=1)
    return (gap - gap.mean()) ** 2 * n / (n - 1) - within / k, within


def asked_again(judgments: pd.DataFrame) -> pd.DataFrame:
    """Compare answers of cells asked twice by accident, by form and criterion."""
    identifiers = judgments[
        ["judge", "template", "criterion", "item_id", "cluster_id"]
    ].astype(str)
    typed = identifiers.assign(
        read=judgments["replicate"], score=judgments["score"].astype("Float64")
    )
    keys = list(identifiers)
    second_reads = typed[typed["read"] == 2].drop(columns="read")
    compared = second_reads.merge(
        typed[typed["read"] == 1], on=keys, suffixes=("_2", "_1"), validate="1:1"
    )
    compared["shift"] = (compared["score_2"] - compared["score_1"]).astype(float)
    overall = compared.assign(template="all", criterion="all")
    rows = []
    for (judge, form, criterion), texts in pd.concat([overall, compared]).groupby(
        ["judge", "template", "criterion"], sort=False
    ):
        cluster = pd.factorize(texts["cluster_id"])[0]
        counts = {"n_items": len(texts), "n_clusters": int(cluster.max() + 1)}
        shifts = texts["shift"].to_numpy()
        for name, values, bounds in (
            ("differs", (shifts != 0) * 1.0, (0.0, 1.0)),
            ("differs_2", (np.abs(shifts) >= 2) * 1.0, (0.0, 1.0)),
            ("shift", shifts, None),
        ):
            rows.append(
                {
                    "judge": judge,
                    "form": form,
                    "criterion": criterion,
                    "quantity": name,
                    **mean_row(values, cluster, bounds),
                    "count": int((values != 0).sum()),
                    **counts,
                }
            )
    return pd.DataFrame(rows)


def three_reads(judgments: pd.DataFrame) -> pd.DataFrame:
    """Tell how GPT-4's three reads of an item differ."""
    rows = []
    for dataset, judged in judgments.groupby("dataset", observed=True):
        wide = judged.astype({"item_id": str, "cluster_id": str}).pivot(
            index=["cluster_id", "item_id"], columns="ordering_index", values="score"
        )
        scores = wide.to_numpy(np.float64, na_value=np.nan)
        cluster = pd.factorize(wide.index.get_level_values("cluster_id"))[0]
        first, second = np.triu_indices(scores.shape[1], 1)
        gaps = np.abs(scores[:, first] - scores[:, second])
        for name, values in {
            "moved": (np.ptp(scores, axis=1) > 0) * 1.0,
            "pair_differs": (gaps > 0).mean(axis=1),
            "pair_differs_2": (gaps >= 2).mean(axis=1),
        }.items():
            rows.append(
                {
                    "judge": "gpt-4",
                    "dataset": dataset,
                    "quantity": name,
                    **mean_row(values, cluster, (0.0, 1.0)),
                    "count": int((values > 0).sum()),
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
    results = {name: table(rewardbench) for name, table in tables.items()}
    results["noisy_reask"] = asked_again(load_recording("summeval-gpt"))
    results["noisy_gpt4"] = three_reads(load_recording("prometheus-gpt4"))
    return {name: table.round(5) for name, table in results.items()}


if __name__ == "__main__":
    write_tables(compute())
