// Dimensions with bounds (--dim NAME=LEAST..MOST) in the commands that run, plan and measure.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command/support.h"

#define DIGITS "examples/digits/digits.onnx"

Test(bounds_command, a_model_runs_at_the_most_of_its_bounds) {
    const result *r = berth_run("run " DIGITS " --dim batch=2..5");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, "probabilities f32[5,10]"), "%s", r->out);
    cr_assert_not_null(strstr(r->err, "run with the most of its bounds"), "%s", r->err);
}

Test(bounds_command, extents_outside_are_refused) {
    berth_run_fails("run " DIGITS " --dim batch=2..5 --shape 6x1x8x8", 1,
                    "dimension batch is 6, outside its bounds 2..5");
    berth_run_fails("run " DIGITS " --dim batch=2..5 --dim image.0=1", 1,
                    "dimension batch is 1, outside its bounds 2..5");
    berth_run_fails("run " DIGITS " --dim bach=2..5", 1, "its symbols are: batch");
    berth_run_fails("tune " DIGITS " --dim batch=2..5", 2, "bounds are for run, build");
}

#define OPEN "tests/models/domains/deform_conv_open/"

// By one session for all shapes; the data set's x0 is 5 high.
Test(bounds_command, verified_within_bounds) {
    const result *r =
        berth_run("verify " OPEN "model.onnx --dim x0.2=1..64 --data " OPEN "test_data_set_0");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, "run by the virtual machine"), "%s", r->out);
    berth_run_fails("verify " OPEN "model.onnx --dim x0.2=6..64 --data " OPEN "test_data_set_0", 1,
                    "dimension 2 is 5, outside its bounds 6..64");
}

Test(bounds_command, measured_at_the_most) {
    json_t *json = berth_run_json("bench " DIGITS " --dim batch=2..4 --count 3 --format=json");
    cr_assert_eq(json_integer_value(json_object_get(json, "runs")), 3);
    json_decref(json);
}

Test(bounds_command, a_module_keeps_its_bounds) {
    char file[] = "/tmp/berth-bounds-XXXXXX", command[256];
    close(mkstemp(file));
    const result *r = berth_run("opt " DIGITS " --dim batch=2..5");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    FILE *written = fopen(file, "w");
    cr_assert(written && fputs(r->out, written) >= 0 && fclose(written) == 0);
    snprintf(command, sizeof(command), "run %s --executor vm", file);
    r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, "probabilities f32[5,10]"), "%s", r->out);
    unlink(file);
}

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

// An input of one dimension, of version 1.0 of the form.
static void write_npy(const char *path, int rows, const char *more, const float *values,
                      size_t count) {
    char head[128];
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    memset(head, ' ', sizeof(head));
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    int length =
        snprintf(head + 10, sizeof(head) - 10,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,%s), }", rows, more);
    head[10 + length] = ' ';
    head[127] = '\n';
    cr_assert(fwrite(head, 1, sizeof(head), file) == sizeof(head) &&
              fwrite(values, sizeof(float), count, file) == count && fclose(file) == 0);
}

static void read_npy(const char *path, float *out, size_t count) {
    FILE *file = fopen(path, "rb");
    cr_assert(file && fseek(file, 128, SEEK_SET) == 0 &&
              fread(out, sizeof(float), count, file) == count && fclose(file) == 0);
}

