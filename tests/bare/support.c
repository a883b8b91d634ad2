#include "tests/bare/support.h"

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ir/text.h"
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

berth_status bare_build(bare_built *built, const char *text, const char *target, const char *name) {
    berth_module *module = NULL;
    assert_ok(berth_arena_create(berth_allocator_system(), &built->arena));
    assert_ok(berth_module_parse(built->arena, text, strlen(text), "test", &module));
    BERTH_TRY(bare_compile(module, target, false, &built->program, &built->memory));
    berth_bare_options options = {.name = name, .memory = built->memory};
    return berth_bare_print(built->program, &options, built->arena, &built->files, &built->count);
}

void bare_end(bare_built *built) {
    berth_arena_destroy(built->arena);
}

const char *bare_text_of(const bare_built *built, const char *file) {
    for (uint32_t i = 0; i < built->count; ++i)
        if (strcmp(built->files[i].name, file) == 0) return built->files[i].text;
    cr_assert_fail("no file %s", file);
    return NULL;
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
