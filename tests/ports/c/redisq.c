#include "redisq.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPTS = 5, SHA = 40, ARGUMENTS = 64 };

static const char *const NAMES[SCRIPTS] = {"publish", "claim", "ack", "nack", "extend"};

struct redisq {
  redisContext *context;
  redisReply *last; /* what the latest reply points into */
  char *prefix, *route;
  size_t prefix_size;
  char *user, *password; /* NULL where none is needed */
  int database;
  char *source[SCRIPTS];
  char sha[SCRIPTS][SHA + 1]; /* empty until the server has told it */
  char failure[256];
};

static char *read_script(const char *name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s.lua", REDISQ_LUA, name);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return NULL;
  char *text = NULL;
  if (fseek(file, 0, SEEK_END) == 0) {
    long size = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)size + 1);
    if (text != NULL && fread(text, 1, (size_t)size, file) != (size_t)size) {
      free(text);
      text = NULL;
    }
  }
  fclose(file);
  return text;
}

static int accepted(redisq *queue, redisReply *reply) {
  int good = reply != NULL && reply->type != REDIS_REPLY_ERROR;
  if (!good) {
    const char *why = reply != NULL ? reply->str : queue->context->errstr;
    snprintf(queue->failure, sizeof queue->failure, "%s", why);
  }
  if (reply != NULL) freeReplyObject(reply);
  return good;
}

static int login(redisq *queue) {
  redisContext *c = queue->context;
  const char *user = queue->user, *password = queue->password != NULL ? queue->password : "";
  if (user != NULL && !accepted(queue, redisCommand(c, "AUTH %s %s", user, password))) return 0;
  if (user == NULL && *password != '\0' && !accepted(queue, redisCommand(c, "AUTH %s", password))) return 0;
  return queue->database == 0 || accepted(queue, redisCommand(c, "SELECT %d", queue->database));
}

/* hiredis never uses a connection again once it broke; the next call makes a new one. */
static int connected(redisq *queue) {
  return queue->context->err == 0 || (redisReconnect(queue->context) == REDIS_OK && login(queue));
}

static char *copy(const char *text) { return text != NULL ? strdup(text) : NULL; }

redisq *redisq_open(const char *host, int port, const char *user, const char *password, int database,
                    redisq_bytes prefix, char *error, size_t size) {
  redisq *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return NULL;
  queue->prefix_size = prefix.size;
  queue->user = copy(user);
  queue->password = copy(password);
  queue->database = database;
  queue->prefix = malloc(prefix.size + 1);
  queue->route = malloc(prefix.size + sizeof ":prio");
  int good = queue->prefix != NULL && queue->route != NULL;
  if (good) {
    memcpy(queue->prefix, prefix.data, prefix.size);
    memcpy(queue->route, prefix.data, prefix.size);
    memcpy(queue->route + prefix.size, ":prio", sizeof ":prio");
  }
  for (int i = 0; good && i < SCRIPTS; i++) {
    queue->source[i] = read_script(NAMES[i]);
    good = queue->source[i] != NULL;
    if (!good) snprintf(queue->failure, sizeof queue->failure, "%s/%s.lua cannot be read", REDISQ_LUA, NAMES[i]);
  }
  if (good) {
    queue->context = redisConnect(host, port);
    good = queue->context != NULL && queue->context->err == 0;
    if (!good && queue->context != NULL)
      snprintf(queue->failure, sizeof queue->failure, "%s", queue->context->errstr);
  }
  if (good && login(queue)) return queue;
  snprintf(error, size, "%s", queue->failure);
  redisq_close(queue);
  return NULL;
}

void redisq_close(redisq *queue) {
  if (queue == NULL) return;
  if (queue->last != NULL) freeReplyObject(queue->last);
  if (queue->context != NULL) redisFree(queue->context);
  for (int i = 0; i < SCRIPTS; i++) free(queue->source[i]);
  free(queue->prefix);
  free(queue->route);
  free(queue->user);
  free(queue->password);
  free(queue);
}

static redisReply *eval(redisq *queue, const char *how, const char *script, size_t count, const redisq_bytes *argv) {
  const char *words[ARGUMENTS + 4] = {how, script, "1", queue->route};
  size_t sizes[ARGUMENTS + 4] = {strlen(how), strlen(script), 1, queue->prefix_size + 5};
  for (size_t i = 0; i < count; i++) {
    words[4 + i] = argv[i].data;
    sizes[4 + i] = argv[i].size;
  }
  return redisCommandArgv(queue->context, (int)(4 + count), words, sizes);
}

