"""Tokens of prompts that come as a walk: what two neighbours share is tokenized once.

A byte-level tokenizer first splits a text into words and then encodes each word by itself, so the
tokens up to a word boundary depend on nothing behind it. Of two prompts that share a beginning, the
second needs only what follows the last boundary in it. This is exact for most tokenizers and wrong
for those that treat the beginning of every text differently, such as those that put a space before
it: `Tokens` finds out which kind it has, and encodes the other kind in batches instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from rubricnb.judging.sharing import common_prefix

# What prompts consist of and where the splitting rules of tokenizers differ: runs of white space,
# line breaks, digits, contractions, marks, other scripts, combining characters, emoji.
_PROBES = (
    '### Task description:\nA response is scored 1 to 10.\n\n1: "Isn\'t" good; 2:  3.14!\r\n',
    "  two  blanks,\ttab\n\n\n   indented 2026-11-27 [RESULT] 5 x=1;y=20%\u00a0(end) ...   \n",
    "Crème brûlée, cafe\u0301, naïve Straße; Ελληνικά, русский, हिन्दी, العربية, ไทย.",
    "評分標準：回答は正しいか。 한국어 👍🏽 👩\u200d👧 \u2014 \u201cquoted\u201d\u2026 '' a_b </s>",
)
_ENDINGS = ("", "x", "X", "7", " ", "\n", ".", "\u0301", "是")  # what may follow a shared part
_MARKS = 12  # special tokens tried: some tokenizers have hundreds, which behave alike


class Tokens:
    """Encodes prompts one after the other, as the tokenizer would encode each by itself.

    Parameters
    ----------
    tokenizer
        Of Hugging Face's transformers.

    Attributes
    ----------
    shares
        Whether beginnings are tokenized once. False for a tokenizer for which that is not exact.

    Notes
    -----
    The end of a shared beginning is not a safe cut: ``"12"`` and ``"123"`` share two characters and
    may share no token. The cut is the last boundary that has a whole shared word and one more
    shared character behind it, since rules look at most one character ahead of a word.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._backend: Any = getattr(tokenizer, "backend_tokenizer", None)
        self._before = _NOTHING
        self._ready: dict[str, list[int]] = {}
        self._special = self._find_special_tokens()
        self.shares = self._backend is not None and self._is_exact()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens at its ends."""
        if not self.shares:
            ready = self._ready.get(text)
            return self._whole(text) if ready is None else ready
        self._before = self._continue(self._before, text)
        return self._before.ids

    def enclose(self, ids: list[int]) -> list[int]:
        """Return ids with the special tokens that the tokenizer puts around a text of its own."""
        return [*self._special[0], *ids, *self._special[1]]

    def prepare(self, texts: Iterable[str]) -> None:
        """Encode texts in one batch, for the calls of `encode` that follow.

        Nothing is done where beginnings are shared, since that costs less.
        """
        if self.shares:
            return
        if distinct := list(dict.fromkeys(texts)):
            batch = self._tokenizer(distinct, add_special_tokens=False)["input_ids"]
            self._ready = dict(zip(distinct, batch, strict=True))

    def _whole(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _continue(self, before: _Words, text: str) -> _Words:
        """Encode a text from the last safe word boundary that it shares with the one before."""
        shared = common_prefix(before.text, text)
        # starts[n] is the last word that begins inside the shared part, so the word before it is
        # shared as a whole and followed by one more shared character: cut in front of that word.
        kept = max(0, bisect_left(before.starts, shared) - 2)
        cut, n_ids = (before.starts[kept], before.at[kept]) if before.starts else (0, 0)
        encoded = self._backend.encode(text[cut:], add_special_tokens=False)
        words = encoded.word_ids
        first = [n for n, word in enumerate(words) if n == 0 or word != words[n - 1]]
        offsets = encoded.offsets
        return _Words(
            text,
            before.ids[:n_ids] + encoded.ids,
            before.starts[:kept] + [cut + offsets[n][0] for n in first],
            before.at[:kept] + [n_ids + n for n in first],
        )

    def _find_special_tokens(self) -> tuple[list[int], list[int]]:
        """Return what the tokenizer puts before and after a text."""
        bare, whole = self._whole(_PROBES[0]), self._tokenizer.encode(_PROBES[0])
        places = range(len(whole) - len(bare) + 1)
        start = next((n for n in places if whole[n : n + len(bare)] == bare), 0)
        return whole[:start], whole[start + len(bare) :]

    def _is_exact(self) -> bool:
        """Try the cut at every boundary of every probe, with other text behind what is shared."""
        probes = (*_PROBES, self._chat(), "".join(_PROBES))
        for text in probes:
            words = self._continue(_NOTHING, text)
            if words.ids != self._whole(text) or len(words.starts) < len(text) / 20:
                return False  # a text that is one word has no boundary to cut at
            for start, at, following in zip(words.starts, words.at, words.starts[1:], strict=False):
                if self._whole(text[start:]) != words.ids[at:]:
                    return False
                shared = text[: following + 1]
                if any(self._whole(shared + end)[:at] != words.ids[:at] for end in _ENDINGS):
                    return False
        before = _NOTHING
        for one, other in pairwise((*probes, *reversed(probes))):
            for text in (one, one[: len(one) // 2] + other, other):
                before = self._continue(before, text)
                if before.ids != self._whole(text):
                    return False
        return True

    def _chat(self) -> str:
        """Return turns between the tokenizer's own marks: rules may differ behind one."""
        added = getattr(self._tokenizer, "added_tokens_decoder", {}).values()
        marks = list(dict.fromkeys([*self._tokenizer.all_special_tokens, *map(str, added)]))
        return "".join(f"{mark}user\nIs it right? {mark}\n{mark} Yes, 1" for mark in marks[:_MARKS])


class _Words:
    """A text, its ids, and where each of its words begins: in the text, and among the ids."""

    __slots__ = ("at", "ids", "starts", "text")

    def __init__(self, text: str, ids: list[int], starts: list[int], at: list[int]) -> None:
        self.text, self.ids, self.starts, self.at = text, ids, starts, at


_NOTHING = _Words("", [], [], [])
