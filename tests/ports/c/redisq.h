/* redisq: a queue with message groups on plain Redis; first in first out, one message in flight per group. */
#ifndef REDISQ_H
#define REDISQ_H

#include <limits.h>
#include <stddef.h>

typedef struct redisq redisq;

/* Bytes of any value; `data` need not end in NUL. */
typedef struct {
  const char *data;
  size_t size;
} redisq_bytes;

enum { REDISQ_NIL = 0, REDISQ_INTEGER, REDISQ_DELIVERY, REDISQ_ERROR };

/* What a script answered. `group` and `payload` are of a delivery, `error` is the server's text or the client's.
 * They live until the next call on the same queue. */
typedef struct {
  int kind;
  long long integer;
  redisq_bytes group, payload;
  const char *error;
} redisq_reply;

#define REDISQ_SERVER_CLOCK LLONG_MIN /* as now_ms or score_ms; no instant */

/* Connects to a server, and keeps a copy of the prefix. A user, a password and a database may be NULL, NULL and 0.
 * NULL if the server cannot be reached or refuses; `error` then holds why. */
redisq *redisq_open(const char *host, int port, const char *user, const char *password, int database,
                    redisq_bytes prefix, char *error, size_t size);
void redisq_close(redisq *queue);

/* All times are milliseconds. Each call is one atomic script. */
redisq_reply redisq_publish(redisq *queue, redisq_bytes group, redisq_bytes payload, long long priority,
                            long long score_ms);
redisq_reply redisq_claim(redisq *queue, redisq_bytes token, long long visibility_ms, int candidates,
                          long long min_priority, long long now_ms);
redisq_reply redisq_ack(redisq *queue, redisq_bytes group, redisq_bytes token, long long now_ms);
redisq_reply redisq_nack(redisq *queue, redisq_bytes group, redisq_bytes token, long long delay_ms, long long now_ms);
redisq_reply redisq_extend(redisq *queue, redisq_bytes group, redisq_bytes token, long long visibility_ms,
                           long long now_ms);

/* Any script with its whole ARGV: "publish", "claim", "ack", "nack" or "extend". */
redisq_reply redisq_call(redisq *queue, const char *script, size_t count, const redisq_bytes *argv);

#endif
