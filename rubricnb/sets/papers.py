"""The papers' tables and claims, and what our numbers say about them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rubricnb.core.support.spelling import nearest, one_of

_FOLDER = Path(__file__).parent / "published"
ERRATA = _FOLDER / "errata.csv"
# for claims that are tested on judges
VERDICTS = ("replicates", "does not", "cannot say")
# What is checked without a judge has words of its own:
# "the arithmetic holds", "… fails".
_CHECKED = {
    "identity": "the arithmetic",
    "fact": "the count",
    "procedure": "the procedure",
}
NO_INTERVAL = "no interval"


def published(table: str | None = None) -> pd.DataFrame:
    """Return a table of the papers as printed, or the list of the tables there are.

    Parameters
    ----------
    table
        Its name, or the beginning of its name where only one table begins so. Default:
        the list.

    Returns
    -------
    DataFrame
        The list has table, paper, arxiv, number and caption. Percentages are as
        printed.

    Raises
    ------
    ValueError
        There is no such table, or several begin so.

    Examples
    --------
    >>> table = published("position_bias")
    >>> gemma = table.query("judge == 'Gemma-3-27B' and dataset == 'HANNA'")
    >>> gemma[["chi2", "pos1_pct", "pos5_pct"]].values.tolist()
    [[395.3, 13.9, 29.3]]
    >>> len(published())
    21
    """
    index = pd.read_csv(_FOLDER / "index.csv", dtype="str", keep_default_na=False)
    if table is None:
        return index.astype({"number": "int64"})
    names = index["table"].tolist()
    begin = [name for name in names if name.startswith(table)]
    matching = [table] if table in names else begin
    if len(matching) != 1:
        problem = f"several tables begin with {table!r}"
        if not matching:
            problem = f"there is no table {table!r}{nearest(table, names)}"
        raise ValueError(f"{problem} There are: {', '.join(matching or names)}")
    return pd.read_csv(_FOLDER / f"{matching[0]}.csv")


def paper_judges(papers: Iterable[str] | None = None) -> list[str]:
    """List the judges of the papers as their tables spell them.

    Parameters
    ----------
    papers
        Names as in ``published().paper``; default: all.

    Returns
    -------
    list of str
        In the order of the tables. RULERS calls them backbones, and a source of gold
        scores is a judge too.

    Examples
    --------
    >>> paper_judges(["RULERS"])
    ['GPT-4o-mini', 'GPT-4o', 'Llama-3.1-8B', 'Llama-3.1-70B']
    """
    listed = published()
    chosen = listed if papers is None else listed[listed["paper"].isin(list(papers))]
    named = [
        table[column]
        for table in map(published, chosen["table"])
        for column in ("judge", "backbone", "score_source")
        if column in table
    ]
    bare = pd.concat(named).str.replace(r" \(.*", "", regex=True)
    return list(bare.unique())


def check_paper_judge(name: str, papers: Iterable[str]) -> str:
    """Return a papers' judge's name, or the empty one of a reader's own judge.

    Raises
    ------
    ValueError
        None of these papers has a judge of that name; says which come near, or which
        paper has it.

    Examples
    --------
    >>> check_paper_judge("Qwen3-8B-Think", ["position bias v1"])
    'Qwen3-8B-Think'
    >>> check_paper_judge("qwen3-8b", ["position bias v1"])
    Traceback (most recent call last):
    ValueError: paper_judge = 'qwen3-8b' is no judge of position bias v1; did you mean \
