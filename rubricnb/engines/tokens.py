"""Tokens of prompts that share most of their lines: each line is tokenized once.

A byte-level tokenizer first splits a text into words and then encodes each word by
itself. No word spans a line break and the letter or digit behind it, so the tokens of a
line are the same in every text. Prompts of one study consist of the same lines:
descriptions of levels in other orders, and texts asked about many times. This is exact
for most tokenizers and wrong for those that treat the beginning of every text
differently, such as those that put a space before it: `Tokens` finds out which kind it
has, and encodes the other kind in batches instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from typing import Any

Ids = list[int]
"""The numbers of a text's tokens in the vocabulary."""

# behind its line break no rule of a tokenizer looks back
_BREAK = re.compile(r"\n(?=\w)")
# a rule may ask whether white space is the last of a text: here it never is
_NEXT = "x"
# of the lines that are kept, about 150 MB with their tokens
_MOST_CHARACTERS = 20_000_000

# What prompts consist of and where the splitting rules of tokenizers differ: runs of
# white space, line breaks, digits, contractions, marks, other scripts, combining
# characters, emoji.
_PROBES = (
    '### Task description:\nA response is scored 1 to 10.\n\n1: "Isn\'t" good; 2:  '
    "3.14!\r\n",
    "  two  blanks,\ttab\n\n\n   indented 2026-11-27 [RESULT] 5 x=1;y=20%\u00a0(end) "
    "...   \n",
    "Crème brûlée, cafe\u0301, naïve Straße; Ελληνικά, русский, हिन्दी, العربية, ไทย.",
    "評分標準：回答は正しいか。 한국어 👍🏽 👩\u200d👧 "
    "\u2014 \u201cquoted\u201d\u2026 '' a_b </s>",
)
_BEFORE = (
    "end",
    "END",
    "12",
    ".",
    ":",
    " ",
    "  ",
    "\t",
    "]",
    "cafe\u0301",
    "是",
    "\u00a0",
    "n't",
)
_BREAKS = ("\n", "\n\n", "\n\n\n", "\r\n", "\r\n\r\n", " \n", "\n \n", "\t\n")
_AFTER = ("next", "Next", "7", "_a", "Ω", "是", "한", "ह", "ء", "s", "\u0663")
_MARKS = 12  # special tokens tried: some tokenizers have hundreds, which behave alike


class Tokens:
    """Encodes prompts one after the other, as the tokenizer would each by itself.

    Parameters
    ----------
    tokenizer
        Of Hugging Face's transformers.

    Attributes
    ----------
    shares
        Whether lines are tokenized once. False for a tokenizer for which that is not
        exact.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        self._lines: dict[str, Ids] = {}
        self._n_characters = 0
        self._ready: dict[str, Ids] = {}
        self._special = self._find_special_tokens()
        self._next = self._whole(_NEXT)
        self.shares = self._backend is not None and self._is_exact()

    def encode(self, text: str) -> Ids:
        """Return the ids of a text, without special tokens at its ends."""
        if self.shares:
            return self._by_line(text)
        ready = self._ready.get(text)
        return self._whole(text) if ready is None else ready

    def enclose(self, ids: Ids) -> Ids:
        """Return ids with the special tokens that surround a text of its own."""
        return [*self._special[0], *ids, *self._special[1]]

    def prepare(self, texts: Iterable[str]) -> None:
        """Encode texts in one batch, for the calls of `encode` that follow.

        Nothing is done where lines are shared, since that costs less.
        """
        if self.shares:
            return
        if distinct := list(dict.fromkeys(texts)):
            batch = self._tokenizer(distinct, add_special_tokens=False)["input_ids"]
            self._ready = dict(zip(distinct, batch, strict=True))

    def _whole(self, text: str) -> Ids:
        ids: Ids = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _by_line(self, text: str) -> Ids:
        *lines, last = _BREAK.split(text)
        ids: Ids = []
        # with a letter that a line break looks at, whose ids are dropped
        for line in lines:
            ids += self._part(f"{line}\n{_NEXT}", len(self._next))
        return ids + self._part(last, 0)

    def _part(self, part: str, n_dropped: int) -> Ids:
        """Encode a line, and keep its ids."""
        ids = self._lines.get(part)
        if ids is None:
            if self._n_characters > _MOST_CHARACTERS:
                self._lines.clear()
                self._n_characters = 0
            ids = self._backend.encode(part, add_special_tokens=False).ids
            self._lines[part] = ids = ids[: len(ids) - n_dropped]
            self._n_characters += len(part)
        return ids

    def _find_special_tokens(self) -> tuple[Ids, Ids]:
        """Return what the tokenizer puts before and after a text."""
        bare, whole = self._whole(_PROBES[0]), self._tokenizer.encode(_PROBES[0])
        places = range(len(whole) - len(bare) + 1)
        start = next((n for n in places if whole[n : n + len(bare)] == bare), 0)
        return whole[:start], whole[start + len(bare) :]

    def _is_exact(self) -> bool:
        """Try each kind of line before each other, and whether cuts end a word."""
        breaks = ["".join(parts) for parts in product(_BEFORE, _BREAKS, _AFTER)]
        probes = (*_PROBES, self._chat(), "".join(_PROBES), "".join(breaks), *breaks)
        return all(
            self._has_words(text) and self._by_line(text) == self._whole(text)
            for text in probes
        )

    def _has_words(self, text: str) -> bool:
        """Whether a word begins at every cut; one long word may have no safe cut."""
        encoded = self._backend.encode(text, add_special_tokens=False)
        words, offsets = encoded.word_ids, encoded.offsets
        starts = {
            offsets[n][0]
            for n, word in enumerate(words)
            if not n or word != words[n - 1]
        }
        return len(starts) >= len(text) / 20 and all(
            line_break.end() in starts for line_break in _BREAK.finditer(text)
        )

    def _chat(self) -> str:
        """Return turns between the tokenizer's own marks, behind which rules change."""
        added = getattr(self._tokenizer, "added_tokens_decoder", {}).values()
        marks = list(
            dict.fromkeys([*self._tokenizer.all_special_tokens, *map(str, added)])
        )
        turns = ("{}user\nIs it right? {}\n{} Yes, 1", "{}\nuser\n\n{}Yes\n{}\n\n1 ")
        return "".join(
            turn.format(*[mark] * 3) for mark in marks[:_MARKS] for turn in turns
        )
