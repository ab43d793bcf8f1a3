"""Every table of the papers that the book addresses, filled by one line of parameters.

A chapter is executed for a judge of the paper, on the paper's data, and what it lists under "Paper
says, we find" is held against the table as it was printed: its columns, its rows and its numbers.
"""

import json
import re
from dataclasses import dataclass, field
from zlib import crc32

import pytest
from bs4 import BeautifulSoup
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb import book

pytestmark = pytest.mark.slow

ROOT = book.find_root()
ROMAN = ("i", "ii", "iii", "iv", "v")
NAMES = {"BiGGen Bench": "biggen", "HANNA": "hanna", "SummEval": "summeval", "Vicuna": "vicuna"}


@dataclass(frozen=True)
class Left:
    """Why a column of a table has no statement of its own."""

    reason: str


@dataclass(frozen=True)
class Table:
    """What a row is called, what is printed in it and the statement about that, in order."""

    keys: tuple[str, ...]
    cells: dict[str, str | Left]
    where: dict[str, str] = field(default_factory=dict)  # the rows that this line fills


@dataclass(frozen=True)
class Line:
    """Parameters of a chapter, and the tables and figures that it then fills."""

    stem: str
    values: dict[str, object]
    tables: dict[str, Table] = field(default_factory=dict)
    figures: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # name, what is drawn
    intervals: tuple[str, ...] = ()  # statements, and what is printed, that get an interval


def of(judge="", dataset="", **other):
    return {k: v for k, v in {"judge": judge, "dataset": dataset, **other}.items() if v}


V2 = {"paper_judge": "GPT-OSS-20B", "dataset": "hanna", "n_items": 24}
V1 = {"paper_judge": "Qwen3-32B", "dataset": "hanna", "n_items": 24}
BIGGEN = {"paper_judge": "GPT-4o", "dataset": "biggen", "criterion": ""}
INTERVAL = Left("the paper's interval resamples items; it is drawn in chapter 07")
PERTURBED = {"Descending-Numeric", "Random-Numeric", "Letter-Grades", "Roman-Numerals"}


def scales(*n_options):
    cells = {"mean_cramers_v": "mean Cramér's V over the datasets, {n_options} options"}
    return Table(("judge", "n_options"), cells, of("GPT-OSS-20B", n_options=set(n_options)))


