"""Arguments: what is refused before any I/O, and what the others become on the wire."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from redisq import InvalidArgument, Lease, RedisqError, arguments
from redisq.errors import invalid
from tests.unit.queues import Bench

LEASE = Lease("g", b"p", "token", 30.0, 100.0)
NAN, INF = math.nan, math.inf
NO_TEXT: list[Any] = [None, 1, True, bytearray(b"a"), memoryview(b"a"), ["a"]]
NO_INTEGER: list[Any] = [None, True, False, 2.0, 2.5, NAN, "1", b"1", Decimal(1), []]
NO_NUMBER: list[Any] = [None, True, False, "1", b"1", Decimal(1), [], 1j]
NO_SECONDS = [*NO_NUMBER, NAN, INF, -INF, -1, -1e-9, 315_360_000.001, 10**400, Fraction(10**400)]


class Integer:
    """An integer that is no int, as those of numpy are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def lease(group: Any = "g", token: Any = "token") -> Lease:
    """A lease that may be malformed."""
    return Lease(group, b"p", token, 30.0, 100.0)


Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Place = Callable[[Any], Arguments]


def option(name: str, *before: Any) -> Place:
    """Puts a value by name, after arguments by position."""
    return lambda value: (before, {name: value})


SETTLING = ("ack", "nack", "extend", "ack_and_claim")
BAD: list[tuple[str, str, list[Any], Place]] = [
    ("publish", "group", [*NO_TEXT, "", b"", "\ud800", "\udc00"], lambda value: ((value, "p"), {})),
    ("publish", "payload", [*NO_TEXT, "\ud800"], lambda value: (("g", value), {})),
    ("publish", "priority", NO_INTEGER, lambda value: (("g", "p", value), {})),
    ("publish_many", "chunk", [*NO_INTEGER, 0, 10_001], option("chunk", [("g", "p")])),
    (
        "publish_many",
        "messages[1]",
        ["gp", b"gp", ("g",), ("g", "p", 0, 0), None],
        lambda value: (([("g", "p"), value],), {}),
    ),
    ("claim", "visibility", [*NO_SECONDS, 0, 0.0, -0.0], option("visibility")),
    ("claim", "min_priority", NO_INTEGER, option("min_priority")),
    ("claim", "worker_id", [*NO_TEXT, b"w", "\ud800"], option("worker_id")),
    ("claim_many", "count", [*NO_INTEGER, 0, -1, 10_001], lambda value: ((value,), {})),
    ("claim_many", "visibility", NO_SECONDS, option("visibility", 1)),
    ("claim_many", "min_priority", NO_INTEGER, option("min_priority", 1)),
    ("claim_many", "worker_id", NO_TEXT, option("worker_id", 1)),
    *((name, "lease", [None, "token", ("g", "token"), object()], lambda value: ((value,), {})) for name in SETTLING),
    *(
        (name, "lease.group", [None, b"g", "", "\ud800"], lambda value: ((lease(group=value),), {}))
        for name in SETTLING
    ),
    *(
        (name, "lease.token", [None, b"t", "", "parked"], lambda value: ((lease(token=value),), {}))
        for name in SETTLING
    ),
    ("nack", "delay", NO_SECONDS, option("delay", LEASE)),
    ("extend", "visibility", [*NO_SECONDS, 0], option("visibility", LEASE)),
    ("ack_and_claim", "visibility", [*NO_SECONDS, 0], option("visibility", LEASE)),
    ("ack_and_claim", "min_priority", NO_INTEGER, option("min_priority", LEASE)),
    ("ack_and_claim", "worker_id", NO_TEXT, option("worker_id", LEASE)),
]


@pytest.mark.parametrize(("method", "argument", "values", "place"), BAD, ids=[f"{case[0]}-{case[1]}" for case in BAD])
def test_a_bad_argument_is_named_before_any_io(
    bench: Bench, method: str, argument: str, values: list[Any], place: Place
) -> None:
    """The error names the argument and the value and says what is allowed; the client was not called."""

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("I/O")

    queue = bench.queue(bench.wrap(None, never, never))
    for value in values:
        args, options = place(value)
        with pytest.raises(InvalidArgument) as caught:
            getattr(queue, method)(*args, **options)
        error = caught.value
        assert isinstance(error, RedisqError)
        assert isinstance(error, ValueError)
        assert error.argument == argument
        assert error.value == invalid("", value, "").value
        assert str(error) == f"{argument} must be {error.allowed}, not {error.value}"


