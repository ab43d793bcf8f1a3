"""vLLM's engine for real: probabilities against two oracles,
sharing against its limit.
"""

import copy
import json

import numpy as np
import psutil
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import rubricnb as rb
from rubricnb.core.contract import Message, Request
from rubricnb.core.parsing import read
from rubricnb.core.prompts import render
from rubricnb.core.rendering import rendered
from rubricnb.engines.openai import JudgeError
from rubricnb.engines.tokens import Tokens
from studies.limit import Limit

LEVELS = {1: "Wrong.", 2: "Half right.", 3: "Right."}
# On a processor one engine after the other must fit;
# a GPU is told how much of it to take.
ENGINE = {"max_model_len": 4096} | (
    {"gpu_memory_utilization": 0.25} if torch.cuda.is_available() else {}
)


@pytest.fixture(scope="module")
def judge(smollm2):
    judge = rb.open_judge(f"vllm:{smollm2}", **ENGINE)
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def exact(smollm2):
    """In float32, for comparisons:
    how far bfloat16 moves a share depends on the processor.
    """
    judge = rb.open_judge(f"vllm:{smollm2}", dtype="float32", **ENGINE)
    yield judge
    judge.close()


@pytest.fixture
def base_judge(gemma):
    judge = rb.open_judge(f"vllm:{gemma}", dtype="float32", **ENGINE)
    yield judge
    judge.close()


@pytest.fixture(scope="module")
def forward(smollm2):
    return Forward(smollm2)


def request(
    ordering, readout, labels="numeric", number=1, response="It is 4.", **options
):
    levels = LEVELS if len(ordering) == 3 else {s: f"Level {s}." for s in ordering}
    prompt = render(
        "What is 2 + 2?", response, "Is it right?", levels, ordering, labels=labels
    )
    return Request(
        number,
        "k",
        (Message("user", prompt.text),),
        prompt.slots,
        prompt.choices,
        readout,
        ordering=tuple(ordering),
        **{"max_tokens": 24} | options,
    )


def test_a_judge_without_batch_invariance_says_so_once_and_repeats_are_asked(
    judge, capfd
):
    if torch.cuda.is_available():
        pytest.skip("a GPU may have the mode")
    assert not judge.deterministic
    assert "invariant" not in judge.identity + judge.slug
    judge._said = False
    for _ in range(2):
        list(judge.answer([request((1, 2, 3), "logprobs")]))
    assert capfd.readouterr().out.count("repeats are asked") == 1
    items = rb.load("minibench", n_items=2)
    requests = rb.plan(items, rb.fixed(5, 3), readout="logprobs")
    assert rb.run(requests, judge, ":memory:").key.nunique() == 6


def minibench(judge, n_items=2, **options):
    items = rb.load("minibench", n_items=n_items)
    return list(
        rendered(
            rb.plan(items, rb.shuffled(5, 1), readout="logprobs", **options), judge
        )
    )


