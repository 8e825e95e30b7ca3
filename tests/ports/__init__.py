"""Ports: right ones, wrong ones, and what the suite says of each."""
