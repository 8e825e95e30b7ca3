"""Any Python value as any argument of both transports: refused before any I/O, or what went in comes out."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from redisq import InvalidArgument, Lease, arguments
from redisq.keys import encode
from tests.faults.hostile import GROUPS
from tests.faults.transports import KINDS, transport
from tests.support.running import BaseServer

EXAMPLES = 150
texts = st.one_of(
    st.sampled_from([*GROUPS, b"", "", "\ud800", "g", "\udcff"]), st.text(max_size=8), st.binary(max_size=8)
)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, 1, 30, -1, 10**400, 2.5, 1e-9, True, Decimal(1), Fraction(1, 3), 1j]),
)
others = st.sampled_from([None, [], {}, (), object(), bytearray(b"g"), memoryview(b"g"), int, Lease])
values = st.one_of(texts, numbers, others)
right_texts, right_numbers = st.one_of(texts, texts, values), st.one_of(st.integers(0, 9), numbers, values)


class Sends:
    """A client that counts what is asked of it."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.asked = 0

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """One command."""
        self.asked += 1
        return self.client.execute_command(*args, **options)

    def pipeline(self, transaction: bool) -> Any:
        """A pipeline, which is counted when it is made."""
        self.asked += 1
        return self.client.pipeline(transaction=transaction)


class AsyncSends(Sends):
    """The same for asyncio."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """One command."""
        self.asked += 1
        return await self.client.execute_command(*args, **options)


def surface(kind: str, server: BaseServer) -> None:
    """Any values for the arguments of every operation."""
    made: list[Sends] = []

    def wrap(client: Any) -> Sends:
        made.append((AsyncSends if kind == "async" else Sends)(client))
        return made[0]

    with transport(kind, server.url, wrap=wrap) as queue:

        def tried(method: str, *args: Any, **named: Any) -> Any:
            before = made[0].asked
            try:
                return getattr(queue, method)(*args, **named)
            except InvalidArgument:
                assert made[0].asked == before, f"{method} is refused after a command was sent"
                return InvalidArgument

        @hypothesis.settings(
            max_examples=EXAMPLES,
            phases=[Phase.generate],
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @hypothesis.given(right_texts, right_texts, right_numbers, right_numbers, values)
        def run(group: Any, payload: Any, priority: Any, seconds: Any, wrong: Any) -> None:
            server.flush()
            stored = tried("publish", group, payload, priority)
            assert stored in (1, InvalidArgument)
            many = tried("publish_many", [(group, payload, priority), (group, wrong)], chunk=10)
            assert many is InvalidArgument or len(many) == 2
            for each in ([wrong], wrong if isinstance(wrong, (str, bytes)) else [None]):
                assert tried("publish_many", each) in ([], InvalidArgument)
            lease = queue.claim()
            if lease is not None:
                assert encode(lease.group) == encode(group)
                assert lease.payload == encode(payload)
                extended = tried("extend", lease, seconds)
                assert extended is InvalidArgument or isinstance(extended, Lease | None)
            for method in ("ack", "nack", "extend", "ack_and_claim"):
                assert tried(method, wrong) is InvalidArgument
                strange = tried(method, Lease(wrong, b"", wrong, 1.0, 1.0))
                assert strange in (InvalidArgument, False, None) or strange[0] is False
                locks_end(server)
            tried("claim", seconds, priority, wrong)
            tried("claim_many", priority, seconds, wrong)

        run()


def locks_end(server: BaseServer) -> None:
    """No lock is without an end, whatever was tried."""
    client: Any = server.client()
    for key in client.keys("redisq:lock:*"):
        assert client.pttl(key) != -1
    client.close()


@pytest.mark.parametrize("kind", KINDS)
def test_any_value(server: BaseServer, kind: str) -> None:
    """ARG-1, ARG-7: a value of any type and size is refused before any I/O, or what went in comes out."""
    surface(kind, server)


@pytest.mark.parametrize("kind", KINDS)
def test_any_value_undone(server: BaseServer, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport that leaves a check to the server is found."""
    checked = arguments.data
    monkeypatch.setattr(arguments, "data", lambda name, value, **how: checked(name, value, **{**how, "empty": True}))
    with pytest.raises(Exception, match="REDISQ_BADARG"):
        surface(kind, server)
