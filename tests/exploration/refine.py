"""Every transition of an explored scope, executed on the Lua: ``python -m tests.exploration.refine``.

Each is loaded as the keys it starts from, under a prefix of its own, run as one call at its instant, and compared: the
reply, and every key. Within the scope the Lua then *is* the model.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

import redis

from model.explore import progress
from model.notation import difference, write, write_reply
from model.operation import Ok, Operation, Reply
from model.scope import SCOPES
from model.situation import NOW_MS
from model.state import State
from tests.exploration.transitions import Transition, Transitions, collect
from tests.support.fake import FakeHost
from tests.support.keyspace import foreign_commands, read_keyspace
from tests.support.servers import discover, resolve
from tests.support.witness import Host, LuaFiles, agree, reply_of, reply_of_error

BATCH = 250  # transitions that share a database and a pipeline, each under a prefix of its own
CHUNK = 10 * BATCH  # what one process takes at a time
OTHER = b"of another type"
EARLIER_MS = 10  # before its instant a state is loaded: a lock whose deadline is now cannot be set now


@dataclass(frozen=True)
class Disagreement:
    """A transition that a server does otherwise than the model."""

    host: str
    transition: Transition
    got: Reply
    keys: tuple[str, ...]

    def __str__(self) -> str:
        before = [f"  {row}" for row in difference(State(NOW_MS), self.transition.before)]
        line = write(self.transition.operation, self.transition.reply)
        said = [] if agree(self.transition.reply, self.got) else [f"  the reply: got {write_reply(self.got)}"]
        keys = [f"  {row}" for row in self.keys]
        return "\n".join([f"{self.host} disagrees with the model", "from", *before, line, *said, *keys])


class Executor:
    """Executes transitions on one host."""

    def __init__(self, host: Host, lua: LuaFiles) -> None:
        self.host = host
        self.lua = lua
        self.client: Any = host.client()
        with self._running():
            for source in lua.source.values():
                self.client.script_load(source)

    def _running(self) -> AbstractContextManager[object]:
        return getattr(self.host.clock, "frozen", nullcontext)()

    def run(self, transitions: Sequence[Transition]) -> Iterator[Disagreement]:
        """Those that disagree."""
        for by_prefix, answers, instant in self.called(transitions):
            with self._running():
                states = read_keyspace(self.client, by_prefix, instant)
            for prefix, one in by_prefix.items():
                got = self._reply(one, answers.get(prefix))
                rows = difference(one.after, states[prefix])
                if rows or not agree(one.reply, got):
                    yield Disagreement(self.host.name, one, got, tuple(rows))

    def called(
        self, transitions: Sequence[Transition]
    ) -> Iterator[tuple[dict[bytes, Transition], dict[bytes, Any], int]]:
        """Batches of them, executed: each under its prefix, what was answered under it, and at which instant."""
        alike: dict[tuple[int, int], list[Transition]] = {}
        for one in transitions:
            alike.setdefault((one.before.now_ms, one.operation.time_ms), []).append(one)
        for (loaded_ms, instant), group in alike.items():
            for at in range(0, len(group), BATCH):
                by_prefix = {b"p%d" % number: one for number, one in enumerate(group[at : at + BATCH])}
                yield by_prefix, self._batch(by_prefix, loaded_ms, instant), instant

    def _batch(self, by_prefix: dict[bytes, Transition], loaded_ms: int, instant: int) -> dict[bytes, Any]:
        with self._running():
            self.client.flushdb()
        self.host.clock.set_ms(loaded_ms - EARLIER_MS, touch=())
        self._all([command for prefix, one in by_prefix.items() for command in loading(prefix, one.before)])
        self.host.clock.set_ms(instant)
        calls = [(prefix, command) for prefix, one in by_prefix.items() for command in self._calls(prefix, one)]
        return dict(zip((prefix for prefix, _ in calls), self._all([call for _, call in calls]), strict=True))

    def step(self, state: State, operation: Operation) -> tuple[State, Reply]:
        """One operation on the keys of a state, as ``model.run.step``."""
        one, prefix = Transition(state, operation, Ok(None), state), operation.prefix
        answers = self._batch({prefix: one}, state.now_ms, state.now_ms)
        with self._running():
            after = read_keyspace(self.client, [prefix], state.now_ms)[prefix]
        return after, self._reply(one, answers[prefix])

    def _calls(self, prefix: bytes, transition: Transition) -> Iterator[tuple[object, ...]]:
        operation = transition.under(prefix)
        if operation.is_script:
            yield "EVALSHA", self.lua.sha[operation.op], 1, prefix + b":prio", *operation.to_argv()
        else:
            yield from foreign_commands(operation)

    def _all(self, commands: Sequence[tuple[object, ...]]) -> list[Any]:
        with self._running():
            pipeline = self.client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            answers: list[Any] = pipeline.execute(raise_on_error=False)
            return answers

    def _reply(self, transition: Transition, answer: object) -> Reply:
        if not transition.operation.is_script:
            return Ok(None)
        if isinstance(answer, redis.RedisError):
            return reply_of_error(answer, transition.operation.op)
        return reply_of(answer)


def loading(prefix: bytes, state: State) -> Iterator[tuple[object, ...]]:
    """The commands, ``EARLIER_MS`` before its instant, that make the keys of a state."""
    for group, messages in state.queues.items():
        yield ("RPUSH", prefix + b":q:" + group, *messages) if messages else ("SET", prefix + b":q:" + group, OTHER)
    for group, lock in state.locks.items():
        key = prefix + b":lock:" + group
        yield ("SET", key, lock.value) if lock.value is not None else ("RPUSH", key, OTHER)
        if lock.deadline_ms is not None:
            yield "PEXPIRE", key, lock.deadline_ms - state.now_ms + EARLIER_MS
    for tier, entries in enumerate(state.ready):
        for group, score in entries.items():
            yield "ZADD", prefix + b":ready:%d" % tier, score, group
    for group, value in state.prio.items():
        yield "HSET", prefix + b":prio", group, value


def package_lua() -> LuaFiles:
    """The scripts of the package."""
    with as_file(files("redisq") / "lua") as folder:
        return LuaFiles(folder)


# What every process has: the transitions, which are forked and not sent, and one server of each kind.
_transitions: list[Transition] = []
_executors: dict[str, Executor] = {}


def _chunk(choice: str, start: int) -> tuple[str, int, list[Disagreement]]:
    if choice not in _executors:
        host: Any = FakeHost() if choice == "fakeredis" else resolve(choice).start()
        if not host.clock.exact:
            raise SystemExit(f"{host.name}: {host.clock.reason}; every transition takes a virtual clock")
        _executors[choice] = Executor(host, package_lua())
    executor = _executors[choice]
    part = _transitions[start : start + CHUNK]
    return f"{executor.host.name} {executor.host.version}", len(part), list(executor.run(part))


def execute(transitions: Sequence[Transition], choices: Sequence[str]) -> Iterator[tuple[str, int, list[Disagreement]]]:
    """Runs them all on each host, in as many processes as there are cores: host, how many, which disagree."""
    _transitions[:] = transitions
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("fork")) as pool:
        chunks = [pool.submit(_chunk, choice, at) for choice in choices for at in range(0, len(transitions), CHUNK)]
        for chunk in as_completed(chunks):
            yield chunk.result()


def main(argv: Sequence[str] | None = None) -> int:
    """Explores, executes and prints the counts; the exit code is 1 unless all of them agree."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.exploration.refine", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--scope", choices=SCOPES, default="default")
    parser.add_argument("--redis-server", action="append", help="path, command or wheel; default: the first found")
    options = parser.parse_args(argv)
    servers = options.redis_server or [str(source.path) for source in discover()[:1]]
    if not servers:
        parser.error("no server was found on PATH or in a wheel: --redis-server names one")
    began = time.monotonic()
    scope = SCOPES[options.scope]
    print(f"scope: {scope}", flush=True)
    transitions = collect(scope, progress if sys.stderr.isatty() else None)
    print(
        f"{transitions.exploration.states:,} states, {transitions.exploration.transitions:,} transitions; {transitions}"
    )
    agreed, wrong = run(transitions, ["fakeredis", *servers])
    for host, count in sorted(agreed.items()):
        print(f"{host}: {count:,} of {len(transitions.found):,} transitions agree")
    for disagreement in wrong[:3]:
        print(f"\n{disagreement}")
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if not wrong else 1


def run(transitions: Transitions, choices: Sequence[str]) -> tuple[Counter[str], list[Disagreement]]:
    """How many agree on each host, and those that do not, the shortest first."""
    agreed, wrong = Counter[str](), list[Disagreement]()
    done, total = 0, len(choices) * len(transitions.found)
    for host, count, found in execute(transitions.found, choices):
        agreed[host] += count - len(found)
        wrong += found
        done += count
        if sys.stderr.isatty():
            print(f"\r{done:,} of {total:,} ", end="", file=sys.stderr, flush=True)
    return agreed, sorted(wrong, key=lambda one: len(str(one)))


if __name__ == "__main__":
    sys.exit(main())
