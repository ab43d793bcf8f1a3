"""Tables of scores made elsewhere become judgments, or are refused by the row."""

from contextlib import suppress
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import pearsonr

import rubricnb as rb

BY = ["judge", "dataset", "design"]


@pytest.fixture
def log():
    """40 texts of ten prompts, read twice on a scale from 0 with halves."""
    rng = np.random.default_rng(0)
    quality = rng.uniform(0, 4, 40)
    noisy = np.clip(quality[:, None] + rng.normal(0, 0.5, (40, 2)), 0, 4)
    return pd.DataFrame(
        {
            "item_id": np.repeat([f"t{i:02d}" for i in range(40)], 2),
            "cluster_id": np.repeat([f"p{i // 4}" for i in range(40)], 2),
            "read": [1, 2] * 40,
            "score": (noisy.round(1) * 2).round().ravel() / 2,
            "human": np.repeat(quality.round(), 2),
        }
    )


@pytest.fixture
def simulated():
    """Judgments of this package on minibench, and the table one would have exported."""
    items = rb.load("minibench", n_items=90)
    plan = rb.plan(items, [rb.balanced(5), rb.fixed(5, 3)])
    made = rb.simulate(plan, items, "first-biased")
    table = made[
        ["item_id", "dataset", "criterion", "ordering", "replicate", "score", "design"]
    ]
    return (
        items,
        made,
        table.rename(columns={"replicate": "read"}).astype({"ordering": "str"}),
    )


def test_scores_from_0_and_halves_are_kept_and_agree_as_scipy_says(log):
    before = log.copy(deep=True)
    mine = rb.judgments(log, scale=(0, 4))
    pd.testing.assert_frame_equal(log, before)
    assert (
        rb.judgments(log.assign(score=log.score.round()), scale=(0, 4)).score.dtype
        == "Int8"
    )
    assert mine["score"].tolist() == log["score"].tolist()
    assert (mine["score"] == 0).any()
    assert (mine["score"] % 1 == 0.5).any()
    found = rb.agreement(mine, mine.rated).iloc[0]
    means = log.groupby("item_id")[["score", "human"]].mean()
    assert found["r"] == pytest.approx(pearsonr(means["score"], means["human"])[0])
    assert (found["n_items"], found["n_clusters"]) == (40, 10)


def test_plain_reads_have_no_ordering_and_the_statistics_of_orderings_say_so(log):
    mine = rb.judgments(log, scale=(0, 4))
    assert mine[["ordering", "position"]].isna().all(axis=None)
    with pytest.raises(ValueError, match="ordering"):
        rb.position_bias(mine)
    moved = rb.within_item_sd(mine).iloc[0]
    wide = log.pivot(index="item_id", columns="read", values="score")
    assert moved["variance"] == pytest.approx(wide.var(axis=1).mean())


def test_forms_and_temperatures_are_conditions(log):
    other = log.assign(
        form="stars", temperature=0.7, score=(log.score + 1).clip(upper=4)
    )
    both = pd.concat([log.assign(form="plain", temperature=0.7), other])
    found = rb.stability(rb.judgments(both, scale=(0, 4)), {"template": "plain"}).iloc[
        0
    ]
    assert found["template"] == "stars"
    difference = (
        other.groupby("item_id").score.mean() - log.groupby("item_id").score.mean()
    )
    assert found["shift"] == pytest.approx(difference.mean())


def test_a_table_exported_from_here_gives_what_the_judgments_gave(simulated):
    items, made, table = simulated
    mine = rb.judgments(table.drop(columns="design")[made.design == "balanced"], items)
    assert mine["design"].unique().tolist() == ["balanced"]
    original = made[made.design == "balanced"]
    assert mine["position"].tolist() == original["position"].tolist()
    for statistic in (
        rb.position_bias,
        lambda judgments, by: rb.agreement(judgments, items, by),
        lambda judgments, by: rb.variance_components(judgments, by),
    ):
        ours, theirs = (
            statistic(mine, by=["dataset"]),
            statistic(original, by=["dataset"]),
        )
        pd.testing.assert_frame_equal(
            ours, theirs, check_dtype=False, check_categorical=False
        )


