"""E1-2: a settlement that is held up between its round trips must not touch the lease of the next worker."""

from __future__ import annotations

from model.operation import PREFIX, Delivery, Ok, Value
from model.state import State
from tests.support.port.checks.rig import Rig
from tests.support.port.witness import Port
from tests.support.proxy import Proxy

LEASE_MS = 100
MOST_COMMANDS = 12  # of one operation
SETTLEMENTS: tuple[tuple[str, dict[str, Value]], ...] = (
    ("nack", {"delay_ms": 0}),
    ("nack", {"delay_ms": 5_000}),
    ("ack", {}),
    ("extend", {"visibility_ms": 1_000}),
)


def check_interleaved(port: Port) -> None:
    """Holds up each command of each settlement while the lease ends and another worker claims the group."""
    rig = Rig(port)
    rig.reset()
    with Proxy(port.url) as proxy:
        port.open(PREFIX, proxy.url)
        try:
            for op, args in SETTLEMENTS:
                if op == "extend" and "extend" not in port.adapter.hello.capabilities:
                    continue
                for k in range(1, MOST_COMMANDS + 1):
                    if not _held_up(rig, proxy, op, args, k):
                        break
        finally:
            port.using = port.url


def _held_up(rig: Rig, proxy: Proxy, op: str, args: dict[str, Value], k: int) -> bool:
    """One try: the k-th command is held up. False if the operation has no k-th command."""
    rig.reset()
    for payload in (b"1", b"2"):
        rig.by_others("publish", group=b"g", payload=payload)
    claimed = rig.by_port("claim", token=b"A", visibility_ms=LEASE_MS)
    rig.expect(claimed == Ok(Delivery(b"g", b"1")), "the port does not claim a free group")
    then: list[State] = []

    def lease_ends() -> None:
        rig.said(f"{op} of the port is held up before its command {k}, and the lease ends")
        rig.wait(LEASE_MS + 1)
        taken = rig.by_others("claim", token=b"B")
        if isinstance(taken, Ok) and taken.value is not None:
            then.append(rig.state())

    proxy.before(k, lease_ends)
    rig.by_port(op, group=b"g", token=b"A", **args)
    proxy.forget()
    if proxy.failed is not None:
        raise proxy.failed
    rig.expect(proxy.commands > 0, f"{op} sent no command to the server at the URL that open named")
    if proxy.commands < k:
        return False
    if then:
        rows = rig.port.difference(then[0], rig.state())
        what = f"{op} was held up before its command {k}: another worker holds the group by then, and what came late"
        rig.expect(not rows, f"{what} changed its keys: {'; '.join(rows)}")
    return True
