"""Concurrent histories: real processes on one real server, checked twice.

``run`` starts the workers (``worker``) behind a proxy that loses connections and kills (``lane``), and gives a history
(``history``). ``server_order`` checks it in the order of MONITOR, through the model; ``blackbox`` from what the clients
saw alone; ``timeline`` draws it.
"""
