// Runs on buffers of the caller.
#include <string.h>

#include "executor/session_private.h"

static berth_status check_count(const char *what, uint32_t expected, uint32_t given) {
    if (expected == given) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the program has %u %s%s, but %u were given",
                             expected, what, expected == 1 ? "" : "s", given);
}

static void copy(const berth_tensor *destination, const berth_tensor *source) {
    if (destination->data != source->data && source->data)
        memcpy(destination->data, source->data, berth_tensor_size_bytes(source));
}

berth_status berth_session_run_with(berth_session *session, const berth_tensor *inputs,
                                    uint32_t input_count, const berth_tensor *outputs,
                                    uint32_t output_count, int64_t timeout_ns) {
    const berth_program *program = session->program;
    BERTH_TRY(check_count("input", program->input_count, input_count));
    BERTH_TRY(check_count("output", program->output_count, output_count));
    for (uint32_t i = 0; i < input_count; ++i)
        BERTH_TRY(berth_executor__check_same("input", program->inputs[i].name, &session->inputs[i],
                                             &inputs[i]));
    for (uint32_t i = 0; i < output_count; ++i)
        BERTH_TRY(berth_executor__check_same("output", program->outputs[i].name,
                                             &session->outputs[i], &outputs[i]));
    for (uint32_t i = 0; i < input_count; ++i) copy(&session->inputs[i], &inputs[i]);
    BERTH_TRY(berth_session_run(session, timeout_ns));
    for (uint32_t i = 0; i < output_count; ++i) copy(&outputs[i], &session->outputs[i]);
    return BERTH_OK;
}
