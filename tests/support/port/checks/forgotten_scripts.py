"""FAIL-8a: a server that has forgotten the scripts is sent them again."""

from __future__ import annotations

from model.notation import write_reply
from model.operation import Delivery, Ok, Value
from tests.support.port.checks.rig import Rig

LIFE: tuple[tuple[str, dict[str, Value]], ...] = (
    ("publish", {"group": b"g", "payload": b"m"}),
    ("claim", {"token": b"A"}),
    ("nack", {"group": b"g", "token": b"A"}),
    ("claim", {"token": b"B"}),
    ("extend", {"group": b"g", "token": b"B"}),
    ("ack", {"group": b"g", "token": b"B"}),
)


def check_forgotten_scripts(rig: Rig) -> None:
    """The life of a message, so that the port has loaded its scripts; then another, flushed before each operation."""
    rig.reset()
    for flushed, when in ((False, ""), (True, ", asked of a server that has forgotten the scripts")):
        for op, args in LIFE:
            if op == "extend" and not rig.has("extend"):
                continue
            if flushed:
                rig.admin.script_flush()
                rig.said("the server's scripts are flushed")
            reply = rig.by_port(op, **args)
            done = reply == Ok(Delivery(b"g", b"m")) if op == "claim" else isinstance(reply, Ok) and reply != Ok(0)
            rig.expect(done, f"{op} answers {write_reply(reply)}{when}")
    rig.expect_empty("two messages")
