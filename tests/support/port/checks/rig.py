"""What the checks share: a queue on the port's server, prepared by the scripts, and what is wrong with it in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from model.notation import write
from model.operation import PREFIX, Error, Ok, Operation, Reply, Value
from model.state import State
from tests.support.clock import START_MS
from tests.support.outcome import Failure
from tests.support.port.witness import Port
from tests.support.trial import Divergence
from tests.support.witness import LuaFiles, Scripts


class NotAsked(Exception):
    """The server cannot show it; the text says why."""


@dataclass
class Rig:
    """The port under check, and the scripts of the package beside it on the same server."""

    port: Port
    lines: list[str] = field(default_factory=list)  # what was done so far
    operations: list[Operation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.others = Scripts(self.port.host, LuaFiles(Path(str(files("redisq") / "lua"))))
        self.admin: Any = self.others.client

    def reset(self) -> None:
        """An empty queue, at the start of time."""
        self.lines.clear()
        self.operations.clear()
        self.port.reset(START_MS)

    @property
    def now_ms(self) -> int:
        """The server's clock."""
        return self.port.host.clock.now_ms()

    def wait(self, ms: int) -> None:
        """Lets time pass."""
        self.port.host.clock.set_ms(self.now_ms + ms)

    def by_others(self, op: str, **args: Value) -> Reply:
        """An operation, or a foreign write, that is not the port's."""
        return self._do(self.others, "another worker", op, args)

    def by_port(self, op: str, **args: Value) -> Reply:
        """An operation of the port."""
        return self._do(self.port, "the port", op, args)

    def _do(self, who: Any, name: str, op: str, args: dict[str, Value]) -> Reply:
        operation = Operation(op, self.now_ms, args)
        if who is self.port:
            operation = self.port.asked(operation, State(self.now_ms)) or operation
        reply: Reply = who.do(operation)
        self.operations.append(operation)
        self.lines.append(f"{write(operation, reply)}   ({name})")
        return reply

    def said(self, what: str) -> None:
        """A line of the trace that is no operation."""
        self.lines.append(f"{self.now_ms:<6} ({what})")

    def state(self) -> State:
        """Every key."""
        return self.port.read([PREFIX])[PREFIX].expired()

    def drain(self) -> list[tuple[bytes, bytes]]:
        """Lets all leases end, then claims and acks by the scripts until nothing is left: what came, in order."""
        self.wait(100_000)
        came: list[tuple[bytes, bytes]] = []
        while isinstance(reply := self.by_others("claim", token=b"drain"), Ok) and reply.value is not None:
            assert not isinstance(reply.value, int)
            came.append((reply.value.group, reply.value.payload))
            self.by_others("ack", group=reply.value.group, token=b"drain")
        return came

    def expect(self, holds: bool, what: str) -> None:
        """Ends the check with what is wrong unless it holds."""
        if not holds:
            self.fail(what)

    def fail(self, what: str) -> NoReturn:
        """Ends the check: what is wrong, and the steps that led to it."""
        numbered = [f"  {number:>3}  {line}" for number, line in enumerate(self.lines, 1)]
        report = "\n".join([what, "", "       time   operation", *numbered])
        failure = Failure("check", steps=tuple(self.lines), got=what, rules=(what,), report=report)
        raise Divergence(failure, self.operations, self.port.name)


def refused(reply: Reply) -> bool:
    """Whether a reply is an error of the server."""
    return isinstance(reply, Error)