@pytest.mark.parametrize(
    ("orders", "design"),
    [
        (["1-2-3"], "fixed"),
        (["3-2-1"], "single"),
        (["1-2-3", "2-3-1", "3-1-2", "3-2-1", "2-1-3", "1-3-2"], "balanced"),
        (["1-2-3", "3-1-2"], "shuffled"),
        (["0-1-2"], "fixed"),
    ],
)
def test_the_design_is_read_from_the_orderings(orders, design):
    frame = pd.DataFrame([(i, o, 1) for i in "ab" for o in orders])
    frame.columns = ["item_id", "ordering", "score"]
    assert set(rb.judgments(frame, scale=(0, 3)).design) == {design}


def test_the_design_is_that_of_the_set_that_half_of_the_items_were_shown():
    """Other sets have as many orders; each judge has its own, its rows in any order."""
    rng = np.random.default_rng(0)
    balanced = ["-".join(map(str, order)) for order in rb.balanced(4).orderings()]
    every = ["-".join(order) for order in permutations("1234")]
    rows = []
    for judge, n_balanced in {"most": 6, "half": 5, "few": 4, "none": 0}.items():
        for item in range(10):
            other = rng.choice(every, len(balanced), replace=False)
            shown = balanced if item < n_balanced else other
            rows += [(judge, f"t{item}", order, 1) for order in shown]
    table = pd.DataFrame(rows, columns=["judge", "item_id", "ordering", "score"])
    read = rb.judgments(table.sample(frac=1, random_state=1), scale=(1, 4))
    found = read.groupby("judge", observed=True)["design"].unique()
    assert {judge: [*designs] for judge, designs in found.items()} == {
        "most": ["balanced"],
        "half": ["balanced"],
        "few": ["shuffled"],
        "none": ["shuffled"],
    }


def test_a_scale_for_each_criterion():
    frame = pd.DataFrame(
        {"text_id": list("aabb"), "criterion": ["x", "y"] * 2, "score": [5, 9, 1, 2]}
    )
    mine = rb.judgments(frame, scale={"x": (1, 5), "y": (1, 10)})
    assert mine["n_options"].tolist() == [5, 10] * 2
    assert mine["item_id"].tolist() == ["a/x", "a/y", "b/x", "b/y"]
    with pytest.raises(
        ValueError, match=r"scale of 'y' is missing; give \(lowest, highest\)"
    ):
        rb.judgments(frame, scale={"x": (1, 5)})
    assert rb.judgments(frame, scale=(1, 5)).status.tolist() == [
        "ok",
        "out_of_range",
        "ok",
        "ok",
    ]


def test_text_ids_under_several_criteria_are_joined_by_the_criterion():
    frame = pd.DataFrame(
        {
            "item_id": list("aabbcc"),
            "criterion": ["x", "y"] * 3,
            "human": [1.0, 5, 2, 4, 3, 3],
        }
    )
    items = frame.assign(dataset="d", text_id=frame.item_id, cluster_id=frame.item_id)
    items["item_id"] = items["text_id"] + "/" + items["criterion"]
    table = frame.rename(columns={"item_id": "text_id", "human": "score"})
    mine = rb.judgments(table.sample(frac=1, random_state=1), items, scale=(1, 5))
    assert rb.agreement(mine, items).r.tolist() == [pytest.approx(1)]
    # text ids as item_id
    alone = rb.judgments(frame.assign(score=frame.human), scale=(1, 5))
    assert alone.rated["item_id"].tolist() == ["a/x", "a/y", "b/x", "b/y", "c/x", "c/y"]
    assert rb.agreement(alone, alone.rated).r.tolist() == [pytest.approx(1)]


def test_sets_that_share_ids_are_joined_by_the_set():
    items = pd.DataFrame(
        {"dataset": ["d", "e"], "item_id": "a", "human": [1.0, 5.0], "cluster_id": "a"}
    )
    table = items[["dataset", "item_id"]].assign(score=[1, 5])
    mine = rb.judgments(table.iloc[::-1], items, scale=(1, 5))
    assert mine.rated.set_index("dataset").human.to_dict() == {"d": 1, "e": 5}
    assert mine.set_index("dataset").score.to_dict() == {"d": 1, "e": 5}
    with pytest.raises(
        ValueError, match=r"1 appear twice under item_id .* name dataset and cri"
    ):
        rb.judgments(table.drop(columns="dataset")[:1], items, scale=(1, 5))


