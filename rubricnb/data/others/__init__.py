"""Judgments that others recorded and published: each read from its source, as one frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

import pandas as pd

from rubricnb.data import hanna as hanna_items
from rubricnb.data import prometheus as prometheus_items
from rubricnb.data.fetch import source_url
from rubricnb.data.others import hanna, llm_rubric, probes, prometheus, rewardbench, summeval
from rubricnb.data.others.pinned import size_of
from rubricnb.data.validate import nearest
from rubricnb.frames import Judgments

_PARSED = "texts are read by a parser per prompt form"


@dataclass(frozen=True)
class _Recording:
    """What `recordings` says about a set, and how it is loaded."""

    loader: Callable[[], Judgments]
    folder: str
    judges: str
    asked_by: str
    n_rows: int
    people: str
    licence: str
    megabytes: float
    what: str
    beware: str


_RECORDINGS = {
    "rewardbench-reads": _Recording(
        loader=rewardbench.load,
        folder=rewardbench.FOLDER,
        judges="GPT-5.4, its mini and nano; Claude Sonnet 4.6, Haiku 4.5",
        asked_by="Lail and Markham 2026, arXiv:2604.13717",
        n_rows=1_227_424,
        people="none; candidate says which response is right",
        licence="MIT",
        megabytes=size_of(rewardbench.FOLDER),
        what="8 reads, scores 1–10, of 4 responses to about 1,740 prompts of RewardBench 2; four "
        "temperatures, task criteria, few-shot anchors",
        beware="no texts; GPT's eight reads are one request with n = 8, its default temperature "
        "is 1, reasoning off; an arm lacks up to 45 prompts; the first response is the right one, "
        "so that the first of tied responses is always right",
    ),
    "summeval-gpt": _Recording(
        loader=summeval.load_gpt,
        folder=summeval.FOLDER,
        judges="GPT-3.5-0301, GPT-4-0314, Llama-2 7B, 13B and 70B",
        asked_by="Shen et al. 2023, arXiv:2305.13091",
        n_rows=43_512,
        people="3 experts; crowd_ratings: 5 crowd workers",
        licence="none stated",
        megabytes=size_of(f"{summeval.FOLDER}/eval"),
        what="raw answers on 12 systems × 100 articles × 4 criteria of SummEval: GPT-3.5 in five "
        "prompt forms, the others in one",
        beware=f"{_PARSED}: an answer that names no score, or several, is unparsed; 312 cells were "
        "asked twice by accident (read 2)",
    ),
    "summeval-pairs": _Recording(
        loader=summeval.load_pairs,
        folder=summeval.FOLDER,
        judges="GPT-3.5-0301",
        asked_by="Shen et al. 2023, arXiv:2305.13091",
        n_rows=8_800,
        people="3 experts' means of both summaries",
        licence="none stated",
        megabytes=size_of(f"{summeval.FOLDER}/comp_res"),
        what="which of two summaries is better, 11 pairs of systems in a chain × 100 articles × 4 "
        "criteria, each also with the summaries swapped; 1: the first system, 2: the other, 1.5: "
        "equal",
        beware="a tie has no position",
    ),
    "summeval-six": _Recording(
        loader=summeval.load_six,
        folder=summeval.SIX,
        judges="GPT-4o, GPT-4o-mini, Gemini Flash and Pro, Llama-3.1, Mistral",
        asked_by="Calderon et al. 2025, arXiv:2501.10970",
        n_rows=38_400,
        people="3 experts, those of summeval-gpt",
        licence="none stated",
        megabytes=size_of(summeval.SIX),
        what="one read of 16 systems × 100 articles × 4 criteria of SummEval",
        beware="exact versions of the judges and their temperature are not in the files",
    ),
    "hanna-llm": _Recording(
        loader=hanna.load,
        folder=hanna_items.FOLDER,
        judges="ChatGPT, Llama-13B, Beluga-13B, OrcaPlatypus, Mistral-7B",
        asked_by="Chhun et al. 2024, TACL 12",
        n_rows=126_720,
        people="3 raters",
        licence="MIT",
        megabytes=3.7,
        what="4 prompt forms × 6 criteria × 1,056 stories (96 prompts, 11 writers)",
        beware="scores are means of reads; −1 seems to mark a failed read and to enter the mean: "
        "what is off 1–5 is out_of_range, but scores within 1–5 may be contaminated too",
    ),
    "prometheus-gpt4": _Recording(
        loader=prometheus.load,
        folder=prometheus_items.FOLDER,
        judges="GPT-4",
        asked_by="Kim et al. 2024 (Prometheus, ICLR)",
        n_rows=1_920,
        people="none",
        licence="Apache-2.0",
        megabytes=4.8,
        what="three reads with feedback of MT-Bench and Vicuna, 320 items each, a rubric each",
        beware="the items' gold is the majority of these very reads",
    ),
    "scoring-probes": _Recording(
        loader=probes.load,
        folder=probes.FOLDER,
        judges="GPT-4o, GPT-4o-mini, Llama-3.1-70B; 13 open families of 0.1–8B, base and instruct",
        asked_by="Samba 2026",
        n_rows=21_750,
        people="none",
        licence="MIT",
        megabytes=size_of(probes.FOLDER),
        what="expected score of 50 items under changed order, labels, reference, authority and "
        "length, with five control runs (the biases of arXiv:2506.22316)",
        beware="its authors retracted earlier data as fabricated; these two files are not among "
        "them. The reversed scale is mapped back here (6 − s), raw is as recorded; 'random' names "
        "three anchors only and is unparsed. The open models put at most 1.7 % of their "
        "probability on any label: no judgments, so unparsed. GPT's and Llama's are other items",
    ),
    "llm-rubric": _Recording(
        loader=llm_rubric.load,
        folder=llm_rubric.FOLDER,
        judges="GPT-3.5-turbo-16k",
        asked_by="Hashemi et al. 2024, ACL",
        n_rows=4_032,
        people="24 annotators with ids; 13 of them on the real dialogues, one each",
        licence="MIT",
        megabytes=size_of(llm_rubric.FOLDER),
        what="probabilities of four options for nine questions (Q0: overall) on 223 real and 225 "
        "synthetic dialogues",
        beware="score is the most probable option, sampled the one they drew; a human 0 means not "
        "answered",
    ),
}


def recordings() -> pd.DataFrame:
    """List the judgments of others that can be loaded.

    Returns
    -------
    DataFrame
        name, judges, asked_by (never by us), n_rows, people (who rated the same items), licence,
        megabytes (to download), source, what, and beware: what one must know before using them.

    Examples
    --------
    >>> recordings().set_index("name").n_rows["rewardbench-reads"]
    np.int64(1227424)
    """
    rows = []
    for name, recording in _RECORDINGS.items():
        facts = {k: v for k, v in asdict(recording).items() if k not in ("loader", "folder")}
        rows.append({"name": name, **facts, "source": source_url(recording.folder)})
    return pd.DataFrame(rows)


def load_recording(name: str) -> Judgments:
    """Load judgments that others recorded, from their source at a fixed commit.

    Parameters
    ----------
    name
        One of `recordings`.

    Returns
    -------
    Judgments
        As `rubricnb.judgments` returns them: all of the set, the rows without a score included
        (``status`` says which, ``reason`` why), with the items and people's ratings as ``.rated``.

    Raises
    ------
    ValueError
        An unknown name, or a file that has changed.
    ConnectionError, FileNotFoundError
        As `rubricnb.data.fetch.fetch`.

    Examples
    --------
    >>> load_recording("summeval-sicks")
    Traceback (most recent call last):
    ...
    ValueError: unknown recording 'summeval-sicks'; did you mean 'summeval-six' or \
'summeval-pairs'? There are: rewardbench-reads, summeval-gpt, summeval-pairs, summeval-six, \
hanna-llm, prometheus-gpt4, scoring-probes, llm-rubric
    """
    if name not in _RECORDINGS:
        there = ", ".join(_RECORDINGS)
        raise ValueError(
            f"unknown recording {name!r}{nearest(name, _RECORDINGS)} There are: {there}"
        )
    return _RECORDINGS[name].loader()
