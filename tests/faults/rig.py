"""A rig: one queue on one real server through one set of scripts, which a check operates and looks into.

A check is a function of a rig. It raises `Fault` when the scripts do not do what they should, with the trace so far in
the notation of the spec; so the same check passes with the package's scripts and convicts a known-bad design.
"""

from __future__ import annotations

import contextlib
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

import pytest
import redis

from model.notation import write, write_reply
from model.operation import PREFIX, Delivery, Error, Ok, Operation, Reply, Value
from model.state import State
from tests.faults.callers import Interrupted
from tests.support.keyspace import foreign_commands, read_keyspace
from tests.support.original import Original
from tests.support.running import BaseServer
from tests.support.witness import Scripts

LATER_MS = 3_600_000
"""Longer than any lease and park of a check."""
OFF_MS = 20


class Fault(AssertionError):
    """What a check has found."""


Check = Callable[["Rig"], None]
NEED_EXACT_CLOCK: set[Check] = set()


def needs_exact_clock(check: Check) -> Check:
    """Marks a check that asks for exact instants: it is skipped where the server's clock cannot be set."""
    NEED_EXACT_CLOCK.add(check)
    return check


class Rig:
    """One queue, seen by a caller of the scripts; groups, payloads and tokens are `str` or `bytes`.

    Times are milliseconds of the server's clock. `trace` is what was done so far.
    """

    def __init__(self, host: BaseServer, caller: Scripts, prefix: bytes = PREFIX) -> None:
        """`caller` calls the scripts; reading and foreign writes are another client's."""
        self.host = host
        self.caller = caller
        self.prefix = prefix
        self.admin: Any = host.client()
        self.trace: list[str] = []
        self._users: list[str] = []
        self._full = False

    @property
    def old(self) -> bool:
        """Whether these are the original's scripts: no extend, no score of a new group."""
        return isinstance(self.caller, Original)

    @property
    def now_ms(self) -> int:
        """The server's clock."""
        return self.host.clock.now_ms() - self.host.clock.offset_ms

    # Operations

    def do(self, op: str, **arguments: Any) -> Reply:
        """One operation, as `model.operation` names its arguments."""
        operation = self._operation(op, arguments)
        reply = self.caller.call(operation)
        self.trace.append(write(operation, reply))
        return reply

    def publish(self, group: str | bytes, payload: str | bytes = b"m", **arguments: Any) -> int:
        """The length of the group's queue."""
        return self._number(self.do("publish", group=group, payload=payload, **arguments))

    def claim(self, token: str | bytes = b"A", **arguments: Any) -> tuple[bytes, bytes] | None:
        """The group and the payload delivered, or None."""
        match reply := self.do("claim", token=token, **arguments):
            case Ok(Delivery(group, payload)):
                return group, payload
            case Ok(None):
                return None
        return self.fail(f"claim answers {write_reply(reply)}")

    def ack(self, group: str | bytes, token: str | bytes = b"A", **arguments: Any) -> int:
        """1 or 0."""
        return self._number(self.do("ack", group=group, token=token, **arguments))

    def nack(self, group: str | bytes, token: str | bytes = b"A", **arguments: Any) -> int:
        """1 or 0."""
        return self._number(self.do("nack", group=group, token=token, **arguments))

    def extend(self, group: str | bytes, token: str | bytes = b"A", **arguments: Any) -> int:
        """1 or 0."""
        return self._number(self.do("extend", group=group, token=token, **arguments))

    def _number(self, reply: Reply) -> int:
        match reply:
            case Ok(int(value)):
                return value
        return self.fail(f"the operation answers {write_reply(reply)}")

    def _operation(self, op: str, arguments: dict[str, Any]) -> Operation:
        args: dict[str, Value] = {"prefix": self.prefix}
        for name, value in arguments.items():
            args[name] = value.encode() if isinstance(value, str) else value
        return Operation(op, self.now_ms, args)

    # What happens around them

    def foreign(self, op: str, **arguments: Any) -> None:
        """A foreign write, as `model.operation.FOREIGN` names it."""
        operation = self._operation(op, arguments)
        for command in foreign_commands(operation):
            self.admin.execute_command(*command)
        self.trace.append(write(operation, Ok(None)))

    def raw(self, *command: Any) -> Any:
        """Any command of a foreigner."""
        words = " ".join(str(word) for word in command[:4])
        self.trace.append(f"{self.now_ms:<6} ({words:.80})")
        return self.admin.execute_command(*command)

    def wait(self, ms: int) -> None:
        """Time passes."""
        shifts_what_is_stored = self._full and not self.host.clock.exact
        if shifts_what_is_stored:
            self.admin.config_set("maxmemory", 0)
        self.host.clock.advance(ms)
        if shifts_what_is_stored:
            self.admin.config_set("maxmemory", 1)
        self.trace.append(f"{self.now_ms:<6} wait  ({ms} ms later)")

    def key(self, family: str, name: str | int) -> bytes:
        """A key of the queue: `q`, `lock` or `ready`."""
        return self.prefix + f":{family}:{name}".encode()

    def reset(self) -> None:
        """An empty queue, and a new trace."""
        self.admin.execute_command("FLUSHDB")
        self.trace.clear()

    # What is seen

    def state(self) -> State:
        """The whole key space."""
        return read_keyspace(self.admin, [self.prefix], self.now_ms)[self.prefix].expired()

    def unchanged(self, before: State) -> bool:
        """Whether the key space is as it was; where the clock runs by itself, deadlines may be read a little off."""
        after = self.state()
        if self.host.clock.exact:
            return after == before
        ends = [
            (lock.value, lock.deadline_ms, before.locks[group].value, before.locks[group].deadline_ms)
            for group, lock in after.locks.items()
            if group in before.locks
        ]
        same = all(ours == theirs and abs((a or 0) - (b or 0)) <= OFF_MS for ours, a, theirs, b in ends)
        bare = replace(after, now_ms=0, locks={}) == replace(before, now_ms=0, locks={})
        return same and bare and after.locks.keys() == before.locks.keys()

    def messages(self, group: str) -> list[bytes]:
        """What the list of a group holds."""
        return list(self.state().messages(group.encode()) or ())

    def tiers(self, group: str) -> list[int]:
        """The tiers that have an entry of the group."""
        return [tier for tier, entries in enumerate(self.state().ready) if group.encode() in entries]

    def score(self, group: str) -> int | None:
        """The score of the group in the lowest tier that has it."""
        return next((entries[group.encode()] for entries in self.state().ready if group.encode() in entries), None)

    def expect(self, holds: object, otherwise: str) -> None:
        """A fault unless it holds."""
        if not holds:
            self.fail(otherwise)

    def fail(self, what: str) -> NoReturn:
        """A fault, with the last steps."""
        raise Fault("\n".join([f"{self.caller.name}: {what}", "", *self.trace[-40:]]))

    def drain(self, token: str = "drain", later_ms: int = LATER_MS, most: int = 5000) -> list[tuple[bytes, bytes]]:
        """Lets every lease and park end, then claims and acks until claim answers nil; what was delivered."""
        self.wait(later_ms)
        delivered: list[tuple[bytes, bytes]] = []
        while (got := self.claim(token)) is not None:
            delivered.append(got)
            self.expect(self.ack(got[0], token) == 1, "a drain's ack is refused")
            self.expect(len(delivered) <= most, "the drain never ends")
        return delivered

    def expect_empty(self) -> None:
        """A fault if any key is left."""
        keys = sorted(self.admin.execute_command("KEYS", "*"))
        self.expect(not keys, f"keys are left behind: {keys}")

    def commands(self, run: Callable[[], object]) -> Counter[str]:
        """The commands that ran inside scripts while `run` did, by name in capitals."""
        before = self._counts()
        run()
        counts = self._counts() - before
        asked_by_the_clock = () if self.host.clock.exact else ("TIME",)
        for name in ("INFO", "EVALSHA", "EVAL", *asked_by_the_clock):
            del counts[name]
        return counts

    def _counts(self) -> Counter[str]:
        info = self.admin.info("commandstats")
        return Counter({name.removeprefix("cmdstat_").upper(): entry["calls"] for name, entry in info.items()})

    # Other callers and other circumstances

    def other(self, prefix: bytes) -> Rig:
        """The same scripts under another prefix."""
        rig = copy.copy(self)
        rig.prefix = prefix
        return rig

    def interrupted(self, index: int, action: Callable[[], None]) -> tuple[Rig, Interrupted]:
        """A caller before whose n-th command something happens, and the client that tells whether it did."""
        client = Interrupted(self.caller.client, index, action)
        return self._calling_by(client), client

    def user(self, name: str, *rules: str) -> Rig:
        """A caller with the rights that `rules` of ACL SETUSER give; the test is skipped where none can be made."""
        try:
            self.admin.execute_command("ACL", "SETUSER", name, "reset", "on", ">secret", *rules)
        except redis.ResponseError as error:
            pytest.skip(f"{self.host.name}: users cannot be made here: {error}")
        self._users.append(name)
        return self._calling_by(self.host.client(username=name, password="secret"))

    def _calling_by(self, client: Any) -> Rig:
        rig = copy.copy(self)
        rig.caller = copy.copy(self.caller)
        rig.caller.client = client
        return rig

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """The server is at maxmemory and evicts nothing; it stays full, whatever is removed."""
        with self._at_maxmemory("noeviction"):
            self.trace.append(f"{self.now_ms:<6} (the server is full)")
            self._full = True
            try:
                yield
            finally:
                self._full = False

    def evict(self) -> None:
        """The server is at maxmemory and evicts every key that has a TTL."""
        with self._at_maxmemory("volatile-random"), contextlib.suppress(redis.ResponseError):
            self.admin.set("something", "to make room for")
        self.trace.append(f"{self.now_ms:<6} (every key with a TTL is evicted)")

    @contextlib.contextmanager
    def _at_maxmemory(self, policy: str) -> Iterator[None]:
        """The test is skipped where this cannot be set."""
        try:
            old = {name: self.admin.config_get(name)[name] for name in ("maxmemory", "maxmemory-policy")}
            self.admin.config_set("maxmemory-policy", policy)
            self.admin.config_set("maxmemory", 1)
        except redis.ResponseError as error:
            pytest.skip(f"{self.host.name}: maxmemory cannot be set here: {error}")
        try:
            yield
        finally:
            for name, value in old.items():
                self.admin.config_set(name, value)

    def close(self) -> None:
        """Without the users that were made, and without connections."""
        if self._users:
            self.admin.execute_command("ACL", "DELUSER", *self._users)
        self.admin.close()
        self.caller.client.close()


def codes(reply: Reply) -> str:
    """The code of an error reply; empty for any other."""
    return reply.code if isinstance(reply, Error) else ""
