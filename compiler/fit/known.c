// Plans that a memory did not hold, so that none is made twice.
#include <string.h>

#include "compiler/fit/fit.h"
#include "compiler/package/package.h"

typedef struct berth_fit_refusal {
    struct berth_fit_refusal *next;
    char *patches, *slices;
    berth_status status;  // a copy
    uint32_t device, memory;
    uint64_t needed_bytes;
} berth_fit_refusal;

struct berth_fit_known {
    berth_fit_refusal *first;
};

static char *copy_text(const char *text) {
    size_t size_bytes = strlen(text) + 1;
    char *copy = berth_alloc(berth_allocator_system(), size_bytes);
    if (copy) memcpy(copy, text, size_bytes);
    return copy;
}

static void free_text(char *text) {
    if (text) berth_free(berth_allocator_system(), text, strlen(text) + 1);
}

static void free_refusal(berth_fit_refusal *refusal) {
    free_text(refusal->patches);
    free_text(refusal->slices);
    berth_status_free(refusal->status);
    berth_free(berth_allocator_system(), refusal, sizeof(*refusal));
}

berth_status berth_fit__known_create(struct berth_fit_known **out_known) {
    *out_known = berth_calloc(berth_allocator_system(), 1, sizeof(**out_known));
    return *out_known ? BERTH_OK : berth_status_oom();
}

void berth_fit__known_destroy(struct berth_fit_known *known) {
    if (!known) return;
    for (berth_fit_refusal *refusal = known->first; refusal;) {
        berth_fit_refusal *next = refusal->next;
        free_refusal(refusal);
        refusal = next;
    }
    berth_free(berth_allocator_system(), known, sizeof(*known));
}

// Where values have several memories, which of them a value is in depends on the limits of all.
bool berth_fit__may_know(const berth_fit_tries *tries, const berth_compile_options *options) {
    const berth_multi_target *target = options->target;
    bool placed = options->strategy && strcmp(options->strategy, "default") != 0;
    if (!tries->known || target->executor != BERTH_EXECUTOR_AOT || target->device_count != 1 ||
        options->stop_after || placed)
        return false;
    for (uint32_t m = 0; m < target->memory_count; ++m)
        if (berth_packager__takes_values(target, m)) return false;
    return true;
}

static const char *patches_of(const berth_compile_options *options) {
    return options->patches ? options->patches : "";
}

berth_status berth_fit__ask(void *user, const char *slices) {
    berth_fit_question *question = user;
    const berth_multi_target *target = question->options->target;
    free_text(question->slices);
    question->slices = copy_text(slices);
    if (!question->slices) return berth_status_oom();
    for (const berth_fit_refusal *r = question->known->first; r; r = r->next)
        if (strcmp(r->slices, slices) == 0 &&
            strcmp(r->patches, patches_of(question->options)) == 0 &&
            target->memories[r->memory].budget_bytes < r->needed_bytes) {
            question->found = r;
            return berth_status_clone(r->status);
        }
    return BERTH_OK;
}

const char *berth_fit__patches_of_least(const struct berth_fit_known *known, uint32_t memory) {
    const berth_fit_refusal *least = NULL;
    for (const berth_fit_refusal *r = known->first; r; r = r->next)
        if (r->memory == memory && (!least || r->needed_bytes < least->needed_bytes)) least = r;
    return least ? least->patches : NULL;
}

void berth_fit__answer(berth_fit_question *question, berth_status *out_status,
                       berth_compile_result *out_result) {
    const berth_fit_refusal *found = question->found;
    uint64_t limit_bytes = question->options->target->memories[found->memory].budget_bytes;
    *out_result = (berth_compile_result){.over_device = found->device,
                                         .over_memory = found->memory,
                                         .over_bytes = found->needed_bytes - limit_bytes};
    free_text(question->slices);
    question->slices = NULL;
    *out_status = berth_status_clone(found->status);
}

static void keep(berth_fit_question *question, berth_status status,
                 const berth_compile_result *result) {
    const berth_multi_target *target = question->options->target;
    berth_fit_refusal *refusal = berth_calloc(berth_allocator_system(), 1, sizeof(*refusal));
    if (!refusal) return;
    *refusal = (berth_fit_refusal){
        .next = question->known->first,
        .patches = copy_text(patches_of(question->options)),
        .slices = question->slices,
        .status = berth_status_clone(status),
        .device = result->over_device,
        .memory = result->over_memory,
        .needed_bytes = target->memories[result->over_memory].budget_bytes + result->over_bytes};
    question->slices = NULL;
    if (refusal->patches)
        question->known->first = refusal;
    else
        free_refusal(refusal);
}

void berth_fit__learn(berth_fit_question *question, berth_status status,
                      const berth_compile_result *result) {
    bool refused = status && status != berth_status_oom() && result->over_bytes > 0;
    if (refused && question->slices) keep(question, status, result);
    free_text(question->slices);
    question->slices = NULL;
}