LINES = {
    "05": Line(
        "05_position_bias", V2 | {"n_copies": 2},
        {"position_bias_2602.02219v2_table2": Table(
            ("judge", "dataset"),
            {"chi2": "χ² of position selection against uniform",
             "pos1_pct": "selections of the first position",
             "pos5_pct": "selections of the last position",
             "not_significant": "χ² above its 5 % threshold"},
            of("GPT-OSS-20B", "HANNA"),
        )},
        intervals=("χ² of position selection.*= 98.7 ± 14.8", "χ² above its 5 % threshold.*= 1",
                   "first position minus the largest of the others.*≥ 0"),
    ),
    "07, version 2": Line(
        "07_when_permutation_helps", V2,
        {"strategy_ablation_2602.02219v2_table3": Table(
            ("judge", "dataset", "contrast"),
            {"delta_r": "r of {contrast}, ten reads each",
             "ci_low": INTERVAL, "ci_high": INTERVAL},
            of("GPT-OSS-20B", "HANNA"),
        )},
        {"Figure 8": ("fig-07_when_permutation_helps-ours",
                      ["argmax, ours", "argmax, the paper's"])},
    ),
    "07, version 1": Line(
        "07_when_permutation_helps", V1 | {"strategies": "balanced fixed"},
        {"permutation_vs_repeat_2602.02219v1_table2": Table(
            ("judge", "dataset", "statistic"),
            {"permutation": "{statistic} of ten orderings (",
             "repeat": "{statistic} of ten repeats of 1-2-3-4-5 (",
             "delta": "{statistic} of ten orderings minus ten repeats"},
            of("Qwen3-32B", "HANNA"),
        ),
        "within_item_sd_2602.02219v1_table3": Table(
            ("judge", "dataset"),
            {"permutation": "within-item sd over ten orderings",
             "repeat": "within-item sd over ten repeats"},
            of("Qwen3-32B", "HANNA"),
        )},
    ),
    "09": Line(
        "09_rubric_scales",
        V2 | {"dataset": "mt-bench+vicuna+hanna+summeval", "n_items": 5, "scales": [2, 3, 5]},
        {"scales_2602.02219v2_table4": scales(2, 3, 5)},
    ),
    "09, nine options": Line(
        "09_rubric_scales",
        V2 | {"dataset": "hanna+summeval", "n_items": 20, "scales": [9]},
        {"scales_2602.02219v2_table4": scales(9)},
        intervals=("mean Cramér.s V over the datasets, 9 options.*= 0.039 ± 0.01",),
    ),
    "10": Line(
        "10_criterion_order",
        V2 | {"paper_judge": "Qwen3.5-9B", "n_items": 48,
              "designs": ["balanced", "shuffled", "fixed"]},
        {"criterion_order_2602.02219v2_table5": Table(
            ("judge", "dataset"),
            {"avg_r": "macro-average r under balanced criterion orders",
             "mean_delta_pos": "mean ΔPos over the criteria",
             "max_delta_pos": "largest ΔPos of a criterion",
             "n_significant": "criteria of {n_criteria} with a significant Friedman test",
             "n_criteria": Left("in the statement before")},
            of("Qwen3.5-9B", "HANNA"),
        ),
        "criterion_ablation_2602.02219v2_table6": Table(
            ("judge", "dataset"),
            {"balanced_r": Left("the r of Table 5"),
             "random_r": "macro-average r under random criterion orders",
             "fixed_r": "macro-average r under the fixed criterion order",
             "delta_balanced_fixed": "Δ of macro-average r, balanced − fixed",
             "significant": "balanced − fixed excludes 0"},
            of("Qwen3.5-9B", "HANNA"),
        )},
        {"Figure 10": ("fig-10_criterion_order-shift", ["engagement", "relevance"])},
    ),
    "11": Line(
        "11_rank_reversal", V2 | {"dataset": "vicuna"},
        {"rank_reversal_2602.02219v2_table7": Table(
            ("judge", "dataset"),
            {"kendall_tau": "Kendall's τ per prompt, BALANCED against FIXED",
             "top1_flip_pct": "prompts whose winner flips, in %"},
            of("GPT-OSS-20B", "Vicuna"),
        )},
    ),
    "12": Line(
        "12_temperature_and_effort",
        V2 | {"n_items": 12, "efforts": "low high", "draws": 1, "studies": 2},
        figures={"Figure 7": ("fig-ours", ["low", "high", "balanced"])},
        intervals=("χ² of position selection, effort low.*= 115 ± 17.2",),
    ),
    "A": Line(
        "A_bias_cost", V1 | {"splits": 5},
        {"default_order_rank_2602.02219v1_table4": Table(
            ("judge", "dataset"),
            {"r_12345": "r of single reads in the default order",
             "mean_r_10": "mean r of single reads over ten orders",
             "rank_of_12345": "rank of the default order among ten by r"},
            of("Qwen3-32B", "HANNA"),
        ),
        "score_position_2602.02219v1_table5": Table(
            ("judge", "score", "position"),
            {"selected_pct": "reads with score {score} that chose it at position {position}"},
            of("Qwen3-32B"),
        ),
        "bias_cost_2602.02219v1_table6": Table(
            ("judge",),
            {"min_bias_order": Left("an order, not a number: it stands in the chapter's text"),
             "cost_min_bias": "lowest Bias Cost (×100) among ten orders",
             "cost_default": "Bias Cost (×100) of the default order",
             "corr_rank_min_bias": "rank by r, among ten, of the order with the lowest Bias Cost",
             "corr_rank_default": "rank by r, among ten, of the default order"},
            of("Qwen3-32B"),
        )},
        intervals=("mean r of single reads over ten orders.*= 0.313 ± 0.05",),
    ),
    "13": Line(
        "13_score_ids_and_rubric_order", BIGGEN,
        {"scoring_bias_stability_2506.22316_table3": Table(
            ("judge", "perturbation", "dataset"),
            {"flip_rate_pct": "scores that {perturbation} flips, %",
             "mad": "mean absolute deviation under {perturbation}"},
            of("GPT-4o", "BiGGen Bench", perturbation=PERTURBED),
        ),
        "scoring_bias_accuracy_2506.22316_table4": Table(
            ("judge", "perturbation", "dataset", "gold"),
            {"spearman_rho": "ρ with people, {perturbation} (",
             "pearson_r": "r with people, {perturbation} ("},
            of("GPT-4o", "BiGGen Bench"),
        )},
    ),
    "14": Line(
        "14_reference_answers", BIGGEN,
        {"scoring_bias_stability_2506.22316_table3": Table(
            ("judge", "perturbation", "dataset"),
            {"flip_rate_pct": "scores that {perturbation} flips, %",
             "mad": "mean absolute deviation under {perturbation}"},
            of("GPT-4o", "BiGGen Bench", perturbation="Ref-5"),
        ),
        "scoring_bias_gold_alignment_2506.22316_table2": Table(
            ("score_source", "dataset"),
            {"spearman_rho": "ρ of gold scores with people (GPT-4o, ",
             "pearson_r": "r of gold scores with people (GPT-4o, "},
            {"score_source": "GPT-4o (our pipeline)", "dataset": "BiGGen Bench"},
        )},
    ),
    "17": Line(
        "17_calibration",
        {"paper_judge": "GPT-4o-mini", "dataset": "asap-2.0", "n_draws": 3, "n_calibration": 12,
         "methods": "rulers dhs mts autoscore"},
        {"rulers_qwk_table3": Table(
            ("method", "dataset", "backbone"),
            {"qwk": "QWK of {method} (GPT-4o-mini"},
            {"dataset": "ASAP 2.0", "backbone": "GPT-4o-mini"},
        ),
        "rulers_datasets_table5": Table(
            ("dataset",),
            {"task": Left("a description"), "test_size": "texts in the test",
             "calibration_size": Left("the default of the parameter n_calibration"),
             "score_range": Left("the levels of the rubric"),
             "label_mean": "mean label", "label_sd": "standard deviation of the labels"},
            {"dataset": "ASAP 2.0"},
        )},
        intervals=("Table 4: QWK lost without calibration.*= 0.4633 ± 0.02",),
    ),
}  # fmt: skip
ELSEWHERE = {
    "datasets_2602.02219_table1": "of the data, not of a judge: chapter 03 counts them",
    "datasets_2506.22316_table1": "of the data, not of a judge: chapter 03 counts them",
    "rulers_ablation_table4": "chapters 15 to 17 state differences of its rows: line 17 has one",
    "rulers_capabilities_table2": "no numbers: it says which method has which part",
    "rulers_variants_table6": "no numbers: chapter 18 asks with these variants",
}
FIGURES = {  # paper → figure → the line that draws it, or where it stands, or why it does not
    "v2": {
        1: "chapter 01 shows its four prompts", 2: "chapter 02 draws the method",
        3: "chapter 02 lists the orders", 4: "chapter 05, by simulated judges: fig-fitted",
        5: "chapter 04 renders both prompts", 6: "Figure 7 with temperatures for efforts",
        7: "12", 8: "07, version 2", 9: "chapter 08: the budget curve of whichever judge",
        10: "10", 11: "Figure 10 with another dataset",
    },
    "v1": {
        1: "chapter 01 shows its prompts", 2: "chapter 02 draws the method",
        3: "chapter 04 renders the prompt", 4: "chapter 02 lists the orders",
        5: "its shares are not printed; chapter 05 derives them from Table 5",
    },
    "scoring": {
        1: "an example", 2: "an overview", 3: "chapter 04 renders the prompt",
        4: "chapter 14 writes references in its two steps",
        5: "chapters 13 and 14: counts of scores", 6: "chapter 14: ρ by reference",
    },
    "rulers": {
        1: "an example", 2: "chapter 17: shares of labels", 3: "chapter 18: differences of QWK",
        4: "a prompt that chapter 15 sends", 5: "a prompt that chapter 16 sends", 6: "an overview",
    },
}  # fmt: skip
NOTATION = {("rulers", 1)}  # a table of symbols
PAPERS = {"v1": "position bias v1", "v2": "position bias v2",
          "scoring": "scoring bias", "rulers": "RULERS"}  # fmt: skip


