#include <criterion/criterion.h>
#include <string.h>

#include "base/trace.h"

static berth_arena *arena;

static void setup(void) {
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
}

static void teardown(void) {
    berth_arena_destroy(arena);
}

TestSuite(trace, .init = setup, .fini = teardown);

Test(trace, prints_tracks_and_slices) {
    const berth_trace_event events[] = {{.name = "b\"1",
                                         .category = "kernel",
                                         .detail = "Conv",
                                         .track = 1,
                                         .start_ns = 5001500,
                                         .end_ns = 5003750},
                                        {.name = "a",
                                         .category = "copy",
                                         .size_bytes = 64,
                                         .track = 0,
                                         .start_ns = 5000000,
                                         .end_ns = 5000000}};
    const char *const tracks[] = {"cpu:0", "opencl:0"};
    berth_strbuf text = berth_strbuf_make(arena);
    berth_trace_print(&text, "net", tracks, 2, events, 2);
    cr_assert_str_eq(
        text.data,
        "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{\"name\":\"net\"}},"
        "\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"cpu:0\"}},"
        "\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"opencl:"
        "0\"}},\n"
        "{\"ph\":\"X\",\"name\":\"b\\\"1\",\"cat\":\"kernel\",\"pid\":1,\"tid\":2,\"ts\":1.500,"
        "\"dur\":2.250,\"args\":{\"detail\":\"Conv\"}},\n"
        "{\"ph\":\"X\",\"name\":\"a\",\"cat\":\"copy\",\"pid\":1,\"tid\":1,\"ts\":0.000,\"dur\":0."
        "000,"
        "\"args\":{\"bytes\":64}}\n]}\n");
}

Test(trace, json_text_is_escaped) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_strbuf_add_json(&text, "a\"\\\n\x01\xc3\xa9\xff\xe2\x82");
    cr_assert_str_eq(text.data, "\"a\\\"\\\\\\n\\u0001\xc3\xa9\\ufffd\\ufffd\\ufffd\"");
}
