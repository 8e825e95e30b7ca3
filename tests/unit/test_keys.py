"""The key space."""

from itertools import product
from pathlib import Path

import pytest

import redisq
from redisq import InvalidArgument, arguments
from redisq.keys import FAMILIES, PARKED, TIERS, Keys, decode, encode, hash_tag


def test_every_key_is_spelled_as_deployed_queues_have_it() -> None:
    """The names are those of the key space, whatever bytes the group is of."""
    keys = Keys(b"{orders}")
    assert keys.prio == b"{orders}:prio"
    assert keys.q("a") == b"{orders}:q:a"
    assert keys.lock(b"\xff:\x00") == b"{orders}:lock:\xff:\x00"
    assert [keys.ready(tier) for tier in TIERS] == [b"{orders}:ready:%d" % tier for tier in range(5)]
    assert PARKED == b"parked"


def test_no_other_module_spells_a_key_name() -> None:
    """Only keys.py holds the words that part a prefix from a group or tier."""
    words = (":q:", ":lock:", ":ready:", ":prio")
    found = {
        path.name
        for path in Path(redisq.__file__).parent.glob("*.py")
        if any(word in path.read_text(encoding="utf-8") for word in words)
    }
    assert found == {"keys.py"}


@pytest.mark.parametrize(
    "data", [b"", b"plain", "gr\u00fc\u00df \U0001f600".encode(), b"\x00\r\n{*}:", bytes(range(256)), b"\xed\xa0\x80"]
)
def test_any_bytes_survive_as_text(data: bytes) -> None:
    """What is decoded encodes to the same bytes, also where they are no UTF-8."""
    assert encode(decode(data)) == data
    assert encode(data) == data


@pytest.mark.parametrize(
    ("prefix", "tag"),
    [
        ("{orders}", "orders"),
        ("app:{orders}:x", "orders"),
        ("{a}{b}", "a"),
        ("{{a}}", "{a"),
        ("}{a}", "a"),
        ("{}{a}", ""),
        ("{}", ""),
        ("{a", ""),
        ("a}", ""),
        ("a", ""),
    ],
)
def test_hash_tag_is_what_a_cluster_hashes(prefix: str, tag: str) -> None:
    """The tag lies between the first opening brace and the next closing one; empty means that there is none."""
    assert hash_tag(prefix) == tag


def all_keys(prefix: str, groups: list[str]) -> set[bytes]:
    """Every key that a queue with some groups can have."""
    keys = Keys(encode(prefix))
    made = {keys.prio, *(keys.ready(tier) for tier in TIERS)}
    return made.union(*({keys.q(group), keys.lock(group)} for group in groups))


def collisions(prefixes: list[str], groups: list[str]) -> list[tuple[str, str]]:
    """The pairs of prefixes whose queues would share a key."""
    owner: dict[bytes, str] = {}
    made = ((prefix, key) for prefix in prefixes for key in all_keys(prefix, groups))
    return [(owner[key], prefix) for prefix, key in made if owner.setdefault(key, prefix) != prefix]


def allowed(prefix: str) -> bool:
    """Whether the library takes a prefix."""
    try:
        arguments.prefix(prefix, None)
    except InvalidArgument:
        return False
    return True


def test_no_two_allowed_prefixes_share_a_key() -> None:
    """E8: with the rule no pair of prefixes collides; without it many do, and every one holds a refused prefix."""
    words = ["", "a", "prio", "0", "queue", *FAMILIES]
    texts = [":".join(parts) for length in (1, 2, 3) for parts in product(words, repeat=length)]
    prefixes, groups = [text for text in texts if text], texts
    kept = [prefix for prefix in prefixes if allowed(prefix)]
    assert {"a:queue", "q", "lock:a"} <= set(kept)
    assert not collisions(kept, groups)
    assert ("a", "a:q") in collisions(["a", "a:q"], groups)
    assert not allowed("a:q")