def rubric_first(prompt):
    return prompt.index("###Score Rubrics:") < prompt.index("###The instruction to evaluate:")


def protocol_of_13(prompts, glued):
    for sentence in ("a letter between", "a Roman numeral between"):
        asked = [rubric_first(prompt) for prompt in prompts if sentence in prompt]
        assert len(asked) == 3 * 8  # three orders
        assert all(asked)
    assert "next most frequent score" in glued["tab-verdicts"]
    # A hosted judge is really asked again, and that is a column with an interval.
    assert "minus re-ask" in glued["tab-stability"]
    assert "a copy" not in glued["tab-stability"]
    # Its ρ stands beside that of edits and of asking again, each by single reads.
    assert "placebo" in glued["tab-accuracy"]
    assert "asked again" in glued["tab-accuracy"]
    assert "k_effective" not in glued["tab-accuracy"]


def protocol_of_14(prompts, glued):
    shown = [prompt for prompt in prompts if "###Reference Answer (Score " in prompt]
    # Ascending and descending, numbers and letters; and three reads for the gold scores of Table 2.
    assert len(shown) == (4 + 2) * 8
    assert all(map(rubric_first, shown))


PROTOCOLS = {"13": protocol_of_13, "14": protocol_of_14}


def judged(payload, headers):
    """Any judge: what it says follows from the prompt, in the form that was asked for."""
    prompt = payload["messages"][-1]["content"]
    drawn = crc32(prompt.encode())
    if "response_format" in payload:
        schema = payload["response_format"]["json_schema"]["schema"]
        text = json.dumps(_filled(schema, drawn))
    else:
        named = re.search(r"^###Criteria .*?(?=^###The instruction)", prompt, re.M | re.S)
        n = re.search(r"an integer number between 1 and (\d)", prompt)
        labels = (
            "123456789"[: int(n[1])] if n else ROMAN if "a Roman numeral" in prompt else "EDCBA"
        )
        text = f"Feedback: so so [RESULT] {labels[drawn % len(labels)]}"
        if named:  # all criteria at once
            names = re.findall(r"^- ([^:\n]+):", named[0], re.M)
            text = "\n".join(f"[{c}] {1 + crc32(c.encode(), drawn) % 5}" for c in names)
    return 200, completion(text) | {"model": payload["model"]}, {}


