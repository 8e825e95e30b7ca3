"""Attaching to a server that is in use: what it does from now on, and what the key space holds by then.

The keys are read while others change them, a group at a time, each in a transaction that changes nothing. MONITOR shows
these reads among everything else, so of each group it is known from which line on its keys are known.
"""

from __future__ import annotations

import os
import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import redis

from model.state import TIERS, Lock, State
from tests.support.clock import glob_literal
from tests.support.replay.commands import Held, score_ms
from tests.support.replay.keys import READS
from tests.support.replay.monitor import Entry, Monitor, MonitorError, line, parse
from tests.support.replay.replay import SNAPSHOT, Replay

BATCH = 200
ANSWER_SECONDS = 10.0
READ_MS = 3
"""How exactly a deadline is known that was read as the time left."""
STORED_BEFORE = b"(stored before)"
"""Stands for a message whose content was not read."""
MOST_WAITING = 2_000_000
"""Lines that may wait to be judged; if more do, it cannot keep up, and lets go of the server."""


class Attached:
    """A server that is being watched. A context manager that lets go of it."""

    def __init__(self, url: str, prefix: bytes) -> None:
        """Raises MonitorError if the server cannot be reached, or the user may not use MONITOR."""
        self.prefix = prefix
        self.client = redis.Redis.from_url(url, socket_timeout=60)
        self.db = int(self.client.connection_pool.connection_kwargs.get("db") or 0)
        self.monitor = Monitor(url)
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()
        self.behind = False
        self._nonce = b"redisq-replay-" + os.urandom(8).hex().encode()

    def _receive(self) -> None:
        for each in self.monitor.lines():
            self._lines.put(each)
            if self._lines.qsize() > MOST_WAITING:
                self.behind = True
                break
        self.monitor.close()
        self._lines.put(None)

    def next(self, seconds: float) -> Entry | None:
        """The next line; None if none comes in that time. Raises MonitorError when there will be no more."""
        while True:
            try:
                text = self._lines.get(timeout=seconds)
            except queue.Empty:
                return None
            if text is None:
                why = f"more than {MOST_WAITING:,} lines wait to be judged: this machine cannot keep up with the server"
                raise MonitorError(why if self.behind else "the server closed the connection")
            if (entry := parse(text)) is not None:
                return entry

    def echo(self, mark: bytes = b"redisq-replay") -> None:
        """Has the server write a line: whatever ran before it has been told when it comes."""
        client: Any = self.client
        client.execute_command("ECHO", mark)

    def rest(self) -> Iterator[Entry]:
        """The lines up to now that were not taken yet; the last is a command of ours, so no script is cut short."""
        mark = self._nonce + b"-end"
        self.echo(mark)
        while (entry := self.next(ANSWER_SECONDS)) is not None:
            yield entry
            if entry.words[-1] == mark:
                return

    def learn(self, replay: Replay) -> None:
        """Reads the key space into ``replay``, and gives it every line up to then. Raises MonitorError."""
        try:
            groups = dict.fromkeys(self._groups())
            read = self._read(groups)
            heard = [self.next(ANSWER_SECONDS) for _ in range(self._lines.qsize())]  # more come meanwhile
            seen = [entry for entry in heard if entry is not None]
            # A group that came or went while the keys were scanned may have been missed.
            writes = [entry.words for entry in seen if entry.name not in READS]
            missed = {group for words in writes for group in replay.keys.named(words)} - groups.keys()
            read |= self._read(missed)
        except redis.RedisError as error:
            raise MonitorError(f"the key space cannot be read: {error}") from error
        replay.not_judged |= read.keys()
        own, waiting, lines = "", set(read), deque(seen)
        while waiting or lines:
            entry = lines.popleft() if lines else self.next(ANSWER_SECONDS)
            if entry is None:
                raise MonitorError("MONITOR does not show what this command itself reads: is there a proxy in between?")
            replay.add(entry)
            if entry.words[-1] == self._nonce:
                own = entry.source
            elif entry.source == own and entry.name == b"HGET" and (group := entry.words[2]) in waiting:
                replay.end()
                replay.learn(group, _state(entry, group, read[group]))
                waiting.discard(group)

    def _groups(self) -> Iterator[bytes]:
        client: Any = self.client
        for family in (b":q:", b":lock:"):
            start = self.prefix + family
            for key in client.scan_iter(match=glob_literal(start) + b"*", count=1000):
                yield key[len(start) :]
        for tier in range(TIERS):
            for group, _ in client.zscan_iter(self.prefix + b":ready:%d" % tier, count=1000):
                yield group
        for group, _ in client.hscan_iter(self.prefix + b":prio", count=1000):
            yield group

    def _read(self, groups: Iterable[bytes]) -> dict[bytes, list[Any]]:
        """What the keys of each group hold, as ``_state`` takes it."""
        read: dict[bytes, list[Any]] = {}
        names = list(groups)
        for at in range(0, len(names), BATCH):
            pipe: Any = self.client.pipeline(transaction=False)
            pipe.execute_command("ECHO", self._nonce)  # by which its lines are known
            for group in (part := names[at : at + BATCH]):
                for command in (("MULTI",), *self._reads(group), ("EXEC",)):
                    pipe.execute_command(*command)
            replies = pipe.execute()[1:]
            size = len(replies) // len(part)
            read |= {group: replies[(number + 1) * size - 1] for number, group in enumerate(part)}
        return read

    def _reads(self, group: bytes) -> list[tuple[str | bytes, ...]]:
        lock, q = self.prefix + b":lock:" + group, self.prefix + b":q:" + group
        scores = [("ZSCORE", self.prefix + b":ready:%d" % tier, group) for tier in range(TIERS)]
        first = ("HGET", self.prefix + b":prio", group)
        return [first, ("TYPE", lock), ("PTTL", lock), ("GET", lock), ("TYPE", q), ("LLEN", q), *scores]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.monitor.close()
        self._thread.join()
        self.client.close()


