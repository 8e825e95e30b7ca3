"""Short traces of the model, in the readable notation."""

from __future__ import annotations

from model.notation import read_trace, write_reply
from model.run import World
from model.state import State


def after(text: str) -> State:
    """Runs the lines on an empty model, asserts the reply of each script, and returns the state of the prefix."""
    world = World()
    for operation, written in read_trace(text.splitlines()):
        world, reply = world.step(operation)
        assert written == (write_reply(reply) if operation.is_script else None), (operation, reply)
    return world.state(b"redisq")
