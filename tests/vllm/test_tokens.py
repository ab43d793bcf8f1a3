"""Shared lines are tokenized once and nothing else changes,
with tokenizers of every kind.
"""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import rubricnb as rb
from rubricnb.core.contract import Message, Request
from rubricnb.core.rendering import rendered
from rubricnb.engines.tokens import _PROBES, Tokens
from rubricnb.engines.vllm import VLLMJudge, _first_slot

BYTES = pre_tokenizers.ByteLevel.alphabet()
# What splits a text into words → whether the cut is exact for it.
KINDS = {
    "byte-level": (None, pre_tokenizers.ByteLevel(add_prefix_space=False), True),
    "composed characters": (
        normalizers.NFC(),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        True,
    ),
    "a space before every text": (
        None,
        pre_tokenizers.ByteLevel(add_prefix_space=True),
        False,
    ),
    "a mark before every text": (
        None,
        pre_tokenizers.Metaspace(prepend_scheme="first"),
        False,
    ),
    "blanks dropped at both ends": (
        normalizers.Strip(),
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        True,
    ),
    "one word": (normalizers.Replace(" ", "▁"), None, False),
}


def trained(kind):
    """A small tokenizer of a kind, trained on the probes: real code, made here."""
    normalizer, splitter, _ = KINDS[kind]
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    if normalizer is not None:
        backend.normalizer = normalizer
    if splitter is not None:
        backend.pre_tokenizer = splitter
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<unk>", "<s>"],
        initial_alphabet=BYTES,
        show_progress=False,
    )
    backend.train_from_iterator(_PROBES, trainer)
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", backend.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", bos_token="<s>"
    )


@pytest.fixture(scope="module")
def tokenizer(smollm2):
    return AutoTokenizer.from_pretrained(smollm2)


PIECES = [
    *"\n\t\x0b\u2028 W1.é是ह_#\u0301",
    *("\n\n", "\r\n", "  ", "word", "23", "'s", "👍🏽", "<|im_end|>", "<|im_start|>"),
]


@pytest.fixture(
    scope="module", params=["of the weights", "byte-level", "composed characters"]
)
def kept(request):
    """A tokenizer, and one of ours that goes on from text to text."""
    of_weights = request.param == "of the weights"
    plain = (
        request.getfixturevalue("tokenizer") if of_weights else trained(request.param)
    )
    return plain, Tokens(plain)


def bare_judge(tokenizer):
    """A judge without its engine: what it sends there is the same."""
    judge = object.__new__(VLLMJudge)
    judge.slug, judge.identity, judge.thinks = "any-vllm", "any", False
    judge.control_tokens = ()
    judge._tokenizer, judge._tokens = tokenizer, Tokens(tokenizer)
    return judge


def whole(judge, request):
    """The ids of a request's first prompt, encoded by itself."""
    text = judge._text(request, _first_slot(request))
    plain = request.prompt_format == "plain"
    return judge._tokenizer.encode(text, add_special_tokens=plain)


@pytest.mark.parametrize("kind", KINDS)
def test_the_door_tells_which_tokenizers_can_be_cut(kind):
    assert Tokens(trained(kind)).shares is KINDS[kind][2]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_each_text_by_itself(kind):
    tokenizer = trained(kind)
    tokens = Tokens(tokenizer)
    texts = [
        *_PROBES,
        "",
        *(_PROBES[0] + "12 " * n for n in range(4)),
        *(_PROBES[0] + "12 " * n + "123" for n in range(4)),  # "12" begins "123"
        "café",
        "cafe\u0301",
        "cafe\u0301s",
        _PROBES[1][:-1],
        _PROBES[1],
        _PROBES[1] + "\n",
    ]
    tokens.prepare(texts)
    for text in texts:
        assert tokens.encode(text) == tokenizer.encode(text, add_special_tokens=False)
        assert tokens.enclose(tokens.encode(text)) == tokenizer.encode(text)


def test_ids_of_every_template_layout_and_readout_are_equal(tokenizer):
    judge = bare_judge(tokenizer)
    assert judge._tokens.shares
    items = rb.load("minibench", n_items=30)
    plans = [
        rb.plan(
            items, rb.balanced(5), readout=readout, layout=layout, prompt_format=form
        )
        for readout, layout, form in product(
            ("logprobs", "feedback"), ("rubric-last", "rubric-first"), ("chat", "plain")
        )
    ]
    plans.append(
        rb.plan(items, rb.balanced(3), template="criteria", readout="logprobs")
    )
    plans.append(
        rb.plan(items, rb.fixed(5, 1), template="pointwise", readout="logprobs")
    )
    for plan in plans:
        for request in rendered(plan, judge, walked=True):
            assert judge.tokens(request) == whole(judge, request)


def test_a_line_is_encoded_once_whatever_stands_before_it(tokenizer):
    tokens = Tokens(tokenizer)
    lines = [f"{level}: The response is of kind {level}.\n" for level in range(1, 6)]
    body = "A sentence of the response, and one more. " * 200 + "\n"
    encoded = []

    class Counting:
        def encode(self, text, **options):
            encoded.append(len(text))
            return tokenizer.backend_tokenizer.encode(text, **options)

    tokens._backend = Counting()
    for order in (lines, lines[::-1], lines[2:] + lines[:2]):
        text = "".join(order) + body + "Score:"
        assert tokens.encode(text) == tokenizer.encode(text, add_special_tokens=False)
    # with the letter that a line break looks at
    once = [f"{line}x" for line in (*lines, body)]
    assert encoded == [len(part) for part in (*once, "Score:")]


def test_lines_that_are_kept_are_forgotten_before_they_fill_the_memory(
    tokenizer, monkeypatch
):
    monkeypatch.setattr("rubricnb.engines.tokens._MOST_CHARACTERS", 1000)
    tokens = Tokens(tokenizer)
    for n in range(200):
        text = f"Text {n} of many.\nScore:"
        assert tokens.encode(text) == tokenizer.encode(text, add_special_tokens=False)
        assert sum(map(len, tokens._lines)) < 1100


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@settings(max_examples=1500, deadline=None, derandomize=True)
def test_ids_of_any_text_are_equal(kept, text):
    plain, tokens = kept
    assert tokens.encode(text) == plain.encode(text, add_special_tokens=False)


def test_a_chat_template_that_depends_on_the_date_changes_in_mid_run(
    tokenizer, monkeypatch
):
    """The beginning of every prompt changes at midnight;
    nothing of the day before is kept.
    """
    judge = bare_judge(tokenizer)
    for day in ("2026-11-27", "2026-11-28"):
        tokenizer.chat_template = (
            f"Today is {day}.\n{{{{ messages[0].content }}}}\nAnswer:"
        )
        for text in ("Is it right?", "Is it clear?"):
            ask = Request(
                1, "", (Message("user", text),), ("[RESULT]",), ("1", "2"), "logprobs"
            )
            assert judge.tokens(ask) == whole(judge, ask)
            assert day in tokenizer.decode(judge.tokens(ask))
