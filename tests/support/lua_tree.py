"""The syntax tree of a script: nodes with lines and parents, and each name bound to its local or free."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

# The parser carries no types.
from luaparser import ast, astnodes  # type: ignore[import-untyped]

Node: TypeAlias = Any


class LuaSyntaxError(ValueError):
    """A source that is no Lua."""


@dataclass(eq=False, slots=True)
class Binding:
    """One local: a variable, a parameter or a function."""

    name: str
    function: Node = None
    """The function, if it is a local function."""


class Tree:
    """A script's source and its syntax tree. Raises LuaSyntaxError."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            chunk = ast.parse(source)
        except Exception as error:  # the parser raises whatever went wrong inside it
            raise LuaSyntaxError(str(error) or type(error).__name__) from error
        self.body = chunk.body
        self.nodes: list[Node] = []
        self._lines: dict[int, int] = {}
        self._parents: dict[int, Node] = {}
        self._register(self.body, 1)
        self._bindings: dict[int, Binding] = {}
        self._resolve(self.body, {})

    def line(self, node: Node) -> int:
        """The line of a node, counted from 1."""
        return self._lines[id(node)]

    def parent(self, node: Node) -> Node:
        """The node that holds this one; None for the body of the script."""
        return self._parents.get(id(node))

    def binding(self, node: Node) -> Binding | None:
        """The local that a name is; None for a global and for every other node."""
        return self._bindings.get(id(node))

    def of(self, *kinds: type) -> Iterator[Node]:
        """The nodes of these classes, in the order of the source."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def is_free(self, node: Node, name: str = "") -> bool:
        """Whether a node is a global variable, of this name if one is given."""
        return (
            isinstance(node, astnodes.Name)
            and id(node) not in self._bindings
            and not self._is_label(node)
            and name in ("", node.id)
        )

    def library(self, node: Node) -> tuple[str, str] | None:
        """``("string", "sub")`` for the expression ``string.sub``, whose base is a global; else None."""
        if (
            isinstance(node, astnodes.Index)
            and node.notation is astnodes.IndexNotation.DOT
            and self.is_free(node.value)
            and isinstance(node.idx, astnodes.Name)
        ):
            return node.value.id, node.idx.id
        return None

    def command(self, node: Node) -> str | None:
        """The command of a ``redis.call`` or ``redis.pcall``: empty if it is no literal; None for any other node."""
        if isinstance(node, astnodes.Call) and self.library(node.func) in (("redis", "call"), ("redis", "pcall")):
            return (literal(node.args[0]) if node.args else None) or ""
        return None

    def commands(self) -> Iterator[tuple[str, Node]]:
        """Every ``redis.call`` and ``redis.pcall`` with its command."""
        for node in self.of(astnodes.Call):
            command = self.command(node)
            if command is not None:
                yield command, node

    def _is_label(self, node: Node) -> bool:
        # x in a.x, a:x(), { x = 1 } and goto x is no variable.
        parent = self.parent(node)
        match parent:
            case astnodes.Index():
                return node is parent.idx and parent.notation is astnodes.IndexNotation.DOT
            case astnodes.Field():
                return node is parent.key and not parent.between_brackets
            case astnodes.Invoke():
                return node is parent.func
            case astnodes.Method():
                return node is parent.name
            case astnodes.Goto() | astnodes.Label() | astnodes.Attribute():
                return True
        return False

    def _register(self, node: Node, line: int) -> None:
        line = node.line or line
        self.nodes.append(node)
        self._lines[id(node)] = line
        for child in children(node):
            self._parents[id(child)] = node
            self._register(child, line)

    def _resolve(self, node: Node, scope: dict[str, Binding]) -> None:
        match node:
            case astnodes.Block():
                inner = dict(scope)
                for statement in node.body:
                    self._resolve(statement, inner)
            case astnodes.Repeat():
                # The condition sees the locals of the body.
                inner = dict(scope)
                for statement in node.body.body:
                    self._resolve(statement, inner)
                self._resolve(node.test, inner)
            case astnodes.LocalAssign():
                self._all(node.values, scope)
                self._declare(node.targets, scope)
            case astnodes.LocalFunction():
                self._declare([node.name], scope, node)
                self._function(node, scope)
            case astnodes.Function() | astnodes.Method() | astnodes.AnonymousFunction():
                if isinstance(node, astnodes.Function):
                    self._resolve(node.name, scope)
                self._function(node, scope)
            case astnodes.Fornum():
                self._all([node.start, node.stop, node.step], scope)
                self._loop([node.target], node.body, scope)
            case astnodes.Forin():
                self._all(node.iter, scope)
                self._loop(node.targets, node.body, scope)
            case astnodes.Name():
                if node.id in scope and not self._is_label(node):
                    self._bindings[id(node)] = scope[node.id]
            case _:
                self._all(list(children(node)), scope)

    def _all(self, nodes: list[Node], scope: dict[str, Binding]) -> None:
        for node in nodes:
            if isinstance(node, astnodes.Node):
                self._resolve(node, scope)

    def _declare(self, names: list[Node], scope: dict[str, Binding], function: Node = None) -> None:
        for name in names:
            if isinstance(name, astnodes.Name):
                scope[name.id] = self._bindings[id(name)] = Binding(name.id, function)

    def _function(self, node: Node, scope: dict[str, Binding]) -> None:
        self._loop(node.args, node.body, scope)

    def _loop(self, names: list[Node], body: Node, scope: dict[str, Binding]) -> None:
        inner = dict(scope)
        self._declare(names, inner)
        self._resolve(body, inner)


def children(node: Node) -> Iterator[Node]:
    """The nodes a node is made of."""
    for name, value in vars(node).items():
        if not name.startswith("_") and name != "comments":
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, astnodes.Node):
                    yield child


def literal(node: Node) -> str | None:
    """The value of a string literal; None for every other node."""
    return node.s.decode("latin-1") if isinstance(node, astnodes.String) else None


def walk(node: Node) -> Iterator[Node]:
    """A node and everything in it."""
    yield node
    for child in children(node):
        yield from walk(child)
