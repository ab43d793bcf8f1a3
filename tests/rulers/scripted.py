"""A grader whose answers a test changes, and which keeps what it was asked."""

import json

from rubricnb.core.contract import Reply
from rubricnb.rulers.simulated import SimulatedGrader


class Scripted(SimulatedGrader):
    """Answers with what `write(document, request)` makes of the grader's own answer."""

    def __init__(self, write=lambda document, request: document, **parameters):
        super().__init__(**parameters)
        self.write, self.asked = write, []

    def answer(self, requests):
        for request in requests:
            self.asked.append(request)
            (reply,) = super().answer([request])
            written = self.write(json.loads(reply.text), request)
            if not isinstance(written, Reply):
                text = written if isinstance(written, str) else json.dumps(written)
                written = Reply(request.request_id, text)
            yield written


def changing(change):
    """Say how to write a document that is `change`d in place."""

    def write(document, request):
        change(document)
        return document

    return write
