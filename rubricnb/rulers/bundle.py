"""The rubric bundle that a judge executes: an immutable record, locked by its hash.

A bundle is a JSON file one can review. Beside it lies its lock, ``NAME.lock.json``: a
copy of everything that a judge will read or be constrained by, and the SHA-256 of that
copy. Loading compares the two and refuses a difference by showing it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from jsonschema import Draft202012Validator
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from rubricnb.core.support.spelling import nearest, one_of
from rubricnb.core.support.types import Json
from rubricnb.files.logs import parsed
from rubricnb.files.outputs import replace_texts
from rubricnb.files.reading import written_out
from rubricnb.rulers.evidence import MIN_CHARACTERS, Segmentation
from rubricnb.rulers.templates import source

PARSER = 1
"""Version of what turns a reply into scores: the reading of its JSON,
verification, the gate.
"""

VARIANTS = ("standard", "criteria-reversed", "levels-reversed", "paraphrased")
PLACEBOS = tuple(f"placebo-{j}" for j in range(1, 8))
"""Variants that say the same in other writing:
the control for the order of the levels.
"""

Text = Annotated[str, Field(min_length=1)]
Number = Annotated[int, Field(ge=1)]
Levels = tuple[tuple[int, Text], ...]
_NO_OTHER_FIELDS = ConfigDict(extra="forbid")
_BUNDLED = Path(__file__).parent / "bundles"
QUOTE_CHARACTERS, _REASON_CHARACTERS = 120, 100  # a small judge would not stop
_MESSAGE_CHARACTERS = 90


class LockError(ValueError):
    """A bundle is not what was locked; the message shows the difference."""


@dataclass(frozen=True)
class Trait:
    """One dimension of the rubric.

    Attributes
    ----------
    id, name
        ``T1``, … and what it is called; an item whose criterion has this name gets its
        score.
    definition
        What it asks.
    levels
        (score, description) in the order in which the judge reads them; 5 → 1 is the
        paper's.
    """

    __pydantic_config__: ClassVar = _NO_OTHER_FIELDS
    id: Text
    name: Text
    definition: Text
    levels: Levels


@dataclass(frozen=True)
class CheckItem:
    """One checklist item: its `id` (``C01``, …), its `trait`'s id, its `text`."""

    __pydantic_config__: ClassVar = _NO_OTHER_FIELDS
    id: Text
    trait: Text
    text: Text


