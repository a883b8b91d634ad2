// Indices that are outside of what they index fail the run, with the node and the index; those from the end are right.
// ONNX: "It is an error if any of the index values are out of bounds", of [-s, s - 1].
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/check.h"
#include "tests/leaks.h"

enum { rows = 4, columns = 5, picked = 6 };

// Of @main(%x: f32[4,5], %i: i64[6], %u: f32[6]): %y by %i.
static const char *const bodies[] = {
    // Indices of the caller, where the program has them,
    "%y = gather(%x, %i) {axis = 1}\n",
    // through changes of shape,
    "%s = constant() {value = i64[2] (2, 3)}\n %r = reshape(%i, %s)\n"
    " %y = gather(%x, %r) {axis = 1}\n",
    // made by the run: twice half of them, in the group that picks,
    "%h = constant() {value = i64[] (2)}\n %t = mul(%i, %h)\n %a = div(%t, %h)\n"
    " %y = gather(%x, %a) {axis = 1}\n",
    // of single elements,
    "%s = constant() {value = i64[2] (1, 6)}\n %r = reshape(%i, %s)\n"
    " %y = gather_elements(%x, %r) {axis = 1}\n",
    // of tuples, whose first is right,
    "%s = constant() {value = i64[2] (6, 1)}\n %r = reshape(%i, %s)\n"
    " %zero = mul(%r, %none)\n %p = concat(%zero, %r) {axis = 1}\n %y = gather_nd(%x, %p)\n",
    // and to write at.
    "%s = constant() {value = i64[2] (6, 1)}\n %r = reshape(%i, %s)\n"
    " %zero = mul(%r, %none)\n %p = concat(%zero, %r) {axis = 1}\n %y = scatter_nd(%x, %p, %u)\n",
    "%s = constant() {value = i64[2] (1, 6)}\n %r = reshape(%i, %s)\n %v = reshape(%u, %s)\n"
    " %y = scatter_elements(%x, %r, %v) {axis = 1, reduction = \"add\"}\n",
};
enum { body_count = sizeof(bodies) / sizeof(bodies[0]) };

static berth_status compile(const char *target, const char *executor, const char *body,
                            berth_program **out_program) {
    char path[] = "/tmp/berth-checks-XXXXXX", text[1024];
    berth_compiler *compiler = NULL;
    int length = snprintf(text, sizeof(text),
                          "module \"m\"\ngraph @main(%%x: f32[4,5], %%i: i64[6], %%u: f32[6]) {\n"
                          " %%none = constant() {value = i64[] (0)}\n %s return %%y\n}\n",
                          body);
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    cr_assert_eq(write(file, text, (size_t)length), (ssize_t)length);
    close(file);
    assert_ok(berth_compiler_create(&compiler));
    assert_ok(berth_compiler_set(compiler, "search_path", getenv("PATH")));
    assert_ok(berth_compiler_set(compiler, "cache_folder", getenv("BERTH_CACHE_DIR")));
    assert_ok(berth_compiler_set(compiler, "target", target));
    assert_ok(berth_compiler_set(compiler, "executor", executor));
    berth_status status = berth_compiler_compile_file(compiler, path, out_program);
    berth_compiler_destroy(compiler);
    unlink(path);
    return status;
}

static bool has_device(const char *name) {
    berth_device_list *list = NULL;
    bool found = false;
    assert_ok(berth_device_list_create(&list));
    for (uint32_t i = 0; i < berth_device_list_count(list); ++i)
        found |= strcmp(berth_device_list_at(list, i)->device, name) == 0;
    berth_device_list_free(list);
    return found;
}

static const char *const names[3] = {"x", "i", "u"};

typedef struct call {
    float x[rows * columns], u[picked], y[64];
    int64_t i[picked];
    berth_tensor inputs[3], output;
} call;

// The index at `at` is `value`; the others are right.
static void set_indices(int64_t indices[picked], int at, int64_t value) {
    static const int64_t right[picked] = {0, 4, -5, -1, 2, 3};
    memcpy(indices, right, sizeof(right));
    indices[at] = value;
}

