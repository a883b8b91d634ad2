// How much of a file from outside is read: limits of size, depth and time, which readers keep with
// messages that say which one was met. Docs: docs/limits.md.
//
//   berth_limits limits;
//   BERTH_TRY(berth_limits_parse("bytes=64MiB,items=10000,depth=50,time=5s", &limits));
//   BERTH_TRY(berth_limits_check_bytes(&limits, path, size_bytes, own_limit));
//   berth_limit_watch watch = berth_limits_watch(&limits, path, "operations", own_limit);
//   for (...) BERTH_TRY(berth_limit_item(&watch));
#ifndef BERTH_BASE_LIMITS_H_
#define BERTH_BASE_LIMITS_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

// 0 = the reader's own limit. `limits` is NULL below where nobody set any.
typedef struct berth_limits {
    uint64_t bytes;   // of a file that is read; not of external data, which is mapped
    uint64_t items;   // operations, statements, nodes, buffers, steps
    uint64_t depth;   // levels of regions, statements, graphs in attributes, calls
    int64_t time_ns;  // of reading; of compiling, too, where it is given
} berth_limits;

#define BERTH_LIMITS_TIME_NS INT64_C(600000000000)  // of reading, where none is given

// Reads "NAME=VALUE,..." with the names bytes ("64MiB"), items, depth (at most 500, which the readers'
// stacks are made for) and time ("5s"); NULL or "" = none.
// Errors: INVALID_ARGUMENT another name, a value that is none, a name twice.
BERTH_MUST_USE berth_status berth_limits_parse(const char *text, berth_limits *out_limits);

// A file's size against the limit, or `own` where none is set (0: any size). Errors: OUT_OF_RANGE.
BERTH_MUST_USE berth_status berth_limits_check_bytes(const berth_limits *limits, const char *file,
                                                     uint64_t size_bytes, uint64_t own);

static inline uint64_t berth_limits_depth(const berth_limits *limits, uint64_t own) {
    return limits && limits->depth && limits->depth < own ? limits->depth : own;
}

// What a reader has read so far. `file` and `what` ("operations") are for messages and outlive it.
typedef struct berth_limit_watch {
    const char *file, *what;
    uint64_t items, most;
    int64_t deadline_ns, time_ns;
} berth_limit_watch;

// Begins now. `own`: the most items where no limit is set, 0 = any number.
berth_limit_watch berth_limits_watch(const berth_limits *limits, const char *file, const char *what,
                                     uint64_t own);
// One item more; now and then looks at the clock. Errors: OUT_OF_RANGE too many, or too late.
BERTH_MUST_USE berth_status berth_limit_item(berth_limit_watch *watch);
// Many items more. Errors: as above.
BERTH_MUST_USE berth_status berth_limit_items(berth_limit_watch *watch, uint64_t count);

// Quantities as people write them: "64MiB", "512K", "4096"; "500ms", "10s", "2m", "10" (seconds).
// False when it is no such text (a time of 0 is none).
bool berth_parse_bytes(const char *text, uint64_t *out_bytes);
bool berth_parse_time(const char *text, int64_t *out_ns);

#endif  // BERTH_BASE_LIMITS_H_
