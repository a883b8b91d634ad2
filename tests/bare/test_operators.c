// Every operator as plain C: what its sources compute, compiled by the system's compiler without a
// warning, is what the reference interpreter computes.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ir/eval.h"
#include "tests/bare/support.h"
#include "tests/check.h"
#include "tests/lower/op_case.h"

#define CASE(text) text,
static const char *const cases[] = {
#include "tests/lower/cases.def"
#define LARGE_CASE(text)
#include "tests/toolkit/operators.def"
};
#undef CASE

enum { case_count = sizeof(cases) / sizeof(cases[0]), most_values = 10, slices = 8 };
// Further slices: every other case again, for few bytes of code.
enum { small_slices = slices / 2 };

typedef struct bare_case {
    const char *text;
    berth_arena *arena;
    uint32_t inputs, outputs;
    berth_tensor input[most_values], expected[most_values];
    const berth_bare_file *files;
    uint32_t file_count;
} bare_case;

static void name_values(berth_module *module, berth_func_id function, const berth_value_id *values,
                        uint32_t count, const char *what) {
    berth_graph *graph = berth_graph_get(module, function);
    for (uint32_t i = 0; i < count; ++i)
        graph->values.data[values[i]].name =
            berth_module_intern(module, berth_arena_printf(module->arena, "%s%u", what, i));
}

typedef struct build_call {
    bare_case *into;
    berth_module *module;
} build_call;

static berth_status build(void *user) {
    build_call *call = user;
    bare_case *c = call->into;
    berth_func_id function = BERTH_NONE;
    berth_module *module = call->module = berth_module_create(c->arena, "case");
    BERTH_TRY(op_case_build_given(c->text, module, &function, c->input));
    const berth_region *root = &berth_graph_get(module, function)->regions.data[0];
    c->inputs = root->params.count;
    c->outputs = root->results.count;
    name_values(module, function, root->params.data, c->inputs, "in");
    name_values(module, function, root->results.data, c->outputs, "out");
    for (uint32_t i = 0; i < c->inputs; ++i) {
        const berth_value *value =
            &berth_graph_get(module, function)->values.data[root->params.data[i]];
        const berth_type *type = berth_type_get(module, value->type);
        if (c->input[i].dtype) continue;
        c->input[i] = berth_tensor_create(c->arena, type->dtype, type->rank, type->dims);
        berth_tensor_fill_random(&c->input[i], 7 + i);
    }
    return berth_eval_function(module, function, c->input, c->inputs, c->expected, c->outputs,
                               c->arena);
}

static void make(bare_case *c, int index, bool small, const char *folder) {
    char name[32];
    const berth_program *program = NULL;
    const berth_memory_report *memory = NULL;
    build_call call = {.into = c};
    c->text = cases[index];
    assert_ok(berth_arena_create(berth_allocator_system(), &c->arena));
    berth_status status = berth_arena_try(c->arena, build, &call);
    if (!status) status = bare_compile(call.module, BARE_CORTEX_M4, small, &program, &memory);
    snprintf(name, sizeof(name), "case%d", index);
    berth_bare_options options = {.name = name, .memory = memory};
    if (!status) status = berth_bare_print(program, &options, c->arena, &c->files, &c->file_count);
    cr_expect(!status, "%s: %s", c->text, berth_status_message(status));
    if (status) {
        berth_status_free(status);
        c->file_count = 0;
        return;
    }
    write_files(folder, c->files, c->file_count);
    char path[128], both[128];
    snprintf(path, sizeof(path), "%s/both_%s.c", folder, name);
    int size =
        snprintf(both, sizeof(both), "#include \"%s.c\"\n#include \"%s_weights.c\"\n", name, name);
    write_bytes(path, both, (size_t)size);
}

static void run(bare_case *c, int index, void *library) {
    typedef int run_function(const void *inputs, const void *outputs);
    union {
        void *address;
        run_function *function;
    } symbol;
    char name[32];
    void *inputs[most_values], *outputs[most_values];
    berth_tensor got[most_values];
    snprintf(name, sizeof(name), "case%d_run", index);
    symbol.address = dlsym(library, name);
    cr_assert(symbol.address, "%s", c->text);
    for (uint32_t i = 0; i < c->inputs; ++i) inputs[i] = c->input[i].data;
    for (uint32_t i = 0; i < c->outputs; ++i) {
        got[i] = berth_tensor_create(c->arena, c->expected[i].dtype, c->expected[i].rank,
                                     c->expected[i].dims);
        memset(got[i].data, 0xff, berth_tensor_size_bytes(&got[i]));
        outputs[i] = got[i].data;
    }
    cr_expect_eq(symbol.function(inputs, outputs), 0, "%s", c->text);
    for (uint32_t i = 0; i < c->outputs; ++i) {
        // Sums of thousands of terms cancel: what is left carries the error of the largest.
        const char *problem = op_case_differ(&c->expected[i], &got[i], i, 3e-5, c->arena);
        cr_expect_null(problem, "%s: %s", c->text, problem);
    }
}

// Operands and results in blocks are no inputs of a model.
static bool is_plain(const char *text) {
    return strchr(text, '{') == NULL;
}

ParameterizedTestParameters(bare_operators, compute_what_the_interpreter_does) {
    static int indices[slices + small_slices];
    for (int i = 0; i < slices + small_slices; ++i) indices[i] = i;
    return cr_make_param_array(int, indices, slices + small_slices);
}

ParameterizedTest(int *slice, bare_operators, compute_what_the_interpreter_does, .timeout = 600) {
    static bare_case held[case_count];
    char folder[64], path[128];
    bool small = *slice >= slices;
    int first = small ? 2 * (*slice - slices) : *slice;
    make_folder(folder);
    for (int i = first; i < case_count; i += slices)
        if (is_plain(cases[i])) make(&held[i], i, small, folder);
    shell("cd %s && gcc " BARE_WARNINGS " -O1 -fPIC -shared -o cases.so both_*.c -lm", folder);
    snprintf(path, sizeof(path), "%s/cases.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert(library, "%s", dlerror());
    for (int i = first; i < case_count; i += slices) {
        if (held[i].file_count) run(&held[i], i, library);
        berth_arena_destroy(held[i].arena);
    }
    dlclose(library);
    remove_tree(folder);
}
