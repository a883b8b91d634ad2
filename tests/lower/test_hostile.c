// Kernels with hostile values: every operator of cases.def is lowered, scheduled and printed as C,
// compiled with AddressSanitizer and UBSan, and run on buffers of exactly their size that hold the
// values most likely to break an address, a trip count or a divisor. What they compute does not
// matter; that they end, and touch nothing else, does. With the schedules of opencl they run under
// the interpreter, which checks every index.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/codegen/c_preamble.h"
#include "compiler/codegen/codegen.h"
#include "compiler/schedule/schedule.h"
#include "ir/tensor/interpreter.h"
#include "tests/check.h"
#include "tests/lower/op_case.h"

#define CASE(text) text,
static const char *const cases[] = {
#include "tests/lower/cases.def"
    // Only here: what the reference interpreter refuses.
    "reverse_sequence | f32[4,3] i64[3]~40,-7,9223372036854775807 | time_axis=0 batch_axis=1",
    "reverse_sequence | f32[3,4] i64[3]~0,1,2 | time_axis=1 batch_axis=0",
    "roi_align | f32[1,2,6,5] f32[2,4] i64[2] | output_height=2 output_width=2 mode=max",
    "lstm | f32[3,2,4] f32[1,20,4] f32[1,20,5] - i32[2] | hidden_size=5 | . . .",
};
#undef CASE

enum { case_count = sizeof(cases) / sizeof(cases[0]) };

// What runs the kernels, in the program that is made. Each case runs in a process of its own, with
// a limit of time.
static const char driver_head[] =
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/wait.h>\n"
    "#include <unistd.h>\n"
    "typedef struct { int dtype_size, is_float, is_signed, is_bool; size_t count; } buffer;\n"
    "typedef void kernel_fn(void *const *, const int64_t *, int64_t, int64_t, void *);\n"
    "typedef struct { kernel_fn *run; uint32_t groups, scratch, count; const int *buffers; } "
    "kernel;\n"
    "typedef struct { const char *name; const buffer *buffers; int buffer_count;\n"
    "    const kernel *kernels; int kernel_count; } op_case;\n";

static const char driver_tail[] =
    "static const double floats[] = {3e38, -3e38, __builtin_inf(), -__builtin_inf(),\n"
    "    __builtin_nan(\"\"), 0.0, -0.0, 1e-45, -1.5, 40.5, 2147483648.0, -2147483649.0, 1e19};\n"
    "static const int64_t ints[] = {INT64_MAX, INT64_MIN, -1, 0, 1, 40, -7, 2147483647,\n"
    "    -2147483648ll, 2147483648ll, 4294967297ll, 255, 128};\n"
    "enum { values = 13, patterns = values + 1 };\n"
    "static void fill(void *data, const buffer *b, int pattern) {\n"
    "    for (size_t i = 0; i < b->count; ++i) {\n"
    "        unsigned char *at = (unsigned char *)data + i * (size_t)b->dtype_size;\n"
    "        int which = pattern == values ? (int)(i % values) : pattern;\n"
    "        float f = (float)floats[which];\n"
    "        double d = floats[which];\n"
    "        uint16_t h = (uint16_t)(0x7bff + which * 5003);\n"
    "        uint8_t bit = (uint8_t)(which & 1);\n"
    "        const void *from = b->is_bool ? (const void *)&bit : (const void *)&ints[which];\n"
    "        if (b->is_float)\n"
    "            from = b->dtype_size == 8 ? (void *)&d : b->dtype_size == 4 ? (void *)&f : &h;\n"
    "        memcpy(at, from, (size_t)b->dtype_size); } }\n"
    "static int run(const op_case *c) {\n"
    "    for (int pattern = 0; pattern < patterns; ++pattern) {\n"
    "        void *data[64], *bound[64];\n"
    "        for (int i = 0; i < c->buffer_count; ++i) {\n"
    "            size_t bytes = c->buffers[i].count * (size_t)c->buffers[i].dtype_size;\n"
    "            if (posix_memalign(&data[i], 128, bytes ? bytes : 1)) return 1;\n"
    "            fill(data[i], &c->buffers[i], pattern); }\n"
    "        for (int k = 0; k < c->kernel_count; ++k) {\n"
    "            const kernel *it = &c->kernels[k];\n"
    "            void *scratch = NULL;\n"
    "            if (it->scratch && posix_memalign(&scratch, 64, it->scratch)) return 1;\n"
    "            for (uint32_t i = 0; i < it->count; ++i) bound[i] = data[it->buffers[i]];\n"
    "            it->run(bound, NULL, it->groups / 2, it->groups, scratch);\n"
    "            it->run(bound, NULL, 0, it->groups / 2, scratch);\n"
    "            free(scratch); }\n"
    "        for (int i = 0; i < c->buffer_count; ++i) free(data[i]); }\n"
    "    return 0; }\n"
    "int main(void) {\n"
    "    int failed = 0;\n"
    "    for (size_t i = 0; i < sizeof(op_cases) / sizeof(op_cases[0]); ++i) {\n"
    "        fflush(NULL);\n"
    "        int status = 0;\n"
    "        pid_t child = fork();\n"
    "        if (child == 0) { alarm(20); _exit(run(&op_cases[i])); }\n"
    "        if (child < 0 || waitpid(child, &status, 0) < 0) return 2;\n"
    "        if (status == 0) continue;\n"
    "        printf(\"%s\\n    ends with %s %d\\n\", op_cases[i].name,\n"
    "               WIFSIGNALED(status) ? \"signal\" : \"status\",\n"
    "               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));\n"
    "        failed++; }\n"
    "    printf(\"%d failed\\n\", failed);\n"
    "    return failed != 0; }\n";

