// The format: "Trace Event Format"
// (docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU), JSON object form,
// complete events ("X") and metadata ("M"). Times are microseconds.
#include "base/trace.h"

#include "base/file.h"

static void add_name(berth_strbuf *out, const char *what, uint32_t track, const char *name) {
    berth_strbuf_addf(
        out, "{\"ph\":\"M\",\"name\":\"%s\",\"pid\":1,\"tid\":%u,\"args\":{\"name\":", what, track);
    berth_strbuf_add_json(out, name);
    berth_strbuf_add(out, "}}");
}

static void add_event(berth_strbuf *out, const berth_trace_event *event, int64_t origin_ns) {
    int64_t start_ns = event->start_ns - origin_ns;
    int64_t length_ns = event->end_ns > event->start_ns ? event->end_ns - event->start_ns : 0;
    berth_strbuf_add(out, "{\"ph\":\"X\",\"name\":");
    berth_strbuf_add_json(out, event->name);
    berth_strbuf_add(out, ",\"cat\":");
    berth_strbuf_add_json(out, event->category);
    berth_strbuf_addf(out, ",\"pid\":1,\"tid\":%u,\"ts\":%lld.%03d,\"dur\":%lld.%03d",
                      event->track + 1, (long long)(start_ns / 1000), (int)(start_ns % 1000),
                      (long long)(length_ns / 1000), (int)(length_ns % 1000));
    if (event->detail || event->size_bytes) {
        berth_strbuf_add(out, ",\"args\":{");
        if (event->detail) {
            berth_strbuf_add(out, "\"detail\":");
            berth_strbuf_add_json(out, event->detail);
        }
        if (event->size_bytes)
            berth_strbuf_addf(out, "%s\"bytes\":%llu", event->detail ? "," : "",
                              (unsigned long long)event->size_bytes);
        berth_strbuf_add(out, "}");
    }
    berth_strbuf_add(out, "}");
}

void berth_trace_print(berth_strbuf *out, const char *process, const char *const *tracks,
                       uint32_t track_count, const berth_trace_event *events,
                       uint32_t event_count) {
    int64_t origin_ns = event_count ? events[0].start_ns : 0;
    for (uint32_t i = 1; i < event_count; ++i)
        if (events[i].start_ns < origin_ns) origin_ns = events[i].start_ns;
    berth_strbuf_add(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    add_name(out, "process_name", 0, process);
    for (uint32_t i = 0; i < track_count; ++i) {
        berth_strbuf_add(out, ",\n");
        add_name(out, "thread_name", i + 1, tracks[i]);
    }
    for (uint32_t i = 0; i < event_count; ++i) {
        berth_strbuf_add(out, ",\n");
        add_event(out, &events[i], origin_ns);
    }
    berth_strbuf_add(out, "\n]}\n");
}

typedef struct trace_call {
    berth_arena *arena;
    const char *path;
    const char *process;
    const char *const *tracks;
    uint32_t track_count;
    const berth_trace_event *events;
    uint32_t event_count;
} trace_call;

static berth_status write_body(void *user) {
    const trace_call *call = user;
    berth_strbuf text = berth_strbuf_make(call->arena);
    berth_trace_print(&text, call->process, call->tracks, call->track_count, call->events,
                      call->event_count);
    return berth_file_write(call->path, text.data, text.length);
}

berth_status berth_trace_write(const char *path, const char *process, const char *const *tracks,
                               uint32_t track_count, const berth_trace_event *events,
                               uint32_t event_count) {
    trace_call call = {NULL, path, process, tracks, track_count, events, event_count};
    return berth_arena_scratch(write_body, &call, &call.arena);
}
