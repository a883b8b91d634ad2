// Program files: any bytes give a clear error or a program that verifies, with and without the
// checksums in the way.
#include <stdlib.h>

#include "artifact/family.h"
#include "artifact/file_form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Programs for many shapes: the members at the ends of their bounds are programs that verify, or errors.
typedef struct members_job {
    berth_arena *arena;
    const berth_vm_body *body;
} members_job;

static berth_status make_members(void *user) {
    const members_job *job = user;
    for (uint32_t i = 0; i < 2 * job->body->family_count; ++i) {
        const berth_vm_family *family = &job->body->families[i / 2];
        int64_t values[BERTH_FAMILY_VARIABLES];
        berth_vm_variant made;
        for (uint32_t v = 0; v < family->header->variable_count; ++v)
            values[v] = i % 2 ? family->variables[v].high : family->variables[v].low;
        berth_status status = berth_vm_family_member(job->body, family, values, job->arena, &made);
        if (!status && made.program && berth_program_verify(made.program)) abort();
        berth_status_free(status);
    }
    return BERTH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int check_sums = 0; check_sums < 2; ++check_sums) {
        berth_arena *arena = NULL;
        if (berth_arena_create(berth_allocator_system(), &arena)) return 0;
        const berth_program *program = NULL;
        berth_status status = berth_artifact__parse(arena, data, size, check_sums == 1, &program);
        if (!status && (!program || berth_program_verify(program))) abort();
        if (status && program) abort();
        if (!status && program->vm) {
            members_job job = {arena, program->vm};
            status = berth_arena_try(arena, make_members, &job);
        }
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
    return 0;
}
