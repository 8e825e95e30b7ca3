"""Faults by their real cause, on every real server: the errata, and what people who run such queues report."""
