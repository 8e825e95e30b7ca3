"""What the clients saw: each operation with the instants of its call and its answer, on one clock for all processes."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from model.operation import Delivery, Error, Json, Ok, Operation, Reply, reply_to_json, untagged

FOREVER_NS = 1 << 62


@dataclass(slots=True)
class Record:
    """One call. Instants are nanoseconds of CLOCK_MONOTONIC, which is one for all processes of a machine."""

    lane: str
    """The sequential client that called: its calls do not overlap."""
    number: int
    operation: Operation
    invoked_ns: int
    completed_ns: int = FOREVER_NS
    reply: Reply | None = None
    """None: unknown. The connection was lost, or the process killed, before the answer came."""
    token: bytes = b""
    """The token of the lease that a claim took, as the client tells it."""

    @property
    def delivery(self) -> Delivery | None:
        """What a claim delivered."""
        match self.reply:
            case Ok(Delivery() as delivery):
                return delivery
        return None


@dataclass
class History:
    """All records of a run, by lane, and what the server told meanwhile."""

    records: list[Record]
    lines: list[bytes] = field(default_factory=list)
    """The lines of MONITOR."""
    addresses: dict[str, str] = field(default_factory=dict)
    """The lane of each connection, by its address."""

    def by_lane(self) -> dict[str, list[Record]]:
        """The records of each lane, in order."""
        lanes: dict[str, list[Record]] = {}
        for record in sorted(self.records, key=lambda record: record.number):
            lanes.setdefault(record.lane, []).append(record)
        return lanes


class Log:
    """Writes a lane's records: a line before each call, and one after. What a kill cuts off stays unknown."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def invoked(self, number: int, operation: Operation, at_ns: int) -> None:
        """The call begins."""
        self._write({"number": number, "operation": operation.to_json(), "at_ns": at_ns})

    def completed(self, number: int, reply: Reply | None, token: bytes, at_ns: int) -> None:
        """The answer came; None: it never will."""
        if reply is not None:
            told = base64.b64encode(token).decode()
            self._write({"number": number, "reply": reply_to_json(reply), "token": told, "at_ns": at_ns})

    def close(self) -> None:
        """No more is written."""
        self._file.close()

    def _write(self, line: Json) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def read(lane: str, lines: Iterable[str]) -> list[Record]:
    """The records of a lane's log."""
    records: dict[int, Record] = {}
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:  # the process was killed while it wrote
            continue
        number = line["number"]
        if "operation" in line:
            records[number] = Record(lane, number, Operation.from_json(line["operation"]), line["at_ns"])
        else:
            record = records[number]
            record.reply, record.completed_ns = _reply(line["reply"]), line["at_ns"]
            record.token = base64.b64decode(line["token"])
    return list(records.values())


def _reply(value: Json) -> Reply:
    match value:
        case {"ok": {"group": group, "payload": payload}}:
            return Ok(Delivery(untagged(group, "group"), untagged(payload, "payload")))
        case {"ok": ok}:
            return Ok(ok)
    return Error(value["error"]["code"], tuple(value["error"]["arguments"]))
