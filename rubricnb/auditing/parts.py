"""What an audit is bound to: a judge's prompt template, rubric, parser and model."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from os.path import commonprefix
from typing import Any

from rubricnb.core import labels_in_text
from rubricnb.core.frames import Items
from rubricnb.core.judge import OF_REQUESTS, judging
from rubricnb.engines.fingerprint import code_fingerprint

OWN_PARTS = ("template", "parser")


@contextmanager
def opened_with(
    judge: Any, options: Any, settings: Any, price: Any = None
) -> Iterator[Any]:
    """Open a judge, and give the settings of its requests."""
    engine = dict(options or {})
    asked = {"readout": "auto", "temperature": 0.0, "seed": 0}
    asked |= {k: engine.pop(k) for k in OF_REQUESTS if k in engine} | settings
    engine |= {k: own for k in OWN_PARTS if (own := asked.pop(k, None))}
    with judging(judge, price, **engine) as described:
        yield described.opened(), asked


def parts_of(
    judge: Any, items: Items, settings: Mapping[str, Any]
) -> dict[str, dict[str, str]]:
    """What the answers of a judge come from, as texts by name."""
    own = getattr(judge, "own_prompt", None)
    parser = getattr(judge, "parser", None) or labels_in_text.last_label
    named = [
        getattr(parser, name, "") for name in ("__name__", "key", "pattern", "flags")
    ]
    book = files("rubricnb.core") / "prompts" / "templates"
    texts = {
        name: (book / f"{name}.jinja").read_text("utf-8")
        for name in ("rubric", "criteria")
    }
    levels = items.rubrics[items.rubrics["rubric_id"].isin(items["rubric_id"])]
    levels = levels[levels["variant"] == settings.get("variant", "standard")].astype(
        "str"
    )
    asked = {name: str(value) for name, value in settings.items() if name != "seed"}
    asked["readout"] = asked["readout"].replace("auto", judge.readouts[0])
    identity = judge.identity.removesuffix(
        f" template {own.sha256[:16]}" if own else ""
    )
    return {
        "template": {"text": own.source} if own else texts,
        "rubric": {
            f"{level.pop('rubric_id')}, score {level.pop('score')}": "\n".join(
                text
                for text in level.values()
                if isinstance(text, str)  # others have no weight
            )
            for level in levels.sort_values(["rubric_id", "score"]).to_dict("records")
        },
        "parser": {
            "reads": " ".join([type(parser).__name__, *map(str, filter(None, named))]),
            "code": code_fingerprint(parser)
            + sha256_of(inspect.getsource(labels_in_text))[:16],
        },
        "model": {"identity": identity, **asked},
    }


def changes_between(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each part that differs, with the first difference in it."""
    said = []
    for part in (part for part in then if then[part] != now.get(part)):
        old, new = then[part], now.get(part, {})
        name = next(name for name in {**old, **new} if old.get(name) != new.get(name))
        texts = [side.get(name, "(nothing)") for side in (old, new)]
        start = max(0, len(commonprefix(texts)) - 20)  # noqa: RUF071 (these are no paths)
        was, it_is = (repr(text[start : start + 60]) for text in texts)
        said.append(
            f"the {part} has changed since the audit: {name} was {was} and is {it_is}"
        )
    return said


def sha256_of(content: Any) -> str:
    """SHA-256 of a JSON document, however its keys are ordered."""
    text = json.dumps(
        content, ensure_ascii=False, separators=(",", ":"), sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()
