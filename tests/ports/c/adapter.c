/* The adapter: the port behind the protocol of spec/port-protocol.md. One line in, one line out. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redisq.h"
#include "tagged.h"

static const char *const HELLO =
    "{\"protocol\":1,\"name\":\"redisq-c\",\"language\":\"C\",\"version\":\"0.1.0\",\"takes_now_ms\":true,"
    "\"capabilities\":[\"atomic-nack\",\"park-revokes\",\"server-clock\",\"window-repair\",\"drain-at-maxmemory\","
    "\"checked-arguments\",\"arrival-order\",\"safe-write-order\",\"tier-recovery\",\"extend\"]}";
/* The arguments of each script in the order of its ARGV. */
static const char *const ARGV[][8] = {
    {"publish", "prefix", "group", "payload", "priority", "score_ms"},
    {"claim", "prefix", "now_ms", "visibility_ms", "token", "candidates", "min_priority"},
    {"ack", "prefix", "group", "token", "now_ms"},
    {"nack", "prefix", "group", "token", "now_ms", "delay_ms"},
    {"extend", "prefix", "group", "token", "now_ms", "visibility_ms"},
};

static redisq *queue;

static long long integer(const cJSON *request, const char *name) {
  const cJSON *value = cJSON_GetObjectItem(request, name);
  return cJSON_IsNull(value) ? REDISQ_SERVER_CLOCK : (long long)value->valuedouble;
}

/* Whether the API can say it: no bytes where an integer is due. */
static int typed(const cJSON *request, const char *const *names) {
  for (size_t i = 1; names[i] != NULL; i++) {
    int text = strstr("prefix group payload token", names[i]) != NULL;
    if (!text && cJSON_IsObject(cJSON_GetObjectItem(request, names[i]))) return 0;
  }
  return 1;
}

static redisq_reply call_api(const cJSON *r, const char *op) {
  redisq_bytes group = untag(cJSON_GetObjectItem(r, "group")), token = untag(cJSON_GetObjectItem(r, "token"));
  redisq_bytes payload = untag(cJSON_GetObjectItem(r, "payload"));
  redisq_reply reply = {.kind = REDISQ_ERROR, .error = "no such operation"};
  if (*op == 'p') reply = redisq_publish(queue, group, payload, integer(r, "priority"), integer(r, "score_ms"));
  if (*op == 'c')
    reply = redisq_claim(queue, token, integer(r, "visibility_ms"), (int)integer(r, "candidates"),
                         integer(r, "min_priority"), integer(r, "now_ms"));
  if (*op == 'a') reply = redisq_ack(queue, group, token, integer(r, "now_ms"));
  if (*op == 'n') reply = redisq_nack(queue, group, token, integer(r, "delay_ms"), integer(r, "now_ms"));
  if (*op == 'e') reply = redisq_extend(queue, group, token, integer(r, "visibility_ms"), integer(r, "now_ms"));
  free((char *)group.data);
  free((char *)token.data);
  free((char *)payload.data);
  return reply;
}

static void answer_script(cJSON *answer, const cJSON *request, const char *const *names) {
  redisq_bytes argv[64];
  size_t count = 0;
  const cJSON *raw = cJSON_GetObjectItem(request, "argv"), *each;
  if (raw != NULL) {
    cJSON_ArrayForEach(each, raw) if (count < 64) argv[count++] = untag(each);
  } else {
    for (; names[count + 1] != NULL; count++) argv[count] = untag(cJSON_GetObjectItem(request, names[count + 1]));
  }
  redisq_reply reply = raw != NULL || !typed(request, names) ? redisq_call(queue, names[0], count, argv)
                                                             : call_api(request, names[0]);
  while (count > 0) free((char *)argv[--count].data);
  if (reply.kind == REDISQ_NIL) cJSON_AddNullToObject(answer, "ok");
  if (reply.kind == REDISQ_INTEGER) cJSON_AddNumberToObject(answer, "ok", (double)reply.integer);
  if (reply.kind == REDISQ_DELIVERY) {
    cJSON *delivery = cJSON_AddObjectToObject(answer, "ok");
    cJSON_AddItemToObject(delivery, "group", tag(reply.group));
    cJSON_AddItemToObject(delivery, "payload", tag(reply.payload));
  }
  if (reply.kind == REDISQ_ERROR) {
    cJSON *error = cJSON_AddObjectToObject(answer, "error");
    char code[64];
    snprintf(code, sizeof code, "%.*s", (int)strcspn(reply.error, " "), reply.error);
    cJSON_AddStringToObject(error, "code", code);
    cJSON_AddStringToObject(error, "message", reply.error);
  }
}

/* redis://[user:password@]host:port/database */
static void answer_open(cJSON *answer, const cJSON *request) {
  char user[128] = "", password[128] = "", host[128] = "", error[256] = "the URL cannot be read";
  int port = 6379, database = 0;
  const char *url = cJSON_GetObjectItem(request, "url")->valuestring + strlen("redis://");
  int read = strchr(url, '@') != NULL
                 ? sscanf(url, "%127[^:]:%127[^@]@%127[^:]:%d/%d", user, password, host, &port, &database) >= 4
                 : sscanf(url, "%127[^:]:%d/%d", host, &port, &database) >= 2;
  redisq_bytes prefix = untag(cJSON_GetObjectItem(request, "prefix"));
  redisq_close(queue);
  queue = read ? redisq_open(host, port, *user ? user : NULL, *password ? password : NULL, database, prefix, error,
                             sizeof error)
               : NULL;
  free((char *)prefix.data);
  if (queue != NULL) cJSON_AddNullToObject(answer, "ok");
  if (queue == NULL) cJSON_AddStringToObject(answer, "fault", error);
}

static void answer_to(cJSON *answer, const cJSON *request) {
  const char *op = cJSON_GetStringValue(cJSON_GetObjectItem(request, "op"));
  if (strcmp(op, "hello") == 0) {
    cJSON_AddItemToObject(answer, "ok", cJSON_Parse(HELLO));
  } else if (strcmp(op, "open") == 0) {
    answer_open(answer, request);
  } else if (strcmp(op, "close") == 0) {
    redisq_close(queue);
    queue = NULL;
    cJSON_AddNullToObject(answer, "ok");
  } else {
    for (size_t i = 0; i < sizeof ARGV / sizeof *ARGV; i++)
      if (strcmp(op, ARGV[i][0]) == 0) answer_script(answer, request, ARGV[i]);
  }
}

int main(void) {
  char *line = NULL;
  size_t size = 0;
  while (getline(&line, &size, stdin) > 0) {
    cJSON *request = cJSON_Parse(line), *answer = cJSON_CreateObject();
    cJSON_AddItemToObject(answer, "id", cJSON_Duplicate(cJSON_GetObjectItem(request, "id"), 1));
    answer_to(answer, request);
    char *text = cJSON_PrintUnformatted(answer);
    puts(text);
    fflush(stdout);
    free(text);
    cJSON_Delete(answer);
    cJSON_Delete(request);
  }
  free(line);
  redisq_close(queue);
}