'Qwen3-8B' or 'Qwen3-32B'? ...
    """
    papers = list(papers)
    known = paper_judges(papers)
    if name in ("", *known):
        return name
    listed = published()["paper"].unique()
    elsewhere = [p for p in listed if p not in papers and name in paper_judges([p])]
    hint = nearest(name, known)
    if elsewhere:
        told = claims().query("paper in @elsewhere")["chapter"]
        chapters = ", ".join(told.str.partition("_")[0].unique())
        hint = (
            f"; it is a judge of {' and '.join(elsewhere)}, which chapters {chapters} "
            "check."
        )
    raise ValueError(
        f"paper_judge = {name!r} is no judge of {' or '.join(papers)}{hint} There are: "
        f"{', '.join(known)}. Leave it empty for a judge of your own"
    )


def paper_items() -> pd.DataFrame:
    """List each numbered figure, table, equation and setting of the papers.

    Returns
    -------
    DataFrame
        Text only, a row for each item and each command that fills a part of it: paper;
        item (``Table 2``); what it is; chapter, where it stands (a chapter's stem, or
        the path of a page or of a study's file); label, of its figures, tables or
        sections there, with spaces; command, by the file that it writes (a notebook or
        a bundle) or the study that it runs, empty where nothing has to be asked;
        published, where its numbers are (a table of `published`, or how the ids of
        `claims` begin; empty: none is printed); reason, what no command can fill and
        why.

    Examples
    --------
    >>> items = paper_items().set_index(["paper", "item"])
    >>> items.command["position bias v2", "Table 4"].tolist()
    ['scales-2-3-5.ipynb', 'scale-9.ipynb']
    """
    return pd.read_csv(_FOLDER / "items.csv", dtype="str", keep_default_na=False)


def claims(chapter: str | None = None) -> pd.DataFrame:
    """List the papers' statements that the book checks.

    Parameters
    ----------
    chapter
        A chapter's stem (``05_position_bias``) or number (``05``); default: all.

    Returns
    -------
    DataFrame
        One row per statement: claim_id; paper; section; kind (``claim``: about judges,
        compared with an estimate of ours; ``fact``: about data, designs, prompts or
        code, in which we count; ``identity``: inside the papers' own tables, recomputed
        from them; ``procedure``: about a test or an interval, compared with simulated
        studies); chapter; quantity in words; judge, dataset (empty: all of the
        paper's); published, the value; basis (``printed``: the paper prints this
        number, in a table, in digits or in words such as "all"; ``reading``: the number
        is ours, for words such as "flat" or for a count that the paper does not make);
        relation (``=``, ``<=`` or ``>=`` published); tolerance, ours, in units of the
        quantity; recompute, how (for an identity: a name in
        ``identities.yml``; ``not recomputed:`` and why where no chapter can);
        source_table, where the value is printed (empty: in the text). There is no
        verdict: `verdicts` computes it.

    Raises
    ------
    ValueError
        No statement belongs to the chapter.

    Examples
    --------
    >>> table_2 = claims("05").query("dataset == 'hanna' and judge == 'Gemma-3-27B'")
    >>> last = table_2.quantity.str.startswith("selections of the last")
    >>> table_2.published[last].item()
    29.3
    """
    text = ["judge", "dataset", "source_table"]
    rows = pd.read_csv(_FOLDER / "claims.csv").fillna(dict.fromkeys(text, ""))
    if chapter is None:
        return rows
    stems = rows["chapter"].unique()
    is_mine = (rows["chapter"] + "_").str.startswith(f"{chapter}_")
    if not is_mine.any():
        one_of("chapter with claims", chapter, stems)
    return rows[is_mine].reset_index(drop=True)


def verdicts(claims: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """Compare what the papers say with what we find.

    A statement is a band: its published value plus and minus its tolerance (open on one
    side for ``<=`` and ``>=``). A claim about judges *replicates* if the whole interval
    found lies inside the band, it *does not* if the whole interval lies outside, and
    otherwise we *cannot say*, nor can we without an interval. The other kinds have
    words of their own: *the arithmetic* of an identity, *the count* of a fact and *the
    procedure* *holds* or *fails*; it fails *as we read it* where the number compared is
    our reading (``basis``). Identities and facts are exact.

    Parameters
    ----------
    claims
        Rows of `claims`.
    found
        claim_id and value, with low and high where it is an estimate.

    Returns
    -------
    DataFrame
        The claims with value, low, high, verdict (one of ``VERDICTS`` for claims about
        judges, else ``the … holds``, ``the … fails`` or ``cannot say``) and reason (why
        we cannot say). A claim without a row in `found` was not measured: we cannot
        say, and the reason is what it needs.

    Raises
    ------
    ValueError
        `found` names a claim that is not in `claims`, or names one twice.

    Examples
    --------
    >>> said = claims("03").query("claim_id == 'v2/table-1/hanna'")
    >>> found = pd.DataFrame({"claim_id": ["v2/table-1/hanna"], "value": [576]})
    >>> verdicts(said, found)[["published", "value", "verdict"]].values.tolist()
    [[576.0, 576.0, 'the count holds']]
    """
    for claim_id in set(found["claim_id"]) - set(claims["claim_id"]):
        near = nearest(claim_id, claims["claim_id"])
        raise ValueError(f"found: there is no claim {claim_id!r}{near}")
    found = found.reindex(columns=["claim_id", "value", "low", "high"])
    out = claims.merge(found, on="claim_id", how="left", validate="1:1")
    out = out.astype(dict.fromkeys(("value", "low", "high"), "float64"))
    exact = out["kind"].isin(["identity", "fact"])
    guessed = out["value"].notna() & ~exact & out[["low", "high"]].isna().any(axis=1)
    low, high = (out[end].fillna(out["value"].where(exact)) for end in ("low", "high"))
    # Printed values are decimals: 0.3 - 0.1 must not fall outside 0.2.
    slack = 1e-9 * (1 + out["published"].abs())
    away = out["tolerance"] + slack
    bottom = (out["published"] - away).where(out["relation"] != "<=", -np.inf)
    top = (out["published"] + away).where(out["relation"] != ">=", np.inf)
    inside, outside = (low >= bottom) & (high <= top), (high < bottom) | (low > top)
    checked = out["kind"].map(_CHECKED)
    read = (out["basis"] == "reading").map({True: ", as we read it", False: ""})
    yes = (checked + " holds").fillna(VERDICTS[0])
    no = (checked + " fails" + read).fillna(VERDICTS[1])
    out["verdict"] = np.select([inside, outside], [yes, no], VERDICTS[2])
    out["reason"] = np.select(
        [inside | outside, guessed, out["value"].isna()],
        ["", NO_INTERVAL, [_needs(row) for row in out.to_dict("records")]],
        "the interval reaches over the edge of the tolerance",
    )
    return out


def _needs(claim: dict[Hashable, Any]) -> str:
    """Say why a claim was not measured."""
    how = str(claim.get("recompute", ""))
    if how.startswith("not recomputed: "):
        return how.removeprefix("not recomputed: ")
    about = [str(claim[name]) for name in ("judge", "dataset") if claim.get(name)]
    return f"needs {' on '.join(about)}" if about else "not measured here"