@dataclass(frozen=True)
class Bundle:
    """A compiled rubric.

    Attributes
    ----------
    name, dataset, input_type
        What it is called, for which data it was made, and what is judged ("essays").
    variant
        ``standard``, ``criteria-reversed``, ``levels-reversed``, ``paraphrased`` or one
        of `PLACEBOS`.
    traits, checklist
        The fixed traits and the items that are decided in {0, 1, 2}.
    min_evidence, min_characters
        m, quotes per trait for a score above the middle; the shortest quote that
        counts.
    units
        How a text is split into what can be cited (`split_units`).
    anchors
        Scored examples that the judge may see: (text, what it deserves and why).
    folder
        Where it was loaded from, and so its paraphrase; no part of the lock.

    Raises
    ------
    ValueError
        A rubric without levels, a trait without items, an id or text that appears
        twice, …

    Examples
    --------
    >>> bundle = load_bundle("minibench")
    >>> [t.name for t in bundle.traits], len(bundle.checklist), bundle.levels
    (['accuracy', 'helpfulness', 'clarity'], 12, 5)
    >>> len(bundle.lock)
    64
    """

    __pydantic_config__: ClassVar = _NO_OTHER_FIELDS
    name: Text
    dataset: Text
    input_type: Text
    traits: tuple[Trait, ...]
    checklist: tuple[CheckItem, ...]
    variant: str = "standard"
    min_evidence: Number = 2
    min_characters: Number = MIN_CHARACTERS
    units: Segmentation = "sentences"
    anchors: tuple[tuple[Text, Text], ...] = ()
    # a plain default would be a path of this machine on the page of the API
    folder: Path = field(default_factory=lambda: _BUNDLED, repr=False, compare=False)

    def __post_init__(self) -> None:
        bundle_label = f"bundle {self.name!r}"
        one_of("variant", self.variant, VARIANTS + PLACEBOS)
        if not self.traits:
            raise ValueError(
                f"{bundle_label} has no traits: a rubric needs at least one"
            )
        ids = [trait.id for trait in self.traits]
        for kind, values in {
            "trait id": ids,
            "trait name": [trait.name.casefold() for trait in self.traits],
            "checklist id": [item.id for item in self.checklist],
            "checklist text": [item.text.casefold().strip() for item in self.checklist],
        }.items():
            repeated = [value for value, count in Counter(values).items() if count > 1]
            if repeated:
                raise ValueError(
                    f"{bundle_label}: the {kind} {repeated[0]!r} appears twice"
                )
        for item in self.checklist:
            one_of(f"trait of the item {item.id}", item.trait, ids)
        lowest = 0 if 0 in self.order else 1
        expected_scores = list(range(lowest, lowest + max(2, self.levels)))
        for trait in self.traits:
            trait_label = f"{bundle_label}: trait {trait.id} ({trait.name})"
            scores = sorted(score for score, _ in trait.levels)
            if scores != expected_scores:
                raise ValueError(
                    f"{trait_label} has levels {','.join(map(str, scores)) or 'none'}; "
                    f"every trait needs each of {lowest}..{expected_scores[-1]} once"
                )
            if not self.of_trait(trait):
                raise ValueError(
                    f"{trait_label} has no checklist item, so it has no score; add "
                    "one, or remove the trait"
                )

    @property
    def levels(self) -> int:
        """S, the number of levels."""
        return len(self.traits[0].levels)

    @property
    def order(self) -> tuple[int, ...]:
        """The levels in the order in which the judge reads them."""
        return tuple(score for score, _ in self.traits[0].levels)

    @property
    def scale(self) -> tuple[int, int]:
        """The lowest and the highest level."""
        return min(self.order), max(self.order)

    @property
    def wording(self) -> str:
        """The variant of the rubric in natural language that this bundle words."""
        return "paraphrased" if self.variant == "paraphrased" else "standard"

    @property
    def variants(self) -> tuple[str, ...]:
        """The available `VARIANTS`: a paraphrase must have been written."""
        written = self.variant == "paraphrased" or self._paraphrase.is_file()
        return VARIANTS if written else VARIANTS[:-1]

    @property
    def _paraphrase(self) -> Path:
        return self.folder / f"{self.name}-paraphrased.json"

    @cached_property
    def lock(self) -> str:
        """SHA-256 of all that a judge reads or must keep to; 64 hexadecimal digits."""
        return _sha256(self.locked())

    def locked(self) -> Json:
        """Return what the lock covers: bundle, template, schema and parser version.

        Examples
        --------
        >>> sorted(load_bundle("minibench").locked())
        ['bundle', 'parser', 'schema', 'template']
        """
        bundle = asdict(self)
        del bundle["folder"]
        covered = {
            "bundle": bundle,
            "template": source("rulers_score"),
            "schema": answer_schema(self),
            "parser": PARSER,
        }
        return dict(json.loads(canonical(covered)))  # lists for tuples, as in a file

    def save(self, path: str | Path) -> Path:
        """Write the bundle, and lock it: NAME.json and NAME.lock.json.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     file = load_bundle("minibench").save(Path(folder, "mine.json"))
        ...     load_bundle(file) == load_bundle("minibench")
        True
        """
        path = Path(path)
        locked = self.locked()
        lock = _pretty({"sha256": self.lock} | locked)
        bundle = _pretty(locked["bundle"])
        replace_texts({path: f"{bundle}\n", _lock_file(path): f"{lock}\n"})
        return path

    def arranged(
        self, levels: Iterable[int] | None = None, criteria: Iterable[int] | None = None
    ) -> Bundle:
        """Return the bundle with levels or traits in another order and a new lock.

        Parameters
        ----------
        levels
            The score shown first, second, …; default: as they are.
        criteria
            The number of the trait that is shown first, second, … Its checklist items
            go with it.

        Examples
        --------
        >>> arranged = load_bundle("minibench").arranged(criteria=[3, 1, 2])
        >>> [trait.name for trait in arranged.traits]
        ['clarity', 'accuracy', 'helpfulness']
        """
        traits, checklist = self.traits, self.checklist
        if levels is not None:
            order = [int(score) for score in levels]
            traits = tuple(
                replace(
                    trait,
                    levels=tuple((score, dict(trait.levels)[score]) for score in order),
                )
                for trait in traits
            )
        if criteria is not None:
            traits = tuple(traits[int(number) - 1] for number in criteria)
            trait_rank = {trait.id: number for number, trait in enumerate(traits)}
            checklist = tuple(
                sorted(checklist, key=lambda item: trait_rank[item.trait])
            )
        return replace(self, traits=traits, checklist=checklist)

    @written_out()
    def in_variant(self, variant: str) -> Bundle:
        """Return the bundle as §4.5 and appendix A.3 perturb it.

        Parameters
        ----------
        variant
            ``standard``: itself. ``criteria-reversed``: traits and checklist backwards
            (§4.5). ``levels-reversed``: the levels of every trait backwards (A.3).
            ``paraphrased``: the file NAME-paraphrased.json beside it, which must have
            been written. ``placebo-1`` to ``placebo-7``: the levels `rewritten`, which
            means nothing (ours).

        Raises
        ------
        ValueError
            An unknown variant, or there is no file of the paraphrase, or it has other
            traits.

        Examples
        --------
        >>> bundle = load_bundle("minibench")
        >>> bundle.in_variant("levels-reversed").traits[0].levels[0][0]
        1
        """
        if variant == self.variant:
            return self
        if variant == "paraphrased":
            other = load_bundle(self._paraphrase)
            ours, theirs = ([t.name for t in bundle.traits] for bundle in (self, other))
            if theirs != ours:
                raise ValueError(
                    f"{self._paraphrase.name} has the traits {', '.join(theirs)} and "
                    f"{self.name} has {', '.join(ours)}: it is not its paraphrase; "
                    "compile or write it again"
                )
            return other
        if variant == "criteria-reversed":
            flipped = replace(
                self, traits=self.traits[::-1], checklist=self.checklist[::-1]
            )
        elif variant == "levels-reversed":
            flipped = self.arranged(levels=self.order[::-1])
        else:
            traits = (
                replace(t, levels=rewritten(t.levels, variant)) for t in self.traits
            )
            flipped = replace(self, traits=tuple(traits))
        return replace(flipped, variant=variant)

    def of_trait(self, trait: Trait) -> list[CheckItem]:
        """Return a trait's checklist items."""
        return [c for c in self.checklist if c.trait == trait.id]


