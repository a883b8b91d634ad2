#include "tests/toolkit/loader_faults.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compile.h"
#include "ir/text.h"
#include "tests/check.h"

faulty_work faulty_build(const char *target_text) {
    static const char text[] = "module \"m\"\ngraph @main(%x: f32[5,333]) {\n"
                               "  %y = softmax(%x) #1\n  %z = softmax(%y) #2\n  return %z\n}\n"
                               "locations {\n  #1 = \"m\" node \"rows\" op \"Softmax\"\n"
                               "  #2 = \"m\" node \"again\" op \"Softmax\"\n}\n";
    faulty_work w = {.arena = NULL};
    berth_multi_target *target = NULL;
    berth_module *module = NULL;
    berth_compile_result result;
    assert_ok(berth_arena_create(berth_allocator_system(), &w.arena));
    assert_ok(berth_module_parse(w.arena, text, strlen(text), "text", &module));
    assert_ok(berth_target_parse(w.arena, target_text, NULL, &target));
    berth_compile_options options = {.target = target};
    assert_ok(berth_compile(module, &options, &result));
    w.program = result.program;
    return w;
}

const char *faulty_outcome(const faulty_work *w, const char *variable, const char *fault,
                           const berth_session_options *options, berth_code *out_code) {
    static char text[1000];
    berth_session *session = NULL;
    setenv(variable, fault, 1);
    berth_status status =
        berth_session_open(berth_allocator_system(), w->program, options, &session);
    for (int run = 0; run < 2 && !status; ++run) {
        berth_tensor_fill_random((berth_tensor *)(uintptr_t)berth_session_input(session, 0), 3);
        status = berth_session_run(session, -1);
        double sum = 0;
        for (int64_t i = 0; i < 333 && !status; ++i)
            sum += berth_tensor_get_f64(berth_session_output(session, 0), i);
        if (!status) cr_expect_float_eq(sum, 1, 1e-5, "%s", fault);  // a row of a softmax
    }
    *out_code = berth_status_code(status);
    snprintf(text, sizeof(text), "%s", status ? berth_status_message(status) : "");
    berth_status_free(status);
    berth_session_close(session);
    return text;
}
