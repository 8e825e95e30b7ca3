"""What a port is asked: by the level of the run, what the port says it can do, and what its API can be told.

Not asked is not passed: each case that is left out has a reason, which the report shows.
"""

from __future__ import annotations

from dataclasses import replace

from model.operation import FOREIGN, Operation
from model.state import PARKED, State
from tests.support.cases import Case, Check
from tests.support.port.messages import LARGEST, Hello

# Where a port without the server's clock is asked for it all the same: these are what it lacks.
OF_THE_SERVERS_CLOCK = ("server-clock", "window-repair")
WIDE = 99  # a window that hides nothing behind what is due and still locked
STEP = ("now_ms", "score_ms")


def needs(case: Case) -> list[str]:
    """The capabilities without which a case cannot be kept: its own, and those of the arguments in it."""
    needed = [case.capability] if case.capability else []
    if any(operation.op == "extend" for operation in case.operations):
        needed.append("extend")
    if any(operation.op == "publish" and _by_arrival(operation) for operation in case.operations):
        needed.append("arrival-order")
    return needed


def why_not(case: Case | Check, hello: Hello, level: str) -> str | None:
    """Why a case is not asked of a port at this level; None if it is."""
    missing = [name for name in _needed(case) if name not in hello.capabilities]
    if level == "core" and case.level == "full" and (missing or not _needed(case)):
        return f"not asked at level core: the port does not declare {' and '.join(missing) or 'it'}"
    if isinstance(case, Check):
        return "needs a server of the runner's" if hello.keeps_keys else None
    if not hello.takes_now_ms and any(_of_own_clock(operation) for operation in case.operations):
        return "the port's caller cannot supply now"
    return None


def _needed(case: Case | Check) -> list[str]:
    return needs(case) if isinstance(case, Case) else [case.capability] if case.capability else []


def as_asked(case: Case, hello: Hello, level: str) -> list[Operation]:
    """The trace as this port is asked it: with the server's time as ``now_ms`` where the port takes it from outside."""
    lacks = level == "full" and case.capability in OF_THE_SERVERS_CLOCK
    if "server-clock" in hello.capabilities or lacks:
        return case.operations
    return [with_now(operation) for operation in case.operations]


def in_machine(operation: Operation, state: State, hello: Hello, level: str) -> Operation | None:
    """A random operation as this port can be asked it, or None: at level core what the original design does, too."""
    own_clock = _of_own_clock(operation)
    if own_clock and not hello.takes_now_ms:
        operation = replace(operation, args={n: v for n, v in operation.args.items() if n not in STEP})
    if level == "core":
        return _core(operation, state)
    if "server-clock" not in hello.capabilities:
        operation = with_now(operation)
    for capability, lacks in (
        ("extend", operation.op == "extend"),
        ("arrival-order", operation.op == "publish" and _by_arrival(operation)),
    ):
        if lacks and capability not in hello.capabilities:
            return None
    args = {n: 10**15 if isinstance(v, int) and v > LARGEST else v for n, v in operation.args.items()}
    return replace(operation, args=args)


def _core(operation: Operation, state: State) -> Operation | None:
    if operation.op in FOREIGN or operation.op == "extend" or operation.argv is not None:
        return None
    operation = with_now(operation, always=True)
    args = dict(operation.args)
    if operation.op == "publish":
        args["score_ms"] = 0
    if operation.op == "claim":
        args["candidates"] = WIDE
    for name in ("priority", "min_priority"):
        value = args.get(name, 0)
        if isinstance(value, int) and not 0 <= value <= 4:
            args[name] = 4 if value > 4 else 0
    group = args.get("group")
    lock = state.at(operation.time_ms).lock(group) if isinstance(group, bytes) else None
    if operation.op in ("ack", "nack") and lock is not None and lock.value == PARKED:
        return None
    return replace(operation, args=args)


def with_now(operation: Operation, *, always: bool = False) -> Operation:
    """The operation with the server's time as ``now_ms``, where it takes one and has none, or ``always``."""
    if not operation.is_script or operation.argv is not None or operation.op == "publish":
        return operation
    if operation["now_ms"] is not None and not always:
        return operation
    return replace(operation, args={**operation.args, "now_ms": operation.time_ms})


def _by_arrival(operation: Operation) -> bool:
    return operation.argv is None and operation["score_ms"] != 0


def _of_own_clock(operation: Operation) -> bool:
    if not operation.is_script or operation.argv is not None:
        return False
    return any(isinstance(operation.args.get(name), int) and operation.args[name] != 0 for name in STEP)
