"""``errata-choices``: our choices that change numbers, and what another would give.

Computed while the page is rendered: from recorded judgments of Qwen 1.5B on minibench,
and from recorded gradings of essays by Qwen 0.5B, which gives the middle scores too.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from docutils import nodes
from plain_table import plain_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import rubricnb as rb
from rubricnb import rulers
from rubricnb.core.support.folders import results_folder
from rubricnb.rulers.scoring import gate_threshold

WHO = "qwen2.5-coder-1.5b-instruct-embedded"
GRADER = "qwen2.5-coder-0.5b-instruct-vllm"
HEADER = ["choice", "ours", "another", "what changes", "ours gives", "the other"]


def _spread() -> list[str]:
    reads = rb.recorded(WHO, "minibench").query(
        "design == 'balanced' and n_options == 5 and labels == 'numeric' "
        "and template == 'rubric' and readout == 'logprobs'"
    )
    other = reads.groupby("item_id", observed=True)["score"].std(ddof=1).mean()
    return [
        "spread of an item's reads",
        "divided by their number (ddof 0), as version 1's Table 3",
        "by one less (ddof 1)",
        "mean within-item sd over ten orders (Qwen 1.5B, minibench)",
        f"{rb.within_item_sd(reads)['sd'].item():.3f}",
        f"{other:.3f}",
    ]


def _winners() -> list[str]:
    flips = pd.read_csv(results_folder() / "ranking.csv").query(
        "judge == @WHO and dataset == 'minibench' and a == 'balanced' and b == 'fixed'"
    )
    return [
        "winners of a tie",
        "the first candidate (version 2 does not say)",
        "all of them: a change only if no winner is left",
        "prompts whose winner changes, balanced against fixed (Qwen 1.5B, minibench)",
        f"{flips['flip_first'].item():.0%}",
        f"{flips['flip_strict'].item():.0%}",
    ]


def _standard(table: pd.DataFrame) -> pd.DataFrame:
    """Keep what RULERS read once with its standard bundle."""
    return table.query(
        "method == 'rulers' and variant == 'standard' and units == 'sentences' "
        "and temperature == 0"
    )


def traits_of(judge: str, dataset: str) -> tuple[pd.DataFrame, int]:
    """Return each trait of each text, with its decisions, its valid quotes,
    those it needs and its score before rounding; and the number of levels.
    """
    grades = rulers.recorded_grades(judge, dataset, design="single")
    scores = _standard(grades.scores).query("status == 'ok'")
    levels, key = int(scores["n_options"].iloc[0]), ["text_id", "trait"]
    decided = _standard(grades.decisions).groupby(key, observed=True)["decision"]
    valid = _standard(grades.evidence).groupby(key, observed=True)["valid"].sum()
    traits = decided.mean().to_frame("mean").join(valid).fillna({"valid": 0})
    units = scores.drop_duplicates("text_id").set_index("text_id")["n_units"]
    traits = traits.join(units, on="text_id").dropna(subset="n_units")
    needed = rulers.load_bundle(dataset).min_evidence
    return traits.assign(
        needed=traits["n_units"].clip(upper=needed),
        exact=1 + (levels - 1) * traits["mean"] / 2,
    ), levels


def _gate(traits: pd.DataFrame, levels: int) -> list[str]:
    before = np.floor(traits["exact"] + 0.5)
    short = traits["valid"] < traits["needed"]
    ours = gate_threshold(levels)
    lowered = [(short & (before >= tau)).mean() for tau in (ours, levels)]
    return [
        "τ of RULERS' evidence gate",
        f"{ours} of {levels} levels: no score above the middle without quotes",
        f"{levels}: only the best score needs quotes",
        f"trait scores that the gate lowers ({len(traits)} of essays, Qwen 0.5B)",
        *(f"{share:.0%}" for share in lowered),
    ]


def _halves(traits: pd.DataFrame) -> list[str]:
    up, even = np.floor(traits["exact"] + 0.5), np.rint(traits["exact"])
    return [
        "a mean half-way between two scores",
        "up (Equation 4 says Round)",
        "to the even score, as Python's round",
        f"mean of the same trait scores before the gate; {(up != even).sum()} differ",
        f"{up.mean():.3f}",
        f"{even.mean():.3f}",
    ]


def _penalty() -> list[str]:
    items = rb.load("minibench")
    grades = rulers.recorded_grades(WHO, "minibench", design="single")
    scores = _standard(grades.scores).query("status == 'ok'")
    whole, texts = rulers.whole_texts(scores, items)
    human = whole["item_id"].map(texts.set_index("item_id")["human"]).to_numpy(float)
    names = whole["cluster_id"].astype(str)
    half = names.map(dict.fromkeys(sorted(names.unique())[::2], True)).notna()
    features = whole.filter(regex="^(trait|invalid)_").to_numpy(float)
    kappas = []
    for alphas in (None, [1.0]):
        label = np.empty(len(whole))
        for new in (half.to_numpy(), ~half.to_numpy()):
            fitted = rulers.Calibrator(*([alphas] if alphas else []))
            fitted.fit(features[~new], human[~new])
            label[new] = fitted.predict(features[new])
        kappas.append(rb.quadratic_weighted_kappa(label, human))
    return [
        "penalty of RULERS' ridge regression",
        "by leave-one-out error",
        "fixed at 1, as its public code for ASAP 2.0",
        "QWK of Qwen 1.5B on minibench, each half of the prompts calibrated on the "
        "other",
        *(f"{kappa:.2f}".replace("-", "−") for kappa in kappas),
    ]


def _nine() -> list[str]:
    table = rb.published("scales").pivot(
        index="judge", columns="n_options", values="mean_cramers_v"
    )
    return [
        "nine levels from five",
        "a level that says it lies between two neighbours (ours to word)",
        "nine levels written as such",
        "not asked: no rubric has both. Mean V of version 2's judges, 9 and 5 options",
        f"{table[9].mean():.3f}",
        f"{table[5].mean():.3f}",
    ]


def choices() -> list[list[str]]:
    """Return a row of text for each choice, as `HEADER` names its cells."""
    traits, levels = traits_of(GRADER, "asap-2")
    gate, halves = _gate(traits, levels), _halves(traits)
    rows = [_spread(), _winners(), gate, halves, _penalty(), _nine()]
    return [[cell.replace("%", " %") for cell in row] for row in rows]


class Choices(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(results_folder() / "ranking.csv"))
        return [plain_table(HEADER, choices(), right=[4, 5])]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("errata-choices", Choices)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
