"""``python -m tests.ports.zoo NAME``: one port of the zoo, as an adapter."""

import sys

from tests.ports.zoo import base, original, protocol, queue

PORTS = {"Right": base.Port, "Original": original.Original, **queue.WRONG, **protocol.WRONG}

if __name__ == "__main__":
    PORTS[sys.argv[1]]().run()
