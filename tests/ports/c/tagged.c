#include "tagged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

cJSON *tag(redisq_bytes bytes) {
  char *text = calloc(1, bytes.size / 3 * 4 + 5), *to = text;
  for (size_t i = 0; i < bytes.size; i += 3) {
    unsigned long word = 0;
    size_t left = bytes.size - i;
    for (size_t j = 0; j < 3; j++) word = word << 8 | (j < left ? (unsigned char)bytes.data[i + j] : 0);
    for (size_t j = 0; j < 4; j++) *to++ = j <= left ? ALPHABET[word >> (18 - 6 * j) & 63] : '=';
  }
  cJSON *tagged = cJSON_CreateObject();
  cJSON_AddStringToObject(tagged, "b64", text);
  free(text);
  return tagged;
}

redisq_bytes untag(const cJSON *value) {
  const cJSON *b64 = cJSON_GetObjectItem(value, "b64"), *utf8 = cJSON_GetObjectItem(value, "utf8");
  char *data = calloc(1, 32);
  if (cJSON_IsNumber(value)) return (redisq_bytes){data, (size_t)snprintf(data, 32, "%.0f", value->valuedouble)};
  if (utf8 != NULL) {
    free(data);
    data = strdup(utf8->valuestring);
    return (redisq_bytes){data, strlen(data)};
  }
  if (b64 == NULL) return (redisq_bytes){data, 0}; /* null: the server's clock */
  const char *from = b64->valuestring;
  size_t size = 0, digits = 0;
  unsigned long word = 0;
  data = realloc(data, strlen(from) + 1);
  for (; *from != '\0' && *from != '='; from++) {
    word = word << 6 | (unsigned long)(strchr(ALPHABET, *from) - ALPHABET);
    if (++digits % 4 == 0)
      for (int shift = 16; shift >= 0; shift -= 8) data[size++] = (char)(word >> shift);
  }
  if (digits % 4 == 2) data[size++] = (char)(word >> 4);
  if (digits % 4 == 3) {
    data[size++] = (char)(word >> 10);
    data[size++] = (char)(word >> 2);
  }
  return (redisq_bytes){data, size};
}
