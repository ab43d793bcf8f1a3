"""Every table of the papers that the book addresses, filled by one line of parameters.

A chapter is executed for a judge of the paper, on the paper's data, and what it lists
under "Paper says, we find" is held against the table as it was printed: its columns,
its rows and its numbers. Where a chapter prints the command that fills a table, that
command is executed, with few items and a local endpoint in the judge's place.
"""

import json
import re
from dataclasses import dataclass, field
from zlib import crc32

import pytest
from bs4 import BeautifulSoup
from commands import printed, run
from endpoint import completion, endpoint

import rubricnb as rb
from rubricnb.book import notebooks as book
from tools.due import due

ROOT = book.find_root()
ROMAN = ("i", "ii", "iii", "iv", "v")
NAMES = {
    "BiGGen Bench": "biggen",
    "HANNA": "hanna",
    "SummEval": "summeval",
    "Vicuna": "vicuna",
    "MT-Bench": "mt-bench",
}


@dataclass(frozen=True)
class Left:
    """Why a column of a table has no statement of its own."""

    reason: str


@dataclass(frozen=True)
class Table:
    """What a row is called, what is printed in it
    and the statement about that, in order.
    """

    keys: tuple[str, ...]
    cells: dict[str, str | Left]
    where: dict[str, str] = field(default_factory=dict)  # the rows that this line fills


@dataclass(frozen=True)
class Line:
    """Parameters of a chapter, and the tables and figures that it then fills.

    The parameters are those of the command that the chapter prints and that writes
    `command`. Without one they are `values`; with one these come on top, so that few
    items are asked.
    """

    stem: str
    values: dict[str, object]
    tables: dict[str, Table] = field(default_factory=dict)
    # name, what is drawn
    figures: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    # statements, and what is printed, that get an interval
    intervals: tuple[str, ...] = ()
    command: str = ""
    # shown table → what its rows have
    beside: dict[str, list[str]] = field(default_factory=dict)


def of(judge="", dataset="", **other):
    return {k: v for k, v in {"judge": judge, "dataset": dataset, **other}.items() if v}


FOUR = {"HANNA", "SummEval", "MT-Bench", "Vicuna"}
RATED = {"HANNA", "SummEval"}
BIGGEN = {"paper_judge": "GPT-4o", "dataset": "biggen", "criterion": ""}
INTERVAL = Left(
    "shown in chapter 07's Table 3, beside ours and the paper's of the same judge"
)
PERTURBED = {"Descending-Numeric", "Random-Numeric", "Letter-Grades", "Roman-Numerals"}


def scales(*n_options):
    cells = {"mean_cramers_v": "mean Cramér's V over the datasets, {n_options} options"}
    return Table(
        ("judge", "n_options"), cells, of("Gemma-3-27B", n_options=set(n_options))
    )


def default_order(judge):
    cells = {
        "r_12345": "r of single reads in the default order",
        "mean_r_10": "mean r of single reads over ten orders",
        "rank_of_12345": "rank of the default order among ten by r",
    }
    return Table(("judge", "dataset"), cells, of(judge, RATED))