def _state(entry: Entry, group: bytes, reply: list[Any]) -> State:
    """The keys of a group, from the replies to ``_reads``; ``entry`` is the line of the first."""
    field, lock_type, ttl_ms, value, list_type, length, *scores = reply
    locks: dict[bytes, Lock] = {}
    if lock_type != b"none":
        end_ms = None if ttl_ms < 0 else entry.at_us // 1000 + ttl_ms
        token = value if isinstance(value, bytes) else None
        first_ms, last_ms = (None, None) if end_ms is None else (end_ms - READ_MS, end_ms + READ_MS)
        locks[group] = Held(token, last_ms, first_ms)
    queues: dict[bytes, tuple[bytes, ...] | None] = {}
    if list_type != b"none":
        queues[group] = (STORED_BEFORE,) * length if list_type == b"list" else None
    ready = tuple({} if score is None else {group: score_ms(repr(float(score)).encode())} for score in scores)
    return State(0, queues, locks, ready, {} if field is None else {group: field})


def as_lines(replay: Replay) -> Iterator[bytes]:
    """The key space as lines that set it, for the beginning of a record."""
    prefix, db = replay.prefix, replay.db

    def command(*words: bytes) -> bytes:
        return line(Entry(replay.now_us, db, SNAPSHOT, words))

    for group, state in replay.keys.groups.items():
        for messages in state.queues.values():
            q = prefix + b":q:" + group
            yield command(b"SET", q, b"") if messages is None else command(b"RPUSH", q, *messages)
        for lock in state.locks.values():
            key = prefix + b":lock:" + group
            yield command(b"RPUSH", key, b"") if lock.value is None else command(b"SET", key, lock.value)
            if lock.deadline_ms is not None:
                yield command(b"PEXPIREAT", key, b"%d" % lock.deadline_ms)
        for tier, entries in enumerate(state.ready):
            for score in entries.values():
                yield command(b"ZADD", prefix + b":ready:%d" % tier, repr(score).encode(), group)
        for value in state.prio.values():
            yield command(b"HSET", prefix + b":prio", group, value)
