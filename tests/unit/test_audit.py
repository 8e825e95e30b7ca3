"""audit: its script does what the model says, from any state of a group, on fakeredis and on a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from model.audit import Found, audit
from model.notation import difference
from model.state import Lock, State
from tests.exploration.refine import EARLIER_MS, loading
from tests.support.fake import FakeHost
from tests.support.keyspace import read_keyspace
from tests.support.servers import discover
from tests.support.witness import Host

NOW_MS = 100_000
TOLERANCE_MS = 1_000
PREFIX = b"p"
GROUP, NEIGHBOUR = b"g:\x00{", b"h"
SOURCE = (files("redisq") / "ops" / "audit.lua").read_text(encoding="utf-8")
# What a wrong script may leave out or do: by name, the text that stands in it and what stands there instead.
EDITS = {
    "never looks at the lock": ("local ttl = redis.call('PTTL', lock)", "local ttl = -2"),
    "keeps the other entries": ("redis.call('ZREM', prefix .. ':ready:' .. t, group)", "ttl = ttl"),
    "keeps the field": ("  redis.call('HDEL', prio, group)\n", "  ttl = ttl\n"),
    "does not write the field": ("  redis.call('HSET', prio, group, tier)\n", ""),
    "takes the highest tier": ("lowest = lowest or tostring(t)", "lowest = tostring(t)"),
    "the score of the lowest tier": ("if not score or field == tostring(t) then", "if not score then"),
    "a lost entry is due at once": ("now + math.max(ttl, 0), false", "now + 0, false"),
    "no tolerance": ("due > free + 1 + tolerance", "due > free + 1"),
    "a lock is ended early": ("due <= now + 315360000000", "due <= now + 0"),
    "a lock is never ended": ("    redis.call('DEL', lock)\n", "    ttl = ttl\n"),
    "heals unasked": ("if not repair or #found == 0 then", "if #found == 0 then"),
    "deletes what it does not know": ("  aside(q)\n", "  redis.call('DEL', q)\n"),
}


def states() -> st.SearchStrategy[State]:
    """States in which anything may be wrong with the group; its neighbour is in order."""
    score = st.sampled_from([0, NOW_MS - 5, NOW_MS, NOW_MS + 1, NOW_MS + 500, NOW_MS + 1_001, NOW_MS + 400_000_000_000])
    entries = st.dictionaries(st.integers(0, 4), score, max_size=3)
    deadline = st.sampled_from([None, NOW_MS, NOW_MS + 1, NOW_MS + 700])
    return st.builds(
        _state,
        st.sampled_from([(), (), (b"1",), (b"1", b"2"), None]),
        st.one_of(st.none(), st.builds(Lock, st.sampled_from([b"A", b"parked", None]), deadline)),
        entries,
        st.sampled_from([b"", b"", b"0", b"2", b"4", b"5", b"2.5"]),
    )


def _state(messages: Any, lock: Lock | None, entries: dict[int, int], field: bytes) -> State:
    ready: list[dict[bytes, int]] = [{} for _ in range(5)]
    ready[1][NEIGHBOUR] = NOW_MS + 2_000_000  # looks wrong, and is not asked for
    for tier, score in entries.items():
        ready[tier][GROUP] = score
    queues = {NEIGHBOUR: (b"m",)} | ({} if messages == () else {GROUP: messages})
    locks = {} if lock is None else {GROUP: lock}
    prio = {NEIGHBOUR: b"1"} | ({GROUP: field} if field else {})
    return State(NOW_MS, queues, locks, tuple(ready), prio)


class Auditor:
    """The script on one host."""

    def __init__(self, host: Host, source: str = SOURCE) -> None:
        self.host = host
        self.client: Any = host.client()
        self.source = source

    def __call__(self, state: State, *, repair: bool) -> tuple[State, Found]:
        """The state after, and what was found."""
        running = getattr(self.host.clock, "frozen", nullcontext)
        with running():
            self.client.flushdb()
        self.host.clock.set_ms(NOW_MS - EARLIER_MS, touch=())
        with running():
            for command in loading(PREFIX, state):
                self.client.execute_command(*command)
        self.host.clock.set_ms(NOW_MS)
        argv = (PREFIX, GROUP, b"%d" % TOLERANCE_MS, b"1" if repair else b"0")
        with running():
            reply = self.client.eval(self.source, 1, PREFIX + b":prio", *argv)
            after = read_keyspace(self.client, [PREFIX], NOW_MS)[PREFIX]
        words = [word.decode("latin-1") for word in reply]
        return after, list(zip(words[::2], words[1::2], strict=True))


def disagreement(auditor: Auditor, state: State, *, repair: bool) -> list[str]:
    """How the script differs from the model."""
    want, found = audit(state, PREFIX, GROUP, TOLERANCE_MS, repair=repair)
    after, got = auditor(state, repair=repair)
    return difference(want, after) + ([] if got == found else [f"found {got}, not {found}"])


@pytest.fixture(scope="module", params=["fakeredis", *(source.name for source in discover()[:1])])
def auditor(request: pytest.FixtureRequest) -> Iterator[Auditor]:
    """The package's script on fakeredis, and on the first server found."""
    if request.param == "fakeredis":
        yield Auditor(FakeHost())
        return
    with discover()[0].start() as server:
        yield Auditor(server)


@settings(
    max_examples=400, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(state=states(), repair=st.booleans())
def test_the_script_is_the_model(auditor: Auditor, state: State, repair: bool) -> None:
    """Whatever is wrong with a group, the script finds what the model finds, and leaves the same keys."""
    assert disagreement(auditor, state, repair=repair) == []


@pytest.mark.parametrize("name", EDITS)
def test_a_wrong_script_differs(name: str) -> None:
    """A script that leaves out one thing differs from the model in some state."""
    old, new = EDITS[name]
    assert SOURCE.count(old) == 1
    wrong = Auditor(FakeHost(), SOURCE.replace(old, new))

    @settings(max_examples=1_000, derandomize=True, deadline=None, database=None, phases=[Phase.generate])
    @given(state=states(), repair=st.booleans())
    def agrees(state: State, repair: bool) -> None:
        assert disagreement(wrong, state, repair=repair) == []

    with pytest.raises(AssertionError):
        agrees()