@pytest.mark.parametrize(
    ("message", "argument"),
    [(("", "p"), "messages[2].group"), (("g", None), "messages[2].payload"), (("g", "p", 0.5), "messages[2].priority")],
)
def test_the_message_of_many_that_is_bad_is_named(queue: Any, message: Any, argument: str) -> None:
    """A bad part of one message is named with the index of the message, and none of them is stored."""
    with pytest.raises(InvalidArgument) as caught:
        queue.publish_many([("g", "p"), ("g", "p", 4), message], chunk=1)
    assert caught.value.argument == argument
    assert queue.claim() is None


BAD_OPTIONS: list[tuple[str, Any, str]] = [
    *(("prefix", value, "a str") for value in [*NO_TEXT, b"p"]),
    ("prefix", "", "not empty"),
    ("prefix", "\ud800", "UTF-8"),
    ("prefix", "a:q", "such as 'a-q'"),
    ("prefix", "a:lock:b", "such as 'a-lock-b'"),
    ("prefix", "{a}:x:ready", "'ready'"),
    *(("candidates", value, "") for value in [*NO_INTEGER, 0, 100, -1]),
    *(("new_groups", value, "'first' or 'arrival'") for value in ["last", None, 0, b"first", ["first"]]),
    *(("clock", value, "callable") for value in [0, 1.5, "now", False]),
]


@pytest.mark.parametrize(("argument", "value", "told"), BAD_OPTIONS)
def test_a_bad_option_of_a_transport_is_named(bench: Bench, argument: str, value: Any, told: str) -> None:
    """What the constructor takes is checked there, and the error says what to write instead."""
    with pytest.raises(InvalidArgument) as caught:
        bench.transport(bench.fake(), **{argument: value})
    assert caught.value.argument == argument
    assert told in caught.value.allowed


@pytest.mark.parametrize(
    "prefix", ["p", "a:queue", "q", "lock", "ready:a", "a:Q", "{a}:b", "gr\u00fc\u00df", "\udcff", " "]
)
def test_any_other_prefix_is_taken(bench: Bench, prefix: str) -> None:
    """A reserved word counts only as a whole part after a colon."""
    queue = bench.queue(bench.fake(), prefix)
    assert queue.publish("g", "p") == 1
    assert queue.claim().payload == b"p"


@pytest.mark.parametrize("reading", [None, "1", True, NAN, INF, -1, -0.0001, 1e12, 10**400, Decimal(1)])
def test_a_bad_reading_of_the_clock_is_named(bench: Bench, reading: Any) -> None:
    """A clock that returns no usable seconds is an InvalidArgument, wherever it is read."""
    queue = bench.queue(bench.fake(), clock=lambda: reading, new_groups="arrival")
    for call in (lambda: queue.publish("g", "p"), queue.claim, lambda: queue.ack(LEASE)):
        with pytest.raises(InvalidArgument, match="clock must be a callable that returns seconds"):
            call()


def test_an_error_of_the_clock_passes_through(bench: Bench) -> None:
    """What the clock itself raises is not dressed up."""

    def broken() -> float:
        raise OSError("no clock")

    with pytest.raises(OSError, match="no clock"):
        bench.queue(bench.fake(), clock=broken).claim()


@pytest.mark.parametrize(
    ("seconds", "ms"),
    [
        (30, b"30000"),
        (30.0, b"30000"),
        (2.007, b"2007"),
        (0.001, b"1"),
        (0.001000001, b"2"),
        (0.00100000000001, b"1"),
        (1e-9, b"1"),
        (1e-12, b"1"),
        (5e-324, b"1"),
        (1.0001, b"1001"),
        (315_360_000, b"315360000000"),
        (Fraction(1, 3), b"334"),
    ],
)
def test_seconds_become_milliseconds_rounded_up(seconds: float, ms: bytes) -> None:
    """They are rounded up after rounding to a nanosecond, and what is positive never becomes 0."""
    assert arguments.duration("visibility", seconds) == ms


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_delay_may_be_zero(zero: float) -> None:
    """0 stays 0 where it is allowed."""
    assert arguments.duration("delay", zero, zero=True) == b"0"


