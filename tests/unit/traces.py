"""Short traces of the model, in the readable notation."""

from __future__ import annotations

from model.notation import read_trace, write_reply
from model.run import World
from model.state import State


def after(text: str) -> State:
    """Runs the lines on an empty model, asserts each reply that stands there, and returns the state of the prefix."""
    world = World()
    for operation, written in read_trace(text.splitlines()):
        world, reply = world.step(operation)
        assert written is None or write_reply(reply) == written, (operation, reply)
    return world.state(b"redisq")
