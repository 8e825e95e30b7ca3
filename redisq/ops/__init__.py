"""Looking after queues in production: `doctor.doctor` examines a server, `audit.audit` a queue. Command: `redisq`."""