def test_every_millisecond_is_met_exactly() -> None:
    """Whole milliseconds written as a decimal fraction of a second are not rounded up by one."""
    assert all(arguments.duration("visibility", ms / 1000) == b"%d" % ms for ms in range(1, 20_000))


@pytest.mark.parametrize(
    ("seconds", "ms"),
    [
        (0, b"0"),
        (-0.0, b"0"),
        (1.0009, b"1000"),
        (2.007, b"2007"),
        (1.001, b"1001"),
        (4.035, b"4035"),
        (1_700_000_000.123, b"1700000000123"),
        (1_700_000_000, b"1700000000000"),
        (999_999_999_999.9999, b"999999999999999"),
    ],
)
def test_the_clock_is_rounded_down(seconds: float, ms: bytes) -> None:
    """A reading becomes whole milliseconds as TIME does, at most fifteen digits."""
    assert arguments.now(lambda: seconds) == ms


@pytest.mark.parametrize(
    ("value", "tier"),
    [(0, b"0"), (3, b"3"), (4, b"4"), (5, b"4"), (-1, b"0"), (2**200, b"4"), (-(2**200), b"0"), (Integer(2), b"2")],
)
def test_priorities_are_clamped(value: Any, tier: bytes) -> None:
    """Any integer is a priority: below 0 it is 0, above 4 it is 4."""
    assert arguments.priority("priority", value) == tier


def test_an_integer_of_another_type_is_taken(bench: Bench) -> None:
    """What can index a list counts as an integer."""
    queue = bench.queue(bench.fake(), candidates=Integer(1))
    assert queue.publish_many([("a", "p", Integer(4)), ("b", "p")], chunk=Integer(1)) == [1, 1]
    assert [lease.group for lease in queue.claim_many(Integer(5), min_priority=Integer(1))] == ["a"]


def test_a_payload_has_at_most_512_mb() -> None:
    """What a server would refuse in the middle of the command is refused before."""
    assert arguments.MAX_BYTES == 2**29
    with pytest.raises(InvalidArgument, match=r"payload must be at most 536870912 bytes \(512 MB\), not b.* bytes\)$"):
        arguments.data("payload", bytes(2**29 + 1), empty=True)
    assert len(arguments.data("payload", bytes(2**29), empty=True)) == 2**29


def test_a_round_trip_has_at_most_10000_calls() -> None:
    """Both ends of the range are taken."""
    assert [arguments.integer("count", count, 1, arguments.MAX_CALLS) for count in (1, 10_000)] == [1, 10_000]


def test_the_limit_counts_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a text is that of its UTF-8, for groups and workers as for payloads."""
    monkeypatch.setattr(arguments, "MAX_BYTES", 3)
    assert arguments.data("group", "abc") == b"abc"
    for value in ("abcd", "\u00fc\u00fc", b"abcd"):
        with pytest.raises(InvalidArgument, match="at most 3 bytes"):
            arguments.data("group", value)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("x" * 61, f"'{'x' * 60}'... (61 characters)"),
        (b"x" * 10**6, f"b'{'x' * 60}'... (1000000 bytes)"),
        ("x" * 60, repr("x" * 60)),
        (None, "None"),
    ],
    ids=["text", "bytes", "short", "object"],
)
def test_a_long_value_is_shortened(value: object, shown: str) -> None:
    """An error shows no more of a value than helps."""
    assert invalid("a", value, "b").value == shown


def test_any_value_can_be_shown() -> None:
    """Neither a value whose repr fails nor one whose repr is long makes another error of it."""
    values: list[object] = [10**5000, [1] * 1000]
    for value in values:
        assert len(invalid("a", value, "b").value) <= 80


def test_the_error_travels_between_processes() -> None:
    """It can be pickled, as multiprocessing does."""
    error = pickle.loads(pickle.dumps(invalid("delay", -1, "0 or more")))
    assert (error.argument, error.value, error.allowed) == ("delay", "-1", "0 or more")
    assert str(error) == "delay must be 0 or more, not -1"