// Extents that are less than tiles, groups and vectors are: 208 shapes, of which few have kernels of their own, and all of
// which give what a maximum of four neighbours is.
Test(bounds_command, short_extents_share_kernels) {
    static const char text[] =
        "module \"pool\"\n"
        "graph @main(%x: f32[n,8,h,w]) {bounds = \"n=1..2,h=8..11,w=5..30\"} {\n"
        "  %y = max_pool(%x) {kernel_shape = [2, 2], strides = [2, 2]}\n"
        "  return %y\n}\n";
    enum { most_kernels = 80, most = 2 * 8 * 11 * 30 };
    static float x[most], y[most];
    char folder[] = "/tmp/berth-bounds-XXXXXX", model[64], in[64], out[64], command[512], more[64];
    int kernels = 0;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(model, sizeof(model), "%s/m.txt", folder);
    snprintf(in, sizeof(in), "%s/x.npy", folder);
    snprintf(out, sizeof(out), "%s/y.npy", folder);
    write_text(model, text);
    snprintf(command, sizeof(command), "build %s --executor vm -o %s.berth", model, model);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    const char *counted = strstr(r->out, ".berth: ");
    cr_assert(counted && sscanf(counted, ".berth: %d kernels", &kernels) == 1, "%s", r->out);
    cr_expect_lt(kernels, most_kernels);
    for (int shape = 0; shape < 2 * 4 * 26; shape += 5) {
        const int n = 1 + shape / 104, h = 8 + shape / 26 % 4, w = 5 + shape % 26;
        const int rows = h / 2, columns = w / 2, planes = n * 8;
        for (int i = 0; i < planes * h * w; ++i) x[i] = (float)(i * 37 % 101);
        snprintf(more, sizeof(more), " 8, %d, %d", h, w);
        write_npy(in, n, more, x, (size_t)(planes * h * w));
        snprintf(command, sizeof(command), "run %s.berth --input x=%s --output y=%s", model, in,
                 out);
        r = berth_run(command);
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
        read_npy(out, y, (size_t)(planes * rows * columns));
        for (int i = 0; i < planes * rows * columns; ++i) {
            const float *at =
                &x[(i / columns / rows * h + i / columns % rows * 2) * w + i % columns * 2];
            float wanted = at[0] > at[1] ? at[0] : at[1];
            wanted = at[w] > wanted ? at[w] : wanted;
            wanted = at[w + 1] > wanted ? at[w + 1] : wanted;
            cr_assert_eq(y[i], wanted, "%d x %d x %d at %d", n, h, w, i);
        }
    }
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

// Two inputs that share a dimension, given different extents of it: in a program file, which would have no code for
// them, and in a session, which could compile for any.
Test(bounds_command, inputs_of_one_dimension_agree) {
    static const char text[] = "module \"two\"\n"
                               "graph @main(%a: f32[n,2], %b: f32[n,3]) {bounds = \"n=1..4\"} {\n"
                               "  %axes = constant() {value = i64[2] (0, 1)}: i64[2]\n"
                               "  %s = reduce_sum(%a, %axes) {keepdims = 0}\n"
                               "  %t = reduce_sum(%b, %axes) {keepdims = 0}\n"
                               "  %y = add(%s, %t)\n"
                               "  return %y\n}\n";
    static const float ones[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    char folder[] = "/tmp/berth-bounds-XXXXXX", model[64], paths[3][64], command[512];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(model, sizeof(model), "%s/m.txt", folder);
    static const char *const names[] = {"a", "b", "other"};
    for (int i = 0; i < 3; ++i) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s.npy", folder, names[i]);
        write_npy(paths[i], i < 2 ? 3 : 2, i ? " 3" : " 2", ones, i == 0 || i == 2 ? 6 : 9);
    }
    write_text(model, text);
    snprintf(command, sizeof(command), "build %s --executor vm -o %s.berth", model, model);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    static const char *const forms[] = {".berth", " --executor vm"};
    for (int i = 0; i < 2; ++i) {
        snprintf(command, sizeof(command), "run %s%s --input a=%s --input b=%s", model, forms[i],
                 paths[0], paths[1]);
        r = berth_run(command);
        cr_assert_eq(r->exit_status, 0, "%s", r->err);
        snprintf(command, sizeof(command), "run %s%s --input a=%s --input b=%s", model, forms[i],
                 paths[0], paths[2]);
        berth_run_fails(command, 1,
                        "input \"b\" (f32[n,3]): dimension 0 is 2, but that of \"a\" (f32[n,2]) "
                        "is 3");
    }
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

// A cache that grows by a row, with a mask that is one longer than the cache: one program for all lengths, with the
// lengths of the cache alone as bounds.
Test(bounds_command, a_dimension_follows_from_another) {
    static const char growing[] =
        "module \"growing\"\n"
        "graph @main(%past: f32[past,4], %row: f32[1,4], %mask: f32[past+1,1])"
        " {bounds = \"past=1..12\"} {\n"
        "  %all = concat(%past, %row) {axis = 0}\n"
        "  %masked = mul(%all, %mask)\n"
        "  %axis = constant() {value = i64[1] (0)}: i64[1]\n"
        "  %y = reduce_sum(%masked, %axis) {keepdims = 0}\n"
        "  return %y\n}\n";
    char folder[] = "/tmp/berth-bounds-XXXXXX", model[64], file[64], command[512], paths[3][64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(model, sizeof(model), "%s/m.txt", folder);
    snprintf(file, sizeof(file), "%s/m.berth", folder);
    static const char *const names[] = {"past", "row", "mask"};
    for (int i = 0; i < 3; ++i) snprintf(paths[i], sizeof(paths[i]), "%s/%s.npy", folder, names[i]);
    write_text(model, growing);
    snprintf(command, sizeof(command), "build %s --executor vm -o %s", model, file);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    for (int past = 1; past <= 13; ++past) {
        float values[14 * 4], mask[14], sum = 0;
        for (int i = 0; i < 14 * 4; ++i) values[i] = (float)(i % 5);
        for (int i = 0; i < 14; ++i) mask[i] = i % 3 == 0;
        write_npy(paths[0], past, " 4", values, (size_t)past * 4);
        write_npy(paths[1], 1, " 4", values + past * 4, 4);
        write_npy(paths[2], past + 1, " 1", mask, (size_t)past + 1);
        for (int i = 0; i <= past; i += 3) sum += values[i * 4];
        snprintf(command, sizeof(command),
                 "run %s --input past=%s --input row=%s --input mask=%s --output y=%s/y.npy", file,
                 paths[0], paths[1], paths[2], folder);
        if (past == 13) {
            berth_run_fails(command, 1, "dimension 0 is 13, outside its bounds 1..12");
            break;
        }
        r = berth_run(command);
        cr_assert_eq(r->exit_status, 0, "past %d: %s", past, r->err);
        float got = -1;
        snprintf(command, sizeof(command), "%s/y.npy", folder);
        FILE *written = fopen(command, "rb");
        cr_assert(written && fseek(written, 128, SEEK_SET) == 0 &&
                  fread(&got, sizeof(got), 1, written) == 1 && fclose(written) == 0);
        cr_assert_float_eq(got, sum, 1e-4, "past %d: %g, not %g", past, (double)got, (double)sum);
    }
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

// Batches of 3 and of 6, and no others: by a session that compiles, and by a program.
Test(bounds_command, a_dimension_is_a_multiple) {
    char folder[] = "/tmp/berth-bounds-XXXXXX", file[64], images[64], command[512];
    static float pixels[9 * 64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/m.berth", folder);
    snprintf(images, sizeof(images), "%s/images.npy", folder);
    snprintf(command, sizeof(command), "build " DIGITS " --dim batch=3*a --dim a=1..2 -o %s", file);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    static const char *const models[] = {DIGITS " --dim batch=3*a --dim a=1..2", NULL};
    for (int batch = 3; batch <= 9; ++batch) {
        write_npy(images, batch, "1,8,8", pixels, (size_t)batch * 64);
        for (int m = 0; m < 2; ++m) {
            snprintf(command, sizeof(command), "run %s --input %s", models[m] ? models[m] : file,
                     images);
            if (batch == 3 || batch == 6) {
                r = berth_run(command);
                cr_expect_eq(r->exit_status, 0, "%s: %s", command, r->err);
            } else {
                berth_run_fails(command, 1,
                                batch > 6 ? "outside its bounds 3..6"
                                : m == 0  ? "which 3*a is for no a"
                                          : "the program has no code for");
            }
        }
    }
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

Test(bounds_command, expressions_are_of_the_models_dimensions) {
    berth_run_fails("run " DIGITS " --dim batch=rows+1", 1,
                    "dimension batch=rows+1: \"rows\" is no symbol of");
    berth_run_fails("run " DIGITS " --dim batch=batch+1", 1, "\"batch\" is no symbol of");
    berth_run_fails("run " DIGITS " --dim batch=1..4 --dim image.0=batch", 1,
                    "it has no bounds of its own");
    berth_run_fails("run " DIGITS " --dim 'batch=rows+'", 1, "dimension batch=rows+");
}

// ---- plans --------------------------------------------------------------------------------------

// "4096*v0 + 128", where v0 is `v`; `*at` goes behind it.
static long long sum_at(const char **at, long long v) {
    long long sum = 0;
    for (;;) {
        long long product = 1;
        for (;;) {
            while (**at == ' ') ++*at;
            if (strncmp(*at, "v0", 2) == 0) {
                product *= v;
                *at += 2;
            } else {
                char *end = NULL;
                product *= strtoll(*at, &end, 10);
                cr_assert(end != *at, "no number at \"%s\"", *at);
                *at = end;
            }
            if (**at != '*') break;
            ++*at;
        }
        sum += product;
        if (strncmp(*at, " + ", 3) != 0) return sum;
        *at += 3;
    }
}

static long long value_of(const char *text, long long v) {
    if (strncmp(text, "max(", 4) != 0) return sum_at(&text, v);
    long long most = 0;
    text += 3;
    do {
        ++text;
        long long value = sum_at(&text, v);
        if (value > most) most = value;
    } while (*text == ',');
    return most;
}

// The expression gives what is said of the ends, and, at the most, what a plan for that batch alone allocates.
Test(bounds_command, a_plan_says_the_workspace_of_all_shapes) {
    json_t *json = berth_run_json("plan " DIGITS " --dim batch=1..62 --format=json"), *row = NULL;
    bool has_most = false, has_expression = false;
    size_t i = 0;
    json_array_foreach(json_object_get(json, "shapes"), i, row) {
        const char *shapes = json_string_value(json_object_get(row, "shapes"));
        const char *text = json_string_value(json_object_get(row, "expression"));
        const char *bounds = strrchr(shapes, ',');
        long long least = 0, most = 0;
        if (!text || sscanf(bounds, ", %lld..%lld", &least, &most) != 2) continue;
        has_expression = true;
        cr_assert_lt(least, most);
        cr_assert_eq(value_of(text, least), json_integer_value(json_object_get(row, "least_bytes")),
                     "%s", text);
        cr_assert_eq(value_of(text, most), json_integer_value(json_object_get(row, "most_bytes")),
                     "%s", text);
        has_most |= most == 62;
    }
    cr_assert(has_expression);
    cr_assert(has_most, "no program serves the largest batch and others");
    json_decref(json);
}

Test(bounds_command, a_built_program_says_its_bounds) {
    char file[] = "/tmp/berth-bounds-XXXXXX", command[256];
    close(mkstemp(file));
    snprintf(command, sizeof(command), "build " DIGITS " --dim batch=9..13 -o %s", file);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(command, sizeof(command), "inspect %s", file);
    r = berth_run(command);
    cr_assert_not_null(strstr(r->out, "f32[batch,1,8,8], dimension 0 within 9..13"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "workspace of cpu:0: "), "%s", r->out);
    unlink(file);
}

// ---- kernels for all sizes ----------------------------------------------------------------------

typedef struct sources {
    int kernels;
    int sums;       // that the largest register tile has
    int divisions;  // of a group's number, to find where it is
} sources;

static sources sources_of(const char *model, const char *options) {
    char file[] = "/tmp/berth-tiles-XXXXXX", folder[32], command[512], line[4096];
    sources found = {0};
    close(mkstemp(file));
    snprintf(folder, sizeof(folder), "%s.d", file);
    snprintf(command, sizeof(command),
             "build %s --target \"cpu -arch=x86_64 -vector_bits=512 "
             "-features=avx2,fma,avx512f,avx512bw,avx512dq,avx512vl\" --keep-source %s -o %s",
             model, options, file);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(command, sizeof(command), "inspect %s --extract %s", file, folder);
    cr_assert_eq(berth_run(command)->exit_status, 0);
    snprintf(command, sizeof(command), "find %s -name '*.c' | xargs cat; rm -r %s %s", folder,
             folder, file);
    FILE *text = popen(command, "r");
    while (fgets(line, sizeof(line), text)) {
        int sums = 0;
        const char *at = strstr(line, "berth_f32x16 b");
        found.kernels += strstr(line, "_0(void *const *buffers") && strchr(line, ';');
        found.divisions += strstr(line, "= group / ") || strstr(line, "= group % ");
        if (at && sscanf(at, "berth_f32x16 b%*d[%d]", &sums) == 1 && sums > found.sums)
            found.sums = sums;
    }
    cr_assert_eq(pclose(text), 0);
    return found;
}

// Of a batch the images are alike, so that the tile that is best for one serves any number of them; where the rows of the
// product themselves change, tiles are of a form for all sizes. No kernel with sizes as arguments divides by them for each
// group.
Test(bounds_command, images_keep_the_tile_of_one_batch) {
    char file[] = "/tmp/berth-batch-XXXXXX";
    close(mkstemp(file));
    write_text(file, "module \"m\"\ngraph @main(%x: f32[N,2,R,32], %w: f32[32,64]) {\n"
                     "  %y = matmul(%x, %w)\n  return %y\n}\n");
    const sources one = sources_of(file, "--dim N=3 --dim R=13");
    cr_assert_gt(one.sums, 0);
    cr_expect_gt(one.divisions, 0);
    const sources batches = sources_of(file, "--dim N=2..4 --dim R=13");
    cr_expect_eq(batches.sums, one.sums);
    cr_expect_eq(batches.kernels, 1, "one for all");
    cr_expect_eq(batches.divisions, 0);
    const sources rows = sources_of(file, "--dim N=3 --dim R=13..15");
    cr_expect_eq(rows.kernels, 1, "one for all");
    cr_expect_eq(rows.divisions, 0);
    unlink(file);
}

// Rows after the whole tiles are none for some sizes, fill smaller tiles for some, are left over from these for some: one
// kernel, and one program, as each number of tiles is an expression of the rows.
Test(bounds_command, rows_after_whole_tiles_make_no_kernel_more) {
    char file[] = "/tmp/berth-rows-XXXXXX";
    close(mkstemp(file));
    write_text(file, "module \"m\"\ngraph @main(%x: f32[R,32], %w: f32[32,64]) {\n"
                     "  %y = matmul(%x, %w)\n  return %y\n}\n");
    cr_expect_eq(sources_of(file, "--dim R=16..18").kernels, 1);
    cr_expect_eq(sources_of(file, "--dim R=24..40").kernels, 1);
    unlink(file);
}

// What differs from shape to shape is known before the first kernel is compiled, so that none is compiled for one of them.
Test(bounds_command, a_kernel_for_all_shapes_is_compiled_once) {
    char file[] = "/tmp/berth-once-XXXXXX", command[256], count[16] = "";
    close(mkstemp(file));
    write_text(file, "module \"m\"\ngraph @main(%x: f32[R,32], %w: f32[32,64]) {\n"
                     "  %y = matmul(%x, %w)\n  return %y\n}\n");
    snprintf(command, sizeof(command),
             "build %s --target cpu --dim R=20..22 --cache-dir %s.d -o %s.berth", file, file, file);
    const result *r = berth_run(command);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, ": 1 kernels"), "%s", r->out);
    snprintf(command, sizeof(command), "find %s.d -name '*.so' | wc -l; rm -r %s*", file, file);
    FILE *compiled = popen(command, "r");
    cr_assert_not_null(fgets(count, sizeof(count), compiled));
    cr_expect_eq(pclose(compiled), 0);
    cr_expect_eq(atoi(count), 1, "compiled: %s", count);
}

// ---- modules ------------------------------------------------------------------------------------

#define OPEN_MODULE                                                                                \
    "module \"m\"\ngraph @main(%x: f32[N,L], %y: f32[N,4]) {\n  %a = relu(%x)\n  %b = neg(%y)\n  " \
    "return %a, %b\n}\n"

typedef struct open_module {
    char file[32];
    char command[256];
} open_module;

static const char *on(open_module *m, const char *command, const char *options) {
    if (!*m->file) {
        strcpy(m->file, "/tmp/berth-open-XXXXXX");
        close(mkstemp(m->file));
        write_text(m->file, OPEN_MODULE);
    }
    snprintf(m->command, sizeof(m->command), "%s %s %s", command, m->file, options);
    return m->command;
}

// As of an ONNX model: extents that are given, a batch of 1 with a note, bounds.
Test(bounds_command, symbols_of_a_module_get_extents) {
    open_module m = {.file = ""};
    const result *r = berth_run(on(&m, "run", "--dim L=3"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, " f32[1,3]"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, " f32[1,4]"), "%s", r->out);
    const char *note = strstr(r->err, "dimension N of the inputs is taken as 1");
    cr_assert_not_null(note, "%s", r->err);
    cr_assert_null(strstr(strchr(note, '\n'), "is taken as 1"), "said twice: %s", r->err);
    r = berth_run(on(&m, "opt", "--dim N=2 --dim x.1=5"));
    cr_assert_not_null(strstr(r->out, "@main(%x: f32[2,5], %y: f32[2,4])"), "%s", r->out);
    cr_assert_not_null(strstr(r->out, "relu(%x): f32[2,5]"), "%s", r->out);
    r = berth_run(on(&m, "run", "--dim N=2..6 --dim L=3"));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_not_null(strstr(r->out, " f32[6,3]"), "%s", r->out);
    berth_run_fails(on(&m, "run", ""), 1, "\"x\" f32[1,L]; give the inputs, or their extents");
    berth_run_fails(on(&m, "run", "--dim K=3"), 1, "its symbols are: N, L");
    berth_run_fails(on(&m, "run", "--dim N=3 --dim x.0=4"), 1, "dimension N is 3 and 4");
    berth_run_fails(on(&m, "run", "--dim L=3..2"), 2, "");
    unlink(m.file);
}
