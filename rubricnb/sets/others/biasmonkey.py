"""Eight models' answers to 271 questions of Pew's panel, in several forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from rubricnb.core.frames import Judgments
from rubricnb.files.elsewhere import judgments
from rubricnb.files.fetch import pinned

FOLDER = "github/lindiatjuatja/BiasMonkey/7e3728d7916ead2187ebae261b4729d928dabbee"
EDITS = {"key_typo": "typo", "letter_swap": "letter-swap", "middle_random": "scrambled"}
MODELS = {
    "gpt-3.5-turbo": "GPT-3.5-turbo",
    "gpt-3.5-turbo-instruct": "GPT-3.5-turbo-instruct",
    "llama2-7b": "Llama-2 7B",
    "llama2-13b": "Llama-2 13B",
    "llama2-70b": "Llama-2 70B",
    # llama2-13b-chat has the same model's answers
    "llama2-7b-chat": "Llama-2 7B or 13B chat",
    "llama2-70b-chat": "Llama-2 70B chat",
    "llama2-70b-ift": "Solar",
}
_ORIGINAL, _OTHER = "orig alpha", "reversed alpha"
_SLIPPED = (
    "an answer of this file is missing or beyond the options: later ones have slipped"
)


def load() -> Judgments:
    """Load them; ``score`` is the option's number in the original order."""
    files = pinned(FOLDER, ".csv")
    parts = []
    for slug, judge in MODELS.items():
        for edit, form in {"": "plain", **EDITS}.items():
            name = f"response_order{edit and f'-{edit}'}.csv"
            prompts = pd.read_csv(files[f"prompts/{name}"])
            # Questions whose edited text is the original are further reads of it.
            same = prompts.loc[prompts[_ORIGINAL] == prompts[_OTHER], "key"]
            own = answers(files[f"results/{slug}/csv/{name}"])
            other = own.pop("group") == _OTHER
            edited = other & ~own["item_id"].isin(same)
            up = own["n"].map(lambda n: "-".join(map(str, range(1, n + 1))))
            parts.append(
                own.assign(
                    judge=judge,
                    form=np.where(edited, form, "plain"),
                    design=np.where(edited, "placebo" if edit else "reverse", "fixed"),
                    # "reversed alpha" of an edit is the edited prompt, in its order
                    ordering=up if edit else np.where(other, up.str[::-1], up),
                )
            )
    frame = pd.concat(parts, ignore_index=True).rename(columns={"n": "n_options"})
    asked = ["judge", "item_id", "form", "ordering"]
    frame["read"] = frame.groupby(asked, sort=False).cumcount() + 1
    scale = {f"{n} options": (1.0, float(n)) for n in {*frame["n_options"]}}
    return judgments(frame.assign(dataset="pew-order"), scale=scale)


def answers(file: Path) -> pd.DataFrame:
    """Read one model's answers to one kind of prompt; without scores if they slipped.

    The authors wrote fifty answers to a question one below the other, without its name.
    Where one was lost, every later answer stands beside a different question, and only
    an answer that is not among the options shows it.
    """
    table = pd.read_csv(file)
    score = table["response"].map({letter: n for n, letter in enumerate("abcdefgh", 1)})
    slipped = bool((score.isna() | (score > table["num_options"])).any())
    if set(table["group"]) != {_ORIGINAL, _OTHER}:
        raise ValueError(
            f"{file}: has the groups {sorted(set(table['group']))}, but needs "
            f"{_ORIGINAL!r} and {_OTHER!r}: with one order, a position cannot be told "
            "from an opinion"
        )
    return pd.DataFrame(
        {
            "item_id": table["key"],
            "cluster_id": table["key"].str.rpartition("_")[2],
            "criterion": table["num_options"].astype(str) + " options",
            "group": table["group"],
            "raw": table["response"],
            "n": table["num_options"],
            "score": np.nan if slipped else score,
            "status": "unparsed" if slipped else "ok",
            "reason": _SLIPPED if slipped else "",
        }
    )
