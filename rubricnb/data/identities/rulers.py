"""Statements of the RULERS paper that its own tables decide."""

from __future__ import annotations

import pandas as pd

from rubricnb.data.papers import published

_WITHOUT_CALIBRATION = "w/o WGR Calibration"


def cells_where_tables_3_and_4_agree(judge: str, dataset: str) -> int:
    """Count datasets whose QWK of the whole method is the same in Tables 3 and 4 (GPT-4o-mini).

    Examples
    --------
    >>> cells_where_tables_3_and_4_agree("", "")
    3
    """
    main = _qwk().xs("GPT-4o-mini", level="backbone")["RULERS"]
    return int((_ablation()["Full RULERS"] == main).sum())


def cells_where_rulers_is_best(judge: str, dataset: str) -> int:
    """Count the cells of Table 3 (dataset and backbone) in which RULERS has the highest QWK.

    Examples
    --------
    >>> cells_where_rulers_is_best("", "")
    12
    """
    return int((_qwk().idxmax(axis=1) == "RULERS").sum())


def smallest_lead(judge: str, dataset: str) -> float:
    """Return the smallest lead of RULERS over the best baseline in Table 3.

    Examples
    --------
    >>> round(smallest_lead("", ""), 4)
    0.0039
    """
    table = _qwk()
    return float((table["RULERS"] - table.drop(columns="RULERS").max(axis=1)).min())


def baselines_below_rulers_without_calibration(judge: str, dataset: str) -> int:
    """Count the nine baselines (Table 3, GPT-4o-mini) that RULERS beats without its calibration.

    Examples
    --------
    >>> baselines_below_rulers_without_calibration("", "")
    4
    """
    baselines = _qwk().xs("GPT-4o-mini", level="backbone").drop(columns="RULERS")
    return int(baselines.lt(_ablation()[_WITHOUT_CALIBRATION], axis=0).to_numpy().sum())


def datasets_where_calibration_matters_most(judge: str, dataset: str) -> int:
    """Count datasets of Table 4 whose QWK is lowest without calibration.

    Examples
    --------
    >>> datasets_where_calibration_matters_most("", "")
    3
    """
    return int((_ablation().idxmin(axis=1) == _WITHOUT_CALIBRATION).sum())


def datasets_where_locking_matters_more(judge: str, dataset: str) -> int:
    """Count, of the datasets named, those that lose more without locking than without evidence.

    Examples
    --------
    >>> datasets_where_locking_matters_more("", "SummHF")
    1
    """
    table = _ablation().loc[[dataset]]
    return int((table["w/o Rubric Locking"] < table["w/o Evidence Verify"]).sum())


def datasets_where_evidence_matters_more(judge: str, dataset: str) -> int:
    """Count, of the datasets named, those that lose more without evidence than without locking.

    Examples
    --------
    >>> datasets_where_evidence_matters_more("", "DREsS")
    1
    """
    return len([dataset]) - datasets_where_locking_matters_more(judge, dataset)


def cells_where_8b_is_worst(judge: str, dataset: str) -> int:
    """Count the cells of Table 3 (method and dataset) whose QWK is lowest with Llama-3.1-8B.

    Examples
    --------
    >>> cells_where_8b_is_worst("", "")
    10
    """
    by_backbone = _qwk().unstack("backbone").stack("method", future_stack=True)
    return int((by_backbone.idxmin(axis=1) == "Llama-3.1-8B").sum())


def datasets_where_rulers_varies_least(judge: str, dataset: str) -> int:
    """Count datasets of Table 3 on which RULERS' QWK has the smallest range over backbones.

    Examples
    --------
    >>> datasets_where_rulers_varies_least("", "")
    2
    """
    by_dataset = _qwk().groupby("dataset")
    spread = by_dataset.max() - by_dataset.min()
    return int((spread.idxmin(axis=1) == "RULERS").sum())


def datasets_where_the_small_model_suffices(judge: str, dataset: str) -> int:
    """Count datasets on which RULERS with GPT-4o-mini is above all baselines of larger models.

    Larger: GPT-4o and Llama-3.1-70B.

    Examples
    --------
    >>> datasets_where_the_small_model_suffices("", "")
    2
    """
    table = _qwk()
    small = table.xs("GPT-4o-mini", level="backbone")["RULERS"]
    larger = table[table.index.isin(["GPT-4o", "Llama-3.1-70B"], level="backbone")]
    return int((small > larger.drop(columns="RULERS").max(axis=1).groupby("dataset").max()).sum())


def methods_with_calibration(judge: str, dataset: str) -> int:
    """Count the methods of Table 2 that are ticked for calibration.

    Examples
    --------
    >>> methods_with_calibration("", "")
    4
    """
    table = published("rulers_capabilities").set_index("feature")
    return int((table.loc["distributional calibration"] == "yes").sum())


