"""What a second routine inside the embedded engine did to recorded statistics.

llama.cpp computes the attention of 64 or more tokens by another routine than that of
fewer. The study ``two-routines`` has reads of both, by how much of a prompt was cached;
in ``minibench`` those that left fewer than 64 tokens were asked again.
``python -m studies.one_routine``.
"""

from __future__ import annotations

import pandas as pd

from rubricnb.core.results import recorded
from rubricnb.statistics.position import position_bias
from rubricnb.statistics.variation import order_effect
from studies.recording import write_tables

JUDGES = {
    "SmolLM2": "smollm2-135m-instruct-embedded",
    "Gemma 270M": "gemma-3-270m-embedded",
    "Qwen 0.5B": "qwen2.5-coder-0.5b-instruct-embedded",
    "Qwen 1.5B": "qwen2.5-coder-1.5b-instruct-embedded",
}
STUDIES = ("two-routines", "minibench")
FEWEST = 64  # tokens that llama.cpp computes by the routine for many
_V = [f"v2_unbiased{end}" for end in ("", "_low", "_high")]
_SHIFT = [f"ascending_minus_descending{end}" for end in ("", "_low", "_high")]


def short(judgments: pd.DataFrame) -> pd.Series:
    """Tell which reads left fewer than 64 tokens behind their cached beginning."""
    return judgments["prompt_tokens"] - judgments["cached_tokens"] < FEWEST


def routines() -> pd.DataFrame:
    """Compare V and the order effect of balanced reads before and after.

    Returns
    -------
    DataFrame
        A row a judge, number of levels and study: ``short`` (share of reads with fewer
        than 64 tokens left), V² unbiased, and the mean expected score under 1…n minus
        that under n…1, with their intervals.

    Examples
    --------
    >>> routines()  # doctest: +SKIP
    """
    rows = []
    for name, slug in JUDGES.items():
        for study in STUDIES:
            reads = recorded(slug, "minibench", study)
            asked = (reads["design"] == "balanced") & (reads["template"] == "rubric")
            for levels, part in reads[asked].groupby("n_options"):
                if levels > 5:
                    continue
                position = position_bias(part).iloc[0]
                effect = order_effect(part, value="expected_score").iloc[0]
                rows.append(
                    {"judge": name, "levels": levels, "study": study}
                    | {"short": short(part).mean()}
                    | position[_V].to_dict()
                    | effect[_SHIFT].to_dict()
                )
    return pd.DataFrame(rows)


if __name__ == "__main__":
    write_tables({"one_routine": routines()})
