"""The papers' tables at full size: Qwen 1.5B on an H200 beside a processor.

The H200 judged every text of the papers' four sets, in bfloat16 and in batch-invariant
mode; the processor judged a part of them, with weights of four bits. Each table of
``results/recordings/full_size_*.csv`` is shown by one chapter, as it stands. ``python
-m studies.full_size``.
"""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

import rubricnb as rb
from rubricnb.book.replication import replication, settings
from rubricnb.book.tables import estimate, p_value, unbiased_v
from studies.intervals import mean_row
from studies.recording import write_tables
from studies.replication import TABLES

JUDGES = {
    "H200": ("qwen2.5-coder-1.5b-instruct-vllm-invariant", "gpu"),
    "processor": ("qwen2.5-coder-1.5b-instruct-embedded", None),
}
SETS = {
    "hanna": "HANNA",
    "summeval": "SummEval",
    "mt-bench": "MT-Bench",
    "vicuna": "Vicuna",
}
Row = dict[str, str]


class Cell:
    """One judge's reads of one set."""

    def __init__(self, judge: str, dataset: str) -> None:
        self.judge, self.dataset = judge, dataset
        slug, study = JUDGES[judge]
        self.reads = rb.recorded(slug, dataset, study=study)
        self.rubric, self.criteria = settings(self.reads)
        self.items = rb.load(dataset)

    def row(self, table: str) -> pd.DataFrame:
        """Return what `studies.replication` computes for one of its tables."""
        summarise, together = TABLES[table]
        reads = self.criteria if together else self.rubric
        return summarise(reads, self.items) if len(reads) else pd.DataFrame()

    def finding(self, name: str, digits: str = ".2f") -> str:
        """Return the estimate of one of the papers' findings; nothing if not asked."""
        found = replication(self.reads, self.items).set_index("finding").loc[name]
        return "" if pd.isna(found["estimate"]) else estimate(found, "estimate", digits)

    @property
    def size(self) -> str:
        """Texts with a criterion, and prompts."""
        return f"{self.rubric.item_id.nunique():,} ({self.rubric.cluster_id.nunique()})"


def position(cell: Cell) -> Row:
    """Chapter 05: the effect size, and the share of the first position."""
    found = cell.row("position")
    return {
        "√V²_U": unbiased_v(found)[0],
        "first position, %": estimate(found.iloc[0], "share_1", ".0f", 100),
    }


def agreement(cell: Cell) -> Row:
    """Chapter 07: the correlation with people, and what ten orders add."""
    found = cell.row("agreement")
    if found.empty:
        return {}
    balanced = found[found["design"] == "balanced"].iloc[0]
    return {
        "r, BALANCED": estimate(balanced, "r"),
        "BALANCED − FIXED": cell.finding("agreement", "+.3f"),
    }


def orderings(cell: Cell) -> Row:
    """Chapter 08: the noise of one read by the variance between texts."""
    found = cell.row("components").set_index("value")
    names = {"score": "φ, likeliest scores", "expected_score": "φ, expected scores"}
    return {name: estimate(found.loc[value], "phi") for value, name in names.items()}


def winners(cell: Cell) -> Row:
    """Chapter 11: strict flips by BALANCED for FIXED, and beyond a matched control."""
    found = cell.row("ranking")
    if found.empty:
        return {}
    return {
        "strict flips, %": estimate(found.iloc[0], "flip_strict", ".0f", 100),
        "beyond placebo, points": cell.finding("reversal", ".0f"),
    }


def cost(cell: Cell) -> Row:
    """Appendix: the cheapest of ten orders, and the cost without a preference."""
    found = cell.row("cost")[["cost", "cost_null"]] * 100
    least, floor = found["cost"].min(), found["cost_null"].mean()
    if pd.isna(least):  # some score was never given
        return {}
    return {"least Bias Cost × 100": f"{least:.1f}", "floor": f"{floor:.1f}"}


CHAPTERS: dict[str, Callable[[Cell], Row]] = {
    "05": position,
    "07": agreement,
    "08": orderings,
    "11": winners,
    "A": cost,
}


def table(of: Callable[[Cell], Row], cells: list[Cell]) -> pd.DataFrame:
    """Lay out one statistic, a row for each set and judge."""
    rows = [
        {"set": SETS[cell.dataset], "judge": cell.judge, "texts (prompts)": cell.size}
        | said
        for cell in cells
        if (said := of(cell))
    ]
    return pd.DataFrame(rows).fillna("")


def lengths() -> pd.DataFrame:
    """Chapter 09: the effect size by number of levels, on the same texts."""
    parts = {}
    for judge, (slug, _) in JUDGES.items():
        study = "gpu" if judge == "H200" else "minibench"
        reads = rb.recorded(slug, "minibench", study=study).query(
            "design == 'balanced' and template == 'rubric' and reference_score == "
            "'auto' and criterion == 'helpfulness' and candidate in ['A', 'B', 'C']"
        )
        found = rb.position_bias(reads, ["n_options"]).set_index("n_options")
        parts[f"√V²_U, {judge}"] = pd.Series(unbiased_v(found), found.index)
    return pd.DataFrame(parts).rename_axis("levels").reset_index()


def criteria() -> pd.DataFrame:
    """Chapter 10: the gap between a criterion's positions, and counting along."""
    rows = []
    for dataset, name in {"hanna": "HANNA", "minibench": "minibench"}.items():
        for judge in JUDGES:
            cell = Cell(judge, dataset)
            if cell.criteria.empty:
                continue
            found = replication(cell.reads, cell.items).set_index("finding")
            gap, counts = found.loc["criteria"], cell.row("counting").iloc[0]
            rows.append(
                {
                    "set": name,
                    "judge": judge,
                    "texts (prompts)": f"{gap.n_items:.0f} ({gap.n_clusters:.0f})",
                    "largest gap beyond chance": f"{gap.estimate:.2f}",
                    "p": p_value(gap.p, 4),
                    "score = position, %": estimate(counts, "share", ".0f", 100),
                    "by chance, %": f"{100 * counts.chance:.0f}",
                }
            )
    return pd.DataFrame(rows)


def labels(cells: list[Cell]) -> pd.DataFrame:
    """Share of the same BALANCED reads in which the two judges' labels differ."""
    rows = []
    for dataset, name in SETS.items():
        card, processor = (
            cell.rubric.query("design == 'balanced'").set_index("request_id")
            for cell in cells
            if cell.dataset == dataset
        )
        both = card.join(processor["score"].rename("other"), how="inner")
        differ = (both["score"] != both["other"]).astype(float).to_numpy()
        prompts = pd.factorize(both["cluster_id"])[0]
        share = mean_row(differ, prompts, (0.0, 1.0))
        said = estimate(share | {"reason": ""}, "value", ".1f", 100)
        rows.append({"set": name, "reads": f"{len(both):,}", "other label, %": said})
    return pd.DataFrame(rows)


def compute() -> dict[str, pd.DataFrame]:
    """All tables, by name of file."""
    cells = [Cell(judge, dataset) for dataset in SETS for judge in JUDGES]
    tables = {name: table(of, cells) for name, of in CHAPTERS.items()}
    tables |= {"09": lengths(), "10": criteria(), "labels": labels(cells)}
    return {f"full_size_{name}": found for name, found in tables.items()}


if __name__ == "__main__":
    write_tables(compute())
