#!/usr/bin/env bash
# Tool: DeepEval 4.3.1, `GEval`, with a model behind an OpenAI-compatible server.
# Input: a judge whose tokenizer has one token a digit (as those of Gemma, Qwen and
#   Mistral), on the metric's own scale from 0 to 10. It is torn between 9 and 10:
#   half of the probability is on the token "9", half on "1", which "0" follows.
# Guess: the score is the expected one, .95, whichever of the two is written.
# Seen (29 November 2026): .5 where 9 is written, since the "1" of 10 counts as a
#   score of 1; 1.0 where 10 is written, since no token is "10" and the score is then
#   taken without the probabilities. Neither run says so.
# What to do: a `rubric` whose scores have one digit each.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/python -m pip install --quiet --disable-pip-version-check \
  deepeval==4.3.1 openai==3.57.0
export DEEPEVAL_TELEMETRY_OPT_OUT=1
venv/bin/python - <<'PY'
import json
import math
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from deepeval.metrics import GEval
from deepeval.models import OpenAIModel
from deepeval.test_case import LLMTestCase, SingleTurnParams

written = []


def token(text, probabilities):
    listed = [
        {"token": t, "logprob": math.log(p), "bytes": None}
        for t, p in probabilities.items()
    ]
    first = next(one for one in listed if one["token"] == text)
    return first | {"top_logprobs": listed}


class Judge(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked["logprobs"] and asked["top_logprobs"] == 20
        begin = '{"reason": "clear", "score": '
        torn = {"9": 0.5, "1": 0.5}
        tokens = [token(begin, {begin: 1.0}), token(written[-1][0], torn)]
        tokens += [token(digit, {digit: 1.0}) for digit in written[-1][1:]]
        tokens.append(token("}", {"}": 1.0}))
        message = {"role": "assistant", "content": "".join(t["token"] for t in tokens)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        choice["logprobs"] = {"content": tokens}
        answer = {"id": "1", "object": "chat.completion", "created": 0}
        answer |= {"model": asked["model"], "choices": [choice]}
        answer["usage"] = dict.fromkeys(
            ("prompt_tokens", "completion_tokens", "total_tokens"), 1
        )
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = HTTPServer(("127.0.0.1", 0), Judge)
Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"
model = OpenAIModel(model="gpt-4o", base_url=address, api_key="none")
for score, expected in (("9", 0.5), ("10", 1.0)):
    written.append(score)
    metric = GEval(
        name="clarity",
        criteria="Is the text clear?",
        evaluation_steps=["Read the text."],
        evaluation_params=[SingleTurnParams.ACTUAL_OUTPUT],
        model=model,
        async_mode=False,
    )
    metric.measure(LLMTestCase(input="a", actual_output="b"), _show_indicator=False)
    print("written", score, "-> metric.score", metric.score)
    assert metric.score == expected
PY