static void fill(call *c) {
    *c = (call){.inputs = {{BERTH_DTYPE_F32, 2, {rows, columns}, NULL},
                           {BERTH_DTYPE_I64, 1, {picked}, NULL},
                           {BERTH_DTYPE_F32, 1, {picked}, NULL}}};
    for (int i = 0; i < rows * columns; ++i) c->x[i] = (float)i;
    for (int i = 0; i < picked; ++i) c->u[i] = (float)(100 + i);
    c->inputs[0].data = c->x;
    c->inputs[1].data = c->i;
    c->inputs[2].data = c->u;
}

// The session's own memory, then the caller's; a failed run leaves it usable.
static void check_session(berth_program *program, const char *body) {
    static const struct {
        int at;
        int64_t value;
        const char *message;  // NULL: it is right
    } tries[] = {{0, 0, NULL},
                 {1, columns, "is 5, outside of [-5, 5)"},
                 {1, -columns, NULL},
                 {5, -columns - 1, "is -6, outside of [-5, 5)"},
                 {3, INT64_C(1) << 40, "is 1099511627776, outside of [-5, 5)"},
                 {3, 1, NULL}};
    berth_session *session = NULL;
    call c;
    char node[16];
    int line = 3;  // of the operation that picks, the last one
    for (const char *at = body; *at; ++at) line += *at == '\n';
    snprintf(node, sizeof(node), ":%d:2:", line);
    fill(&c);
    assert_ok(berth_session_create(program, NULL, &session));
    for (uint32_t k = 0; k < 3; ++k)
        assert_ok(berth_session_set_input(session, names[k], &c.inputs[k]));
    c.output = *berth_session_output(session, 0);
    c.output.data = c.y;
    for (size_t t = 0; t < sizeof(tries) / sizeof(tries[0]); ++t)
        for (int own = 0; own < 2; ++own) {
            set_indices(c.i, tries[t].at, tries[t].value);
            assert_ok(berth_session_set_input(session, names[1], &c.inputs[1]));
            berth_status status =
                own ? berth_session_run(session, -1)
                    : berth_session_run_with(session, c.inputs, 3, &c.output, 1, -1);
            if (!tries[t].message) {
                assert_ok(status);
                continue;
            }
            cr_assert_not_null(strstr(berth_status_message(status), node), "%s",
                               berth_status_message(status));
            assert_fails(status, BERTH_OUT_OF_RANGE, tries[t].message);
        }
    berth_session_destroy(session);
}

static void check_target(const char *target) {
    for (int b = 0; b < body_count; ++b) {
        berth_program *program = NULL;
        assert_ok(compile(target, "graph", bodies[b], &program));
        check_session(program, bodies[b]);
        berth_program_release(program);
    }
}

Test(index_checks, cpu) {
    check_target("cpu");
}

Test(index_checks, opencl) {
    leave_leaks();
    if (has_device("opencl:0")) check_target("opencl");
}

// A program's file says what to look at, too.
Test(index_checks, of_a_file) {
    char path[] = "/tmp/berth-checks-XXXXXX";
    berth_program *program = NULL, *read = NULL;
    assert_ok(compile("cpu", "graph", bodies[2], &program));
    int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
    assert_ok(berth_program_save(program, path));
    assert_ok(berth_program_open(path, &read));
    check_session(read, bodies[2]);
    berth_program_release(program);
    berth_program_release(read);
    unlink(path);
}

// And byte code's segments.
Test(index_checks, of_byte_code) {
    berth_program *program = NULL;
    berth_dynamic *dynamic = NULL;
    berth_results *results = NULL;
    call c;
    fill(&c);
    assert_ok(compile("cpu", "vm", bodies[2], &program));
    assert_ok(berth_program_load_dynamic(program, 1, &dynamic));
    for (int again = 0; again < 2; ++again) {
        set_indices(c.i, 2, columns);
        assert_fails(berth_dynamic_run(dynamic, c.inputs, 3, &results), BERTH_OUT_OF_RANGE,
                     "is 5, outside of [-5, 5)");
        set_indices(c.i, 2, -columns);
        assert_ok(berth_dynamic_run(dynamic, c.inputs, 3, &results));
        const berth_tensor *y = berth_results_item(results, 0, 0);
        cr_assert_eq(((const float *)y->data)[2], 0);  // the first column of the first row
        berth_results_free(results);
    }
    berth_dynamic_destroy(dynamic);
    berth_program_release(program);
}
