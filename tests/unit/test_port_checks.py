"""The checks of ports that need no server: their registry, and the verdict on a history of several workers."""

from __future__ import annotations

import pytest

from tests.support.cases import CHECKS as OF_THE_SPEC
from tests.support.port.checks import CHECKS, IN_REAL_TIME
from tests.support.port.checks.together import JUDGES, MESSAGES, History, Lease


def test_every_check_of_the_spec_is_done() -> None:
    """Each id has a function, and each function an id."""
    assert CHECKS.keys() == {check.id for check in OF_THE_SPEC}
    assert CHECKS.keys() >= IN_REAL_TIME


def lease(number: int, since: float, until: float, fate: str = "ack", *, worker: int = 0, acked: bool = True) -> Lease:
    """A lease on a message of group g."""
    return Lease(worker, b"g", b"%d" % number, since, until, fate, acked=acked)


DONE = [lease(number, number, number + 0.5) for number in range(MESSAGES)]


@pytest.mark.parametrize(
    ("leases", "says"),
    [
        (DONE, ""),
        ([*DONE[:5], lease(5, 5, 5.1, "nack", acked=False), lease(5, 5.2, 5.3, worker=1), *DONE[6:]], ""),
        ([*DONE[:5], lease(5, 5, 6, "late ack", acked=False), lease(5, 6.1, 6.2), lease(6, 6.3, 6.4), *DONE[7:]], ""),
        ([*DONE[:5], lease(5, 4.4, 5.1, worker=1), *DONE[6:]], "the workers 0 and 1 held it at once"),
        ([*DONE[:5], lease(5, 5, 5.1, "late ack"), *DONE[6:]], 'worker 0 acked "5" when its lease had ended'),
        ([*DONE[:6], lease(5, 6, 6.1), *DONE[7:]], 'the message "5" was acked twice'),
        ([*DONE[:5], lease(6, 5, 5.1), lease(5, 6, 6.1), *DONE[7:]], 'the message "6" was acked before "5"'),
        (DONE[:-2], f'2 messages were never acked, the first is "{MESSAGES - 2}"'),
        ([], f'{MESSAGES} messages were never acked, the first is "0"'),
    ],
)
def test_a_history_is_judged(leases: list[Lease], says: str) -> None:
    """Exclusive, in order, nothing lost and nothing done twice; what is not is said, with the leases around it."""
    history = History(leases=list(reversed(leases)))
    found = [verdict for judge in JUDGES if (verdict := judge(history.of(b"g")))[0]]
    assert [what for what, _ in found][:1] == ([says] if says else [])
    assert all(shown for _, shown in found) or not leases
