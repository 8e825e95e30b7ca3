"""Mutation of the scripts: every small change of the Lua dies by a test, or is listed as one that changes nothing."""
