"""redisq: message groups on plain Redis. First in, first out and one message in flight per group; groups in parallel.

Delivery is at least once: a message is delivered again if its lease ends before it was settled.
"""

from redisq.aio import AsyncRedisTransport
from redisq.errors import InvalidArgument, RedisqError
from redisq.lease import Lease
from redisq.transport import RedisTransport

__all__ = ["AsyncRedisTransport", "InvalidArgument", "Lease", "RedisTransport", "RedisqError"]
__version__ = "0.1.0"