LINES = {
    "05": Line(
        "05_position_bias",
        {"n_items": 20, "n_copies": 2},
        {
            "position_bias_2602.02219v2_table2": Table(
                ("judge", "dataset"),
                {
                    "chi2": "χ² of position selection against uniform",
                    "pos1_pct": "selections of the first position",
                    "pos5_pct": "selections of the last position",
                    "not_significant": "χ² above its 5 % threshold",
                },
                of("Gemma-3-27B", FOUR),
            )
        },
        {"Figure 4": ("fig-selection", ["our judge, HANNA", "our judge, Vicuna"])},
        intervals=(
            "χ² of position selection.*= 395.3 ± 59.3",
            "χ² above its 5 % threshold.*= 1",
            "first position minus the largest of the others.*≥ 0\\)",
        ),
        command="out.ipynb",
        beside={
            "tab-table-2": [
                "Gemma-3-27B hanna here",
                "Gemma-3-27B vicuna here",
                "Gemma-3-27B summeval paper 1691.7 1 11.5 31.4",
            ]
        },
    ),
    "07, version 2": Line(
        "07_when_permutation_helps",
        {"n_items": 24},
        {
            "strategy_ablation_2602.02219v2_table3": Table(
                ("judge", "dataset", "contrast"),
                {
                    "delta_r": "r of {contrast}, ten reads each",
                    "ci_low": INTERVAL,
                    "ci_high": INTERVAL,
                },
                of("Gemma-3-27B", RATED),
            )
        },
        {
            "Figure 8": (
                "fig-07_when_permutation_helps-ours",
                ["score, hanna, ours", "score, summeval, the paper's"],
            )
        },
        command="table-3.ipynb",
        beside={
            "tab-table-3": [
                "Gemma-3-27B hanna here, our interval",
                "Gemma-3-27B summeval here, our interval",
                "Gemma-3-27B hanna here, the paper's interval",
                "Gemma-3-27B hanna paper 0.009 [−0.016, 0.034] 0.07 [0.036, 0.106]",
                "GPT-OSS-20B summeval paper −0.002 [−0.017, 0.013] −0.006 [−0.022, "
                "0.009]",
            ]
        },
    ),
    "07, version 1": Line(
        "07_when_permutation_helps",
        {"n_items": 24},
        {
            "permutation_vs_repeat_2602.02219v1_table2": Table(
                ("judge", "dataset", "statistic"),
                {
                    "permutation": "{statistic} of ten orderings (",
                    "repeat": "{statistic} of ten repeats of 1-2-3-4-5 (",
                    "delta": "{statistic} of ten orderings minus ten repeats",
                },
                of("Qwen3-32B-Think", RATED),
            ),
            "within_item_sd_2602.02219v1_table3": Table(
                ("judge", "dataset"),
                {
                    "permutation": "within-item sd over ten orderings",
                    "repeat": "within-item sd over ten repeats",
                },
                of("Qwen3-32B-Think", RATED),
            ),
        },
        command="version-1.ipynb",
        beside={
            "tab-table-2": [
                "Qwen3-32B-Think hanna r here",
                "Qwen3-32B-Think summeval rho here",
                "average hanna r paper 0.39 0.363 0.027",
                "average summeval rho paper 0.382 0.368 0.014",
            ],
            "tab-sd": [
                "Qwen3-32B-Think hanna here",
                "Qwen3-32B-Think hanna paper 0.545 0.5",
            ],
        },
    ),
    "08": Line(
        "08_how_many_orderings",
        {"n_items": 24, "n_copies": 2},
        figures={
            "Figure 9": (
                "fig-08_how_many_orderings-ours",
                ["RANDOM, hanna", "BALANCED, summeval"],
            )
        },
        intervals=(
            "share of the change of r from K = 1 to 10 .* at K = 3 .*= 0.67 ± 0.05",
        ),
        command="out.ipynb",
        beside={
            "tab-verdicts": ["largest distance of the curves of RANDOM and BALANCED"]
        },
    ),
    "09": Line(
        "09_rubric_scales",
        {"n_items": 5, "n_simulated": 40},
        {"scales_2602.02219v2_table4": scales(2, 3, 5)},
        command="scales-2-3-5.ipynb",
        beside={
            "tab-table-4": [
                "Gemma-3-27B here, hanna + summeval + mt-bench + vicuna 0.",
                "Gemma-3-27B paper 0.172 0.066 0.114 0.22",
            ]
        },
    ),
    "09, nine options": Line(
        "09_rubric_scales",
        {"n_items": 20, "n_simulated": 40},
        {"scales_2602.02219v2_table4": scales(9)},
        intervals=("mean Cramér.s V over the datasets, 9 options.*= 0.22 ± 0.017",),
        command="scale-9.ipynb",
    ),
    "10": Line(
        "10_criterion_order",
        {"n_items": 48},
        {
            "criterion_order_2602.02219v2_table5": Table(
                ("judge", "dataset"),
                {
                    "avg_r": "macro-average r under balanced criterion orders",
                    "mean_delta_pos": "mean ΔPos over the criteria",
                    "max_delta_pos": "largest ΔPos of a criterion",
                    "n_significant": (
                        "criteria of {n_criteria} with a significant Friedman test"
                    ),
                    "n_criteria": Left("in the statement before"),
                },
                of("Gemma-3-27B", RATED),
            ),
            "criterion_ablation_2602.02219v2_table6": Table(
                ("judge", "dataset"),
                {
                    "balanced_r": Left("the r of Table 5"),
                    "random_r": "macro-average r under random criterion orders",
                    "fixed_r": "macro-average r under the fixed criterion order",
                    "delta_balanced_fixed": "Δ of macro-average r, balanced − fixed",
                    "significant": "balanced − fixed excludes 0",
                },
                of("Gemma-3-27B", RATED),
            ),
        },
        {
            "Figure 10": (
                "fig-10_criterion_order-shift",
                ["HANNA, engagement", "HANNA, relevance"],
            ),
            "Figure 11": ("fig-10_criterion_order-shift", ["SummEval, fluency"]),
        },
        intervals=(
            "gain in r over a single canonical read.*= 0.075 ± 0.015",
            "winners that flip when the order of the criteria changes.*≥ 16.2\\)",
        ),
        command="out.ipynb",
        beside={
            "tab-table-6": [
                "Gemma-3-27B hanna here, our interval",
                "Gemma-3-27B summeval here, our interval",
                "Gemma-3-27B summeval here, the paper's interval – – –",
                "Gemma-3-27B summeval paper 0.507 0.504 0.483 0.023",
                "GPT-OSS-20B hanna paper 0.308 0.312 0.297 0.012",
            ]
        },
    ),
    "11": Line(
        "11_rank_reversal",
        {"n_items": 24},
        {
            "rank_reversal_2602.02219v2_table7": Table(
                ("judge", "dataset"),
                {
                    "kendall_tau": "Kendall's τ per prompt, BALANCED against FIXED",
                    "top1_flip_pct": "prompts whose winner flips, in %",
                },
                of("Gemma-3-27B", {"SummEval", "MT-Bench", "Vicuna"}),
            )
        },
        command="out.ipynb",
        beside={
            "tab-table-7": [
                "Gemma-3-27B vicuna here",
                "Gemma-3-27B vicuna paper 0.82 25",
            ]
        },
    ),
    "12, temperatures": Line(
        "12_temperature_and_effort",
        {"n_items": 12, "draws": 1, "studies": 2},
        figures={"Figure 6": ("fig-ours", ["balanced, hanna", "balanced, summeval"])},
        intervals=(
            r"r with people, ten balanced orders, temperature 1 .*= 0.31 ± 0.05",
        ),
        command="figure-6.ipynb",
        beside={
            "tab-appendix-c": [
                "Qwen3.5-9B hanna r here",
                "Qwen3.5-9B summeval r here",
                "Qwen3.5-9B hanna sd paper 0.64 – – 0.94",
            ]
        },
    ),
    "12, efforts": Line(
        "12_temperature_and_effort",
        {"n_items": 12, "draws": 1, "studies": 2},
        figures={"Figure 7": ("fig-ours", ["balanced, hanna", "fixed, summeval"])},
        intervals=("χ² of position selection, effort low.*= 115 ± 17.2",),
        command="figure-7.ipynb",
        beside={
            "tab-efforts": [
                "GPT-OSS-20B hanna at 0 here",
                "GPT-OSS-20B – paper 115 26 55",
            ],
            "tab-appendix-c": [
                "GPT-OSS-20B hanna low r here",
                "GPT-OSS-20B hanna high r here",
            ],
        },
    ),
    "A, Table 4": Line(
        "A_bias_cost",
        {"n_items": 24, "splits": 5},
        {"default_order_rank_2602.02219v1_table4": default_order("Qwen3-32B")},
        intervals=("mean r of single reads over ten orders.*= 0.313 ± 0.05",),
        command="table-4.ipynb",
        beside={"tab-table-4": ["Qwen3-32B hanna here", "Qwen3-32B summeval here"]},
    ),
    "A, thinking": Line(
        "A_bias_cost",
        {"n_items": 24, "splits": 5},
        {"default_order_rank_2602.02219v1_table4": default_order("Qwen3-32B-Think")},
        command="thinking.ipynb",
        beside={
            "tab-table-4": [
                "Qwen3-32B-Think hanna here",
                "Qwen3-32B-Think hanna paper 0.205 0.279 10",
            ]
        },
    ),
    "A, Tables 5 and 6": Line(
        "A_bias_cost",
        {"n_items": 24, "splits": 5},
        {
            "score_position_2602.02219v1_table5": Table(
                ("judge", "score", "position"),
                {
                    "selected_pct": (
                        "reads with score {score} that chose it at position {position}"
                    )
                },
                of("Qwen3-32B"),
            ),
            "bias_cost_2602.02219v1_table6": Table(
                ("judge",),
                {
                    "min_bias_order": Left(
                        "an order, not a number: it stands in the chapter's text"
                    ),
                    "cost_min_bias": "lowest Bias Cost (×100) among ten orders",
                    "cost_default": "Bias Cost (×100) of the default order",
                    "corr_rank_min_bias": (
                        "rank by r, among ten, of the order with the lowest Bias Cost"
                    ),
                    "corr_rank_default": "rank by r, among ten, of the default order",
                },
                of("Qwen3-32B"),
            ),
        },
        command="tables-5-6.ipynb",
        beside={
            "tab-table-5": [
                "Qwen3-32B 5 here",
                "Qwen3-32B 1 paper 21.4 19.1 19.2 21.5 18.8",
            ]
        },
    ),
    "13": Line(
        "13_score_ids_and_rubric_order",
        BIGGEN,
        {
            "scoring_bias_stability_2506.22316_table3": Table(
                ("judge", "perturbation", "dataset"),
                {
                    "flip_rate_pct": "scores that {perturbation} flips, %",
                    "mad": "mean absolute deviation under {perturbation}",
                },
                of("GPT-4o", "BiGGen Bench", perturbation=PERTURBED),
            ),
            "scoring_bias_accuracy_2506.22316_table4": Table(
                ("judge", "perturbation", "dataset", "gold"),
                {
                    "spearman_rho": "ρ with people, {perturbation} (",
                    "pearson_r": "r with people, {perturbation} (",
                },
                of("GPT-4o", "BiGGen Bench"),
            ),
        },
    ),
    "14": Line(
        "14_reference_answers",
        BIGGEN,
        {
            "scoring_bias_stability_2506.22316_table3": Table(
                ("judge", "perturbation", "dataset"),
                {
                    "flip_rate_pct": "scores that {perturbation} flips, %",
                    "mad": "mean absolute deviation under {perturbation}",
                },
                of("GPT-4o", "BiGGen Bench", perturbation="Ref-5"),
            ),
            "scoring_bias_gold_alignment_2506.22316_table2": Table(
                ("score_source", "dataset"),
                {
                    "spearman_rho": "ρ of gold scores with people (GPT-4o, ",
                    "pearson_r": "r of gold scores with people (GPT-4o, ",
                },
                {"score_source": "GPT-4o (our pipeline)", "dataset": "BiGGen Bench"},
            ),
        },
    ),
    "17": Line(
        "17_calibration",
        {
            "paper_judge": "GPT-4o-mini",
            "dataset": "asap-2.0",
            "n_draws": 3,
            "n_calibration": 12,
            "methods": "rulers dhs mts autoscore",
        },
        {
            "rulers_qwk_table3": Table(
                ("method", "dataset", "backbone"),
                {"qwk": "QWK of {method} (GPT-4o-mini"},
                {"dataset": "ASAP 2.0", "backbone": "GPT-4o-mini"},
            ),
            "rulers_datasets_table5": Table(
                ("dataset",),
                {
                    "task": Left("a description"),
                    "test_size": "texts in the test",
                    "calibration_size": Left(
                        "the default of the parameter n_calibration"
                    ),
                    "score_range": Left("the levels of the rubric"),
                    "label_mean": "mean label",
                    "label_sd": "standard deviation of the labels",
                },
                {"dataset": "ASAP 2.0"},
            ),
        },
        intervals=("Table 4: QWK lost without calibration.*= 0.4633 ± 0.02",),
    ),
}
ELSEWHERE = {
    "datasets_2602.02219_table1": "of the data, not of a judge: chapter 03 counts them",
    "datasets_2506.22316_table1": "of the data, not of a judge: chapter 03 counts them",
    "rulers_ablation_table4": (
        "chapters 15 to 17 state differences of its rows: line 17 has one"
    ),
    "rulers_capabilities_table2": "no numbers: it says which method has which part",
    "rulers_variants_table6": "no numbers: chapter 18 asks with these variants",
}
# paper → figure → the line that draws it, or where it stands, or why it does not
FIGURES = {
    "v2": {
        1: "chapter 01 shows its four prompts",
        2: "chapter 02 draws the method",
        3: "chapter 02 lists the orders",
        4: "05",
        5: "chapter 04 renders both prompts",
        6: "12, temperatures",
        7: "12, efforts",
        8: "07, version 2",
        9: "08",
        10: "10",
        11: "10",
    },
    "v1": {
        1: "chapter 01 shows its prompts",
        2: "chapter 02 draws the method",
        3: "chapter 04 renders the prompt",
        4: "chapter 02 lists the orders",
        5: "its shares are not printed; chapter 05 derives them from Table 5",
    },
    "scoring": {
        1: "an example",
        2: "an overview",
        3: "chapter 04 renders the prompt",
        4: "chapter 14 writes references in its two steps",
        5: "chapters 13 and 14: counts of scores",
        6: "chapter 14: ρ by reference",
    },
    "rulers": {
        1: "an example",
        2: "chapter 17: shares of labels",
        3: "chapter 18: differences of QWK",
        4: "a prompt that chapter 15 sends",
        5: "a prompt that chapter 16 sends",
        6: "an overview",
    },
}
NOTATION = {("rulers", 1)}  # a table of symbols
PAPERS = {
    "v1": "position bias v1",
    "v2": "position bias v2",
    "scoring": "scoring bias",
    "rulers": "RULERS",
}


