// Program files: any bytes give a clear error or a program that verifies, with and without the
// checksums in the way.
#include <stdlib.h>

#include "artifact/file_form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int check_sums = 0; check_sums < 2; ++check_sums) {
        berth_arena *arena = NULL;
        if (berth_arena_create(berth_allocator_system(), &arena)) return 0;
        const berth_program *program = NULL;
        berth_status status = berth_artifact__parse(arena, data, size, check_sums == 1, &program);
        if (!status && (!program || berth_program_verify(program))) abort();
        if (status && program) abort();
        berth_status_free(status);
        berth_arena_destroy(arena);
    }
    return 0;
}
