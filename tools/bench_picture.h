// The latencies of `berth bench` as a picture.
#ifndef BERTH_TOOLS_BENCH_PICTURE_H_
#define BERTH_TOOLS_BENCH_PICTURE_H_

#include "base/str.h"

typedef struct berth_bench_facts {
    const char *model;
    const double *latency_ms;  // sorted
    uint64_t count;            // 1 at least
    double throughput_per_s;
    uint32_t streams;
    double predicted_ms;  // 0 = unknown
} berth_bench_facts;

// Latency against the share of runs that take no longer, with more room for the slowest ones, as an SVG
// document; p50, p90 and p99 are marked, and what was predicted is a line. Inside berth_arena_try of the
// buffer's arena.
void berth_bench_draw(const berth_bench_facts *facts, berth_strbuf *out);

#endif  // BERTH_TOOLS_BENCH_PICTURE_H_
