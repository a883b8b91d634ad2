#include "tests/bare/sources.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "compiler/compile.h"
#include "ir/eval.h"
#include "ir/text.h"
#include "tests/bare/support.h"
#include "tests/check.h"
#include "tests/lower/op_case.h"

static void name_value(sources *s, berth_func_id function, berth_value_id value, const char *name) {
    berth_graph_get(s->module, function)->values.data[value].name =
        berth_module_intern(s->module, name);
}

berth_status sources_expect(sources *s, berth_func_id function) {
    const berth_graph *graph = berth_graph_get(s->module, function);
    const berth_region *root = &graph->regions.data[0];
    const berth_type *type =
        berth_type_get(s->module, graph->values.data[root->params.data[0]].type);
    name_value(s, function, root->params.data[0], "x");
    name_value(s, function, root->results.data[0], "y");
    s->input = berth_tensor_create(s->arena, type->dtype, type->rank, type->dims);
    berth_tensor_fill_random(&s->input, 11);
    for (int64_t i = 0;
         berth_dtype_size_bytes(type->dtype) == 1 && i < berth_tensor_element_count(&s->input); ++i)
        ((uint8_t *)s->input.data)[i] = (uint8_t)((i * 2654435761u) >> 7);
    return berth_eval_function(s->module, function, &s->input, 1, &s->expected, 1, s->arena);
}

const char *sources_code(const sources *s) {
    for (uint32_t i = 0; i < s->file_count; ++i)
        if (strcmp(s->files[i].name, "m.c") == 0) return s->files[i].text;
    return "";
}

static void compare(const sources *s, const char *folder, const char *where) {
    char path[128], *out = NULL;
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/out", folder);
    assert_ok(berth_file_read(s->arena, path, 1 << 20, &out, &size));
    cr_assert_eq(size, berth_tensor_size_bytes(&s->expected), "%s, %s", s->text, where);
    berth_tensor got = s->expected;
    got.data = out;
    const char *problem =
        op_case_differ(&s->expected, &got, 0, berth_dtype_is_float(got.dtype) ? 1e-5 : 0, s->arena);
    cr_expect_null(problem, "%s, %s: %s", s->text, where, problem);
}

void sources_run_natively(const sources *s, const char *folder) {
    shell("cd %s && gcc " BARE_WARNINGS " -O1 -fsanitize=address,undefined "
          "-fno-sanitize-recover=all -o program *.c -lm && ./program <in >out",
          folder);
    compare(s, folder, "natively");
}

void sources_run_on_board(const sources *s, const char *folder, const char *flags,
                          const char *board, const char *machine) {
    char here[256];
    cr_assert(realpath("tests/bare/board", here));
    shell("cd %s && arm-none-eabi-gcc " BARE_WARNINGS " %s -mthumb -mfloat-abi=hard "
          "-nostartfiles --specs=rdimon.specs -L %s -T %s -o program.elf m.c m_weights.c main.c "
          "%s/startup.c -lm && qemu-system-arm -M %s -display none -serial none -monitor none "
          "-semihosting-config enable=on,target=native -kernel program.elf <in >out",
          folder, flags, here, board, here, machine);
    compare(s, folder, machine);
}

void sources_print(sources *s, const berth_program *program, const berth_memory_report *memory,
                   const char *folder) {
    char path[128];
    berth_bare_options options = {.name = "m", .memory = memory};
    assert_ok(berth_bare_print(program, &options, s->arena, &s->files, &s->file_count));
    write_files(folder, s->files, s->file_count);
    snprintf(path, sizeof(path), "%s/in", folder);
    write_bytes(path, s->input.data, berth_tensor_size_bytes(&s->input));
}

void sources_add_constant(berth_strbuf *out, const char *name, const char *type, int64_t count,
                          int64_t *seed) {
    bool floats = type[0] == 'f';
    berth_strbuf_addf(out, "  %%%s = constant() {value = %s (", name, type);
    for (int64_t i = 0; i < count; ++i) {
        *seed = (*seed * 1103515245 + 12345) % 2147483648;
        int value = (int)(*seed / 65536 % 255) - 127;
        berth_strbuf_addf(out, floats ? "%s%.6f" : "%s%.0f", i ? ", " : "",
                          floats ? value / 256.0 : (double)value);
    }
    berth_strbuf_add(out, ")}\n");
}

berth_status sources_compile(sources *s, const char *target_text, const berth_program **program,
                             const berth_memory_report **memory) {
    berth_target_options target_options = {.executor = "aot", .runtime = "bare"};
    berth_multi_target *target = NULL;
    berth_compile_result result = {0};
    BERTH_TRY(berth_module_parse(s->arena, s->text, strlen(s->text), "test", &s->module));
    BERTH_TRY(sources_expect(s, berth_module_find_function(s->module, "main")));
    BERTH_TRY(berth_target_parse(s->arena, target_text, &target_options, &target));
    berth_compile_options options = {
        .target = target, .patches = s->patches, .small_code = s->small, .verify = true};
    if (s->fit) {
        BERTH_TRY(berth_fit(s->module, &options, &s->fitted));
        result = s->fitted.result;
    } else {
        BERTH_TRY(berth_compile(s->module, &options, &result));
    }
    *program = result.program;
    *memory = result.memory;
    return BERTH_OK;
}

uint64_t sources_bytes(sources s, const char *target) {
    const berth_program *program = NULL;
    const berth_memory_report *memory = NULL;
    uint64_t bytes = 0;
    char folder[64];
    make_folder(folder);
    assert_ok(berth_arena_create(berth_allocator_system(), &s.arena));
    assert_ok(sources_compile(&s, target, &program, &memory));
    sources_print(&s, program, memory, folder);
    sources_run_natively(&s, folder);
    if (s.patches && shell_status("command -v arm-none-eabi-gcc qemu-system-arm") == 0) {
        sources_run_on_board(&s, folder, "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -Os", "an386.ld",
                             "mps2-an386");
        sources_run_on_board(&s, folder, "-mcpu=cortex-m55 -mfpu=auto -O2", "an547.ld",
                             "mps3-an547");
    }
    for (uint32_t i = 0; i < program->pool_count; ++i)
        if (program->pools[i].usage == BERTH_POOL_WORKSPACE) bytes += program->pools[i].size_bytes;
    remove_tree(folder);
    berth_arena_destroy(s.arena);
    return bytes;
}

uint64_t sources_patched_bytes(const char *text, const char *target, const char *patches) {
    return sources_bytes((sources){.text = text, .patches = patches}, target);
}

uint64_t sources_arena_bytes(const char *text, const char *target) {
    return sources_patched_bytes(text, target, NULL);
}
