"""Replaying what a server did, from MONITOR, through the model: whose client or language it was does not matter.

``monitor`` reads the lines, ``units`` puts a script and its commands together, ``keys`` follows the key space,
``rules`` names the steps that no client may take, ``wire`` runs the known scripts through the model, ``replay``
puts these together, and ``attach`` and ``cli`` are the command.
"""