def _filled(schema, drawn):
    if "enum" in schema:
        return schema["enum"][drawn % len(schema["enum"])]
    if schema["type"] == "object":
        parts = enumerate(schema["properties"].items(), 1)
        return {name: _filled(part, crc32(b"%d" % drawn, k)) for k, (name, part) in parts}
    if schema["type"] == "array":
        number = schema.get("minItems", schema.get("maxItems", 1))
        return [_filled(schema["items"], crc32(b"%d" % drawn, k)) for k in range(number)]
    if schema["type"] == "integer":
        low = schema.get("minimum", 1)
        return low + drawn % (schema.get("maximum", low) - low + 1)
    return "It says so."


def _listed(done):
    """Statement, what the paper says and what we find, row by row."""
    table = BeautifulSoup("".join(book.glued(done)["tab-verdicts"]["text/html"]), "html.parser")
    rows = [
        [" ".join(cell.get_text().split()) for cell in row.find_all("td")]
        for row in table.find_all("tr")
    ]
    return [row[:3] for row in rows if row]


def _expected(name, table):
    """(Start of a statement, printed number) of every cell, as the table prints them."""
    printed = rb.published(name)
    assert list(printed.columns) == [*table.keys, *table.cells]
    for column, wanted in table.where.items():
        wanted = wanted if isinstance(wanted, set) else {wanted}
        printed = printed[printed[column].isin(wanted)]
    assert len(printed)
    words = {
        "balanced-random": "BALANCED minus r of RANDOM",
        "balanced-fixed": "BALANCED minus r of FIXED",
        "pearson_r": "Pearson's r", "spearman_rho": "Spearman's ρ",
    }  # fmt: skip
    for row in printed.to_dict("records"):
        named = {k: words.get(v, v) for k, v in row.items()}
        for column, statement in table.cells.items():
            if not isinstance(statement, Left):
                number = not row[column] if column.startswith("not_") else row[column]
                yield statement.format(**named), float(number), row.get("dataset", "")


