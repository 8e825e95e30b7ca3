"""A step in the notation of the spec: a call of a known script as it is, any other by what it did to a group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from model.notation import quoted, write, write_operation
from model.operation import Delivery, Ok, Operation, Reply, Value
from model.state import PARKED, State
from tests.support.replay.units import Unit

LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class Told:
    """A step and what it did to a group, to be written when it is asked for."""

    unit: Unit
    call: Operation | None
    """The call of a known script."""
    reply: Reply | None
    group: bytes
    before: State
    after: State
    as_it_is: bool
    """Whether the commands are to be told, and not what they may have been meant to be."""

    def lines(self) -> Iterator[str]:
        """The lines of a trace; what is none of the queue's operations stands as a comment."""
        unit = self.unit
        if self.call is not None and self.reply is not None:
            yield write(self.call, self.reply)
        elif self.call is not None:
            yield f"{write_operation(self.call)}  # not as the model has it"
        elif (
            unit.is_script and not self.as_it_is and (guess := _guess(self.group, self.before, self.after)) is not None
        ):
            op, args, answer = guess
            args = args if op == "claim" else {"group": self.group, **args}
            yield write(Operation(op, unit.first.at_us // 1000, args), answer)
        else:
            for entry in unit.commands:
                words = " ".join(quoted(word[:LONGEST_WORD]) for word in entry.words)
                yield f"# {entry.at_us // 1000} {unit.first.source} {words}"


def _guess(group: bytes, before: State, after: State) -> tuple[str, dict[str, Value], Reply] | None:
    """The operation that a script of a port was, from what it did."""
    old, new = before.messages(group) or (), after.messages(group) or ()
    was, lock = before.locks.get(group), after.locks.get(group)
    if len(new) == len(old) + 1 and was == lock:
        return "publish", {"payload": new[-1]}, Ok(len(new))
    if lock is not None and lock.value != PARKED and (was is None or lock.value != was.value) and old == new and new:
        return "claim", {"token": lock.value}, Ok(Delivery(group, new[0]))
    if was is None or was.value is None:
        return None
    if lock is None and len(new) == len(old) - 1:
        return "ack", {"token": was.value}, Ok(1)
    if new == old and (lock is None or lock.value == PARKED):
        return "nack", {"token": was.value}, Ok(1)
    if new == old and lock is not None and lock != was and lock.value == was.value:
        return "extend", {"token": was.value}, Ok(1)
    return None
