#include "drivers/vta/emit/steps.h"

bool berth_vta_steps_add(berth_vta_steps *list, berth_vta_step step) {
    if (list->count == BERTH_VTA_MOST_STEPS) return false;
    list->steps[list->count++] = step;
    list->has_copy = list->has_copy || step.to_copy;
    return true;
}

bool berth_vta_step_loads(const berth_vta_step *step) {
    return !step->resets && step->by == BERTH_VTA_BY_NUMBER &&
           (step->number < INT16_MIN || step->number > INT16_MAX);
}

uint32_t berth_vta_steps_loaded(const berth_vta_steps *list) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; ++i) count += berth_vta_step_loads(&list->steps[i]);
    return count;
}