def rewritten(levels: Levels, variant: str) -> Levels:
    """Write levels as a placebo variant does: other white space, the same words.

    Examples
    --------
    >>> rewritten(((2, "Kind."), (1, "Rude.")), "placebo-5")
    ((2, 'Kind '), (1, 'Rude '))
    >>> rewritten(((2, "Kind."), (1, "Rude.")), "standard")
    ((2, 'Kind.'), (1, 'Rude.'))
    """
    number = 1 + PLACEBOS.index(variant) if variant in PLACEBOS else 0
    # Each bit of the number changes one thing:
    # 1 adds a space after, 2 adds a space before, 4 toggles the full stop.
    before, after = " " * (number >> 1 & 1), " " * (number & 1)

    def rewrite(text: str) -> str:
        toggled = (
            text.removesuffix(".") + "." * (not text.endswith("."))
            if number & 4
            else text
        )
        return f"{before}{toggled}{after}"

    return tuple((score, rewrite(text)) for score, text in levels)


@written_out()
def load_bundle(name: str | Path, locked: bool = True) -> Bundle:
    """Load a bundle and check its lock.

    Parameters
    ----------
    name
        One of ours (``minibench``, ``hanna``, ``summeval``, ``asap-2``, ``asap-2.0``,
        ``summhf``, ``dress``, each also with ``-paraphrased``; ``asap-7``, ``asap-8``),
        or the path of a JSON file. Traits of ``asap-2.0``, ``summhf`` and ``dress``,
        the numbers of their checklist items and of their quotes are those of the
        paper's repository; the words are ours.
    locked
        False: read a file that has no lock yet, to review and `save` it.

    Returns
    -------
    Bundle

    Raises
    ------
    LockError
        The bundle, the template, the schema or the parser is not what was locked; the
        message shows the difference. Or there is no lock.
    ValueError
        The file is not a bundle; the message says where.

    Examples
    --------
    >>> load_bundle("hanna").traits[0].name
    'relevance'
    """
    path = _find_bundle(name)
    try:
        bundle = replace(_READER.validate_python(_read_json(path)), folder=path.parent)
    except ValidationError as error:
        first_error = error.errors(include_url=False)[0]
        location = ".".join(map(str, first_error["loc"]))
        problem = first_error["msg"].removeprefix("Value error, ")
        # pydantic's own error cannot be written out
        raise ValueError(
            ": ".join(filter(None, (path.name, location, problem)))
        ) from None
    if locked:
        _check_lock(bundle, path)
    return bundle