typedef struct program {
    const berth_target *target;
    berth_arena *arena;
    berth_strbuf kernels;
    berth_strbuf tables;
    berth_strbuf list;
    int count;
} program;

static void add_buffer(program *p, const berth_tfn *fn, const berth_buf_info *info) {
    berth_layout layout;
    berth_status_ignore(
        berth_layout_parse(berth_module_str(fn->module, info->layout), info->rank, &layout));
    berth_strbuf_addf(&p->tables, "    {%d, %d, %d, %d, %lld},\n",
                      (int)berth_dtype_size_bytes(info->dtype), berth_dtype_is_float(info->dtype),
                      berth_dtype_is_signed(info->dtype), info->dtype == BERTH_DTYPE_BOOL,
                      (long long)berth_layout_element_count(&layout, info->dims));
}

static void add_tables(program *p, const char *name, const berth_tfn *fn,
                       const berth_codegen_result *code) {
    int n = p->count++;
    berth_strbuf_addf(&p->tables, "static const buffer b%d[] = {\n", n);
    for (uint32_t b = 0; b < fn->bufs.count; ++b) add_buffer(p, fn, &fn->bufs.data[b]);
    berth_strbuf_add(&p->tables, "};\n");
    for (uint32_t k = 0; k < code->kernel_count; ++k) {
        berth_strbuf_addf(&p->tables, "static const int a%d_%u[] = {", n, k);
        for (uint32_t i = 0; i < code->kernels[k].buffer_count; ++i)
            berth_strbuf_addf(&p->tables, "%u, ", code->kernels[k].buffers[i]);
        berth_strbuf_add(&p->tables, "0};\n");
    }
    berth_strbuf_addf(&p->tables, "static const kernel k%d[] = {\n", n);
    for (uint32_t k = 0; k < code->kernel_count; ++k)
        berth_strbuf_addf(&p->tables, "    {%s, %u, %u, %u, a%d_%u},\n", code->kernels[k].entry,
                          code->kernels[k].groups[0], code->kernels[k].scratch_bytes,
                          code->kernels[k].buffer_count, n, k);
    berth_strbuf_add(&p->tables, "};\n");
    berth_strbuf_addf(&p->list, "    {\"%s\", b%d, %u, k%d, %u},\n", name, n, fn->bufs.count, n,
                      code->kernel_count);
}

static berth_tfn *scheduled(const program *p, const char *text) {
    berth_module *module = berth_module_create(p->arena, "case");
    berth_func_id function = BERTH_NONE;
    berth_func_id lowered = BERTH_NONE;
    berth_status status = op_case_build(text, module, &function);
    if (!status) status = berth_lower_function(module, function, &lowered);
    if (!status) status = berth_schedule_apply(berth_tfn_get(module, lowered), p->target);
    cr_assert_null(status, "%s: %s", text, berth_status_message(status));
    return berth_tfn_get(module, lowered);
}

static void add_case(program *p, const char *text) {
    const berth_tfn *fn = scheduled(p, text);
    berth_codegen_result code;
    assert_ok(berth_codegen_c.print(fn, NULL, berth_arena_printf(p->arena, "c%d", p->count),
                                    p->arena, &code));
    if (fn->bufs.count > 64) return;
    berth_strbuf_add(&p->kernels, code.source);
    add_tables(p, text, fn, &code);
}

// The first cases of each operator, so that a new one is tested with its first case.
static void add_cases(program *p, int per_operator, void (*add)(program *p, const char *text)) {
    char last[48] = "";
    int taken = 0;
    for (int i = 0; i < case_count; ++i) {
        char name[48] = "";
        sscanf(cases[i], "%47s", name);
        taken = strcmp(name, last) == 0 ? taken + 1 : 0;
        strcpy(last, name);
        if (taken < per_operator) add(p, cases[i]);
    }
}