def rubric_first(prompt):
    return prompt.index("###Score Rubrics:") < prompt.index(
        "###The instruction to evaluate:"
    )


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
    # Ascending and descending, numbers and letters; and three reads for the gold scores
    # of Table 2.
    assert len(shown) == (4 + 2) * 8
    assert all(map(rubric_first, shown))


PROTOCOLS = {"13": protocol_of_13, "14": protocol_of_14}


def judged(payload, headers):
    """Any judge: what it says follows from the prompt,
    in the form that was asked for.
    """
    prompt = payload["messages"][-1]["content"]
    drawn = crc32(prompt.encode())
    if "response_format" in payload:
        schema = payload["response_format"]["json_schema"]["schema"]
        text = json.dumps(_filled(schema, drawn))
    else:
        named = re.search(
            r"^###Criteria .*?(?=^###The instruction)", prompt, re.M | re.S
        )
        n = re.search(r"an integer number between 1 and (\d)", prompt)
        labels = (
            "123456789"[: int(n[1])]
            if n
            else ROMAN
            if "a Roman numeral" in prompt
            else "EDCBA"
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
        return {
            name: _filled(part, crc32(b"%d" % drawn, k)) for k, (name, part) in parts
        }
    if schema["type"] == "array":
        number = schema.get("minItems", schema.get("maxItems", 1))
        return [
            _filled(schema["items"], crc32(b"%d" % drawn, k)) for k in range(number)
        ]
    if schema["type"] == "integer":
        low = schema.get("minimum", 1)
        return low + drawn % (schema.get("maximum", low) - low + 1)
    return "It says so."


def _listed(done):
    """Statement, what the paper says and what we find, row by row."""
    table = BeautifulSoup(
        "".join(book.glued(done)["tab-verdicts"]["text/html"]), "html.parser"
    )
    rows = [
        [" ".join(cell.get_text().split()) for cell in row.find_all("td")]
        for row in table.find_all("tr")
    ]
    return [row[:3] for row in rows if row]


def _expected(name, table):
    """(Start of a statement, printed number) of every cell,
    as the table prints them.
    """
    printed = rb.published(name)
    assert list(printed.columns) == [*table.keys, *table.cells]
    for column, wanted in table.where.items():
        wanted = wanted if isinstance(wanted, set) else {wanted}
        printed = printed[printed[column].isin(wanted)]
    assert len(printed)
    words = {
        "balanced-random": "BALANCED minus r of RANDOM",
        "balanced-fixed": "BALANCED minus r of FIXED",
        "pearson_r": "Pearson's r",
        "spearman_rho": "Spearman's ρ",
    }
    for row in printed.to_dict("records"):
        named = {k: words.get(v, v) for k, v in row.items()}
        for column, statement in table.cells.items():
            if not isinstance(statement, Left):
                number = not row[column] if column.startswith("not_") else row[column]
                yield statement.format(**named), float(number), row.get("dataset", "")


def slow_unless_due():
    """Lines of chapters that are due are executed by every check,
    the others by `make test-all`.
    """
    read = {page.removeprefix("notebooks/") for page in due().pages}
    for name, line in LINES.items():
        marks = () if line.command and line.stem in read else pytest.mark.slow
        yield pytest.param(name, marks=marks)


def executed(line, folder, own_file):
    """The chapter's notebook after its line, and what the endpoint received."""
    # A server of one's own has models that can think;
    # a hosted one is really asked again.
    owner = {} if line.stem[:2] in PROTOCOLS else {"owned_by": "vllm"}
    with endpoint(judged, **owner) as (url, received):
        judge = f"openai:qwen3-32b@{url}"
        if line.command:
            (command,) = [c for c in printed(line.stem) if c.output == line.command]
            return run(command, folder, judge=judge, **line.values), received
        known = {parameter.name for parameter in book.parameters(line.stem, ROOT)}
        values = {"judge": judge, **line.values}
        if "readout" in known:
            values["readout"] = "feedback"
        if line.values["dataset"] in own_file:
            values["path"] = str(own_file[line.values["dataset"]])
        return book.execute(line.stem, values, root=ROOT, cell_seconds=300), received


@pytest.mark.parametrize("name", list(slow_unless_due()))
def test_a_line_of_parameters_fills_the_papers_tables(
    name, mirror, own_file, warnings_of, tmp_path, monkeypatch
):
    line = LINES[name]
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("RUBRICNB_STORE", str(tmp_path / "replies.sqlite"))
    done, received = executed(line, tmp_path, own_file)
    found = _listed(done)
    for table_name, table in line.tables.items():
        index = rb.published().set_index("table").loc[table_name]
        places = []
        for statement, number, dataset in _expected(table_name, table):
            rows = [
                k
                for k, (said, *_) in enumerate(found)
                if said.startswith(f"{index.paper}, Table {index.number}: {statement}")
                and (NAMES.get(dataset, dataset) in said or "(Qwen3-32B)" in said)
            ]
            assert len(rows) == 1, (statement, rows, found)
            _, paper_says, we_find = found[rows[0]]
            assert float(re.match(r"= (\S+)", paper_says)[1]) == number, statement
            assert re.match(r"−?\d", we_find), (statement, we_find)
            places.append(rows[0])
        assert places
    for statement in line.intervals:
        assert any(
            re.search(statement + r" \S+ \[\S+, \S+\]", " ".join(row)) for row in found
        ), found
    for shown, rows in line.beside.items():
        cells = BeautifulSoup(
            "".join(book.glued(done)[shown]["text/html"]), "html.parser"
        )
        text = [" ".join(row.get_text(" ").split()) for row in cells.find_all("tr")]
        gone = [row for row in rows if not any(row in one for one in text)]
        assert gone == [], text
    for glued, drawn in line.figures.values():
        figure = book.glued(done)[glued]["image/svg+xml"]
        assert [text for text in drawn if f"<!-- {text} -->" not in figure] == []
    if name in PROTOCOLS:
        assert [said for said in warnings_of(done) if "Warning" in said] == []
        text = {
            n: BeautifulSoup("".join(what["text/html"]), "html.parser").get_text(" ")
            for n, what in book.glued(done).items()
            if "text/html" in what
        }
        PROTOCOLS[name](
            [payload["messages"][-1]["content"] for payload in received], text
        )


def test_every_command_about_position_bias_is_a_line():
    """Those of the other papers are run by test_printed_commands.py."""
    chapters = {line.stem for line in LINES.values() if line.command}
    told = {(line.stem, line.command) for line in LINES.values() if line.command}
    assert {(c.stem, c.output) for stem in chapters for c in printed(stem)} == told
    papers = rb.data.claims().query("paper.str.startswith('position bias')")
    assert {stem for stem in set(papers.chapter) if printed(stem)} - {
        "03_datasets"
    } == chapters


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
        for key, line in LINES.items()
        for name in line.figures
    }
    assert {n: key for n, key in FIGURES["v2"].items() if key in LINES} == drawn
    for paper, known in FIGURES.items():
        assert set(map(int, re.findall(r"Figure (\d+)", paper_text[paper]))) == set(
            known
        ), paper


def test_every_table_that_a_paper_prints_is_among_the_published(paper_text):
    listed = rb.published()
    for paper, title in PAPERS.items():
        numbers = {
            (paper, n) for n in map(int, re.findall(r"Table (\d+)", paper_text[paper]))
        }
        kept = {(paper, n) for n in listed.number[listed.paper == title]}
        if paper == "v1":
            kept.add((paper, 1))  # the same in version 2
        assert numbers - NOTATION == kept, paper