def answer_schema(bundle: Bundle) -> Json:
    """Return the JSON schema of a judge's answer, which the bundle decides.

    Every checklist item is decided exactly once in {0, 1, 2}; every trait has exactly m
    quotes with the unit they come from, and says why not one score more and why not one
    less.

    Examples
    --------
    >>> list(answer_schema(load_bundle("minibench"))["properties"])
    ['checklist', 'evidence', 'boundary']
    """
    quote = record(
        {
            "sent_id": {"type": "integer", "minimum": 1, "maximum": 999},
            "quote": {"type": "string", "maxLength": QUOTE_CHARACTERS},
        }
    )
    quotes = {
        "type": "array",
        "items": quote,
        "minItems": bundle.min_evidence,
        "maxItems": bundle.min_evidence,
    }
    reason = {"type": "string", "maxLength": _REASON_CHARACTERS}
    boundary = record({"why_not_higher": reason, "why_not_lower": reason})
    decision = {"type": "integer", "enum": [0, 1, 2]}
    return record(
        {
            "checklist": record({c.id: decision for c in bundle.checklist}),
            "evidence": record({t.id: quotes for t in bundle.traits}),
            "boundary": record({t.id: boundary for t in bundle.traits}),
        }
    )


def answer_tokens(bundle: Bundle) -> int:
    """Return how many tokens an answer may have, at one for each character.

    Examples
    --------
    >>> answer_tokens(load_bundle("minibench"))
    1825
    """
    # tokens around a string: its name, quotation marks, brackets, white space
    keys = 25
    quotes = bundle.min_evidence * (QUOTE_CHARACTERS + keys)
    reasons = 2 * (_REASON_CHARACTERS + keys)
    return 15 * len(bundle.checklist) + len(bundle.traits) * (quotes + reasons) + keys


