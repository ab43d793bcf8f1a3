"""A gate goes red in at most 5 % of audits of a judge that has not changed."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, norm

import rubricnb as rb
from rubricnb.auditing.gate import false_alarms, steady_limits

STUDIES = 400


def row(measure, section, effect, se, df):
    low = (
        np.tanh(np.arctanh(effect) - norm.ppf(0.975) * se)
        if measure == "agreement"
        else 0
    )
    return {
        "measure": measure,
        "section": section,
        "effect": effect,
        "low": low,
        "se": se,
        "df": df,
    }


def means(rng, truth, n=20):
    """The mean over n clusters with its standard error."""
    values = truth + rng.standard_normal(n)
    return values.mean(), values.std(ddof=1) / np.sqrt(n)


@pytest.mark.parametrize("truth", [0.0, 0.4, -2.0])
@pytest.mark.parametrize("rows", [1, 3])
def test_an_unchanged_judge_crosses_the_limit_of_an_effect_in_a_twentieth(truth, rows):
    rng, red = np.random.default_rng(0), 0
    for _ in range(STUDIES):
        first = [row("order", "order", *means(rng, truth), 19) for _ in range(rows)]
        limit = steady_limits(pd.DataFrame(first)).max()
        red += max(abs(means(rng, truth)[0]) for _ in range(rows)) > limit
    assert binom.cdf(red - 1, STUDIES, 0.05) < 0.999


def test_an_unchanged_judge_drifts_past_the_limit_in_a_twentieth():
    rng = np.random.default_rng(0)
    found = [means(rng, 0.0) for _ in range(STUDIES)]
    rows = [pd.DataFrame([row("drift_score", "against", m, se, 19)]) for m, se in found]
    red = [
        abs(m) > steady_limits(r).item() for (m, _), r in zip(found, rows, strict=True)
    ]
    assert binom.cdf(sum(red) - 1, STUDIES, 0.05) < 0.999
    assert binom.sf(sum(red), STUDIES, 0.05) < 0.999  # and the limit is not idle


def test_an_unchanged_judge_falls_below_the_limit_of_a_correlation_in_a_twentieth():
    rng, n, red = np.random.default_rng(0), 60, 0
    for _ in range(STUDIES):
        r = [
            np.corrcoef(x, 0.6 * x + 0.8 * rng.standard_normal(n))[0, 1]
            for x in rng.standard_normal((2, n))
        ]
        first = row("agreement", "texts", r[0], 1 / np.sqrt(n - 3), np.nan)
        red += r[1] < steady_limits(pd.DataFrame([first])).item()
    assert binom.cdf(red - 1, STUDIES, 0.06) < 0.999


def test_at_its_limit_a_gate_goes_red_in_a_twentieth_and_at_the_estimate_in_half():
    for one in (
        row("order", "order", 0.4, 0.1, 19),
        row("drift_score", "against", 0.4, 0.1, 19),
        row("agreement", "texts", 0.6, 0.1, np.nan),
    ):
        rows = pd.DataFrame([one])
        share = false_alarms(rows, steady_limits(rows).item())
        assert 0.025 <= round(share, 6) <= 0.05
    rows = pd.DataFrame([row("order", "order", 0.4, 0.1, 19)])
    assert false_alarms(rows, 0.4) == pytest.approx(0.5, abs=1e-4)
    three = pd.concat([rows] * 3)
    assert false_alarms(three, 0.7) == pytest.approx(3 * false_alarms(rows, 0.7))


def test_a_number_without_an_error_has_no_limit():
    for se in (0.0, np.nan):
        rows = pd.DataFrame([row("order", "order", 0.0, se, 19)])
        assert np.isnan(steady_limits(rows).item())


def judged(rng, prompts, texts):
    """Scores and ratings of texts, as rows of an audit on their agreement have them."""
    cluster = np.repeat(np.arange(prompts), texts)
    true = 3 + 0.6 * rng.normal(size=prompts)[cluster] + rng.normal(size=len(cluster))
    score, human = (
        np.clip(np.round(true + rng.normal(0, sd, len(true))), 1, 5)
        for sd in (0.6, 0.5)
    )
    table = pd.DataFrame({"group_id": cluster, "score": score, "human": human})
    return table.assign(item_id=[f"t{i}" for i in table.index])


@pytest.mark.slow
def test_an_unchanged_judge_falls_below_the_limits_of_an_audit_in_a_twentieth():
    """Of audits of a hundred samples, each against the limits of all others; kappa
    errs further down than up, and its limit must, too.
    """
    rng = np.random.default_rng(0)
    rows = [
        rb.audit(judgments=judged(rng, 30, 2), scale=(1, 5)).rows for _ in range(100)
    ]
    every = pd.concat(rows)
    for measure in ("agreement", "kappa"):
        own = every[every["measure"] == measure]
        limit, found = own["steady_limit"].to_numpy(), own["effect"].to_numpy()
        assert 0.01 < (found < limit[:, None]).mean() < 0.06, measure
