"""A port in any language, behind its adapter: the process, the messages, and the witness that the suite judges."""
