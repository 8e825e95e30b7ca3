"""The exceptions of redisq. Errors of the client (connection, server, rights) are not among them: they pass through."""

from reprlib import Repr

_SHOWN = 60  # characters or bytes of a long text that an error shows
_SHORT = Repr()
_SHORT.maxother = 80  # characters of any other repr


class RedisqError(Exception):
    """The root of every error that redisq itself raises."""


class InvalidArgument(RedisqError, ValueError):
    """An argument is not of its form. It is raised before any I/O, so nothing was written.

    `argument` is the name of the argument, `value` the repr of what was given, shortened, and `allowed` says
    what is allowed. All three are `str`.
    """

    def __init__(self, argument: str, value: str, allowed: str) -> None:
        super().__init__(argument, value, allowed)
        self.argument = argument
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.argument} must be {self.allowed}, not {self.value}"


def invalid(argument: str, value: object, allowed: str) -> InvalidArgument:
    """The error to raise for `value`. The value itself is not kept: it may be half a gigabyte."""
    return InvalidArgument(argument, _shorten(value), allowed)


def _shorten(value: object) -> str:
    if isinstance(value, (str, bytes)) and len(value) > _SHOWN:
        what = "characters" if isinstance(value, str) else "bytes"
        return f"{value[:_SHOWN]!r}... ({len(value)} {what})"
    # Of the methods of Repr the one that bears an object whose repr fails, as that of an int of 5000 digits does.
    return _SHORT.repr_instance(value, 0)