class Forward:
    """Label probabilities by plain forward passes
    of the same checkpoint, in float32.
    """

    def __init__(self, folder):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )
        vocabulary = self.tokenizer.get_vocab()
        # Each tokenizer writes the space as one of these;
        # the other may be a letter of its own.
        space = max("Ġ▁", key=lambda mark: sum(t.startswith(mark) for t in vocabulary))
        spelt = {t.replace(space, " "): i for t, i in vocabulary.items()}
        self.spelt = {
            text: i
            for text, i in spelt.items()
            if text.strip(" ").isalnum() or text == " "
        }

    def __call__(self, ask):
        plain = ask.prompt_format == "plain"
        text = "\n\n".join(m.content for m in ask.messages) + "\n"
        if not plain:
            messages = [{"role": m.role, "content": m.content} for m in ask.messages]
            text = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        tokens = self.tokenizer.encode(text + ask.slots[0], add_special_tokens=plain)
        self.targets = [f" {c}" for c in ask.choices]
        self.known = {(): self.forward(tokens, None)}
        return [self.probability(target, "", ()) for target in self.targets]

    def forward(self, tokens, cache):
        """Probabilities of the token that follows, and the cache up to there."""
        with torch.no_grad():
            out = self.model(
                torch.tensor([tokens]),
                past_key_values=copy.deepcopy(cache),
                use_cache=True,
            )
        return out.logits[0, -1].softmax(-1), out.past_key_values

    def following(self, path):
        """Probabilities of the token that follows these, which begin the answer."""
        if path not in self.known:
            self.following(path[:-1])
            self.known[path] = self.forward(path[-1:], self.known[path[:-1]][1])
        return self.known[path][0]

    def probability(self, target, written, path):
        """Probability that exactly the target is written, in whatever tokens."""
        total = 0.0
        for end in range(len(written) + 1, len(target) + 1):
            token = self.spelt.get(target[len(written) : end])
            if token is None or self.following(path)[token] < 1e-9:
                continue
            longer = [t for t in self.targets if t.startswith(target) and t != target]
            if end < len(target):
                rest = self.probability(target, target[:end], (*path, token))
            elif longer:
                more = self.following((*path, token))
                starts = {
                    t[len(target) : n]
                    for t in longer
                    for n in range(end + 1, len(t) + 1)
                }
                rest = 1 - sum(
                    float(more[self.spelt[s]]) for s in starts if s in self.spelt
                )
            else:
                rest = 1.0
            total += float(self.following(path)[token]) * rest
        return total


def shares(probabilities):
    return np.array(probabilities) / sum(probabilities)


def assert_alike(found, expected, tolerance=0.002):
    """Judgments agree: each label's share, and the choice where it is clear."""
    assert np.abs(found - expected).max() <= tolerance
    assert sum(found) == pytest.approx(1)
    first, second = np.sort(expected)[[-1, -2]]
    assert first - second <= 0.05 or found.argmax() == expected.argmax()


def test_a_base_model_judges_plain_prompts_only(base_judge, gemma):
    forward = Forward(gemma)
    asked = minibench(base_judge, prompt_format="plain")
    replies = {r.request_id: r for r in base_judge.answer(asked)}
    for ask in asked:
        (found,) = replies[ask.request_id].probabilities
        assert_alike(shares(found), shares(forward(ask)))
    with pytest.raises(JudgeError, match="prompt_format='plain'"):
        list(base_judge.answer([request((1, 2, 3), "logprobs")]))


@pytest.mark.parametrize(
    ("prompt_format", "labels"),
    [("chat", "numeric"), ("chat", "roman"), ("plain", "numeric"), ("plain", "letter")],
)
def test_probabilities_are_those_of_a_plain_forward_pass(
    exact, forward, prompt_format, labels
):
    asked = minibench(exact, prompt_format=prompt_format, labels=labels)
    replies = {r.request_id: r for r in exact.answer(asked)}
    for ask in asked:
        (found,) = replies[ask.request_id].probabilities
        expected = forward(ask)
        assert np.abs(np.subtract(found, expected)).max() <= 0.002
        assert_alike(shares(found), shares(expected))


def test_probabilities_are_those_of_the_embedded_engine(exact, smollm2_gguf):
    embedded = rb.open_judge(f"embedded:{smollm2_gguf}", threads=1, context=2048)
    asked = minibench(exact)
    theirs = {r.request_id: r for r in embedded.answer(asked)}
    embedded.close()
    for reply in exact.answer(asked):
        (expected,) = theirs[reply.request_id].probabilities
        # llama.cpp rounds what goes into each product to 8 bits,
        # in a way that the processor has.
        assert_alike(shares(reply.probabilities[0]), shares(expected), tolerance=0.08)


