"""E1-2, CLAIM-7d, PUBLISH-1c: an operation of several round trips is held up before each, while another worker works.

An operation that is one script is held up before that, and has then neither seen nor written anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from model.invariants import of_state
from model.operation import PREFIX, Delivery, Ok, Reply, Value
from model.state import State
from tests.support.port.checks.rig import Rig
from tests.support.proxy import Proxy

LEASE_MS = 100
MOST_COMMANDS = 12  # of one operation
LEASE: dict[str, Value] = {"group": b"g", "token": b"A"}
SETTLEMENTS: tuple[tuple[str, dict[str, Value]], ...] = (
    ("nack", {**LEASE, "delay_ms": 0}),
    ("nack", {**LEASE, "delay_ms": 5_000}),
    ("ack", LEASE),
    ("extend", {**LEASE, "visibility_ms": 1_000}),
)
CLAIM: dict[str, Value] = {"token": b"A", "visibility_ms": LEASE_MS}
PUBLISH: dict[str, Value] = {"group": b"g", "payload": b"new", "priority": 1}
NIL = Ok(None)


@dataclass
class Held:
    """What there was to see while an operation was held up before its command ``k``, and its reply in the end."""

    where: str
    untouched: bool  # nothing had been written by then
    taken: Reply  # to the other worker
    then: State  # after what the other worker did
    reply: Reply


def check_settlements(rig: Rig) -> None:
    """While a settlement is held up its lease ends, and another worker claims the group, or is even done with it."""
    for op, args in SETTLEMENTS:
        for messages in (2, 1):
            if op == "extend" and not rig.has("extend"):
                continue
            for held in _at_each_command(rig, op, args, partial(_leased, rig, messages), partial(_next, rig)):
                if held.taken == NIL:
                    continue  # it was settled by then, or parked
                _unchanged(rig, held)
                zero = rig.port.agrees(rig.operations[-1], Ok(0), held.reply) or not held.untouched
                rig.expect(zero, f"{held.where}; the lease was over by then, and the reply is not 0")


def check_claims(rig: Rig) -> None:
    """While a claim is held up another worker claims the group that it was about to take, or is even done with it."""
    for messages in (2, 1):
        for held in _at_each_command(rig, "claim", CLAIM, partial(_waiting, rig, messages), partial(_next, rig)):
            if held.taken == NIL:
                got = held.reply == Ok(Delivery(b"g", b"1"))
                rig.expect(got, f"{held.where}; nobody else could get the group by then, and the port did not either")
            else:
                rig.expect(held.reply == NIL, f"{held.where}; another worker was given the group, and the port as well")
                _unchanged(rig, held)


def check_publishes(rig: Rig) -> None:
    """While a publish is held up its group comes into being, is claimed, or is drained."""
    other = partial(rig.by_others, "publish", group=b"g", payload=b"other", priority=4)
    for prepare, meanwhile in (
        (partial(_waiting, rig, 0), other),
        (partial(_waiting, rig, 2), partial(_next, rig)),
        (partial(_waiting, rig, 1), partial(_next, rig)),
    ):
        for held in _at_each_command(rig, "publish", PUBLISH, prepare, meanwhile):
            _stored(rig, held)


def _at_each_command(
    rig: Rig, op: str, args: dict[str, Value], prepare: Callable[[], None], meanwhile: Callable[[], Reply]
) -> Iterator[Held]:
    """One try for each command that the operation sends: it is held up before that, and then goes on to its end."""
    with Proxy(rig.port.url) as proxy:
        for k in range(1, MOST_COMMANDS + 1):
            rig.reset()
            rig.port.open(PREFIX, proxy.url)
            prepare()
            found: list[Held] = []
            proxy.before(k, partial(_hold, rig, f"{op} was held up before its command {k}", meanwhile, found))
            reply = rig.by_port(op, **args)
            proxy.forget()
            if proxy.failed is not None:
                raise proxy.failed
            rig.expect(proxy.commands > 0, f"{op} sent no command to the server at the URL that open named")
            for held in found:
                held.reply = reply
                yield held
            if not found:
                break  # it has no k-th command
    rig.port.using = rig.port.url


def _hold(rig: Rig, where: str, meanwhile: Callable[[], Reply], found: list[Held]) -> None:
    rig.said(where)
    before = rig.state()
    if before.locks:
        rig.wait(LEASE_MS + 1)
    taken = meanwhile()
    found.append(Held(where, before == rig.prepared, taken, rig.state(), NIL))


def _waiting(rig: Rig, messages: int) -> None:
    for number in range(messages):
        rig.by_others("publish", group=b"g", payload=b"%d" % (number + 1), priority=2)
    rig.prepared = rig.state()


def _leased(rig: Rig, messages: int) -> None:
    _waiting(rig, messages)
    claimed = rig.by_port("claim", token=b"A", visibility_ms=LEASE_MS)
    rig.expect(claimed == Ok(Delivery(b"g", b"1")), "the port does not claim a free group")
    rig.prepared = rig.state()


def _next(rig: Rig) -> Reply:
    """Another worker claims the group, and is done with it if that was its last message."""
    taken = rig.by_others("claim", token=b"B")
    if taken != NIL and len(rig.state().messages(b"g") or ()) == 1:
        rig.by_others("ack", group=b"g", token=b"B")
    return taken


def _unchanged(rig: Rig, held: Held) -> None:
    rows = rig.port.difference(held.then, rig.state())
    what = f"{held.where}; another worker was given the group by then, and what came late changed its keys"
    rig.expect(not rows, f"{what}: {'; '.join(rows)}")


def _stored(rig: Rig, held: Held) -> None:
    """The message is stored once, where a claim finds it, and no lease has moved."""
    rig.expect(isinstance(held.reply, Ok), f"{held.where}; it failed though nothing was wrong")
    after = rig.state()
    expected = sorted({*(held.then.messages(b"g") or ()), b"new"})
    has = list(after.messages(b"g") or ())
    rig.expect(sorted(has) == expected, f"{held.where}; the group should hold {expected}, and holds {has}")
    broken = "; ".join(of_state(after))
    rig.expect(not broken, f"{held.where}; what it left is no queue: {broken}")
    lease = [(state.lock(b"g"), [tier.get(b"g") for tier in state.ready]) for state in (held.then, after)]
    moved = bool(held.then.locks) and lease[0] != lease[1]
    rig.expect(not moved, f"{held.where}; it moved the lease of another worker")
    rig.expect_all_delivered(held.where)