def test_rows_without_an_item_are_dropped_and_counted(log, capsys):
    items = log.drop_duplicates("item_id").iloc[:30][["item_id", "cluster_id", "human"]]
    mine = rb.judgments(log, items, scale=(0, 4))
    said = "20 of 80 rows have no item and are dropped: t30; t31; t32"
    assert said in capsys.readouterr().out
    assert len(mine) == 60
    assert mine.rated.item_id.tolist() == items.item_id.tolist()
    with pytest.raises(
        ValueError, match=r"none of the 40 judged items \(the first: x00\)"
    ):
        rb.judgments(
            log.replace({"item_id": {"t": "x"}}, regex=True), items, scale=(0, 4)
        )


def test_a_score_counts_only_where_the_status_is_ok(log, capsys):
    log["status"] = ["refused", None] * 40
    log.loc[1, "score"] = np.nan
    mine = rb.judgments(log, scale=(0, 4))
    assert "40 scores are removed" in capsys.readouterr().out
    counts = mine["status"].value_counts()
    assert counts[counts > 0].to_dict() == {"refused": 40, "ok": 39, "unparsed": 1}
    assert mine["score"].notna().tolist() == (mine["status"] == "ok").tolist()


@pytest.mark.parametrize(
    ("score", "status", "why"),
    [
        (4.5, "out_of_range", "off the scale 0..4"),
        (np.inf, "out_of_range", "off the scale 0..4"),
        ("good", "unparsed", "not a number"),
        (True, "unparsed", "not a number"),
        ("NaN", "unparsed", "not a number"),
        ("4/5", "unparsed", "not a number"),
        ([4], "unparsed", "not a number"),
        (-9, "unparsed", "marked -9"),
    ],
)
def test_a_score_that_cannot_count_is_counted_and_named(
    log, score, status, why, capsys
):
    log["reason"] = "asked late"
    log["score"] = log["score"].astype(object)
    log.at[3, "score"] = score
    log.loc[3, "reason"] = None
    mine = rb.judgments(log, scale=(0, 4), failed=-9)
    assert mine["status"].tolist() == ["ok"] * 3 + [status] + ["ok"] * 76
    assert mine["score"].isna().tolist() == [row == 3 for row in range(80)]
    assert mine["reason"].tolist() == ["asked late"] * 3 + [why] + ["asked late"] * 76
    said = f"judgments: 1 of 80 scores are {status} ({why}), the first in row 3: "
    assert said in capsys.readouterr().out


TEXTS = "instruction,response,text_id\na,x,7\nb,y,8\nc,z,9\n"


def test_scores_and_ratings_may_be_labels_of_the_rubric(own, capsys):
    items = own(
        TEXTS,
        "{criterion: kind, definition: 'Kind?', levels: {'no': rude, 'yes': kind}}",
    )
    table = pd.DataFrame({"text_id": ["7.0", "8.0"], "score": ["Yes", "no"]})
    names = dict.fromkeys(("r1", "r2"), "human_ratings")
    mine = rb.judgments(table.assign(r1="no", r2=["yes", None]), items, columns=names)
    assert mine["score"].tolist() == [1, 0]
    assert mine.rated["human"].tolist() == [0.5, 0]
    assert mine.rated["human_ratings"].tolist() == [
        (0, 1),
        pytest.approx((0, np.nan), nan_ok=True),
    ]
    out = capsys.readouterr().out
    assert "2 names in 'text_id' are shortened: '7.0' is read as '7'" in out
    assert (
        "score: 2 values are not plain numbers, such as 'Yes', which is read as 1"
        in out
    )


def test_a_scale_with_gaps_has_its_own_options(own):
    items = own(
        TEXTS, "{criterion: k, definition: '?', levels: {1: a, 3: b, 5: c, 7: d}}"
    )
    shown = np.array([[7, 1, 3, 5], [5, 7, 1, 3], [3, 5, 7, 1]])
    table = pd.DataFrame(
        {"text_id": [7, 8, 9], "score": [7, 1, 4], "ordering": shown.tolist()}
    )
    mine = rb.judgments(table, items)
    assert mine["n_options"].tolist() == [4, 4, 4]
    assert mine["ordering"].tolist() == ["7-1-3-5", "5-7-1-3", "3-5-7-1"]
    assert mine["position"].fillna(-1).tolist() == [1, 3, -1]  # 4 is between two levels


