"""The executable model of the queue: pure functions on an immutable state, with virtual time.

One module per script (``model/claim.py`` beside ``redisq/lua/claim.lua``), each a function from a state and the
script's ARGV to the next state and the reply. It imports neither ``redis`` nor ``redisq``.
``python -m model`` is the oracle: operations in as JSON lines, replies and states out.
"""

from model.ack import ack
from model.claim import claim
from model.extend import extend
from model.nack import nack
from model.operation import Error, Fault, Ok, Operation, Reply, Unsupported
from model.publish import publish
from model.state import Lock, State

__all__ = [
    "Error",
    "Fault",
    "Lock",
    "Ok",
    "Operation",
    "Reply",
    "State",
    "Unsupported",
    "ack",
    "claim",
    "extend",
    "nack",
    "publish",
]