def record(properties: Mapping[str, Any]) -> Json:
    """Return the schema of an object with exactly these properties, in this order.

    Examples
    --------
    >>> record({"a": {"type": "string"}})["required"]
    ['a']
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def first_problem(content: Any, schema: Json) -> str:
    """Return where a document breaks a schema; empty if it does not.

    `maxLength` is a limit for an engine. A longer string does not invalidate the
    document.

    Examples
    --------
    >>> schema = record({"C01": {"type": "integer", "enum": [0, 1, 2]}})
    >>> first_problem({"C01": 3}, schema)
    'C01: 3 is not one of [0, 1, 2]'
    """
    violations = Draft202012Validator(schema).iter_errors(content)
    first_error = min(
        (violation for violation in violations if violation.validator != "maxLength"),
        key=lambda violation: list(violation.path),
        default=None,
    )
    if first_error is None:
        return ""
    message = str(first_error.message)
    # it repeats the document, and with it a judged text
    if len(message) > _MESSAGE_CHARACTERS:
        message = f"breaks {first_error.validator!r} of the schema"
    location = ".".join(map(str, first_error.path))
    return f"{location}: {message}" if location else message


def canonical(content: Any) -> str:
    """Return a JSON document's one text to be hashed: no spaces, keys in order.

    The order of keys is kept, since it is the order in which the judge reads them.

    Examples
    --------
    >>> canonical({"b": 1, "a": ["é"]})
    '{"b":1,"a":["é"]}'
    """
    return json.dumps(
        content, ensure_ascii=False, separators=(",", ":"), allow_nan=False
    )


_READER = TypeAdapter(Bundle)


def _check_lock(bundle: Bundle, path: Path) -> None:
    lock_file = _lock_file(path)
    if not lock_file.is_file():
        raise LockError(
            f"{path.name} has no lock ({lock_file.name} is missing): review the "
            f"bundle, then lock it: load_bundle({str(path)!r}, "
            f"locked=False).save({str(path)!r})"
        )
    locked = _read_json(lock_file)
    sha256 = locked.pop("sha256", None)
    if sha256 != _sha256(locked):
        raise LockError(
            f"{lock_file.name} was edited: its content does not have the SHA-256 it "
            f"names ({sha256}); restore it, or review the bundle and lock it again"
        )
    if sha256 != bundle.lock:
        current = bundle.locked()
        changed = [part for part in current if locked.get(part) != current[part]]
        difference: list[str] = []
        for part in changed:
            before, after = (
                _pretty(content.get(part)).splitlines() for content in (locked, current)
            )
            difference += unified_diff(
                before, after, f"locked {part}", f"{part} now", lineterm="", n=1
            )
        raise LockError(
            f"{path.name} is not what was locked: {' and '.join(changed)} changed. "
            "Restore it, or review the change and lock it again (load_bundle(…, "
            "locked=False).save(…)); earlier scores belong to a different rubric.\n"
            + "\n".join(difference)
        )


def _find_bundle(name: str | Path) -> Path:
    path = Path(name)
    if path.suffix == ".json":
        if not path.is_file():
            raise ValueError(f"there is no bundle {path}: give the path of a JSON file")
        return path
    bundled = sorted(
        file.stem for file in _BUNDLED.glob("*.json") if not file.stem.endswith(".lock")
    )
    if str(name) not in bundled:
        raise ValueError(
            f"there is no bundle {str(name)!r}{nearest(name, bundled)} Bundled: "
            f"{', '.join(bundled)}; for your own rubric, make a bundle (python -m "
            "rubricnb compile RUBRIC --judge JUDGE) and pass its file (bundle "
            "my_bundle.json)"
        )
    return _BUNDLED / f"{name}.json"


def _lock_file(path: Path) -> Path:
    return path.with_name(f"{path.stem}.lock.json")


def _read_json(path: Path) -> Any:
    return parsed(path.read_text(encoding="utf-8"), path)


def _pretty(content: Any) -> str:
    """Return indented JSON with innermost lists on one line, for review and diffs."""
    if isinstance(content, str):
        return content
    text = json.dumps(content, ensure_ascii=False, indent=1)
    innermost = re.compile(r"[\[{]\n[^\[\]{}]*[\]}]")
    return innermost.sub(lambda m: re.sub(r"\n\s*", " ", m[0]), text)


def _sha256(content: Any) -> str:
    return hashlib.sha256(canonical(content).encode()).hexdigest()
