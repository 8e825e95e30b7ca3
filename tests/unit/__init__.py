"""Tests of one part each: the library, the model, the tools of the suite."""
