"""A port as a witness: the runner's server and clock, the port's operations, judged at one of two levels."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from model.operation import ARGV, PREFIX, Fault, Json, Ok, Operation, Reply, Unsupported, tagged
from model.state import State
from tests.support.levels import agrees, differing_keys
from tests.support.port.asked import in_machine
from tests.support.port.messages import HELLO, Hello, is_raw, read_state, reply, request
from tests.support.port.process import PortError, Process
from tests.support.witness import Host, OnHost, Witness

RESTARTS = 20
HELLO_SECONDS = 30.0


@dataclass
class Adapter:
    """The adapter of a port, started when first asked, and again after each failure, until the budget is used up."""

    command: str
    timeout_s: float | None = None
    process: Process | None = None
    restarts: int = -1
    failed: PortError | None = None  # why it is not running, and will not be again
    last: PortError | None = None  # why it is not running
    stderr: str = ""
    _hello: Hello | None = field(default=None, repr=False)

    @property
    def hello(self) -> Hello:
        """What it says of its port. Raises PortError."""
        if self._hello is None:
            self.start()
        assert self._hello is not None
        return self._hello

    def start(self) -> None:
        """Starts it anew. Raises PortError if it does not say hello, or was started too often."""
        if self.failed is not None:
            raise self.failed
        self.end()
        self.restarts += 1
        if self.restarts > RESTARTS:
            what = f"not asked: the adapter had to be started again {RESTARTS} times before this"
            self.last = self.failed = PortError("crash", what)
            raise self.failed
        try:
            self.process = Process(self.command, self.timeout_s or 10.0)
            self._hello = Hello.read(self.process.ask(HELLO, self.timeout_s or HELLO_SECONDS))
        except PortError as error:
            self._fail(error)
            if self._hello is None:
                self.failed = error  # it never did: nothing is gained by trying for every case
            raise

    def ready(self) -> None:
        """Starts it if it is not running. If it cannot be, the next ``ask`` says why."""
        if self.process is None:
            with contextlib.suppress(PortError):
                self.start()

    def ask(self, message: Json) -> Json:
        """Asks it. Raises PortError, after which it is dead until ``start``."""
        if self.process is None:
            raise self.last or PortError("crash", "the adapter is not running")
        try:
            return self.process.ask(message)
        except PortError as error:
            self._fail(error)
            raise

    def _fail(self, error: PortError) -> None:
        self.last = error
        if self.process is not None:
            self.process.kill()
            self.stderr = self.process.stderr_tail()
            self.end()

    def stderr_tail(self) -> str:
        """The last lines of its standard error."""
        return self.process.stderr_tail() if self.process is not None else self.stderr

    def end(self) -> None:
        """Ends the process, if it runs."""
        if self.process is not None:
            self.process.end()
            self.process = None


class Asking:
    """What both kinds of port share: how an operation is asked, and how the level judges the answer."""

    def __init__(self, adapter: Adapter, level: str) -> None:
        self.adapter = adapter
        self.level = level
        self.tokens: dict[bytes, bytes] = {}  # the port's → the trace's
        self.given: dict[tuple[bytes, bytes, bytes], bytes] = {}  # prefix, group, the trace's → the port's

    def asked(self, operation: Operation, state: State) -> Operation | None:
        """A random operation as this port can be asked it."""
        return in_machine(operation, state, self.adapter.hello, self.level)

    def ask(self, operation: Operation) -> Reply:
        """The port's reply. What is no answer is a fault, which nothing expects."""
        try:
            got, token = reply(self.adapter.ask(request(self._with_token(operation))), operation.op)
        except PortError as error:
            return Fault(str(error))
        if isinstance(got, Unsupported) and not is_raw(operation):
            return Fault(f"unsupported: {got.why}")
        if token is not None and isinstance(got, Ok):
            asked = operation["token"]
            assert isinstance(asked, bytes)
            self.tokens[token] = asked
            self.given[operation.prefix, got.value.group, asked] = token  # type: ignore[union-attr]
        return got

    def _with_token(self, operation: Operation) -> Operation:
        if operation.argv is not None or operation.op not in ("ack", "nack", "extend"):
            return operation
        group, token = operation["group"], operation["token"]
        assert isinstance(group, bytes)
        assert isinstance(token, bytes)
        real = self.given.get((operation.prefix, group, token), token)
        return replace(operation, args={**operation.args, "token": real})

    def named(self, state: State) -> State:
        """The state with the tokens that the trace names."""
        locks = {
            group: lock if lock.value is None else replace(lock, value=self.tokens.get(lock.value, lock.value))
            for group, lock in state.locks.items()
        }
        return replace(state, locks=locks)

    def agrees(self, operation: Operation, expected: Reply, got: Reply) -> bool:
        """Whether the reply is the one expected at this level."""
        return agrees(self.level, operation, expected, got)

    def difference(self, expected: State, got: State) -> list[str]:
        """The keys that differ at this level."""
        return differing_keys(self.level, expected, got)