@pytest.mark.parametrize("name", LINES)
def test_a_line_of_parameters_fills_the_papers_tables(name, mirror, own_file, warnings_of):
    line = LINES[name]
    with endpoint(judged) as (url, received):
        known = {parameter.name for parameter in book.parameters(line.stem, ROOT)}
        values = {"judge": f"openai:qwen3-32b@{url}", **line.values}
        if "readout" in known:
            values["readout"] = "feedback"
        if line.values["dataset"] in own_file:
            values["path"] = str(own_file[line.values["dataset"]])
        done = book.execute(line.stem, values, root=ROOT, cell_seconds=300)
    found = _listed(done)
    for table_name, table in line.tables.items():
        index = rb.published().set_index("table").loc[table_name]
        places = []
        for statement, number, dataset in _expected(table_name, table):
            rows = [
                k for k, (said, *_) in enumerate(found)
                if said.startswith(f"{index.paper}, Table {index.number}: {statement}")
                and (NAMES.get(dataset, dataset) in said or "(Qwen3-32B)" in said)
            ]  # fmt: skip
            assert len(rows) == 1, (statement, rows, found)
            _, paper_says, we_find = found[rows[0]]
            assert float(re.match(r"= (\S+)", paper_says)[1]) == number, statement
            assert re.match(r"-?\d", we_find), (statement, we_find)
            places.append(rows[0])
        assert places
    for statement in line.intervals:
        assert any(re.search(statement + r" \S+ \[\S+, \S+\]", " ".join(row)) for row in found), (
            found
        )
    for glued, drawn in line.figures.values():
        figure = book.glued(done)[glued]["image/svg+xml"]
        assert [text for text in drawn if f"<!-- {text} -->" not in figure] == []
    if name in PROTOCOLS:
        assert [said for said in warnings_of(done) if "Warning" in said] == []
        text = {n: BeautifulSoup("".join(what["text/html"]), "html.parser").get_text(" ")
                for n, what in book.glued(done).items() if "text/html" in what}  # fmt: skip
        PROTOCOLS[name]([payload["messages"][-1]["content"] for payload in received], text)


def test_every_scale_of_table_4_has_its_line():
    filled = [line.tables.get("scales_2602.02219v2_table4") for line in LINES.values()]
    scales = [n for table in filled if table for n in table.where["n_options"]]
    assert sorted(scales) == sorted(rb.published("scales").n_options.unique())


def test_every_table_of_the_papers_has_its_line_or_its_reason():
    filled = {table for line in LINES.values() for table in line.tables}
    assert not filled & set(ELSEWHERE)
    assert filled | set(ELSEWHERE) == set(rb.published().table)
    assert {t for t in rb.data.claims().source_table if t} <= filled | set(ELSEWHERE)


def test_every_figure_of_the_papers_has_its_line_or_its_reason(paper_text):
    drawn = {
        int(name.split()[1]): key
        for key, line in LINES.items() for name in line.figures
    }  # fmt: skip
    assert {n: key for n, key in FIGURES["v2"].items() if key in LINES} == drawn
    for paper, known in FIGURES.items():
        assert set(map(int, re.findall(r"Figure (\d+)", paper_text[paper]))) == set(known), paper


def test_every_table_that_a_paper_prints_is_among_the_published(paper_text):
    listed = rb.published()
    for paper, title in PAPERS.items():
        numbers = {(paper, n) for n in map(int, re.findall(r"Table (\d+)", paper_text[paper]))}
        kept = {(paper, n) for n in listed.number[listed.paper == title]}
        if paper == "v1":
            kept.add((paper, 1))  # the same in version 2
        assert numbers - NOTATION == kept, paper
