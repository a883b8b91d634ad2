// Writes random program files of the present version, the seeds of fuzz_artifact_file and
// fuzz_program_run. Usage: make_program_corpus FOLDER   (tests/fuzz/corpus/artifact_file)
#include <stdio.h>

#include "artifact/file.h"
#include "tests/artifact/random_program.h"

static int write_one(const char *folder, uint64_t seed) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/program_%llu", folder, (unsigned long long)seed);
    berth_arena *arena = NULL;
    berth_status status = berth_arena_create(berth_allocator_system(), &arena);
    if (!status) status = berth_program_write(random_program(arena, seed), path);
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
    for (uint64_t seed = 1; seed <= 8 && !failed; ++seed) failed = write_one(argv[1], seed);
    return failed;
}
