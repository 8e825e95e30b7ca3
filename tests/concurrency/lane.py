"""A lane: the way of one sequential client to the server, on which connections are lost and its process is killed.

What happens to which command is planned beforehand, by its number; so a run with the same seed injects the same.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from tests.support.proxy import SETUP, Happening, Link, Proxy, lost, unanswered

FAULTS = ("cut-before", "cut-after", "kill")
"""The connection is lost before the server sees the command; after it has run; the process gets SIGKILL when the
command has been sent."""


class Lane(Proxy):
    """A proxy of one client's own. ``plan`` holds what happens to which command, counted from 1."""

    def __init__(self, name: str, url: str, plan: Mapping[int, str]) -> None:
        """Listens at once."""
        self.name = name
        self.faults = plan
        self.pid = 0
        """The process to be killed."""
        self.injected: list[tuple[int, str]] = []
        """What has happened."""
        super().__init__(url)
        self._counts = lambda name: name not in SETUP

    def _planned(self) -> Happening | None:
        fault = self.faults.get(self.commands)
        if fault is None:
            return None
        self.injected.append((self.commands, fault))
        return {"cut-before": lost, "cut-after": unanswered, "kill": self._kill}[fault]

    def _kill(self, link: Link) -> bool:
        os.kill(self.pid, signal.SIGKILL)
        return True  # the command was sent, and nobody waits for its reply
