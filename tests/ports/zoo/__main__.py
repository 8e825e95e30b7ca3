"""``python -m tests.ports.zoo NAME``: one port of the zoo, as an adapter."""

from argparse import ArgumentParser

from tests.ports.zoo import PORTS

if __name__ == "__main__":
    parser = ArgumentParser(prog="python -m tests.ports.zoo")
    parser.add_argument("name", choices=PORTS, metavar="NAME", help=f"one of {', '.join(PORTS)}")
    PORTS[parser.parse_args().name]().run()
