#include "tests/bare/support.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/check.h"

berth_status bare_compile(berth_module *module, const char *target_text, bool small,
                          const berth_program **out_program,
                          const berth_memory_report **out_memory) {
    berth_target_options target_options = {.executor = "aot", .runtime = "bare"};
    berth_multi_target *target = NULL;
    berth_compile_result result = {0};
    BERTH_TRY(berth_target_parse(module->arena, target_text, &target_options, &target));
    berth_compile_options options = {.target = target, .small_code = small, .verify = true};
    BERTH_TRY(berth_compile(module, &options, &result));
    *out_program = result.program;
    *out_memory = result.memory;
    return BERTH_OK;
}

void make_folder(char path[64]) {
    strcpy(path, "/tmp/berth-bare-XXXXXX");
    cr_assert(mkdtemp(path));
}

void write_bytes(const char *path, const void *data, size_t size_bytes) {
    FILE *file = fopen(path, "wb");
    cr_assert(file, "%s", path);
    cr_assert_eq(fwrite(data, 1, size_bytes, file), size_bytes);
    cr_assert_eq(fclose(file), 0);
}

void write_files(const char *folder, const berth_bare_file *files, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
        write_bytes(path, files[i].text, files[i].size_bytes);
    }
}

__attribute__((format(printf, 2, 0))) static int run(bool loud, const char *format,
                                                     va_list arguments) {
    char command[2048];
    int length = vsnprintf(command, sizeof(command) - 32, format, arguments);
    cr_assert(length > 0 && length < (int)sizeof(command) - 32);
    if (!loud) strcat(command, " >/dev/null 2>&1");
    int status = system(command);
    int result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (loud) cr_assert_eq(result, 0, "exit status %d of: %s", result, command);
    return result;
}

void shell(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    run(true, format, arguments);
    va_end(arguments);
}

int shell_status(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int status = run(false, format, arguments);
    va_end(arguments);
    return status;
}

void remove_tree(const char *path) {
    cr_assert_eq(strncmp(path, "/tmp/berth-bare-", 16), 0);
    shell("rm -rf %s", path);
}
