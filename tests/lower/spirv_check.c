#include "tests/lower/spirv_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "compiler/codegen/codegen.h"

enum { most_output = 2000 };

// BERTH_SPIRV_VAL: another one than the system's, for what is newer than that.
static const char *validator(void) {
    const char *given = getenv("BERTH_SPIRV_VAL");
    return given && *given ? given : "spirv-val";
}

static bool has_validator(void) {
    char command[400];
    snprintf(command, sizeof(command), "command -v %.300s >/dev/null", validator());
    return system(command) == 0;
}

// SPIRV-Tools before 2023.4 do not know SPV_KHR_cooperative_matrix: such a module is not checked, which is said once.
static bool is_too_new(const char *output) {
    static bool said = false;
    if (!strstr(output, "Invalid capability operand: 6022")) return false;
    if (!said)
        printf("BERTH-SKIPPED 1: spirv-val does not know cooperative matrices: kernels with them "
               "are not checked (BERTH_SPIRV_VAL names another)\n");
    fflush(stdout);
    said = true;
    return true;
}

static const char *run_validator(const char *path, berth_arena *arena) {
    char *command = berth_arena_printf(
        arena, "%s --target-env vulkan1.2 --scalar-block-layout %s 2>&1", validator(), path);
    FILE *pipe = popen(command, "r");
    if (!pipe) return "popen failed";
    char *output = berth_arena_alloc(arena, most_output);
    size_t length = fread(output, 1, most_output - 1, pipe);
    output[length] = 0;
    bool is_valid = pclose(pipe) == 0 || is_too_new(output);
    return is_valid ? NULL : berth_arena_printf(arena, "spirv-val: %s", output);
}

static const char *check_modules(const uint32_t *words, size_t count, berth_arena *arena) {
    const char *problem = NULL;
    char path[] = "/tmp/berth-spirv-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) return "no temporary file";
    close(file);
    for (size_t i = 0; i < count && !problem; i += 1 + words[i]) {
        berth_status status = berth_file_write(path, words + i + 1, 4 * (size_t)words[i]);
        if (status) problem = berth_arena_strdup(arena, berth_status_message(status));
        berth_status_free(status);
        if (!problem) problem = run_validator(path, arena);
    }
    unlink(path);
    return problem;
}

const char *spirv_check(const berth_tfn *fn, const berth_target *target, berth_arena *arena) {
    static int here = -1;
    if (here < 0) here = has_validator();
    const char *required = getenv("BERTH_REQUIRE_DRIVERS");
    if (!here)
        return required && strstr(required, "vulkan") ? "there is no spirv-val (spirv-tools)"
                                                      : NULL;
    berth_codegen_result code;
    berth_status status = berth_codegen_spirv.print(fn, target, "k", arena, &code);
    bool refused = berth_status_code(status) == BERTH_UNSUPPORTED;
    const char *problem =
        status && !refused ? berth_arena_strdup(arena, berth_status_message(status)) : NULL;
    if (!status) problem = check_modules(code.code, (size_t)code.code_bytes / 4, arena);
    berth_status_free(status);
    return problem;
}
