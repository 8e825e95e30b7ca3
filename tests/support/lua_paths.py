"""The paths through a script: what has happened on them when each command is reached.

Every branch may go either way, except that a local set to nil is known to be nil until it is assigned (a claim that
found nothing has not written either). Loops run any number of times; local functions are followed at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from luaparser import astnodes  # type: ignore[import-untyped]

from tests.support.lua_subset import READS
from tests.support.lua_tree import Binding, Node, Tree, children


@dataclass(frozen=True, slots=True)
class Path:
    """What has happened on a path so far."""

    times: int = 0
    """How often TIME was read: 0, 1, or 2 for more."""
    wrote: bool = False
    is_nil: frozenset[tuple[Binding, bool]] = frozenset()
    """The locals of which it is known whether they are nil."""

    def knows(self, binding: Binding, is_nil: bool | None) -> Path:
        """The same path with this known of a local, or nothing."""
        rest = frozenset(known for known in self.is_nil if known[0] is not binding)
        return replace(self, is_nil=rest if is_nil is None else rest | {(binding, is_nil)})


Paths = frozenset[Path]


@dataclass(slots=True)
class _Exits:
    """The paths that leave a loop or a function early."""

    breaks: set[Path] = field(default_factory=set)
    returns: set[Path] = field(default_factory=set)


class Flow:
    """Follows every path of a script and tells ``reached`` of each command with each path that reaches it."""

    def __init__(self, tree: Tree, reached: Callable[[Node, str, Path], None]) -> None:
        self._tree = tree
        self._reached = reached
        self._calls: list[Binding] = []
        self._block(tree.body, frozenset({Path()}), _Exits())

    def _block(self, block: Node, paths: Paths, exits: _Exits) -> Paths:
        for statement in block.body:
            paths = self._statement(statement, paths, exits)
        return paths

    def _statement(self, node: Node, paths: Paths, exits: _Exits) -> Paths:
        match node:
            case astnodes.LocalFunction() | astnodes.Function() | astnodes.Method():
                return paths
            case astnodes.If() | astnodes.ElseIf():
                paths = self._expression(node.test, paths)
                then = self._block(node.body, self._where(node.test, True, paths), exits)
                otherwise = self._where(node.test, False, paths)
                if isinstance(node.orelse, astnodes.Block):
                    otherwise = self._block(node.orelse, otherwise, exits)
                elif node.orelse:
                    otherwise = self._statement(node.orelse, otherwise, exits)
                return then | otherwise
            case astnodes.While():
                return self._loop(lambda p: self._expression(node.test, p), node, paths, exits)
            case astnodes.Repeat():
                # Left at its end and never before its first run.
                return self._loop(lambda p: p, node, paths, exits, after=node.test)
            case astnodes.Fornum():
                paths = self._each([node.start, node.stop, node.step], paths)
                return self._loop(lambda p: p, node, paths, exits)
            case astnodes.Forin():
                return self._loop(lambda p: p, node, self._each(node.iter, paths), exits)
            case astnodes.Do():
                return self._block(node.body, paths, exits)
            case astnodes.Break():
                exits.breaks |= paths
                return frozenset()
            case astnodes.Return():
                exits.returns |= self._each(node.values or [], paths)
                return frozenset()
            case astnodes.LocalAssign() | astnodes.Assign():
                paths = self._each(node.values, paths)
                return self._assigned(node, paths)
        return self._expression(node, paths)

    def _loop(
        self, test: Callable[[Paths], Paths], node: Node, paths: Paths, exits: _Exits, after: Node = None
    ) -> Paths:
        inner = _Exits(returns=exits.returns)
        done: set[Path] = set()
        seen: Paths = frozenset()
        while not paths <= seen:
            seen |= paths
            tested = test(seen)
            done |= tested if after is None else set()
            paths = self._block(node.body, tested, inner)
            if after is not None:
                paths = self._expression(after, paths)
                done |= paths
        return frozenset(done | inner.breaks)

    def _assigned(self, node: Node, paths: Paths) -> Paths:
        for position, target in enumerate(node.targets):
            binding = self._tree.binding(target)
            if binding is None:
                continue
            value = node.values[position] if position < len(node.values) else None
            is_nil: bool | None = None
            if isinstance(value, astnodes.Nil) or not node.values:
                is_nil = True
            elif isinstance(value, astnodes.Table | astnodes.String | astnodes.Number):
                is_nil = False
            paths = frozenset(path.knows(binding, is_nil) for path in paths)
        return paths

    def _where(self, test: Node, holds: bool, paths: Paths) -> Paths:
        while isinstance(test, astnodes.ULNotOp):
            test, holds = test.operand, not holds
        binding = self._tree.binding(test)
        return frozenset(path for path in paths if (binding, holds) not in path.is_nil)

    def _each(self, nodes: Sequence[Node], paths: Paths) -> Paths:
        for node in nodes:
            if isinstance(node, astnodes.Node):
                paths = self._expression(node, paths)
        return paths

    def _expression(self, node: Node, paths: Paths) -> Paths:
        match node:
            case astnodes.AnonymousFunction():
                return paths
            case astnodes.AndLoOp() | astnodes.OrLoOp():
                paths = self._expression(node.left, paths)
                return paths | self._expression(node.right, paths)
        paths = self._each(list(children(node)), paths)
        if isinstance(node, astnodes.Call):
            binding = self._tree.binding(node.func)
            command = self._tree.command(node)
            if binding and binding.function and binding not in self._calls:
                return self._followed(binding, paths)
            if command is not None:
                return self._ran(node, command, paths)
        return paths

    def _followed(self, binding: Binding, paths: Paths) -> Paths:
        exits = _Exits()
        self._calls.append(binding)
        paths = self._block(binding.function.body, paths, exits)
        self._calls.pop()
        return paths | frozenset(exits.returns)

    def _ran(self, node: Node, command: str, paths: Paths) -> Paths:
        for path in paths:
            self._reached(node, command, path)
        if command == "TIME":
            return frozenset(replace(path, times=min(path.times + 1, 2)) for path in paths)
        return paths if command in READS else frozenset(replace(path, wrote=True) for path in paths)
