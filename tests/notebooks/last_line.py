"""An endpoint that judges as a reader's own might:
it prefers the last line of any rubric.
"""

import math
import re

from endpoint import completion

LINE = re.compile(r"^Score (\S+?) ?:", re.M)
OPTION = re.compile(r"^###Response ([AB]):", re.M)
SPAN = re.compile(r"between (\d+) and (\d+)|(\d+)-(\d+) scale")
CRITERIA = re.compile(r"^- ([^:\n]+?) ?: ", re.M)
RESPONSE = re.compile(r"###Response to evaluate:\n(.*?)\n\n", re.S)


def prefers_the_last_line(payload, headers):
    """Answer with feedback and a score, and with the probabilities of all of them."""
    prompt = payload["messages"][0]["content"]
    rubric = prompt.rpartition("Rubric")[2]
    labels = LINE.findall(rubric) or OPTION.findall(prompt) or _span(prompt)
    response = RESPONSE.search(prompt + "\n\n")
    read = sum(map(ord, response[1])) if response else len(prompt)
    if not labels:
        return 200, completion("I would rather not."), {}
    ranked = sorted(labels, key=lambda label: (len(label), label))
    weights = {
        label: math.exp(-abs(ranked.index(label) - read % len(labels)))
        * (3 if label == labels[-1] else 1)
        for label in labels
    }
    chances = {
        f" {label}": 0.98 * w / sum(weights.values()) for label, w in weights.items()
    }
    best = max(chances, key=chances.get)
    if names := CRITERIA.findall(
        prompt.partition("###Criteria")[2].partition("###")[0]
    ):
        tokens = [
            t
            for name in names
            for t in ((f"[{name}]", {}), (best, chances), ("\n", {}))
        ]
    else:
        tokens = [("Feedback: It is as it is. [RESULT]", {}), (best, chances)]
    asked = payload.get("logprobs")
    text = "".join(token for token, _ in tokens)
    return 200, completion(text, tops=tokens if asked else None), {}


def _span(prompt):
    found = SPAN.search(prompt)
    if not found:
        return []
    low, high = (int(x) for x in found.groups() if x)
    return [str(k) for k in range(low, high + 1)]