def test_ten_is_told_from_one_on_a_ten_point_scale(exact, forward):
    ask = request(tuple(range(1, 11)), "logprobs")
    (reply,) = exact.answer([ask])
    assert np.abs(np.subtract(reply.probabilities[0], forward(ask))).max() <= 0.002
    assert 0 < reply.probabilities[0][9] < 1


def test_several_criteria_are_filled_line_by_line(judge):
    criteria = [("Clarity", "Is it clear?"), ("Accuracy", "Is it right?")]
    prompt = render("I", "R", "", {}, (1, 2, 3), template="criteria", criteria=criteria)
    ask = Request(
        1,
        "k",
        (Message("user", prompt.text),),
        prompt.slots,
        prompt.choices,
        "logprobs",
    )
    (reply,) = judge.answer([ask])
    assert [reading.status for reading in read(ask, reply)] == ["ok", "ok"]
    assert [line.split()[0] for line in reply.text.splitlines()] == [
        "[Clarity]",
        "[Accuracy]",
    ]


def test_a_score_is_the_most_probable_label_or_drawn_by_the_seed(judge):
    probable, greedy, *drawn, again = judge_in_order(
        judge,
        [
            request((2, 3, 1), "logprobs", number=0),
            request((2, 3, 1), "score", number=1),
            *(
                request((2, 3, 1), "score", number=2 + s, temperature=2.0, seed=s)
                for s in range(12)
            ),
            request((2, 3, 1), "score", number=20, temperature=2.0, seed=0),
        ],
    )
    assert greedy.text == probable.text
    assert greedy.probabilities is None
    assert len({r.text for r in drawn}) > 1
    assert again.text == drawn[0].text


def test_feedback_is_free_text_that_a_seed_repeats(judge):
    asked = [
        request((1, 2, 3), "feedback", number=1),
        request((1, 2, 3), "feedback", number=2, temperature=1.0, seed=7),
        request((1, 2, 3), "feedback", number=3, temperature=1.0, seed=7),
        request((1, 2, 3), "feedback", number=4, temperature=1.0, seed=8),
        request((1, 2, 3), "feedback", number=5, prompt_format="plain", max_tokens=8),
    ]
    greedy, one, same, other, plain = (alone(judge, ask) for ask in asked)
    assert one.text == same.text
    assert len({greedy.text, one.text, other.text}) == 3
    assert (plain.finish, plain.completion_tokens) == ("length", 8)
    assert greedy.text.isprintable() or "\n" in greedy.text


def test_answers_are_drawn_by_seeds_where_prompts_fill_a_step(judge):
    """More prompt tokens at once than one step takes:
    the rest of a prompt must not be cut off.
    """
    step = judge._llm.llm_engine.vllm_config.scheduler_config.max_num_batched_tokens
    texts = [f"{k} " + "It is four, as two and two are. " * 30 for k in range(24)]
    asked = [
        request((1, 2, 3), "feedback", number=k, response=text, temperature=1.0, seed=k)
        for k, text in enumerate(texts)
    ]
    assert sum(len(judge.tokens(ask)) for ask in asked) > 1.2 * step
    replies = list(judge.answer(asked))
    assert [reply.error for reply in replies] == [None] * len(asked)
    assert len({reply.text for reply in replies}) == len(asked)


def test_a_document_conforms_to_its_schema(judge):
    schema = {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "maxLength": 40},
            "score": {"type": "integer", "enum": [1, 2, 3]},
        },
        "required": ["reason", "score"],
        "additionalProperties": False,
    }
    ask = Request(
        1,
        "k",
        request((1, 2, 3), "json").messages,
        (),
        (),
        "json",
        schema=json.dumps(schema),
        max_tokens=96,
    )
    (reply,) = judge.answer([ask])
    document = json.loads(reply.text)
    assert list(document) == ["reason", "score"]
    assert document["score"] in (1, 2, 3)
    # No white space between the parts: a small model goes on with it until it is cut.
    assert reply.text == json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def test_a_prompt_that_is_too_long_fails_alone(judge):
    long = request((1, 2, 3), "logprobs", number=1, response="word " * 5000)
    fits = request((1, 2, 3), "logprobs", number=2)
    failed, answered = judge_in_order(judge, [long, fits])
    assert (failed.finish, answered.finish) == ("error", "stop")
    assert "4096" in failed.error