/* By its digest; and whole, which also stores it, where the server has not seen it. */
static redisReply *run(redisq *queue, int script, size_t count, const redisq_bytes *argv) {
  if (queue->sha[script][0] == '\0') {
    redisReply *loaded = redisCommand(queue->context, "SCRIPT LOAD %s", queue->source[script]);
    if (loaded != NULL && loaded->type == REDIS_REPLY_STRING && loaded->len == SHA)
      memcpy(queue->sha[script], loaded->str, SHA);
    if (loaded != NULL) freeReplyObject(loaded);
  }
  redisReply *reply = NULL;
  if (queue->sha[script][0] != '\0') {
    reply = eval(queue, "EVALSHA", queue->sha[script], count, argv);
    if (reply == NULL || reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOSCRIPT", 8) != 0) return reply;
    freeReplyObject(reply);
  }
  return eval(queue, "EVAL", queue->source[script], count, argv);
}

static redisq_reply read_reply(redisq *queue, redisReply *reply) {
  redisq_reply result = {.kind = REDISQ_ERROR, .error = queue->context->errstr};
  if (reply == NULL) return result;
  switch (reply->type) {
    case REDIS_REPLY_NIL: result.kind = REDISQ_NIL; break;
    case REDIS_REPLY_INTEGER:
      result.kind = REDISQ_INTEGER;
      result.integer = reply->integer;
      break;
    case REDIS_REPLY_ARRAY:
      if (reply->elements == 2) {
        result.kind = REDISQ_DELIVERY;
        result.group = (redisq_bytes){reply->element[0]->str, reply->element[0]->len};
        result.payload = (redisq_bytes){reply->element[1]->str, reply->element[1]->len};
        break;
      }
      result.error = "an array that is no delivery";
      break;
    default: result.error = reply->str != NULL ? reply->str : "a reply that no script gives";
  }
  return result;
}

redisq_reply redisq_call(redisq *queue, const char *script, size_t count, const redisq_bytes *argv) {
  int which = 0;
  while (which < SCRIPTS && strcmp(NAMES[which], script) != 0) which++;
  if (which == SCRIPTS) return (redisq_reply){.kind = REDISQ_ERROR, .error = "no such script"};
  if (count > ARGUMENTS)
    return (redisq_reply){.kind = REDISQ_ERROR, .error = "REDISQ_BADARG ARGV: more than any script takes"};
  if (queue->last != NULL) freeReplyObject(queue->last);
  queue->last = connected(queue) ? run(queue, which, count, argv) : NULL;
  return read_reply(queue, queue->last);
}

/* The digits of a number; nothing for the server's clock. `digits` has room for 24. */
static redisq_bytes number(char *digits, long long value, int clock) {
  if (clock && value == REDISQ_SERVER_CLOCK) return (redisq_bytes){"", 0};
  return (redisq_bytes){digits, (size_t)snprintf(digits, 24, "%lld", value)};
}

static redisq_bytes prefix_of(const redisq *queue) { return (redisq_bytes){queue->prefix, queue->prefix_size}; }

redisq_reply redisq_publish(redisq *queue, redisq_bytes group, redisq_bytes payload, long long priority,
                            long long score_ms) {
  char a[24], b[24];
  redisq_bytes argv[] = {prefix_of(queue), group, payload, number(a, priority, 0), number(b, score_ms, 1)};
  return redisq_call(queue, "publish", 5, argv);
}

redisq_reply redisq_claim(redisq *queue, redisq_bytes token, long long visibility_ms, int candidates,
                          long long min_priority, long long now_ms) {
  char a[24], b[24], c[24], d[24];
  redisq_bytes argv[] = {prefix_of(queue), number(a, now_ms, 1), number(b, visibility_ms, 0), token,
                         number(c, candidates, 0), number(d, min_priority, 0)};
  return redisq_call(queue, "claim", 6, argv);
}

redisq_reply redisq_ack(redisq *queue, redisq_bytes group, redisq_bytes token, long long now_ms) {
  char a[24];
  redisq_bytes argv[] = {prefix_of(queue), group, token, number(a, now_ms, 1)};
  return redisq_call(queue, "ack", 4, argv);
}

redisq_reply redisq_nack(redisq *queue, redisq_bytes group, redisq_bytes token, long long delay_ms, long long now_ms) {
  char a[24], b[24];
  redisq_bytes argv[] = {prefix_of(queue), group, token, number(a, now_ms, 1), number(b, delay_ms, 0)};
  return redisq_call(queue, "nack", 5, argv);
}

redisq_reply redisq_extend(redisq *queue, redisq_bytes group, redisq_bytes token, long long visibility_ms,
                           long long now_ms) {
  char a[24], b[24];
  redisq_bytes argv[] = {prefix_of(queue), group, token, number(a, now_ms, 1), number(b, visibility_ms, 0)};
  return redisq_call(queue, "extend", 5, argv);
}
