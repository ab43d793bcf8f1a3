"""ASAP: school essays with the scores of two raters; and ASAP 2.0, from a file of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from rubricnb.data.fetch import fetch
from rubricnb.data.own import read_table
from rubricnb.data.rubrics import bundled_rubrics
from rubricnb.data.validate import check_items
from rubricnb.frames import Items

FOLDER = (
    "github/robert1ridley/cross-prompt-trait-scoring/"
    "981ec606f039c5b3ee163b5b474e4329d9ebbd17/data/PAES-data"
)


@dataclass(frozen=True)
class _Set:
    """One essay set: its file, what was asked for, and the columns that rate each criterion."""

    instruction: str
    criteria: dict[str, str]  # criterion → column without "rater1_"
    lowest: int = 1  # of the raters' scale, which the rubrics begin at 1


SETS = {
    "asap-2": _Set(
        "Write a persuasive essay to a newspaper with your view on censorship in libraries: should "
        "books, music, films or magazines be taken from the shelves if they are found offensive? "
        "Support your position from your own experience, observation or reading.",
        {"holistic": "domain1"},
    ),
    "asap-7": _Set(
        "Write about patience: a story about a time when you, or someone you know, were patient, "
        "or a story of your own making about patience.",
        {
            "ideas": "trait1",
            "organization": "trait2",
            "style": "trait3",
            "conventions": "trait4",
        },
        lowest=0,
    ),
    "asap-8": _Set(
        "Tell a true story in which laughter was one element or part.",
        {
            "ideas": "trait1",
            "organization": "trait2",
            "voice": "trait3",
            "word choice": "trait4",
            "sentence fluency": "trait5",
            "conventions": "trait6",
        },
    ),
}
_ARGUE = "Write an argumentative essay on the question, with evidence from the sources."


def load_asap(name: str) -> Items:
    """Load an essay set of ASAP.

    Parameters
    ----------
    name
        ``asap-2``: set 2, rated as a whole from 1 to 6. ``asap-7`` and ``asap-8``: sets 7 and 8,
        rated by four and six traits.

    Returns
    -------
    Items
        One item per essay and criterion; an essay is a cluster and nothing competes.
        ``human_ratings`` are the two raters'. ``human`` is, in set 2, the score that the
        competition resolved (it equals rater 1's), else the mean of the two; set 7 is rated from
        0 to 3, here from 1 to 4. Names in the essays are masked (``@PERSON1``). The sentences that
        say what was asked for are ours, and so are the rubrics.

    Raises
    ------
    ValueError, ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`.

    Notes
    -----
    Shermis and Hamner 2012. Set 2 stands in for ASAP 2.0, which the RULERS paper uses.

    Examples
    --------
    >>> sorted(SETS)
    ['asap-2', 'asap-7', 'asap-8']
    """
    essay_set = SETS[name]
    table = pd.read_csv(
        fetch(f"{FOLDER}/{name[-1]}/test.tsv"),
        sep="\t",
        dtype="str",
        keep_default_na=False,
    )
    rows = []
    for essay in table.to_dict("records"):
        for criterion, column in essay_set.criteria.items():
            ratings = tuple(
                int(essay[f"rater{rater}_{column}"]) + 1 - essay_set.lowest for rater in (1, 2)
            )
            resolved = essay.get(f"{column}_score", "")
            human = float(resolved) if resolved else sum(ratings) / 2
            rows.append(
                _item(name, essay["essay_id"], essay["essay"], criterion, essay_set.instruction)
                | {"human": human, "human_ratings": ratings}
            )
    return _checked(rows, name)


def load_asap_2_0(path: str | Path) -> Items:
    r"""Load ASAP 2.0 from its file. Not yet met real data: written from its description.

    Parameters
    ----------
    path
        A CSV with ``essay_id``, ``full_text`` and ``score`` (1 to 6) and, where present,
        ``assignment``, what was asked for.

    Returns
    -------
    Items
        One item per essay; the criterion is ``holistic`` and the rubric ours. The sources that the
        essays draw on are not in the file; put them into ``assignment`` for a judge to see them.

    Raises
    ------
    ValueError
        Not a CSV in UTF-8, a column is missing, a text is empty, or a score is out of range.

    Notes
    -----
    Crossley, Baffour, Burleigh and King 2025; https://github.com/scrosseye/ASAP_2.0.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "asap2.csv")
    ...     _ = file.write_text("essay_id,full_text,score\na1,Cars are useful.,2\n")
    ...     load_asap_2_0(file).item_id.tolist()
    ['asap-2.0/a1/holistic']
    """
    table = read_table(path, ["essay_id", "full_text", "score"], ["score"])
    rows = [
        _item("asap-2.0", e["essay_id"], e["full_text"], "holistic", e.get("assignment") or _ARGUE)
        | {"human": e["score"]}
        for e in table.to_dict("records")
    ]
    return _checked(rows, "asap-2.0")


def _item(
    dataset: str, essay_id: str, essay: str, criterion: str, instruction: str
) -> dict[str, object]:
    text_id = f"{dataset}/{essay_id}"
    return {
        "item_id": f"{text_id}/{criterion}",
        "dataset": dataset,
        "text_id": text_id,
        "group_id": None,
        "cluster_id": text_id,
        "candidate": "student",
        "instruction": instruction,
        "response": essay.strip(),
        "criterion": criterion,
    }


def _checked(rows: list[dict[str, object]], rubrics_of: str) -> Items:
    rubrics = bundled_rubrics("asap")
    prefix = f"{rubrics_of}-"
    own = rubrics[rubrics["rubric_id"].astype(str).str.startswith(prefix)]
    known = own.drop_duplicates("criterion").set_index("criterion")["rubric_id"].astype(str)
    frame = pd.DataFrame(rows)
    return check_items(frame.assign(rubric_id=frame["criterion"].map(known.to_dict())), own)
