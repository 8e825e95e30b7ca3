/* Byte strings in JSON: {"utf8": text} or {"b64": base64}. */
#ifndef TAGGED_H
#define TAGGED_H

#include <cjson/cJSON.h>

#include "redisq.h"

/* The bytes as a new tagged value. */
cJSON *tag(redisq_bytes bytes);

/* The bytes of a tagged value, or the digits of an integer, or none; the caller frees `data`. */
redisq_bytes untag(const cJSON *value);

#endif
