import pytest

from rubricnb.sets.identities import value
from rubricnb.sets.papers import published


@pytest.fixture(scope="module")
def qwk():
    return {
        (r.method, r.dataset, r.backbone): r.qwk
        for r in published("rulers_qwk").itertuples()
    }


def test_leads_against_a_loop(qwk):
    leads = [
        value
        - max(qwk[method, dataset, backbone] for method in ("DHS", "MTS", "AutoScore"))
        for (name, dataset, backbone), value in qwk.items()
        if name == "RULERS"
    ]
    assert value("cells_where_rulers_is_best") == sum(lead > 0 for lead in leads)
    assert value("smallest_lead") == pytest.approx(min(leads))


def test_worst_backbone_against_a_loop(qwk):
    backbones = {backbone for *_, backbone in qwk}
    worst = sum(
        min(backbones, key=lambda b, m=method, d=dataset: qwk[m, d, b])
        == "Llama-3.1-8B"
        for method, dataset in {(m, d) for m, d, _ in qwk}
    )
    assert value("cells_where_8b_is_worst") == worst


def test_without_calibration_against_a_loop(qwk):
    left = published("rulers_ablation").query("setting == 'w/o WGR Calibration'")
    beaten = sum(
        row.qwk > qwk[method, row.dataset, "GPT-4o-mini"]
        for row in left.itertuples()
        for method in ("DHS", "MTS", "AutoScore")
    )
    assert value("baselines_below_rulers_without_calibration") == beaten


def test_range_over_backbones_against_a_loop(qwk):
    least = 0
    for dataset in {d for _, d, _ in qwk}:
        spread = {}
        for method in {m for m, *_ in qwk}:
            values = [v for (m, d, _), v in qwk.items() if (m, d) == (method, dataset)]
            spread[method] = max(values) - min(values)
        least += min(spread, key=spread.get) == "RULERS"
    assert value("datasets_where_rulers_varies_least") == least


def test_traits_and_model_size_against_loops(qwk):
    cells = {(d, b) for _, d, b in qwk}
    assert value("cells_where_traits_beat_holistic") == sum(
        qwk["MTS", d, b] > qwk["DHS", d, b] for d, b in cells
    )
    worse = sum(
        qwk[m, d, large] < qwk[m, d, small]
        for m in ("DHS", "MTS", "AutoScore")
        for d in {d for d, _ in cells}
        for large, small in (
            ("GPT-4o", "GPT-4o-mini"),
            ("Llama-3.1-70B", "Llama-3.1-8B"),
        )
    )
    assert value("larger_models_that_are_worse") == worse


def test_relative_spread_is_one_for_the_dataset_it_is_relative_to():
    assert value("relative_spread", "", "ASAP 2.0") == 1
    assert value("relative_spread", "", "DREsS") == pytest.approx(
        (2.51 / 12) / (1.01 / 5)
    )
