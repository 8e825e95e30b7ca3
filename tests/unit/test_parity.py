"""The two transports differ by await and by names, and by nothing else."""

from __future__ import annotations

import ast
import inspect

import pytest

from redisq import AsyncRedisTransport, RedisTransport, aio, transport

NAMES = {
    "AsyncRedisTransport": "RedisTransport",
    "AsyncClient": "Client",
    "redis.asyncio": "redis",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "async def": "def",
    "async with": "with",
    "await ": "",
}
"""What is agreed to differ: in the asyncio transport, in the other."""


def blocking(source: str) -> str:
    """The source of the asyncio transport without asyncio."""
    for name, other in NAMES.items():
        source = source.replace(name, other)
    return source


def tree(source: str) -> list[str]:
    """A source as lines that do not depend on how it is laid out; docstrings count."""
    return ast.dump(ast.parse(source), indent=1).splitlines()


def test_the_asyncio_transport_is_the_other_with_await() -> None:
    """Without async, await and the agreed names, both modules are one program with one documentation."""
    assert tree(blocking(inspect.getsource(aio))) == tree(inspect.getsource(transport))


@pytest.mark.parametrize(
    "edit", [("priority: SupportsIndex = 0", "priority: SupportsIndex = 1"), ("not empty", "empty")]
)
def test_a_difference_is_seen(edit: tuple[str, str]) -> None:
    """The control: a default or a word of a docstring that differs is found."""
    source = blocking(inspect.getsource(aio))
    assert edit[0] in source
    assert tree(source.replace(*edit)) != tree(inspect.getsource(transport))


def test_every_name_of_the_list_is_needed() -> None:
    """Nothing is agreed to differ that does not."""
    source = inspect.getsource(aio)
    assert [name for name in NAMES if name not in source] == []


def test_what_waits_is_a_coroutine() -> None:
    """Every public method of the asyncio transport but from_url is a coroutine, and none of the other."""
    for name, method in inspect.getmembers(AsyncRedisTransport, inspect.isroutine):
        if not name.startswith("_"):
            assert inspect.iscoroutinefunction(method) is (name != "from_url")
            assert not inspect.iscoroutinefunction(getattr(RedisTransport, blocking(name)))


SIGNATURES = {
    "__init__": "client, prefix='redisq', clock=None, candidates=8, new_groups='first'",
    "from_url": "url, *, prefix='redisq', clock=None, candidates=8, new_groups='first', **client_options",
    "close": "",
    "publish": "group, payload, priority=0",
    "publish_many": "messages, chunk=1000",
    "claim": "visibility=30.0, min_priority=0, worker_id=''",
    "claim_many": "count, visibility=30.0, min_priority=0, worker_id=''",
    "ack": "lease",
    "nack": "lease, delay=0.0",
    "extend": "lease, visibility=30.0",
    "ack_and_claim": "lease, visibility=30.0, min_priority=0, worker_id=''",
}


def test_signatures_are_as_designed() -> None:
    """Names, order and defaults of the arguments are the public interface; there is no other public method."""
    found = {}
    for name, method in inspect.getmembers(RedisTransport, inspect.isroutine):
        if not name.startswith("_") or name == "__init__":
            parameters = [
                parameter.replace(annotation=inspect.Parameter.empty)
                for parameter in inspect.signature(method).parameters.values()
                if parameter.name != "self"
            ]
            found[name] = str(inspect.Signature(parameters))[1:-1]
    assert found == SIGNATURES
