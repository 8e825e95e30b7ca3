"""The tests; tests/README.md says where what lies."""
