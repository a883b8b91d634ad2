// Writes random program files of the present version, the seeds of fuzz_artifact_file and
// fuzz_program_run. Usage: make_program_corpus FOLDER   (tests/fuzz/corpus/artifact_file)
#include <stdio.h>

#include "artifact/file.h"
#include "tests/artifact/random_program.h"
#include "tests/artifact/vm_program.h"

// With a fallback, the program is its own.
static int write_one(const char *folder, const char *name, uint64_t seed, uint32_t fallback_count,
                     bool byte_code) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s_%llu", folder, name, (unsigned long long)seed);
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (!status) {
        berth_program whole = byte_code ? *vm_program(arena, seed) : *random_program(arena, seed);
        const berth_program alone = whole;
        const berth_program *list[] = {&alone};
        whole.fallbacks = list;
        whole.fallback_count = fallback_count;
        status = berth_program_write(&whole, path);
    }
    if (status) fprintf(stderr, "%s\n", berth_status_message(status));
    int failed = status != NULL;
    berth_status_free(status);
    berth_arena_destroy(arena);
    return failed;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: make_program_corpus FOLDER\n", stderr);
        return 2;
    }
    int failed = 0;
    for (uint64_t seed = 1; seed <= 8 && !failed; ++seed)
        failed = write_one(argv[1], "program", seed, 0, false);
    for (uint64_t seed = 2; seed <= 4 && !failed; ++seed)
        failed = write_one(argv[1], "fallback", seed, 1, false);
    for (uint64_t seed = 1; seed <= 3 && !failed; ++seed)
        failed = write_one(argv[1], "byte_code", seed, 0, true);
    return failed;
}
