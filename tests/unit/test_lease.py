"""What a claim hands out."""

import copy
import json
import pickle
import time
from dataclasses import FrozenInstanceError, fields

import pytest

from redisq import Lease

LEASE = Lease("g", b'{"a": [1]}', "token", 30.0, 100.0)


def test_a_lease_cannot_be_changed() -> None:
    """It is frozen and has slots, so nothing can be set on it."""
    with pytest.raises(FrozenInstanceError):
        LEASE.token = "other"  # type: ignore[misc]
    assert not hasattr(LEASE, "__dict__")
    assert [field.name for field in fields(LEASE)] == ["group", "payload", "token", "visibility", "deadline"]


def test_a_lease_is_a_value() -> None:
    """It can be compared, hashed, copied and pickled."""
    assert pickle.loads(pickle.dumps(LEASE)) == copy.copy(LEASE) == LEASE
    assert len({LEASE, copy.deepcopy(LEASE)}) == 1


@pytest.mark.parametrize(("now", "expired"), [(99.999, False), (100.0, True), (100.1, True)])
def test_a_lease_expires_at_its_deadline(monkeypatch: pytest.MonkeyPatch, now: float, expired: bool) -> None:
    """From the deadline on, by the monotonic clock, it counts as expired."""
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert LEASE.expired is expired


def test_payload_as_text_and_json() -> None:
    """The payload is read as UTF-8, any bytes as text, and as JSON if it is JSON."""
    assert LEASE.text == '{"a": [1]}'
    assert LEASE.json() == {"a": [1]}
    assert Lease("g", b"\xff", "t", 1.0, 1.0).text == "\udcff"
    for payload, error in ((b"", json.JSONDecodeError), (b"{", json.JSONDecodeError), (b"\xff", UnicodeDecodeError)):
        assert issubclass(error, ValueError)
        with pytest.raises(error):
            Lease("g", payload, "t", 1.0, 1.0).json()