class Port(Asking, OnHost):
    """A port on a real server."""

    def __init__(self, adapter: Adapter, host: Host, level: str = "full") -> None:
        OnHost.__init__(self, host, f"port/{host.name}")
        Asking.__init__(self, adapter, level)
        self.url: str = host.url  # type: ignore[attr-defined]
        self.using = self.url  # or another way to the same server
        self.opened: tuple[Process | None, bytes, str] = (None, b"", "")

    def reset(self, now_ms: int) -> None:
        super().reset(now_ms)
        self.tokens.clear()
        self.given.clear()
        self.adapter.ready()

    def call(self, operation: Operation) -> Reply:
        try:
            self.open(operation.prefix)
        except PortError as error:
            return Fault(str(error))
        return self.ask(operation)

    def open(self, prefix: bytes, url: str | None = None) -> None:
        """Has the adapter work under that prefix; from now on by `url`, if one is given. Raises PortError."""
        self.using = url or self.using
        prefix = prefix or PREFIX  # an empty one stands in a malformed call alone
        if self.opened == (self.adapter.process, prefix, self.using):
            return
        answer = self.adapter.ask({"op": "open", "url": self.using, "prefix": tagged(prefix)})
        if "ok" not in answer:
            raise PortError("protocol", f'open is answered {{"ok": null}}, not {answer!r:.200}')
        self.opened = (self.adapter.process, prefix, self.using)

    def read(self, prefixes: Iterable[bytes]) -> Mapping[bytes, State]:
        return {prefix: self.named(state) for prefix, state in super().read(prefixes).items()}


class KeepingPort(Asking, Witness):
    """A port that keeps its own keys, as the oracle does: the clock and foreign writes are its own, too."""

    def __init__(self, adapter: Adapter, level: str = "full") -> None:
        Asking.__init__(self, adapter, level)
        self.name = "port"

    def reset(self, now_ms: int) -> None:
        self.adapter.ready()
        with contextlib.suppress(PortError):  # the first operation says it
            self.adapter.ask({"op": "reset"})
            self.adapter.ask({"op": "wait", "time_ms": now_ms})

    def observe(self, operation: Operation, prefixes: Iterable[bytes]) -> tuple[Reply, Mapping[bytes, State]]:
        try:
            return super().observe(operation, prefixes)
        except PortError as error:  # the operation is answered, the state after it is not
            return Fault(str(error)), {prefix: State() for prefix in prefixes}

    def do(self, operation: Operation) -> Reply:
        if operation.op in ARGV:
            return self.ask(operation)
        try:
            self.adapter.ask(request(operation))
        except PortError as error:
            return Fault(str(error))
        return Ok(None)

    def read(self, prefixes: Iterable[bytes]) -> Mapping[bytes, State]:
        if self.adapter.process is None:
            return {prefix: State() for prefix in prefixes}
        answers = {prefix: self.adapter.ask({"op": "state", "prefix": tagged(prefix)}) for prefix in prefixes}
        return {prefix: self.named(read_state(answer)) for prefix, answer in answers.items()}
