// Trace of a run as Chrome trace events, which Perfetto (ui.perfetto.dev) and chrome://tracing
// open: one track per device queue, one slice per step. Predicted and measured timelines use the
// same form and can be compared.
//
//   berth_trace_event events[] = {{.name = "conv1", .category = "kernel", .track = 0, .start_ns =
//   t0, .end_ns = t1}}; const char *tracks[] = {"cpu:0"}; BERTH_TRY(berth_trace_write("trace.json",
//   "resnet50", tracks, 1, events, 1));
#ifndef BERTH_BASE_TRACE_H_
#define BERTH_BASE_TRACE_H_

#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

typedef struct berth_trace_event {
    const char *name;      // "conv1+relu1"
    const char *category;  // "kernel", "copy", "run"
    const char *detail;    // shown with the slice; may be NULL
    uint64_t size_bytes;   // shown when not 0
    uint32_t track;        // index into the tracks
    int64_t start_ns;      // any clock; the trace starts at the earliest event
    int64_t end_ns;
} berth_trace_event;

// Adds the whole JSON document to `out`. Same input, same text.
void berth_trace_print(berth_strbuf *out, const char *process, const char *const *tracks,
                       uint32_t track_count, const berth_trace_event *events, uint32_t event_count);

// Writes it to a file ("-" = stdout). Errors: IO, OUT_OF_MEMORY.
BERTH_MUST_USE berth_status berth_trace_write(const char *path, const char *process,
                                              const char *const *tracks, uint32_t track_count,
                                              const berth_trace_event *events,
                                              uint32_t event_count);

#endif  // BERTH_BASE_TRACE_H_
