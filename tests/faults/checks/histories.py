"""Random histories of many workers, which end anywhere: for checks of what must hold after any of them."""

from __future__ import annotations

from collections import defaultdict
from random import Random

from tests.faults.rig import Rig

GROUPS = (b"a", b"b:c", b"\x00", b"{d}", b"\xff\r\n", b"*", b"lock:x", b"q")
WORDS = ("publish", "publish", "claim", "claim", "ack", "ack", "nack", "park", "extend", "wait", "publish")


class History:
    """Does random operations, and knows what was published and not acked."""

    def __init__(self, rig: Rig, seed: int) -> None:
        """The same seed does the same."""
        self.rig = rig
        self.random = Random(seed)
        self.stored: dict[bytes, list[bytes]] = defaultdict(list)
        self.leases: list[tuple[bytes, bytes]] = []
        """Every lease ever taken, the lost ones too: group and token."""
        self._claims = 0
        self._payloads = 0

    def step(self, groups: tuple[bytes, ...] = GROUPS) -> str:
        """One operation; its name."""
        word = self.random.choice(WORDS)
        pick = self.random.choice
        if word == "publish":
            group, self._payloads = pick(groups), self._payloads + 1
            payload = b"%d" % self._payloads
            self.rig.publish(group, payload, priority=self.random.randrange(5))
            self.stored[group].append(payload)
        elif word == "claim":
            self.claim()
        elif word == "wait":
            self.rig.wait(pick((1, 50, 400)))
        elif self.leases and not (word == "extend" and self.rig.old):
            self.settle(word, *pick(self.leases[-4:]))
        return word

    def claim(self) -> None:
        """A claim by a worker of its own; FIFO is checked."""
        self._claims += 1
        token = b"worker%d" % self._claims
        visibility_ms = self.random.choice((100, 500))
        min_priority = self.random.choice((0, 0, 3))
        got = self.rig.claim(token, visibility_ms=visibility_ms, min_priority=min_priority)
        if got is not None:
            group, payload = got
            self.rig.expect(self.stored[group][:1] == [payload], f"{group!r} does not deliver its oldest message")
            self.leases.append((group, token))

    def settle(self, word: str, group: bytes, token: bytes) -> None:
        """A settlement, perhaps of a lease that ended."""
        if word == "ack" and self.rig.ack(group, token):
            self.stored[group].pop(0)
        elif word == "extend":
            self.rig.extend(group, token, visibility_ms=500)
        elif word in ("nack", "park"):
            self.rig.nack(group, token, delay_ms=300 if word == "park" else 0)

    def expect_all_delivered(self) -> None:
        """A fresh worker gets everything that is left, in order and once; then no key is left."""
        left = {group: list(messages) for group, messages in self.stored.items()}
        for group, payload in self.rig.drain():
            self.rig.expect(left[group][:1] == [payload], f"{group!r} delivers {payload!r}, left were {left[group]}")
            left[group].pop(0)
        wedged = {group: messages for group, messages in left.items() if messages}
        self.rig.expect(not wedged, f"wedged groups, never delivered again: {wedged}")
        self.rig.expect_empty()
