"""A template, a parser or a function of one's own asks and
is read like the papers' prompt.
"""

import json

import pandas as pd
import pytest

import rubricnb as rb
from rubricnb.core.rendering import askable, rendered
from rubricnb.rulers.bundle import load_bundle
from rubricnb.rulers.grading import grade

LISTED = """
{% block system %}
You grade for {{ criterion }}.
{% endblock %}
{% block user %}
Mail: {{ instruction }}
Reply: {{ response }}
{% if reference %}
A reply worth {{ reference_label }}: {{ reference }}
{% endif %}
{{ definition }}
{% for label, description in options %}
{{ label }} = {{ description }}
{% endfor %}
Score:
{% endblock %}
"""
BARE = "Rate from {{ lowest }} to {{ highest }}: {{ response }}"
SEVERAL = """Text: {{ response }}
{% for c in criteria %}
* {{ c.name }}: {{ c.definition }}
{% endfor %}
"""


@pytest.fixture
def items():
    return rb.load("minibench", n_items=6)


@pytest.fixture
def opened(tmp_path):
    def opened(
        text,
        function=lambda messages: "Score: 4",
        parser=r"Score: (\d)",
        name="mine.jinja",
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return rb.open_judge(
            function, name="f", template=tmp_path / name, parser=parser
        )

    return opened


def prompts(judge, requests):
    return [[m.content for m in r.messages] for r in rendered(requests, judge)]


def test_a_template_shows_the_options_in_each_order_under_each_label(opened, items):
    judge = opened(LISTED)
    requests = rb.plan(items[:1], rb.balanced(5), labels=["numeric", "letter"])
    shown = prompts(judge, requests)
    assert {system for system, _ in shown} == {"You grade for accuracy."}
    assert len({user for _, user in shown}) == 20
    listed = [
        [line[0] for line in user.splitlines() if " = " in line[:5]]
        for _, user in shown
    ]
    named = requests.assign(first=["".join(names) for names in listed])
    numeric = named[named.labels == "numeric"]
    assert numeric["first"].tolist() == numeric.ordering.str.replace("-", "").tolist()
    assert set(named[named.labels == "letter"]["first"].map(sorted).map("".join)) == {
        "ABCDE"
    }


def test_placebo_edits_change_every_prompt_and_no_word(opened, items):
    judge = opened(LISTED)
    shown = prompts(judge, rb.plan(items[:1], [rb.placebo(5, 15), rb.fixed(5, 1)]))
    assert len({user for _, user in shown}) == 16
    words = {
        " ".join(user.replace(":", " ").replace("=", " ").split()) for _, user in shown
    }
    assert len(words) == 1


@pytest.mark.parametrize(
    "change",
    ["options.append(('9', 'best'))", "criteria[0].clear()", "''.__class__.__mro__"],
)
def test_a_template_cannot_change_what_is_asked_or_leave_its_sandbox(
    opened, items, change
):
    judge = opened(f"{SEVERAL}{{{{ options }}}}{{{{ {change} }}}}")
    requests = (
        rb.plan(items, rb.balanced(3), template="criteria")
        if "criteria" in change
        else rb.plan(items[:1], rb.balanced(5))
    )
    with pytest.raises(
        ValueError, match=r"mine\.jinja: .*(unsafe|not safely callable)"
    ):
        prompts(judge, requests)


def test_a_template_that_fails_is_named(opened, items):
    judge = opened(SEVERAL + "{{ 1 / 0 }}")
    with pytest.raises(ValueError, match=r"mine\.jinja: "):
        prompts(judge, rb.plan(items, rb.balanced(3), template="criteria"))


def test_references_are_shown_where_the_template_has_their_slot(opened, items):
    judge = opened(LISTED)
    [[_, user]] = prompts(judge, rb.plan(items[1:2], rb.fixed(5, 1), reference=5))
    assert f"A reply worth 5: {items.reference_5.iloc[1]}" in user


def test_what_a_template_cannot_show_is_refused_in_a_sentence_and_the_rest_is_asked(
    opened, items
):
    judge = opened(BARE)
    one = items[items.criterion == "helpfulness"]
    everything = pd.concat(
        [
            rb.plan(
                one,
                [rb.balanced(5), rb.fixed(5, 2), rb.placebo(5, 1)],
                reference="none",
            ),
            rb.plan(one, rb.fixed(5, 1), labels="letter", reference="none"),
            rb.plan(one, rb.fixed(5, 1), reference=5),
        ],
        ignore_index=True,
    )
    kept, refused = askable(everything, judge)
    assert set(kept.design) == {"fixed", "balanced"}  # of balanced, the ascending order
    assert set(kept.ordering) == {"1-2-3-4-5"}
    assert set(kept.labels) == {"numeric"}
    assert [sentence.split(": ")[1] for sentence in refused.values()] == [
        "other orders of the options cannot be asked",
        "meaning-free edits of the list cannot be asked",
        "other labels cannot be asked",
        "references cannot be asked",
    ]
    assert [*refused] == ["orders", "edits", "labels", "references"]
    with pytest.raises(
        ValueError, match=r"mine\.jinja has no slot options: other orders of the"
    ):
        rb.run(everything, judge, store=":memory:")
    assert set(rb.run(kept, judge, store=":memory:").score) == {4}
    several = rb.plan(items, rb.fixed(5, 1))
    assert (
        "one criterion by itself" in askable(several, judge)[1]["alone"]
    )  # which would be the same
    assert askable(everything, rb.open_judge("simulated:unbiased")) == (everything, {})


def test_several_criteria_are_asked_in_each_order_and_read_by_name(opened, items):
    def answers(messages):
        asked = [
            line[2:].split(":")[0]
            for line in messages[0]["content"].splitlines()
            if "* " in line
        ]
        return json.dumps({name: 1 + len(name) % 5 for name in asked})

    requests = rb.plan(items, [rb.balanced(3), rb.placebo(3, 2)], template="criteria")
    found = rb.run(requests, opened(SEVERAL, answers, json.loads), store=":memory:")
    assert (found.score == 1 + found.criterion.str.len() % 5).all()
    assert (
        found.groupby("criterion", observed=True)
        .criterion_position.nunique()
        .eq(3)
        .all()
    )
    pattern = r'"(?P<criterion>\w+)": (?P<score>\d)'
    again = rb.run(requests, opened(SEVERAL, answers, pattern), store=":memory:")
    assert again.score.tolist() == found.score.tolist()


def test_another_text_is_another_judge_and_another_parser_is_not(
    opened, items, tmp_path
):
    calls = []

    def answers(messages):
        calls.append(messages)
        return "Score: 4, or 2"

    store, requests = tmp_path / "replies.sqlite", rb.plan(items, rb.fixed(5, 1))
    first = rb.run(requests, opened(LISTED, answers), store=store)
    assert len(calls) == len(items)
    other = rb.run(requests, opened(LISTED, answers, r"or (\d)"), store=store)
    assert (set(first.score), set(other.score), len(calls)) == ({4}, {2}, len(items))
    changed = opened(LISTED.replace("Score:", "Score?"), answers)
    assert changed.identity != opened(LISTED, answers).identity
    rb.run(requests, changed, store=store)
    assert len(calls) == 2 * len(items)
    assert opened(LISTED, name="other.jinja").slug == "f-other"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{{ respnse }}",
            r"slot in mine\.jinja 'respnse'; did you mean .* There are: instruction",
        ),
        (
            "Rate it.",
            r"mine\.jinja shows no text to judge: write \{\{ response \}\} into it",
        ),
        ("{{ response }\n", r"mine\.jinja, line 1: "),
        (
            "{% block system %}x{% endblock %}{{ response }}",
            "its blocks are system, not system and",
        ),
        (
            "Hi {% block user %}{{ response }}{% endblock %}",
            "line 1: this is outside the blocks",
        ),
    ],
)
def test_a_template_that_cannot_be_filled_in_says_why(opened, text, message):
    with pytest.raises(ValueError, match=message):
        opened(text)


