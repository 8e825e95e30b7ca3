"""What an exploration covers: the bounds within which nothing is left out."""

from __future__ import annotations

from dataclasses import dataclass, fields

BOUNDS = {
    "groups": (1, 26),  # a to z
    "tiers": (1, 5),
    "messages": (1, 99),
    "workers": (1, 9),
    "visibility_ms": (1, 99),
    "delay_ms": (0, 99),
    "candidates": (1, 99),
    "arrival": (0, 1),
    "skew_ms": (0, 99),
    "foreign": (0, 99),
}


@dataclass(frozen=True, slots=True)
class Scope:
    """The bounds of an exploration. Time passes by one millisecond at a time, and is unbounded."""

    groups: int = 2
    tiers: int = 2
    messages: int = 4  # published in all
    workers: int = 2  # each holds, or believes to hold, one lease at a time; it may die and forget it
    visibility_ms: int = 2
    delay_ms: int = 2  # of a nack that parks; the other nack has none
    candidates: int = 1  # K
    arrival: int = 0  # 1: a new group may start at the server's clock as well as at 0
    skew_ms: int = 0  # not 0: every call may also carry a clock that is so far ahead, or behind
    foreign: int = 0  # foreign writes in all

    def __post_init__(self) -> None:
        for name, (least, most) in BOUNDS.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise ValueError(f"{name} is {value}: it must be from {least} to {most}")

    def __str__(self) -> str:
        return ", ".join(f"{bound.name}={getattr(self, bound.name)}" for bound in fields(self))


SCOPES = {
    "small": Scope(messages=2),
    "default": Scope(messages=5, arrival=1),
    "clocks": Scope(messages=2, skew_ms=3),
    "foreign": Scope(messages=3, foreign=2),
    "large": Scope(messages=5, arrival=1, skew_ms=3),
}
