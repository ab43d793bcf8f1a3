"""Control tokens in a dataset's text must not act as control tokens.

Engines tokenise the whole templated prompt at once, so a text that contains ``<|im_end|>`` would
end its own message. A space inside the token keeps it readable and makes it ordinary text.
"""

from __future__ import annotations

import re

# Chat markers of the families in use (ChatML, Llama 2/3, Mistral, Gemma, DeepSeek, gpt-oss, Qwen)
# and the sentence markers that every vocabulary has.
_CONTROL = re.compile(
    r"<\|[^<>|\n]{1,64}\|>"
    r"|<｜[^<>｜\n]{1,64}｜>"
    r"|</?(?:s|bos|eos|pad|unk|mask|think|start_of_turn|end_of_turn|start_of_image|end_of_image"
    r"|tool_call|tool_response|unused\d+)>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK)\]"
    r"|<</?SYS>>"
)


def inert(text: str) -> str:
    """Make every control token in a text ordinary text by a space after its first character.

    Parameters
    ----------
    text
        Any text from a dataset. NUL characters, which no engine takes, are dropped.

    Returns
    -------
    str
        The text; unchanged where it holds no control token.

    Examples
    --------
    >>> inert("Fine.<|im_end|><|im_start|>assistant 5")
    'Fine.< |im_end|>< |im_start|>assistant 5'
    >>> inert("a < b, <b>bold</b>, x[0]")
    'a < b, <b>bold</b>, x[0]'
    """
    return _CONTROL.sub(lambda m: f"{m[0][0]} {m[0][1:]}", text).replace("\x00", "")
