#include "tests/toolkit/vulkan_work.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "devices/registry.h"
#include "executor/session.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/check.h"

enum { most_values = 32 };

bool vulkan_is_here(void) {
    berth_driver *driver = NULL;
    berth_status status = berth_driver_open("vulkan", berth_allocator_system(), &driver);
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    cr_assert(!status || !required || !strstr(required, "vulkan"), "%s",
              berth_status_message(status));
    bool here = !status;
    berth_status_free(status);
    berth_driver_close(driver);
    return here;
}

vulkan_work vulkan_build(const char *text, const char *short_form) {
    vulkan_work w = {.arena = NULL};
    berth_multi_target *target = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &w.arena));
    assert_ok(berth_module_parse(w.arena, text, strlen(text), "text", &w.module));
    assert_ok(berth_target_parse(w.arena, short_form, NULL, &target));
    berth_compile_options options = {.target = target};
    assert_ok(berth_compile(w.module, &options, &result));
    w.program = result.program;
    return w;
}

double vulkan_compare(vulkan_work w, const char *text,
                      void (*fill)(berth_tensor *tensor, uint32_t index)) {
    vulkan_work reference = {.arena = w.arena};
    berth_session *session = NULL;
    assert_ok(berth_module_parse(w.arena, text, strlen(text), "text", &reference.module));
    assert_ok(berth_session_open(berth_allocator_system(), w.program, NULL, &session));
    berth_func_id main = berth_module_find_function(reference.module, "main");
    const berth_region *root = &berth_graph_get(reference.module, main)->regions.data[0];
    berth_tensor inputs[most_values], expected[most_values];
    uint32_t params = root->params.count, results = root->results.count;
    for (uint32_t i = 0; i < params; ++i) {
        inputs[i] = *berth_session_input(session, i);
        fill(&inputs[i], i);
    }
    assert_ok(
        berth_eval_function(reference.module, main, inputs, params, expected, results, w.arena));
    assert_ok(berth_session_run(session, -1));
    double worst = 0;
    for (uint32_t r = 0; r < results; ++r)
        for (int64_t i = 0; i < berth_tensor_element_count(&expected[r]); ++i) {
            double x = berth_tensor_get_f64(&expected[r], i);
            double y = berth_tensor_get_f64(berth_session_output(session, r), i);
            if (x == y || (isnan(x) && isnan(y))) continue;
            worst = fmax(worst, isnan(x) || isnan(y) ? INFINITY : fabs(x - y) / (1 + fabs(x)));
        }
    berth_session_close(session);
    berth_arena_destroy(w.arena);
    return worst;
}

int vulkan_count(const berth_program *program, bool (*counts)(const uint32_t *at, uint32_t half)) {
    enum { header = 5, type_float = 22 };
    int found = 0;
    for (uint32_t i = 0; i < program->executable_count; ++i) {
        if (strcmp(program->executables[i].device_kind, "vulkan") != 0) continue;
        const uint32_t *words = program->executables[i].data;
        size_t count = (size_t)program->executables[i].size_bytes / sizeof(*words);
        for (size_t module = 0; module < count; module += 1 + words[module]) {
            uint32_t half = 0;
            for (size_t at = module + 1 + header; at <= module + words[module];
                 at += words[at] >> 16) {
                cr_assert(words[at] >> 16, "word %zu of an image", at);
                if ((words[at] & 0xffff) == type_float && words[at + 2] == 16) half = words[at + 1];
                found += counts(words + at, half);
            }
        }
    }
    return found;
}
