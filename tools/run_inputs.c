#include "tools/run_inputs.h"

#include <string.h>

#include "base/tensor.h"

berth_status berth_run_inputs_feed(berth_session *session, const berth_cli_values *given,
                                   uint64_t seed) {
    for (uint32_t i = 0; i < given->input_count; ++i)
        BERTH_TRY(
            berth_session_set_input(session, given->inputs[i].name, &given->inputs[i].tensor));
    for (uint32_t i = 0; berth_session_input(session, i); ++i) {
        bool bound = false;
        for (uint32_t j = 0; j < given->input_count; ++j)
            bound |= strcmp(given->inputs[j].name, berth_session_input_name(session, i)) == 0;
        if (bound) continue;
        berth_tensor tensor = *berth_session_input(session, i);
        berth_tensor_fill_random(&tensor, seed + i);
    }
    return BERTH_OK;
}