def test_each_column_of_scores_is_a_criterion():
    table = pd.DataFrame(
        {
            "Item_ID": ["a", "b"],
            "tone": [1, 2],
            "accuracy": [3, 4.5],
            "human_tone": [1, 3],
            "note": ["x", "y"],
        }
    )
    mine = rb.judgments(table, scale=(1, 5), scores=["tone", "accuracy"])
    long = pd.DataFrame(
        {
            "item_id": list("abab"),
            "criterion": ["tone"] * 2 + ["accuracy"] * 2,
            "score": [1, 2, 3, 4.5],
            "human": [1, 3, None, None],
        }
    )
    wanted = rb.judgments(long, scale=(1, 5))
    for column in ("item_id", "criterion", "score", "request_id"):
        assert mine[column].tolist() == wanted[column].tolist()
    assert mine.rated["human"].fillna(-1).tolist() == [1, 3, -1, -1]
    assert mine["note"].tolist() == ["x", "y"] * 2
    with pytest.raises(ValueError, match=r"the table lacks 'tune'.*'tone': 'tune'"):
        rb.judgments(table, scale=(1, 5), scores=["tune"])
    with pytest.raises(ValueError, match="has the column 'criterion', and scores="):
        rb.judgments(table.assign(criterion="x"), scale=(1, 5), scores=["tone"])


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        ([1, 0, 0, 1], [2, 1, 1, 2]),
        (["run-b", "run-a", "run-a", "run-b"], [1, 2, 2, 1]),
        (["u1", "u2", "u3", "u4"], [1, 2, 1, 2]),
        (["1", "2", "1", "2"], [1, 2, 1, 2]),
    ],
)
def test_reads_may_have_any_labels(labels, numbers, capsys):
    table = pd.DataFrame(
        {"item_id": list("aabb"), "read": labels, "score": [1, 2, 3, 4]}
    )
    assert rb.judgments(table, scale=(1, 5))["replicate"].tolist() == numbers
    assert ("are numbered from 1" in capsys.readouterr().out) == (labels[0] != "1")


@pytest.mark.parametrize("column", ["read", "status", "judge", "item_id", "human"])
@pytest.mark.parametrize("cell", [[1, 2], {"a": 1}, {1}, np.array([1, 2])])
def test_a_cell_of_several_values_is_read_or_refused(column, cell):
    rows = [{"item_id": f"t{k}", "score": 1 + k} for k in range(4)]
    rows[2] |= {column: cell}
    table = [{column: "ok"} | row for row in rows]
    with suppress(ValueError):
        assert rb.judgments(table, scale=(1, 5)).score.tolist() == [1, 2, 3, 4]


def test_repeats_without_a_number_are_numbered_unless_two_rows_are_equal(log, capsys):
    table = log.drop(columns="read").assign(note=range(80))
    with pytest.raises(ValueError, match=r"(?s)differ in 'note'.*rows repeat: reads"):
        rb.judgments(table, scale=(0, 4))
    known = rb.reading(table, scale=(0, 4), decide=["rows repeat: reads"])
    mine = rb.judgments(known)
    assert mine["replicate"].tolist() == [1, 2] * 40
    assert "are numbered from 1, by their 'read' or by row" in capsys.readouterr().out
    copied = pd.concat([table, table[:1]], ignore_index=True)
    with pytest.raises(
        ValueError, match=r"rows 0, 80, .*'t00' is judged twice .* drop the copies"
    ):
        rb.reading(copied, scale=(0, 4), decide=["rows repeat: reads"])


def test_judgments_are_taken_as_they_are(log):
    mine = rb.judgments(log, scale=(0, 4))
    assert rb.judgments(mine) is mine
    again = rb.judgments(mine, mine.rated, scale=(0, 4))
    assert again["request_id"].tolist() == mine["request_id"].tolist()


def test_two_columns_that_could_be_the_score_are_refused(log):
    table = log.assign(Score=1)
    said = "two columns that could be 'score': 'score', 'Score'; drop one, or rename"
    with pytest.raises(ValueError, match=said):
        rb.judgments(table, scale=(0, 4))
    mine = rb.judgments(table, scale=(0, 4), columns={"Score": "other"})
    assert mine["score"].tolist() == log["score"].tolist()


def spoilt(log, **columns):
    for name, (row, value) in columns.items():
        log[name] = log[name].astype(object) if name in log else None
        log.loc[row, name] = value
    return log


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"item_id": (3, None)}, "row 3, column 'item_id': nan is missing"),
        ({"cluster_id": (3, None)}, "row 3, column 'cluster_id': nan is missing"),
        ({"human": (3, 1.5)}, "row 3, column 'human': 1.5 is not what an earlier row"),
        (
            {"cluster_id": (3, "p9")},
            "row 3, column 'cluster_id': 'p9' is not what an earlier row",
        ),
        ({"read": (3, 1)}, "rows 2, 3, column 'item_id': 't01' is judged twice"),
        ({"status": (3, "fine")}, "row 3, column 'status': 'fine' is not one of"),
        (
            {"ordering": (3, "1-1-2")},
            "row 3, column 'ordering': '1-1-2' does not list the scores",
        ),
        (
            {"ordering": (3, "up")},
            "row 3, column 'ordering': 'up' does not list the scores",
        ),
    ],
)
def test_what_is_wrong_is_refused_by_row_and_column(log, columns, said):
    with pytest.raises(ValueError, match=said):
        rb.judgments(spoilt(log, **columns), scale=(0, 4))