def variants_with_levels_in_another_order(judge: str, dataset: str) -> int:
    """Count variants of Table 6 in which the levels, not the criteria, stand in another order.

    Examples
    --------
    >>> variants_with_levels_in_another_order("", "")
    1
    """
    orders = published("rulers_variants").set_index("variant")["level_order"]
    return int((orders != orders["standard"]).sum())


def parts_that_help(judge: str, dataset: str) -> int:
    """Count the cells of Table 4 (part left out, dataset) whose QWK is below the whole method's.

    Examples
    --------
    >>> parts_that_help("", "")
    9
    """
    table = _ablation()
    whole = table["Full RULERS"]
    return int(table.drop(columns="Full RULERS").lt(whole, axis=0).to_numpy().sum())


def leads_beyond_sampling_error(judge: str, dataset: str) -> int:
    """Count the cells of Table 3 in which RULERS leads by more than half a 95 % interval.

    Of one QWK at Table 5's number of texts: 1.96 (1 − QWK²)/√n, as for a correlation.

    Examples
    --------
    >>> leads_beyond_sampling_error("", "")
    8
    """
    table = _qwk()
    best = table.drop(columns="RULERS").max(axis=1)
    size = published("rulers_datasets").set_index("dataset")["test_size"]
    n = table.index.get_level_values("dataset").map(size).to_numpy(dtype=float)
    return int((table["RULERS"] - best > 1.96 * (1 - table["RULERS"] ** 2) / n**0.5).sum())


def cells_where_traits_beat_holistic(judge: str, dataset: str) -> int:
    """Count the cells of Table 3 (dataset and backbone) in which MTS has a higher QWK than DHS.

    Examples
    --------
    >>> cells_where_traits_beat_holistic("", "")
    8
    """
    table = _qwk()
    return int((table["MTS"] > table["DHS"]).sum())


def larger_models_that_are_worse(judge: str, dataset: str) -> int:
    """Count baselines and datasets of Table 3 that are worse with the larger model of a family.

    GPT-4o against GPT-4o-mini, and Llama-3.1-70B against Llama-3.1-8B: 18 comparisons.

    Examples
    --------
    >>> larger_models_that_are_worse("", "")
    3
    """
    table = _qwk().drop(columns="RULERS").unstack("backbone").stack("method", future_stack=True)
    pairs = [("GPT-4o", "GPT-4o-mini"), ("Llama-3.1-70B", "Llama-3.1-8B")]
    return int(sum((table[large] < table[small]).sum() for large, small in pairs))


def relative_spread(judge: str, dataset: str) -> float:
    """Return the labels' standard deviation over the range of their scale, by that of ASAP 2.0.

    Examples
    --------
    >>> round(relative_spread("", "SummHF"), 2), round(relative_spread("", "DREsS"), 2)
    (1.44, 1.04)
    """
    table = published("rulers_datasets").set_index("dataset")
    ends = table["score_range"].str.split("–", expand=True).astype(float)
    spread = table["label_sd"] / (ends[1] - ends[0])
    return float(spread[dataset] / spread["ASAP 2.0"])


def datasets_calibrated_on_200_texts(judge: str, dataset: str) -> int:
    """Count the datasets of Table 5 whose calibration has 200 texts.

    Examples
    --------
    >>> datasets_calibrated_on_200_texts("", "")
    3
    """
    return int((published("rulers_datasets")["calibration_size"] == 200).sum())


def methods_with_every_feature(judge: str, dataset: str) -> int:
    """Count the methods of Table 2 that have all its features.

    Examples
    --------
    >>> methods_with_every_feature("", "")
    1
    """
    table = published("rulers_capabilities").set_index("feature")
    return int((table == "yes").all().sum())


def reordered_variants_in_the_same_words(judge: str, dataset: str) -> int:
    """Count variants of Table 6 with the standard's words and another order.

    Examples
    --------
    >>> reordered_variants_in_the_same_words("", "")
    1
    """
    table = published("rulers_variants").set_index("variant")
    standard = table.loc["standard"]
    same, turned = (
        table["wording"] == standard["wording"],
        table["level_order"] != standard["level_order"],
    )
    return int((same & turned).sum())


def _qwk() -> pd.DataFrame:
    """Return Table 3: (dataset, backbone) by method."""
    table = published("rulers_qwk")
    return table.pivot(index=["dataset", "backbone"], columns="method", values="qwk")


def _ablation() -> pd.DataFrame:
    """Return Table 4: dataset by setting."""
    return published("rulers_ablation").pivot(index="dataset", columns="setting", values="qwk")