def test_a_template_without_a_parser_asks_for_the_papers_mark(opened):
    with pytest.raises(
        ValueError, match=r"does not ask for \[RESULT\] .* parser=r'Score: "
    ):
        opened(BARE, parser=None)
    assert opened(BARE + " [RESULT] N", parser=None).slug == "f-mine"


async def later(messages):
    return f"[RESULT] {1 + len(messages[0]['content']) % 5}"


def now(messages):
    return f"[RESULT] {1 + len(messages[0]['content']) % 5}"


def test_a_function_may_be_async_and_concurrent(items):
    requests = rb.plan(items, rb.balanced(5))
    expected = rb.run(requests, rb.open_judge(now), store=":memory:")
    judge = rb.open_judge(later, concurrency=4)
    found = rb.run(requests, judge, store=":memory:")
    judge.close()
    assert found.score.tolist() == expected.score.tolist()
    assert set(found.judge) == {"later"}
    assert set(found.source) == {"live"}


def test_what_a_function_raises_is_the_reason_and_every_repeat_calls_it(items, capsys):
    calls = []

    def fails(messages):
        calls.append(messages)
        raise RuntimeError("no quota left")

    judge = rb.open_judge(fails)
    found = rb.run(rb.plan(items[:1], rb.fixed(5, 2)), judge, store=":memory:")
    assert set(found.status) == {"error"}
    assert "2 failed: RuntimeError: no quota left" in capsys.readouterr().out
    assert len(calls) == 2


def test_an_audit_asks_what_a_template_can_show(opened):
    items = rb.load("minibench", n_items=60)
    items = items[items.criterion == "helpfulness"].reset_index(drop=True)
    judge = opened(BARE, now, r"\[RESULT\] (\d)")
    found = rb.audit(judge, items, store=":memory:", force=True)
    said = str(found.unseen)
    assert (
        "mine.jinja has no slot options: other orders of the options cannot be asked"
        in said
    )
    assert "mine.jinja has no slot reference: references cannot be asked" in said
    asked = found.rows.question.tolist()
    assert {"agreement", "retest in the same words", "asked again"} <= set(asked)
    assert not {"descending", "letters"} & set(asked)


def test_rulers_take_a_judge_with_a_parser_and_decline_one_with_a_template(
    items, tmp_path
):
    """They read documents, which the parser is not for,
    and ask with prompts of their own.
    """
    bundle, how = load_bundle("minibench"), {"store": ":memory:"}
    plain = grade(items, bundle, rb.open_judge("simulated:grader"), **how)
    parsing = rb.open_judge("simulated:grader", parser=r"Score: (\d)")
    assert grade(items, bundle, parsing, **how).scores.score.equals(plain.scores.score)
    (tmp_path / "mine.jinja").write_text(BARE)
    own = {"template": tmp_path / "mine.jinja", "parser": r"\d"}
    with pytest.raises(
        ValueError, match="simulated:grader answers the prompts of RULERS only"
    ):
        rb.open_judge("simulated:grader", **own)
    for other in (
        rb.open_judge("openai:m@http://127.0.0.1:9/v1", **own),
        rb.open_judge(now),
    ):
        with pytest.raises(
            ValueError, match=r"cannot fill in documents, .*without your own template"
        ):
            grade(items, bundle, other, **how)
