"""Lease: what a claim hands out."""

import json
import time
from dataclasses import dataclass
from typing import Any

from redisq.keys import decode


@dataclass(frozen=True, slots=True)
class Lease:
    """One message in the hands of one worker, and the right to settle it until the lease ends.

    While a lease lives, no other claim returns its group. When it ends unsettled, the message is delivered again.
    """

    group: str
    """The group, as UTF-8 with surrogateescape: a group published as any `bytes` comes back as them."""
    payload: bytes
    """The message as it was published; may be empty."""
    token: str
    """What proves the holder to the server; unique per claim. It begins with the worker's id if one was given."""
    visibility: float
    """How long the lease was taken for, in seconds."""
    deadline: float
    """The instant it ends by `time.monotonic()` of this process, in seconds.

    Taken before the call was sent, so the server never ends the lease earlier. It means nothing in another process.
    """

    @property
    def expired(self) -> bool:
        """Whether the deadline is over by this process's clock. The server alone decides if a settlement counts."""
        return time.monotonic() >= self.deadline

    @property
    def text(self) -> str:
        """The payload as `str`: UTF-8 with surrogateescape, as `publish` encodes a `str`. Never raises."""
        return decode(self.payload)

    def json(self) -> Any:
        """The payload parsed as JSON. Raises `ValueError` if it is none."""
        return json.loads(self.payload)
