"""Wrong ports: each breaks one promise, as real clients have, and the suite must say which; and two right ones."""

from tests.ports.zoo import claim, client, protocol, publish, settle
from tests.ports.zoo.base import Port
from tests.ports.zoo.original import Original

WRONG: dict[str, type[Port]] = {
    name: port
    for module in (publish, claim, settle, client, protocol)
    for name, port in vars(module).items()
    if isinstance(port, type) and port.__module__ == module.__name__
}
PORTS: dict[str, type[Port]] = {"Right": Port, "Original": Original, **WRONG}
