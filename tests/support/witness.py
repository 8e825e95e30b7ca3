"""Witnesses: whatever can perform operations on a queue and show the whole key space afterwards.

A witness is asked for one operation at a time, at a virtual instant, and then read: the reply and every key are held
against the model. ``Scripts`` runs the Lua as it lies, ``Library`` (``library.py``) the Python API, ``Model`` the
model itself.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha1
from pathlib import Path
from typing import Any, Protocol

import redis

from model.notation import difference
from model.operation import ARGV, Delivery, Error, Fault, Ok, Operation, Reply
from model.run import World
from model.state import State
from tests.support.clock import Clock
from tests.support.keyspace import foreign_commands, read_keyspace

SCRIPTS = tuple(ARGV)


class Host(Protocol):
    """Where a queue lives: a real server or fakeredis, with the clock that moves it."""

    name: str
    version: str
    clock: Clock

    def client(self, **kwargs: Any) -> redis.Redis: ...


class Witness(ABC):
    """Something that performs operations and can be read."""

    name: str
    host: Host | None = None

    @property
    def exact(self) -> bool:
        """Whether its clock stands where it is put, so that boundaries can be tested to the millisecond."""
        return self.host is None or self.host.clock.exact

    def asked(self, operation: Operation, state: State) -> Operation | None:
        """The operation as this witness can be asked it, or None; ``state`` is the model's before it."""
        return operation

    def agrees(self, operation: Operation, expected: Reply, got: Reply) -> bool:
        """Whether the reply is the one expected."""
        return agree(expected, got)

    def difference(self, expected: State, got: State) -> list[str]:
        """The keys that differ, a line each."""
        return difference(expected, got)

    @abstractmethod
    def reset(self, now_ms: int) -> None:
        """Empty the key space and put the clock at that instant."""

    @abstractmethod
    def do(self, operation: Operation) -> Reply:
        """Perform the operation at its time."""

    def observe(self, operation: Operation, prefixes: Iterable[bytes]) -> tuple[Reply, Mapping[bytes, State]]:
        """Perform the operation, and read: the reply, and the key space after it."""
        return self.do(operation), self.read(prefixes)

    @abstractmethod
    def read(self, prefixes: Iterable[bytes]) -> Mapping[bytes, State]:
        """The key space of each prefix as it stands; keys of none of them are strays of the first."""


class Model(Witness):
    """The model itself: for the suite's own tests, which show what it rejects."""

    name = "model"

    def __init__(self) -> None:
        self.world = World()

    def reset(self, now_ms: int) -> None:
        self.world = World(now_ms)

    def do(self, operation: Operation) -> Reply:
        self.world, reply = self.world.step(operation)
        return reply

    def read(self, prefixes: Iterable[bytes]) -> Mapping[bytes, State]:
        return {prefix: self.world.state(prefix) for prefix in prefixes}


class OnHost(Witness):
    """A witness on a host: the clock, foreign writes and reading are the same for all of them."""

    def __init__(self, host: Host, name: str) -> None:
        self.host: Host = host
        self.name = name
        self.client: Any = host.client()

    def running(self) -> AbstractContextManager[object]:
        """The context in which commands run: fakeredis needs its frozen clock around each."""
        return getattr(self.host.clock, "frozen", nullcontext)()

    def reset(self, now_ms: int) -> None:
        with self.running():
            self.client.flushdb()
        self.host.clock.set_ms(now_ms, touch=())

    def do(self, operation: Operation) -> Reply:
        if operation.time_ms != self.host.clock.now_ms():
            self.host.clock.set_ms(operation.time_ms)
        return self.perform(operation)

    def perform(self, operation: Operation) -> Reply:
        """Perform the operation now, whatever its time."""
        with self.running():
            if operation.is_script:
                return self.call(operation)
            for command in foreign_commands(operation):
                self.client.execute_command(*command)
            return Ok(None)

    @abstractmethod
    def call(self, operation: Operation) -> Reply:
        """Call the operation's script."""

    def read(self, prefixes: Iterable[bytes]) -> Mapping[bytes, State]:
        with self.running():
            return read_keyspace(self.client, prefixes, self.host.clock.now_ms())


class LuaFiles:
    """The five script files of a folder, a port's or the package's own; an old set may lack some."""

    def __init__(self, folder: Path, *, missing_ok: bool = False) -> None:
        missing = [f"{name}.lua" for name in SCRIPTS if not (folder / f"{name}.lua").is_file()]
        if missing and not missing_ok:
            raise FileNotFoundError(f"{folder}: no {', '.join(missing)}; a set of scripts is {', '.join(SCRIPTS)}")
        self.source = {n: (folder / f"{n}.lua").read_bytes() for n in SCRIPTS if f"{n}.lua" not in missing}
        self.sha = {name: sha1(source).hexdigest() for name, source in self.source.items()}


class Scripts(OnHost):
    """The Lua, called as a port would: EVALSHA, and EVAL where the server has not seen the script."""

    def __init__(self, host: Host, lua: LuaFiles) -> None:
        super().__init__(host, host.name)
        self.lua = lua

    def call(self, operation: Operation) -> Reply:
        argv = operation.to_argv()
        rest = (1, operation.prefix + b":prio", *argv)
        try:
            try:
                reply = self.client.execute_command("EVALSHA", self.lua.sha[operation.op], *rest)
            except redis.exceptions.NoScriptError:
                reply = self.client.execute_command("EVAL", self.lua.source[operation.op], *rest)
        except redis.RedisError as error:
            return reply_of_error(error, operation.op)
        return reply_of(reply)


def reply_of(value: object) -> Reply:
    """A script's reply as it came over the wire."""
    match value:
        case [bytes(group), bytes(payload)]:
            return Ok(Delivery(group, payload))
        case int() | None:
            return Ok(value)
    return Fault(f"a reply of a form that no script gives: {value!r:.200}")


def reply_of_error(error: Exception, script: str) -> Reply:
    """An error reply: its code and, for REDISQ_BADARG, the arguments its text names."""
    code = str(error).split(" ", 1)[0]
    if code != "REDISQ_BADARG":
        return Error(code if code.isupper() else type(error).__name__)
    named = set(re.findall(r"\w+", str(error)))
    return Error(code, tuple(name for name in ("ARGV", *ARGV[script]) if name in named))


def agree(expected: Reply, got: Reply) -> bool:
    """Whether a reply is the one expected.

    Of errors only the code REDISQ_BADARG and an argument it names count: servers wrap all others differently.
    """
    if not isinstance(expected, Error) or not isinstance(got, Error):
        return expected == got
    if (expected.code == "REDISQ_BADARG") != (got.code == "REDISQ_BADARG"):
        return False
    return expected.code != "REDISQ_BADARG" or not set(expected.arguments).isdisjoint(got.arguments)
