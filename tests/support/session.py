"""One run of the suite: which systems are tested, on which hosts, and what came of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from model.notation import write_operation
from model.operation import Operation
from tests.support import servers
from tests.support.fake import FakeHost
from tests.support.known import Known
from tests.support.library import Library
from tests.support.outcome import KNOWN, PASSED, Outcome
from tests.support.port.messages import Hello
from tests.support.port.witness import Adapter, Asking, KeepingPort, Port
from tests.support.trial import Divergence, Tally
from tests.support.witness import LuaFiles, Model, OnHost, Scripts, Witness

SUTS = ("fakeredis", "redis", "sync", "async")  # --sut, all of them by default; and model, when it is asked for
PACKAGE_LUA = Path(str(files("redisq") / "lua"))


@dataclass
class Choice:
    """What the command line chose; the options of ``options.py``."""

    suts: Sequence[str] = SUTS
    urls: Sequence[str] = ()
    binaries: Sequence[str] = ()
    images: Sequence[str] = ()
    required: Sequence[str] = ()
    lua: Path | None = None
    port: str | None = None  # the command of an adapter
    level: str = "full"
    port_timeout_s: float | None = None


@dataclass
class Session:
    """The hosts and witnesses of a run, made when first asked for, and its results."""

    choice: Choice
    tally: dict[str, Tally] = field(default_factory=dict)  # group of witnesses → what the machine did on it
    known: Known = field(default_factory=Known)
    outcomes: list[Outcome] = field(default_factory=list)
    others: list[Outcome] = field(default_factory=list)  # failures of what is no case: random operations, the runner
    ended: str = ""  # why the run ended early
    unwritten: list[str] = field(default_factory=list)  # why, for each report that could not be written
    checked: str = ""  # what came of --check-port
    missing: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)  # why, in words, for each server that was asked for
    _hosts: list[Any] | None = None
    _groups: dict[str, list[Witness]] | None = None
    _adapter: Adapter | None = None
    _adapters: list[Adapter] = field(default_factory=list)

    @property
    def started(self) -> bool:
        """Whether the hosts were started."""
        return self._hosts is not None

    @property
    def ready(self) -> bool:
        """Whether the systems under test came, a port's adapter too."""
        return self._groups is not None

    @property
    def used(self) -> bool:
        """Whether the suite ran, and not only tests of the suite itself."""
        return bool(self.tally or self.missing or self.not_started or self.outcomes or self.others or self.checked)

    @property
    def hosts(self) -> list[Any]:
        """fakeredis and every real server, started."""
        if self._hosts is None:
            self._hosts = [] if self.choice.port else [FakeHost()]
            for start in self._starters():
                try:
                    self._hosts.append(start())
                except servers.ServerError as error:
                    self.not_started.append(str(error))
            self.missing = servers.missing(self.choice.required, [host.name for host in self._hosts])
        return self._hosts

    def _starters(self) -> Iterable[Any]:
        wanted = {"redis", "sync", "async"} & set(self.choice.suts) or self.choice.required or self.choice.port
        if not wanted or (self.choice.port and self.hello.keeps_keys):
            return
        for url in self.choice.urls:
            yield lambda url=url: servers.connect(url)
        for binary in self.choice.binaries:
            yield servers.resolve(binary).start
        for image in self.choice.images:
            from tests.support.containers import Container

            yield lambda image=image: Container(image)
        if not (self.choice.urls or self.choice.binaries or self.choice.images):
            for source in servers.discover():
                yield source.start

    @property
    def lua(self) -> LuaFiles:
        """The scripts under test."""
        return LuaFiles(self.choice.lua or PACKAGE_LUA)

    @property
    def groups(self) -> dict[str, list[Witness]]:
        """The witnesses, in groups that run side by side: no two of a group share a key space."""
        if self._groups is None and self.choice.port:
            self._groups = {"port": self._ports()}
        if self._groups is None:
            own_lua = self.lua if self.choice.lua else None
            made: dict[str, list[Witness]] = {
                "model": [Model()],
                "fakeredis": [Scripts(host, self.lua) for host in self.hosts if host.name == "fakeredis"],
                "redis": [Scripts(host, self.lua) for host in self.hosts if host.name != "fakeredis"],
                "sync": [Library("sync", host, own_lua) for host in self.hosts],
                "async": [Library("async", host, own_lua) for host in self.hosts],
            }
            chosen = {sut: made[sut] for sut in made if sut in self.choice.suts}
            scripts = [w for sut in ("fakeredis", "redis") for w in chosen.pop(sut, ())]
            self._groups = {name: group for name, group in {"scripts": scripts, **chosen}.items() if group}
        return self._groups

    @property
    def hello(self) -> Hello:
        """What the port says of itself. Raises PortError."""
        if self._adapter is None:
            self._adapter = self.adapter()
        return self._adapter.hello

    def adapter(self) -> Adapter:
        """An adapter of the port, not started yet; ``close`` ends it."""
        assert self.choice.port is not None
        self._adapters.append(Adapter(self.choice.port, self.choice.port_timeout_s))
        return self._adapters[-1]

    def _ports(self) -> list[Witness]:
        if self.hello.keeps_keys:
            assert self._adapter is not None
            return [KeepingPort(self._adapter, self.choice.level)]
        return [Port(self.adapter(), host, self.choice.level) for host in self.hosts]

    @property
    def witnesses(self) -> list[Witness]:
        """All of them."""
        return [witness for group in self.groups.values() for witness in group]

    def ran(self) -> bool:
        """Whether anything was asked of anybody."""
        return bool(self.compared() or any(outcome.status in (PASSED, KNOWN) for outcome in self.outcomes))

    def compared(self) -> int:
        """Operations compared by the machine, on all witnesses together."""
        return sum(tally.operations.total() for tally in self.tally.values())

    def replay_command(self, divergence: Divergence) -> str:
        """A command that replays just this trace on just this witness."""
        kind, _, host = divergence.witness.rpartition("/")
        words = ["redisq-conformance"]
        if self.choice.port:
            words += ["--port", self.choice.port, "--level", self.choice.level]
        else:
            words += ["--sut", kind or (host if host in ("model", "fakeredis") else "redis")]
        words += self._server_options()
        if self.choice.lua:
            words += ["--lua", str(self.choice.lua)]
        lines = [shlex.join([*words, "--replay", "/dev/stdin"]) + " <<'TRACE'", *trace_lines(divergence.operations)]
        return "\n".join([*lines, "TRACE"])

    def _server_options(self) -> list[str]:
        chosen = {
            "--redis-url": self.choice.urls,
            "--redis-server": self.choice.binaries,
            "--redis-image": self.choice.images,
        }
        return [word for option, values in chosen.items() for value in values for word in (option, value)]

    def case_command(self, case: str) -> str:
        """A command that runs one case alone on the port."""
        words = ["redisq-conformance", "--port", self.choice.port or "", "--level", self.choice.level, "--case", case]
        return shlex.join([*words, *self._server_options()])

    def stderr_of_hello(self) -> str:
        """The same of an adapter that did not come so far."""
        return self._adapters[0].stderr_tail() if self._adapters else ""

    def stderr_of(self, system: str) -> str:
        """The last lines that the adapter of that system wrote to its standard error."""
        ports = [w for w in self.witnesses if isinstance(w, Asking) and w.name == system]
        return ports[0].adapter.stderr_tail() if ports else ""

    def close(self) -> None:
        """Stops what was started."""
        for witness in self.witnesses if self._groups is not None else ():
            if isinstance(witness, Library):
                witness.close()
            if isinstance(witness, OnHost):
                witness.client.close()
        for adapter in self._adapters:
            adapter.end()
        for host in self._hosts or ():
            host.stop()
        self._hosts, self._groups = None, None


def trace_lines(operations: Sequence[Operation]) -> list[str]:
    """A trace as it is saved: a line per operation, in the readable notation."""
    return [write_operation(operation) for operation in operations]