def test_thinking_is_closed_before_a_label(judge, smollm2, monkeypatch):
    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.chat_template = (
        "{{ messages[0].content }}<|im_start|>assistant\n<think>\n"
    )
    monkeypatch.setattr(judge, "_tokenizer", tokenizer)
    monkeypatch.setattr(judge, "_tokens", Tokens(tokenizer))
    monkeypatch.setattr(judge, "thinks", True)
    prompt = tokenizer.decode(judge.tokens(request((1, 2, 3), "logprobs")))
    assert prompt.endswith("</think>\n\n[RESULT]")
    free = tokenizer.decode(judge.tokens(request((1, 2, 3), "feedback")))
    assert free.endswith("<think>")


@pytest.mark.parametrize(
    ("dataset", "n_items", "at_most"), [("mt-bench", 8, 1.04), ("hanna", 6, 1.08)]
)
def test_little_more_than_the_limit_is_computed(
    judge, dataset, n_items, at_most, mirror
):
    plan = rb.plan(
        rb.load(dataset, n_items=n_items), rb.balanced(5), readout="logprobs"
    )
    judge._llm.reset_prefix_cache()
    judgments = rb.run(plan, judge, fresh=True)  # this judge is recorded on both
    assert set(judgments["status"]) == {"ok"}
    computed = (judgments["prompt_tokens"] - judgments["cached_tokens"]).sum()
    needed = Limit()
    for tokens in sorted(judge.tokens(r) for r in rendered(plan, judge)):
        needed.add(tokens)
    assert needed.distinct <= computed <= at_most * needed.distinct


def test_identity_names_weights_and_engine_but_no_path(judge, smollm2):
    assert judge.slug == "smollm2-135m-instruct-vllm"
    assert judge.identity.startswith("vllm ")
    assert "sha256:" in judge.identity
    assert str(smollm2.parent) not in judge.identity


def alone(judge, ask):
    """A reply that is the same to the last digit whatever else was asked:
    nothing is shared.
    """
    judge._llm.reset_prefix_cache()
    (reply,) = judge.answer([ask])
    return reply


def judge_in_order(judge, asked):
    replies = {r.request_id: r for r in judge.answer(asked)}
    return [replies[a.request_id] for a in asked]


@pytest.mark.skipif(torch.cuda.is_available(), reason="two engines need a card each")
def test_two_engines_behind_ray_answer_as_one_does_each_in_its_actors_process(
    judge, smollm2
):
    pytest.importorskip("ray", reason="Ray is not installed: make env-vllm")
    plan = rb.plan(rb.load("minibench", n_items=4), rb.balanced(5), readout="logprobs")
    asked = list(rendered(plan, judge, walked=True))
    one = {reply.request_id: reply for reply in judge.answer(asked)}
    two = rb.open_judge(f"ray:vllm:{smollm2}", num_actors=2, block=5, **ENGINE)
    try:
        replies = list(two.answer(asked))
        names = [" ".join(p.cmdline()) for p in psutil.Process().children(True)]
    finally:
        two.close()
    assert (two.slug, two.identity) == (judge.slug, judge.identity)
    assert sorted(r.request_id for r in replies) == sorted(one)
    assert not any(reply.error for reply in replies)
    for (
        reply
    ) in replies:  # in bfloat16 what is computed together moves a share a little
        theirs, ours = reply.probabilities[0], one[reply.request_id].probabilities[0]
        assert np.allclose(theirs, ours, atol=0.03)
    assert sum("ray::_Actor" in name for name in names) == 2
    assert not any("EngineCore" in name for name in names)
