"""What the checks share: a queue on the port's server, prepared by the scripts, and what is wrong with it in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from model.notation import write
from model.operation import PREFIX, Error, Fault, Ok, Operation, Reply, Value
from model.state import State
from tests.support.clock import START_MS
from tests.support.outcome import Failure, kind_of
from tests.support.port.asked import with_now
from tests.support.port.witness import Port
from tests.support.trial import Divergence
from tests.support.witness import LuaFiles, Scripts

LATER_MS = 100_000  # longer than any lease and park of a check


class NotAsked(Exception):
    """The server cannot show it; the text says why."""


@dataclass
class Rig:
    """The port under check, and the scripts of the package beside it on the same server. A context manager."""

    port: Port
    lines: list[str] = field(default_factory=list)  # what was done so far
    operations: list[Operation] = field(default_factory=list)
    prepared: State = field(default_factory=State)  # before the operation that is looked at

    def __post_init__(self) -> None:
        self.others = Scripts(self.port.host, LuaFiles(Path(str(files("redisq") / "lua"))))
        self.admin: Any = self.others.client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.port.using = self.port.url
        self.admin.close()

    def reset(self) -> None:
        """An empty queue, at the start of time."""
        self.lines.clear()
        self.operations.clear()
        self.port.reset(START_MS)

    @property
    def now_ms(self) -> int:
        """The server's clock."""
        return self.port.host.clock.now_ms()

    def has(self, capability: str) -> bool:
        """Whether the port declares it."""
        return capability in self.port.adapter.hello.capabilities

    def wait(self, ms: int) -> None:
        """Lets time pass."""
        self.port.host.clock.set_ms(self.now_ms + ms)

    def by_others(self, op: str, **args: Value) -> Reply:
        """An operation, or a foreign write, that is not the port's."""
        return self._done(self.others, "another worker", Operation(op, self.now_ms, args))

    def by_port(self, op: str, **args: Value) -> Reply:
        """An operation of the port. An adapter that gives no answer of a queue ends the check."""
        reply = self._done(self.port, "the port", self.as_asked(Operation(op, self.now_ms, args)))
        if isinstance(reply, Fault):
            self.fail(f"the adapter does not answer {op}: {reply.what}", kind_of(reply, agrees=False))
        return reply

    def as_asked(self, operation: Operation) -> Operation:
        """The operation as this port is asked it: one that has not the server's clock is told the time."""
        return operation if self.has("server-clock") else with_now(operation)

    def _done(self, who: Scripts | Port, name: str, operation: Operation) -> Reply:
        reply = who.do(operation)
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
        self.wait(LATER_MS)
        came: list[tuple[bytes, bytes]] = []
        while isinstance(reply := self.by_others("claim", token=b"drain"), Ok) and reply.value is not None:
            assert not isinstance(reply.value, int)
            came.append((reply.value.group, reply.value.payload))
            self.by_others("ack", group=reply.value.group, token=b"drain")
        return came

    def expect_all_delivered(self, where: str) -> None:
        """Drains the queue: everything that is stored comes, in order and once, and no key stays."""
        left = {group: list(messages or ()) for group, messages in self.state().queues.items()}
        for group, payload in self.drain():
            self.expect(left.get(group, [])[:1] == [payload], f"{where}: {group!r} delivers {payload!r}, of {left}")
            left[group].pop(0)
        self.expect(not any(left.values()), f"{where}: never delivered: {left}")
        self.expect_empty(where)

    def expect_empty(self, where: str) -> None:
        """No key is left."""
        keys = sorted(self.admin.keys())
        self.expect(not keys, f"{where}: keys stay when all is drained: {keys}")

    def expect(self, holds: bool, what: str) -> None:
        """Ends the check with what is wrong unless it holds."""
        if not holds:
            self.fail(what)

    def fail(self, what: str, kind: str = "check") -> NoReturn:
        """Ends the check: what is wrong, and the steps that led to it."""
        numbered = [f"  {number:>3}  {line}" for number, line in enumerate(self.lines, 1)]
        report = "\n".join([what, "", "       time   operation", *numbered])
        failure = Failure(kind, steps=tuple(self.lines), got=what, rules=(what,), report=report)
        raise Divergence(failure, self.operations, self.port.name)


def refused(reply: Reply) -> bool:
    """Whether a reply is an error of the server."""
    return isinstance(reply, Error)
