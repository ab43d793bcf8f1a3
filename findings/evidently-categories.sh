#!/usr/bin/env bash
# Tool: evidently 0.7.23, `LLMEval` with the template for two categories (with
#   pandas 2.3.3, since it does not import with pandas 3).
# Input: a judge (a server on this machine) for GOOD and BAD with scores from 0 to 1,
#   that answers GOOD and .9, good and .8, MIXED and 5, BAD and the word "low".
# Guess: what is not one of the two is UNKNOWN, and a score off the range an error.
# Seen (28 November 2026): the report counts four categories, GOOD, good, MIXED and
#   BAD, and no missing one. The 5 is kept: the mean score is 2.23 on a range that
#   ends at 1. The word is a missing score, counted as such.
# What to do: count the categories that you did not define, and scores off the range.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
venv/bin/python -m uv pip install --quiet --python venv/bin/python \
  evidently==0.7.23 openai==3.57.0 pandas==2.3.3 numpy==2.3.5
venv/bin/python - <<'PY'
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

replies = {
    "text-1": {"category": "GOOD", "score": 0.9, "reasoning": "a"},
    "text-2": {"category": "good", "score": 0.8, "reasoning": "b"},
    "text-3": {"category": "MIXED", "score": 5, "reasoning": "c"},
    "text-4": {"category": "BAD", "score": "low", "reasoning": "d"},
}


class Judge(BaseHTTPRequestHandler):
    """An endpoint of chat completions that gives each text its reply."""

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        asked = json.loads(self.rfile.read(length))
        prompt = json.dumps(asked["messages"])
        reply = next(reply for text, reply in replies.items() if text in prompt)
        message = {"role": "assistant", "content": json.dumps(reply)}
        body = json.dumps(
            {
                "id": "1", "object": "chat.completion", "created": 1,
                "model": asked["model"],
                "choices": [
                    {"index": 0, "finish_reason": "stop", "message": message}
                ],
                "usage": {
                    "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2
                },
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *more):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Judge)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"
os.environ |= {
    "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": address, "OPENAI_API_BASE": address,
    "DO_NOT_TRACK": "1",
}

import pandas as pd
from evidently import DataDefinition, Dataset, Report
from evidently.descriptors import LLMEval
from evidently.llm.templates import BinaryClassificationPromptTemplate
from evidently.presets import TextEvals

template = BinaryClassificationPromptTemplate(
    criteria="Is the text good?", target_category="GOOD", non_target_category="BAD",
    include_score=True, include_reasoning=True,
)
judged = Dataset.from_pandas(
    pd.DataFrame({"text": list(replies)}),
    data_definition=DataDefinition(text_columns=["text"]),
    descriptors=[
        LLMEval(
            "text", template=template, provider="openai", model="gpt-4o-mini",
            alias="quality",
        )
    ],
)
frame = judged.as_dataframe()
print(frame.to_string())
report = json.loads(Report([TextEvals()]).run(judged, None).json())["metrics"]
values = {metric["metric_name"]: metric["value"] for metric in report}
for name, value in values.items():
    print(name, value)
assert frame["quality"].tolist() == ["GOOD", "good", "MIXED", "BAD"]
assert values["MissingValueCount(column=quality)"]["count"] == 0
assert values["MaxValue(column=quality score)"] == 5
assert round(values["MeanValue(column=quality score)"], 2) == 2.23
assert values["MissingValueCount(column=quality score)"]["count"] == 1
PY
