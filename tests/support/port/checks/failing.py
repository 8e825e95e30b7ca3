"""FAIL-9a, FAIL-10a to FAIL-10c: a call that fails on its way. Nothing is done by half, and no answer is made up.

Each operation is done again and again, and to its first, second … command something happens, until it has no such
command. What it may have left is what the model says of no, one or more calls of its script; what it may answer is
what the last of those answered, or an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from model.notation import difference, write_reply
from model.operation import PREFIX, Delivery, Error, Ok, Reply, Value
from model.run import step
from model.state import PARKED, State
from tests.support.port.checks.rig import Rig
from tests.support.proxy import SETUP, Happening, Proxy, answered, delayed, lost, unanswered

MOST_COMMANDS = 12  # of one operation
MOST_CALLS = 24  # of one operation, by a client that repeats it when its connection breaks
LATE_SECONDS = 1.0  # of real time, for which a reply is late; no reply depends on it
LEASE: dict[str, Value] = {"group": b"g", "token": b"A"}
CALLS: tuple[tuple[str, int, dict[str, Value]], ...] = (  # the operation, the messages there are, its arguments
    ("publish", 0, {"group": b"g", "payload": b"new", "priority": 1}),
    ("publish", 1, {"group": b"g", "payload": b"new", "priority": 1}),
    ("claim", 2, {"token": b"A", "visibility_ms": 1_000}),
    ("ack", 2, LEASE),
    ("ack", 1, LEASE),
    ("nack", 1, {**LEASE, "delay_ms": 0}),
    ("nack", 1, {**LEASE, "delay_ms": 5_000}),
    ("extend", 1, {**LEASE, "visibility_ms": 2_000}),
)
ERRORS = {
    "LOADING": b"LOADING Redis is loading the dataset in memory",
    "READONLY": b"READONLY You can't write against a read only replica.",
    "OOM": b"OOM command not allowed when used memory > 'maxmemory'.",
    "BUSY": b"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
}
NOSCRIPT = answered(b"NOSCRIPT No matching script. Please use EVAL.")


@dataclass(frozen=True)
class Trouble:
    """Something that happens to a command, and how often its script may have run then.

    At most ``most``; if the caller is told an error, ``if_told``, which is -1 where no error may reach it.
    """

    what: str
    if_told: int
    most: int
    counts: Callable[[bytes], bool] = lambda name: name not in SETUP


def check_error_answers(rig: Rig) -> None:
    """FAIL-9a: the server answers an error. Nothing was done by that command, and the caller is told so."""
    for code, text in ERRORS.items():
        _try_everywhere(rig, Trouble(f"is answered {code}", 0, 1), partial(answered, text))
    evalsha = Trouble("is answered NOSCRIPT", -1, 1, counts=lambda name: name == b"EVALSHA")
    _try_everywhere(rig, evalsha, lambda: NOSCRIPT)


def check_lost_calls(rig: Rig) -> None:
    """FAIL-10a: the connection breaks before the server sees the command."""
    _try_everywhere(rig, Trouble("is lost with its connection", 0, 1), lambda: lost)


def check_lost_replies(rig: Rig) -> None:
    """FAIL-10b: the connection breaks before the reply."""
    _try_everywhere(rig, Trouble("runs, and its reply is lost with the connection", 1, MOST_CALLS), lambda: unanswered)


def check_late_replies(rig: Rig) -> None:
    """FAIL-10c: the reply comes late; a client with a time-out for its replies gives up, or repeats the call."""
    with _releasing() as late:
        _try_everywhere(rig, Trouble("runs, and its reply is late", 1, MOST_CALLS), late)


@contextmanager
def _releasing() -> Iterator[Callable[[], Happening]]:
    timers: list[threading.Timer] = []

    def late() -> Happening:
        until = threading.Event()
        timers.append(threading.Timer(LATE_SECONDS, until.set))
        timers[-1].start()
        return delayed(until)

    try:
        yield late
    finally:
        for timer in timers:
            timer.join()


def _try_everywhere(rig: Rig, trouble: Trouble, happening: Callable[[], Happening]) -> None:
    with Proxy(rig.port.url) as proxy:
        for op, messages, args in CALLS:
            if (op == "extend" and not rig.has("extend")) or (op == "nack" and not rig.has("atomic-nack")):
                continue
            for k in range(1, MOST_COMMANDS + 1):
                if not _try(rig, proxy, trouble, happening, k, (op, messages, args)):
                    break  # it has no k-th command
    rig.port.using = rig.port.url


def _try(
    rig: Rig,
    proxy: Proxy,
    trouble: Trouble,
    happening: Callable[[], Happening],
    k: int,
    call: tuple[str, int, dict[str, Value]],
) -> bool:
    """One call, to whose k-th command that happens; False if it has none."""
    op, messages, args = call
    rig.reset()
    rig.port.open(PREFIX, proxy.url)
    _prepare(rig, op, messages)
    rig.prepared = rig.state()
    proxy.plan(k, happening(), trouble.counts)
    reply = rig.by_port(op, **args)
    rig.expect(proxy.came > 0, f"{op} sent no command to the server at the URL that open named")
    if proxy.forget():
        return False
    where = f"{op}: its command {k}, {proxy.names[k - 1].decode('latin-1')}, {trouble.what}"
    rig.said(where)
    _judge(rig, trouble, where, reply)
    for number in (1, 2):  # two: one could be given the late reply of the call before, and look right
        again = rig.by_port("publish", group=b"z", payload=b"after")
        right = rig.port.agrees(rig.operations[-1], Ok(number), again)
        rig.expect(right, f"{where}; the next calls on the same client fail, call {number}: {write_reply(again)}")
    stored = rig.state().messages(b"z")
    rig.expect(stored == (b"after",) * 2, f"{where}; two messages were published after it, and stored: {stored}")
    return True


def _prepare(rig: Rig, op: str, messages: int) -> None:
    for number in range(messages):
        rig.by_others("publish", group=b"g", payload=b"%d" % (number + 1), priority=2)
    if op == "claim":
        rig.by_others("publish", group=b"h", payload=b"1", priority=2)
    elif op != "publish":
        claimed = rig.by_port("claim", token=b"A", visibility_ms=1_000)
        rig.expect(claimed == Ok(Delivery(b"g", b"1")), "the port does not claim a free group")


def _judge(rig: Rig, trouble: Trouble, where: str, reply: Reply) -> None:
    """Whether so many calls of the script explain what there is, and the reply."""
    operation, after = rig.operations[-1], _masked(rig.state())
    possible: list[tuple[int, State, Reply]] = [(0, rig.prepared, Error(""))]
    for count in range(1, trouble.most + 1):
        state, answer = step(possible[-1][1], operation)
        possible.append((count, state, answer))
    fits = [(count, answer) for count, state, answer in possible if _masked(state) == after]
    if not fits:
        rows = difference(_masked(possible[max(0, trouble.if_told)][1]), after)
        rig.fail(f"{where}; it leaves what no number of calls of its script would: {'; '.join(rows)}")
    if isinstance(reply, Error):
        told = f"{where}; the caller is told {write_reply(reply)}"
        rig.expect(trouble.if_told >= 0, f"{told}, and need not be told anything")
        rig.expect(reply.code != "REDISQ_BADARG", f"{told}: that its arguments are wrong")
        least = min(count for count, _ in fits)
        rig.expect(least <= trouble.if_told, f"{told}, and by what is left it was done {least} times")
        return
    said = any(count and rig.port.agrees(operation, answer, reply) for count, answer in fits)
    most = max(count for count, _ in fits)
    done = f"by what is left it was done {most} times" if most else "nothing was done"
    rig.expect(said, f"{where}; it answers {write_reply(reply)}, and {done}")


def _masked(state: State) -> State:
    """With the name of no token: of a claim whose reply was lost nobody knows it."""
    locks = {
        group: replace(lock, value=lock.value if lock.value == PARKED else b"a token")
        for group, lock in state.expired().locks.items()
    }
    return replace(state, locks=locks)
