"""Wrong ports: each breaks one promise, as real clients have, and the suite must say which."""
