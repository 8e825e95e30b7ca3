"""The oracle: ``python -m model`` reads one operation a line from stdin and answers one line each on stdout.

Operations and replies are the JSON objects of ``model/operation.py``; an ``"id"`` is echoed. Two more exist here:
``{"op": "state"}`` answers ``{"state": …}``, the whole key space of a prefix (``"prefix"``, default ``redisq``) as the
last operation left it, and ``{"op": "reset"}`` forgets everything. It is an adapter of the port protocol, too
(``spec/port-protocol.md``): it answers ``hello``, ``open`` and ``close``, and keeps its own keys.

A line that cannot be read is answered with a
``fault`` that says why, and changes nothing. Time never passes by itself: ``time_ms`` of each operation is the
server's clock. The exit code is 0 at the end of the input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import NoReturn

from model.operation import CAPABILITIES, PREFIX, Json, Malformed, Operation, reply_to_json, tagged, untagged
from model.run import World

MAX_LINE = 1 << 26  # bytes; longer than any message a test needs, short enough not to fill the memory

HELLO: Json = {
    "protocol": 1,
    "name": "model",
    "language": "Python",
    "version": "1",
    "capabilities": list(CAPABILITIES),
    "takes_now_ms": True,
    "state": True,
}


class Oracle:
    """A world of queues behind lines of JSON."""

    def __init__(self) -> None:
        self.world = World()

    def answer(self, line: bytes) -> Json:
        """The reply to one line."""
        request: object = None
        try:
            if len(line) > MAX_LINE:
                raise Malformed(f"a line has at most {MAX_LINE} bytes")
            request = json.loads(line.decode(), parse_constant=_no_constant)
            reply = self._answer(request)
        except UnicodeDecodeError as error:
            reply = {"fault": f"the line is not UTF-8: byte {error.start} is 0x{line[error.start]:02x}"}
        except json.JSONDecodeError as error:
            reply = {"fault": f"the line is not JSON: {error.msg} at column {error.colno}"}
        except RecursionError:
            reply = {"fault": "the line is nested too deeply"}
        except ValueError as error:  # Malformed, or an integer of more digits than Python reads
            reply = {"fault": str(error)}
        return {"id": request["id"], **reply} if isinstance(request, dict) and "id" in request else reply

    def _answer(self, request: object) -> Json:
        match request:
            case {"op": "hello"}:
                return {"ok": HELLO}
            case {"op": "open" | "close"}:  # there is no server to connect to
                return {"ok": None}
            case {"op": "reset"}:
                self.world = World()
                return {"ok": None}
            case {"op": "state", **rest}:
                prefix = untagged(rest.get("prefix", tagged(PREFIX)), "prefix")
                return {"state": self.world.state(prefix).to_json()}
        self.world, reply = self.world.step(Operation.from_json(request))
        return reply_to_json(reply)


def _no_constant(name: str) -> NoReturn:
    raise Malformed(f"{name} is not a number of JSON")


def answers(lines: Iterable[bytes]) -> Iterator[str]:
    """One line of JSON for each line that is not blank."""
    oracle = Oracle()
    for line in lines:
        if line.strip():
            yield json.dumps(oracle.answer(line))


def main() -> None:
    """Answers stdin on stdout, a line at a time."""
    for answer in answers(sys.stdin.buffer):
        print(answer, flush=True)


if __name__ == "__main__":
    main()
