"""The machine that drives model and witnesses, and the tests of the suite itself."""