def test_a_condition_that_some_rows_do_not_name_is_one(log):
    for condition in ({"temperature": 0.7}, {"judge": "a"}):
        mine = rb.judgments(pd.concat([log.assign(**condition), log]), scale=(0, 4))
        assert len(mine) == mine["request_id"].nunique() == 160


@pytest.mark.parametrize(
    ("change", "scale", "said"),
    [
        (
            lambda log: log.drop(columns="score"),
            (0, 4),
            "lacks 'score'.*: columns=.'…': 'score'.",
        ),
        (
            lambda log: log.drop(columns="item_id"),
            (0, 4),
            "lacks 'item_id'.*=.'…': 'item_id'.",
        ),
        (
            lambda log: log.rename(columns={"score": "tone"}),
            (0, 4),
            r"of one column a criterion: scores=\['…', '…'\]$",
        ),
        (
            lambda log: log,
            None,
            r"need scale=\(lowest, highest\), or items with rubrics",
        ),
        (lambda log: log[:0], (0, 4), "the table is empty"),
        (
            lambda log: log.assign(form="a", template="b"),
            (0, 4),
            "that could be 'template'",
        ),
        (
            lambda log: pd.concat([log, log], ignore_index=True),
            (0, 4),
            r"rows 0, 1, 2 and 157 more, .* number repeated reads",
        ),
        (
            lambda log: log[:2].assign(score=[True, False]),
            (0, 4),
            ("row 0: 'True' is not a number"),
        ),
        (lambda log: log[:2].assign(score=["y", "n"]), (0, 1), ("'y' is not a number")),
        (
            lambda log: log[:2].assign(score=[80.0, 95]),
            (0, 1),
            ("'80' is off the scale 0..1"),
        ),
    ],
)
def test_a_table_without_what_is_needed_is_refused(log, change, scale, said):
    with pytest.raises(ValueError, match=said):
        rb.judgments(change(log), scale=scale)


def test_a_log_can_be_a_file(log, tmp_path):
    log = log.assign(judge="mine", note="é")
    log.to_csv(tmp_path / "log.csv", index=False, encoding="utf-8-sig")
    log.to_csv(tmp_path / "log.tsv", index=False, sep="\t")
    log.to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    log.to_parquet(tmp_path / "log.parquet")
    wanted = rb.judgments(log, scale=(0, 4))
    for file in sorted(tmp_path.iterdir()):
        mine = rb.judgments(file, scale=(0, 4))
        assert mine["score"].tolist() == wanted["score"].tolist(), file
        assert mine["request_id"].tolist() == wanted["request_id"].tolist(), file
        assert mine.rated["human"].tolist() == wanted.rated["human"].tolist(), file
        assert set(mine["note"]) == {"é"}, file


def test_rows_of_a_file_count_from_1_and_blanks_are_missing(log, tmp_path, capsys):
    file = tmp_path / "log.csv"
    log["score"] = log["score"].astype(object)
    log.loc[[2, 3], "score"] = ["", 7]
    log.to_csv(file, index=False)
    rb.judgments(file, scale=(0, 4))
    assert (
        "1 of 80 scores are out_of_range (off the scale 0..4), the first in row 4: 7"
        in (capsys.readouterr().out)
    )
    assert rb.judgments(file, scale=(0, 9))["status"].tolist()[:4] == [
        "ok",
        "ok",
        "unparsed",
        "ok",
    ]


def test_edits_of_a_recording_are_reads_of_their_own_and_a_read_twice_is_not():
    recorded = rb.recorded("embedded", "minibench", "minibench").query(
        "design == 'placebo' and template == 'rubric'"
    )
    assert len(rb.judgments(recorded, rb.load("minibench"))) == len(recorded) > 1000
    with pytest.raises(ValueError, match="is judged twice"):
        rb.judgments(pd.concat([recorded, recorded.head(1)]), rb.load("minibench"))
