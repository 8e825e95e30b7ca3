"""What redisq-conformance runs: any system under test against the model."""
