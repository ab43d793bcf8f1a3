"""A simulated grader: answers every prompt of RULERS, with known weaknesses.

It reads what a real judge would read (the sentence bank, the traits, the checklist) and
knows the human rating, so that everything downstream can be run, and checked, without a
model. It says nothing about any real judge.

The model
---------
Text t has quality q on 0…1 under trait k: the human rating, or a draw where nobody
rated. The grader sees x = ½ + w (q − ½) + a + σ_T T_t + σ_K K_tk. A checklist item j of
difficulty b_j is decided round(2x + b_j + p·d + σ_J J_tj), within 0…2; b_j hangs on the
item's wording alone, so a locked checklist has the same difficulties for every text and
one that is compiled anew has not. A bare score on S levels is round(1 + (S − 1)·(½ + h
(x − ½) + r·d + σ_H H)), within 1…S: h < 1 is central tendency, and d is 1 where the
best level is shown first and −1 where it is last. T, K, J, H and b are normal, from
hashes, so an answer depends on nothing else that is asked; at a temperature above 0 a
share of the noise is drawn anew for every replicate.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import ndtri

from rubricnb.core.contract import Readout, Reply, Request
from rubricnb.core.support.hashing import hash64, uniform
from rubricnb.core.support.types import Json

_BANK = "- Sentence Bank (ID -> Text): "
_CHECKLIST = "- Locked Checklist: "
_RAW_TEXT = "\nText:\n"
_INVENTED = "this sentence was written by nobody at all"


@dataclass
class SimulatedGrader:
    """A simulated judge behind the contract of every judge, for JSON answers.

    Attributes
    ----------
    human_weight, severity
        w, and a on 0…1 (below 0: harsh).
    text_error, trait_error, item_error, holistic_error
        σ_T, σ_K (on 0…1), σ_J (in decisions), σ_H (on 0…1).
    difficulty
        Standard deviation of b, in decisions.
    hedging
        h, how much of the differences a bare score keeps.
    order_pull
        r, on 0…1: how far a bare score follows the level that is shown first.
    checklist_pull
        How far a decision does, in decisions; 0: a checklist is decided without the
        levels.
    invented, misplaced, short
        Shares of quotes that are invented, cite a different unit, or have two
        characters.
    seed
        Another seed is another grader with the same parameters.

    Examples
    --------
    >>> SimulatedGrader().slug, SimulatedGrader().readouts
    ('simulated:grader', ('json',))
    """

    human_weight: float = 0.8
    severity: float = -0.1
    text_error: float = 0.08
    trait_error: float = 0.08
    item_error: float = 0.45
    holistic_error: float = 0.08
    difficulty: float = 0.35
    hedging: float = 0.5
    order_pull: float = 0.06
    checklist_pull: float = 0.0
    invented: float = 0.08
    misplaced: float = 0.05
    short: float = 0.02
    seed: int = 0

    slug: str = field(default="simulated:grader", init=False)
    source: Literal["live", "simulated"] = field(default="simulated", init=False)
    deterministic: bool = field(default=True, init=False)
    readouts: tuple[Readout, ...] = field(default=("json",), init=False)
    concurrency: int = field(default=256, init=False)
    spec: ClassVar = "simulated:grader"
    is_free: ClassVar = True

    @property
    def identity(self) -> str:
        """Everything about the grader that changes an answer."""
        return json.dumps({"grader": 1, **asdict(self)})

    def answer(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Answer requests one by one."""
        for request in requests:
            schema = json.loads(request.schema)
            document = self._filled_in(request, schema["properties"], schema)
            yield Reply(request.request_id, json.dumps(document, ensure_ascii=False))

    def close(self) -> None:
        """Nothing to let go of."""

    def _quality(self, request: Request, trait: int) -> float:
        """Return x, the quality the grader sees in the trait of this number."""
        name = request.criteria[trait]
        known = request.qualities[trait] if trait < len(request.qualities) else None
        own = self._normal(request, "quality", request.text_id, name, still=True)
        q = 0.5 + 0.25 * own if known is None else known
        x = 0.5 + self.human_weight * (q - 0.5) + self.severity
        x += self.text_error * self._normal(request, "text", request.text_id)
        return x + self.trait_error * self._normal(
            request, "trait", request.text_id, name
        )

    def _filled_in(
        self,
        request: Request,
        asked: Json,
        schema: Json,
        *path: str,
    ) -> Any:
        """Fill in the part at this path of the document that is asked for."""
        if "properties" in schema:
            parts = schema["properties"].items()
            return {
                n: self._filled_in(request, asked, part, *path, n) for n, part in parts
            }
        prompt = request.messages[0].content
        match path:
            case ["taxonomy", trait, _]:
                return f"What is meant by {trait}."
            case ["checklist", name, "trait"]:
                return schema["enum"][(int(name[1:]) - 1) % len(schema["enum"])]
            case ["checklist", name, _]:
                # A different wording for every prompt:
                # each compilation is a different checklist.
                wording = int(self._uniform(request, "wording", prompt) * 10**6)
                return f"Point {name} in wording {wording} is there."
            case ["checklist", name]:
                item = next(
                    c for c in _json_after(prompt, _CHECKLIST) if c["id"] == name
                )
                number = list(asked["evidence"]["properties"]).index(item["trait"])
                return self._decision(request, number, item["text"])
            case ["evidence", trait]:
                units = _json_after(prompt, _BANK)
                return [
                    self._quote(request, units, trait, k)
                    for k in range(schema["minItems"])
                ]
            case ["boundary", _, why]:
                return (
                    "Something is missing."
                    if why == "why_not_higher"
                    else "Much is there."
                )
            case ["segments", _]:
                return [" ".join(prompt.rpartition(_RAW_TEXT)[2].split()[:12])]
            case ["score"]:
                return self._bare(request, 0, schema["enum"], "trait")
            case ["scores", name]:
                what = "text" if "rationale" in asked else "evidence"
                return self._bare(
                    request, request.criteria.index(name), schema["enum"], what
                )
            case ["rationale"]:
                return "A simulated grader gives no reasons."
        return schema["enum"][0]

    def _bare(
        self, request: Request, trait: int, levels: Sequence[int], seen: str
    ) -> int:
        """A score without a checklist: hedged, and pulled to the level shown first."""
        hedged = 0.5 + self.hedging * (self._quality(request, trait) - 0.5)
        noise = self._normal(
            request, seen, request.text_id, request.criteria[trait], "bare"
        )
        value = (
            hedged
            + self.order_pull * _shown_first(request)
            + self.holistic_error * noise
        )
        low, high = min(levels), max(levels)
        return int(np.clip(np.floor(low + (high - low) * value + 0.5), low, high))

    def _decision(self, request: Request, trait: int, text: str) -> int:
        difficulty = self._normal(request, "difficulty", text, still=True)
        noise = self._normal(request, "item", request.text_id, text)
        value = 2 * self._quality(request, trait)
        value += self.difficulty * difficulty + self.item_error * noise
        value += self.checklist_pull * _shown_first(request)
        return int(np.clip(np.floor(value + 0.5), 0, 2))

    def _quote(self, request: Request, units: Any, trait: str, number: int) -> Json:
        unit, start, fault = (
            self._uniform(request, what, request.text_id, trait, str(number))
            for what in ("unit", "start", "fault")
        )
        names = list(units)
        name = names[int(unit * len(names))]
        words = units[name].split()
        first = int(start * max(1, len(words) - 5))
        quote, cited = " ".join(words[first : first + 6]), int(name)
        if fault < self.invented:
            quote = _INVENTED
        elif fault < self.invented + self.misplaced:
            cited = cited % len(names) + 1 if len(names) > 1 else 2
        elif fault < self.invented + self.misplaced + self.short:
            quote = quote[:2]
        return {"sent_id": cited, "quote": quote}

    def _normal(self, request: Request, *what: str, still: bool = False) -> float:
        """Return a standard normal draw, redrawn in part if hot and not `still`."""
        fixed = float(ndtri(self._fixed(*what)))
        if still or request.temperature == 0:
            return fixed
        share = min(1.0, 0.5 * request.temperature)
        again = float(
            ndtri(self._fixed(*what, f"replicate {request.replicate} {request.seed}"))
        )
        return float(np.sqrt(1 - share) * fixed + np.sqrt(share) * again)

    def _uniform(self, request: Request, *what: str) -> float:
        again = (
            "" if request.temperature == 0 else f"{request.replicate} {request.seed}"
        )
        return self._fixed(*what, again)

    def _fixed(self, *what: str) -> float:
        return float(uniform(hash64(["\x1f".join((str(self.seed), *what))]))[0])


def _shown_first(request: Request) -> float:
    """d: the level that is shown first, from −1 (the worst) to 1 (the best)."""
    order = request.ordering
    return 2 * (order[0] - min(order)) / (len(order) - 1) - 1 if len(order) > 1 else 0.0


@lru_cache(maxsize=8)  # every item and trait of a prompt looks here
def _json_after(prompt: str, marker: str) -> Any:
    start = prompt.index(marker) + len(marker)
    return json.JSONDecoder().raw_decode(prompt, start)[0]
