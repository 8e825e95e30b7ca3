"""What ack, nack and extend have in common: the fence, and the tier of a group whose field may be lost."""

from __future__ import annotations

from model.operation import WRONGTYPE, Ok, Reply
from model.state import State


def fence(state: State, group: bytes, token: bytes) -> Reply | None:
    """None when the token holds the group's lease; else the reply that ends the operation."""
    lock = state.lock(group)
    if lock is None:
        return Ok(0)
    if lock.value is None:
        return WRONGTYPE
    return None if lock.value == token else Ok(0)


def tier_of(state: State, group: bytes) -> int:
    """The tier in the ``prio`` field; if that is not valid the lowest tier that knows the group; if none, 0."""
    tier = state.tier_of(group)
    if tier is None:
        tier = state.tier_that_knows(group)
    return 0 if tier is None else tier
