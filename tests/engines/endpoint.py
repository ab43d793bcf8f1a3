"""A small OpenAI-compatible endpoint on loopback whose answers a test decides."""

import json
import math
import threading
import time
import urllib.request
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat


def completion(text, finish="stop", tops=None, **message):
    """A chat completion; `tops` lists (token, {token:
    probability}) for log-probabilities.
    """
    logprobs = None
    if tops is not None:
        logprobs = {
            "content": [
                {
                    "token": token,
                    "logprob": math.log(alternatives.get(token, 1e-9)),
                    "bytes": None,
                    "top_logprobs": [
                        {"token": t, "logprob": math.log(p), "bytes": None}
                        for t, p in alternatives.items()
                    ],
                }
                for token, alternatives in tops
            ]
        }
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text} | message,
        "logprobs": logprobs,
    }
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }


class Payloads(list):
    """The bodies that came, with their headers and times,
    and the paths of all calls.
    """

    def __init__(self):
        self.paths, self.headers, self.times = [], [], []

    def prompts(self):
        """How often each prompt came."""
        return Counter(payload["messages"][0]["content"] for payload in self)


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that was killed hangs up in the middle of an answer:
        that is the test.
        """


@contextmanager
def endpoint(answer, owned_by="someone", listing=None, any_name=False):
    """Serve `answer(payload, headers) -> (status, body, headers)`;
    yields its URL and payloads.

    A list holds one answer a call, and its last one for all further calls. The body is
    JSON or bytes; None cuts the connection; a function is called for pieces to send one
    by one. A ``Content-Length`` among the headers may promise more than comes.
    `listing` answers for the list of models where that is not simply there. A model
    that does not exist is refused, unless the server answers to `any_name`.
    """
    received = Payloads()
    if isinstance(answer, list):
        turns = chain(answer, repeat(answer[-1]))

        def answer(payload, headers):
            return next(turns)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            received.paths.append(self.path)
            models = {
                "object": "list",
                "data": [
                    {"id": "m", "object": "model", "created": 0, "owned_by": owned_by}
                ],
            }
            self._send(*(listing() if listing else (200, models, {})))

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            payload = json.loads(body)
            if payload.get("model") == "no-such-model" and not any_name:
                self._send(404, {"error": "no such model"}, {})
                return
            received.paths.append(self.path)
            received.append(payload)
            received.headers.append({k.lower(): v for k, v in self.headers.items()})
            received.times.append(time.monotonic())
            self._send(*answer(payload, self.headers))

        def _send(self, status, body, headers):
            if body is None:
                self.close_connection = True
                return
            if callable(body):
                pieces = body()
            else:
                pieces = [
                    body if isinstance(body, bytes) else json.dumps(body).encode()
                ]
            # The other one adds a date of its own.
            (self.send_response_only if "Date" in headers else self.send_response)(
                status
            )
            length = str(sum(map(len, pieces))) if isinstance(pieces, list) else ""
            sent = {
                "Content-Type": "application/json",
                "Content-Length": length,
            } | headers
            for name, value in sent.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
            self.close_connection = sent["Content-Length"] != length

        def log_message(self, *args):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", received
    finally:
        server.shutdown()
        server.server_close()


def sent(file, url, fail=()):
    """What a provider does with a batch: sends every line's body,
    and writes two files.
    """
    outputs = {200: [], 400: []}
    for line in map(json.loads, file.read_text().splitlines()):
        status, body = 200, {"error": {"message": "too long"}}
        if line["custom_id"] in fail:
            status = 400
        else:
            ask = urllib.request.Request(
                url.removesuffix("/v1") + line["url"],
                json.dumps(line["body"]).encode(),
                {"Content-Type": "application/json"},
                method=line["method"],
            )
            with urllib.request.urlopen(ask) as answer:
                body = json.load(answer)
        response = {"status_code": status, "request_id": "r", "body": body}
        outputs[status].append(
            {
                "id": "b",
                "custom_id": line["custom_id"],
                "response": response,
                "error": None,
            }
        )
    for status, name in ((200, "output"), (400, "error")):
        # in any order
        text = "".join(json.dumps(o) + "\n" for o in reversed(outputs[status]))
        file.with_name(f"{name}.jsonl").write_text(text)
    return file.with_name("output.jsonl"), file.with_name("error.jsonl")


def levels(body):
    """The levels of a body's first question:
    their names and texts, in the order sent.
    """
    if "state" in body:
        (question, *_) = body["questions"].values()
        asked = question["criteria"]
        return (
            list(asked.items()) if isinstance(asked, dict) else list(enumerate(asked))
        )
    question = body["questions"][0]
    if question["type"] == "score":
        return [(one["label"], one["description"]) for one in question["levels"]]
    return [(one["value"], one["description"]) for one in question["choices"]]


def decided(body, probabilities, model=None):
    """What a server of either shape answers: the same probabilities,
    by position, everywhere.
    """
    names = [name for name, _ in levels(body)]
    pairs = list(zip(names, probabilities, strict=True))
    model = model or body["model"]
    if "state" in body:
        answers = {
            name: {
                "type": question["type"],
                "probabilities": {str(n): p for n, p in pairs},
                "legend": dict(enumerate(question["criteria"])),
            }
            for name, question in body["questions"].items()
        }
        return {"model": model, "answers": answers, "usage": {"input_tokens": 90}}
    answers = []
    for question in body["questions"]:
        rest = {"type": question["type"], "name": question["name"], "confidence": 0.1}
        if question["type"] == "score":
            told = [
                {"value": k, "label": n, "probability": p}
                for k, (n, p) in enumerate(pairs)
            ]
            answers.append(rest | {"score": 1.0, "probabilities": told})
        else:
            told = [{"value": n, "probability": p} for n, p in pairs]
            answers.append(rest | {"choice": names[0], "probabilities": told})
    usage = {
        "input_tokens": 100,
        "output_tokens": 0,
        "total_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {"model": model, "answers": answers, "usage": usage}