static void write_program(program *p, const char *path) {
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, "%s%s%sstatic const op_case op_cases[] = {\n%s};\n%s",
            berth_c_complete(berth_strbuf_text(&p->kernels), p->arena), driver_head,
            berth_strbuf_text(&p->tables), berth_strbuf_text(&p->list), driver_tail);
    cr_assert_eq(fclose(file), 0);
}

static void run_hostile(const berth_target *target) {
    program p = {.target = target};
    char folder[] = "/tmp/berth-hostile-XXXXXX";
    cr_assert_null(berth_arena_create(berth_allocator_system(), &p.arena));
    cr_assert_not_null(mkdtemp(folder));
    p.kernels = berth_strbuf_make(p.arena);
    p.tables = berth_strbuf_make(p.arena);
    p.list = berth_strbuf_make(p.arena);
    add_cases(&p, 4, add_case);
    write_program(&p, berth_arena_printf(p.arena, "%s/kernels.c", folder));
    const char *command = berth_arena_printf(
        p.arena,
        "cd %s && cc -std=gnu17 -w -O1 -g1 -march=native -ffp-contract=fast -fsanitize=address,"
        "undefined,float-cast-overflow -fno-sanitize-recover=all -D_GNU_SOURCE kernels.c "
        "-o kernels -lm && ASAN_OPTIONS=detect_leaks=0 ./kernels >report 2>log",
        folder);
    int status = system(command);
    const char *show = berth_arena_printf(
        p.arena, "cd %s && cat report && grep -E 'ERROR|runtime error| in c[0-9]+_' log | head -60",
        folder);
    if (status != 0) cr_log_error("kept in %s", folder);
    if (status != 0) (void)!system(show);
    cr_assert_gt(p.count, 200, "%d cases", p.count);
    cr_assert_eq(status, 0, "kernels that hostile values break: see above");
    (void)!system(berth_arena_printf(p.arena, "rm -r %s", folder));
    berth_arena_destroy(p.arena);
}

// The program that is made is the same in both builds: the release build runs it.
#ifdef __SANITIZE_ADDRESS__
enum { makes_program = 0 };
#else
enum { makes_program = 1 };
#endif

Test(lower_hostile, cpu, .timeout = 600) {
    if (makes_program) with_target("cpu", run_hostile);
}

// ---- under the interpreter ----------------------------------------------------------------------

static void fill(const berth_buf_info *info, void *data, int64_t count, int pattern) {
    static const double floats[] = {3e38, NAN, -INFINITY, -1.5, 2147483648.0};
    static const int64_t ints[] = {INT64_MAX, INT64_MIN, -1, 40, 4294967297};
    berth_tensor flat = {.dtype = info->dtype, .rank = 1, .dims = {count}, .data = data};
    for (int64_t i = 0; i < count; ++i) {
        int which = (int)((pattern + i * pattern) % 5);
        if (berth_dtype_is_float(info->dtype))
            berth_tensor_set_f64(&flat, i, floats[which]);
        else
            berth_tensor_set_i64(&flat, i, info->dtype == BERTH_DTYPE_BOOL ? 1 : ints[which]);
    }
}

static void interpret_case(program *p, const char *text) {
    const berth_tfn *fn = scheduled(p, text);
    void **buffers = berth_arena_new_array(p->arena, void *, fn->param_count);
    for (int pattern = 0; pattern < 2; ++pattern) {
        for (uint32_t b = 0; b < fn->param_count; ++b) {
            const berth_buf_info *info = &fn->bufs.data[b];
            berth_layout layout;
            assert_ok(berth_layout_parse(berth_module_str(fn->module, info->layout), info->rank,
                                         &layout));
            int64_t count = berth_layout_element_count(&layout, info->dims);
            size_t bytes = (size_t)count * berth_dtype_size_bytes(info->dtype);
            buffers[b] = berth_arena_alloc(p->arena, bytes + 1);
            fill(info, buffers[b], count, pattern);
        }
        berth_status status = berth_tfn_interpret(fn, buffers, p->arena);
        if (status) cr_log_error("%s\n    %s", text, berth_status_message(status));
        p->count += status != NULL;
        berth_status_free(status);
    }
}

static void interpret_hostile(const berth_target *target) {
    program p = {.target = target};
    assert_ok(berth_arena_create(berth_allocator_system(), &p.arena));
    add_cases(&p, 2, interpret_case);
    cr_assert_eq(p.count, 0, "%d runs fail", p.count);
    berth_arena_destroy(p.arena);
}

Test(lower_hostile, interpreted, .timeout = 600) {
    with_target("opencl -subgroup_size=32 -host=cpu", interpret_hostile);
}
