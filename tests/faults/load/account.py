"""Whether every promise was kept: what the journals of a load and what is left in the server say together.

Only what is certain counts. A call whose outcome is unknown may have been done or not, at any time after it was made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.faults.load.journal import NEVER, Call

Message = tuple[str, str]
"""Group and text; every text is published once."""
MAY_SHOW = {"lost", "delivered again after its ack", "out of order"}
"""What the loss of a server's last writes looks like from outside; never two at once, nor keys left behind."""


@dataclass
class Account:
    """What came of a load; each list is what is wrong, in words, and empty as it should be."""

    calls: Sequence[Call]
    left: Sequence[str] = ()
    """Keys that remained once nothing more was delivered."""
    repeats: bool = False
    """Whether the clients repeat calls: then a message may be stored twice, and delivered again after its ack."""
    lost: list[str] = field(default_factory=list)
    """Stored, for publish was answered, and gone without an ack."""
    again: list[str] = field(default_factory=list)
    """Delivered, or acked, after an ack of it was accepted."""
    order: list[str] = field(default_factory=list)
    """Delivered before one that was published to its group before it was settled."""
    shared: list[str] = field(default_factory=list)
    """A settlement was accepted though the group had been given to another meanwhile, or the lease was settled."""
    invented: list[str] = field(default_factory=list)
    """Delivered, though it was never published or the server refused it."""
    duplicates: Counter[str] = field(default_factory=Counter)
    """Deliveries of a message after its first, by their cause."""

    def __post_init__(self) -> None:
        self._published = {(call.group, call.text): call for call in self.calls if call.op == "publish"}
        self._leases = [call for call in self.calls if call.op == "claim" and call.token]
        self._settled: dict[str, list[Call]] = defaultdict(list)
        self._acks: dict[Message, list[Call]] = defaultdict(list)
        for call in self.calls:
            if call.op in ("ack", "nack", "extend"):
                self._settled[call.token].append(call)
            if call.op == "ack" and call.outcome in ("done", "unknown"):
                self._acks[call.group, call.text].append(call)
        self._judge_messages()
        self._judge_order()
        self._judge_leases()
        self._count_duplicates()

    @property
    def wrong(self) -> dict[str, list[str]]:
        """All that is wrong, by its kind."""
        kinds = {
            "lost": self.lost,
            "delivered again after its ack": self.again,
            "out of order": self.order,
            "two at once": self.shared,
            "never published": self.invented,
            "left behind": [f"key {key}" for key in self.left],
        }
        return {kind: what for kind, what in kinds.items() if what}

    def outcomes(self) -> Counter[str]:
        """How many calls were done, refused and so on."""
        return Counter(call.outcome for call in self.calls)

    def _judge_messages(self) -> None:
        for (group, text), published in self._published.items():
            if published.outcome == "done" and not self._acks[group, text]:
                self.lost.append(f"{text} of {group}: stored, never acked, and not there")
        for lease in self._leases:
            published_as = self._published.get((lease.group, lease.text))
            if published_as is None or published_as.outcome == "refused":
                why = "it was never published" if published_as is None else f"publish raised {published_as.error}"
                self.invented.append(f"{lease.text} of {lease.group} was delivered to {lease.worker}: {why}")

    def _judge_order(self) -> None:
        """By group: whoever comes must find each of those before it acked, or perhaps acked; and not itself."""
        deliveries: dict[Message, list[Call]] = defaultdict(list)
        for lease in self._leases:
            deliveries[lease.group, lease.text].append(lease)
        before: dict[str, tuple[int, str]] = defaultdict(lambda: (-1, ""))
        for (group, text), published in self._published.items():
            acks = self._acks[group, text]
            sure = min((ack.done for ack in acks if ack.outcome == "done"), default=NEVER)
            for lease in deliveries[group, text]:
                after, other = before[group]
                if after > lease.done:
                    self.order.append(f"{text} of {group} was delivered to {lease.worker} before {other} was acked")
                if lease.asked > sure and not self.repeats:
                    self.again.append(f"{text} of {group} was delivered to {lease.worker} after its ack")
            if published.outcome == "done" and acks:  # an unknown one may come to lie anywhere behind
                first = min(ack.asked for ack in acks)
                before[group] = max(before[group], (first, text))

    def _judge_leases(self) -> None:
        """A lease that was settled, or followed by another of its group, settles nothing any more."""
        by_group: dict[str, list[Call]] = defaultdict(list)
        for lease in self._leases:
            by_group[lease.group].append(lease)
        for leases in by_group.values():
            leases.sort(key=lambda lease: lease.done)
            for index, lease in enumerate(leases):
                later = (leases[at].done for at in range(index + 1, len(leases)) if leases[at].asked > lease.done)
                self._judge_lease(lease, next(later, NEVER))

    def _judge_lease(self, lease: Call, successor: int) -> None:
        ended = NEVER
        for call in self._settled[lease.token]:
            if call.outcome != "done":
                continue
            what = f"{call.op} of {lease.text} of {lease.group} by {lease.worker} was accepted"
            if call.asked > ended:
                self.shared.append(f"{what} after the lease was settled")
            elif call.asked > successor:
                self.shared.append(f"{what} after the group was given to another")
            if call.op != "extend":
                ended = min(ended, call.done)

    def _count_duplicates(self) -> None:
        last: dict[Message, Call] = {}
        for lease in sorted(self._leases, key=lambda lease: lease.done):
            message = lease.group, lease.text
            if message in last and (cause := self._cause(last[message])):
                self.duplicates[cause] += 1
            last[message] = lease

    def _cause(self, lease: Call) -> str:
        """Why the message of this lease was delivered again; empty if its worker gave it back."""
        ends = [call for call in self._settled[lease.token] if call.op != "extend"]
        if any(call.outcome == "done" and call.op == "nack" for call in ends):
            return ""
        if any(call.outcome == "done" for call in ends):
            return "stored twice, or its ack was undone"
        if not ends or any(call.done == NEVER for call in ends):
            return "its worker was killed"
        if any(call.outcome == "unknown" for call in ends):
            return "its settlement was cut off"
        refused = any(call.outcome == "refused" for call in ends)
        return "its settlement was refused" if refused else "its lease had ended"


def told(wrong: dict[str, list[str]], most: int = 5) -> str:
    """What is wrong, for a person: the first few of each kind."""
    return "\n".join(_lines(wrong, most)) or "nothing is wrong"


def _lines(wrong: dict[str, list[str]], most: int) -> Iterator[str]:
    for kind, what in wrong.items():
        yield f"{kind}: {len(what)}"
        yield from (f"  {each}" for each in what[:most])
