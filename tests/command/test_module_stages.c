// The module is the truth: printed after any pass, as text or JSON, it goes on to the same program.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Scripts run in a folder of their own, with the command as $B.
static void enter_folder(void) {
    char folder[] = "/tmp/berth-stages-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(setenv("F", folder, 1), 0);
    cr_assert_eq(setenv("B", BERTH_COMMAND, 1), 0);
}

static int shell(const char *script) {
    char whole[4096];
    snprintf(whole, sizeof(whole), "cd \"$F\" && { %s\n}", script);
    return system(whole);
}

static void leave_folder(void) {
    cr_expect_eq(system("rm -r \"$F\""), 0);
}

// The passes of the pipeline, in its order, as the command names them in the file "passes".
static void list_passes(const char *model) {
    char script[1024];
    snprintf(script, sizeof(script),
             "\"$B\" opt %s --target target.json --passes all --print-after all 2>log | "
             "sed -n 's,^// after ,,p' >passes; grep -qx plan-devices passes",
             model);
    cr_assert_eq(shell(script), 0, "%s", model);
}

// After each pass in turn up to `last` ("": all): printed, read and built, it is the whole model's program.
static void check_form(const char *model, const char *last, const char *extra) {
    list_passes(model);
    char script[2048];
    snprintf(script, sizeof(script),
             "list=; count=0; for pass in $(cat passes); do\n"
             "test \"$pass\" = package && continue\n"
             "list=\"$list${list:+,}$pass\"; count=$((count + 1))\n"
             "{ \"$B\" opt %s --target target.json --passes $list %s 2>log >stage && "
             "\"$B\" build stage -o stage.berth; } 2>>log >>log || { cat log; echo after $pass; "
             "exit 1; }\n"
             "cmp stage.berth whole.berth || { echo after $pass; exit 1; }\n"
             "test \"$pass\" = \"%s\" && break\ndone; test $count -ge 7",
             model, extra, last);
    cr_expect_eq(shell(script), 0, "%s %s", model, extra);
}

Test(command, a_module_goes_on_from_any_pass, .timeout = 300) {
    enter_folder();
    cr_assert_eq(system("cp examples/digits/digits.onnx \"$F/model.onnx\""), 0);
    cr_assert_eq(shell("echo '{\"kind\": \"multi\", \"devices\": [\"cpu\", \"opencl\"], \"pins\": "
                       "[{\"match\": \"op:Conv\", \"device\": \"opencl:0\"}]}' >target.json; "
                       "\"$B\" build model.onnx --dim batch=2 --target target.json "
                       "-o whole.berth 2>log"),
                 0);
    cr_assert_eq(shell("\"$B\" inspect whole.berth | grep -q 'memory on opencl:0'"), 0);
    check_form("model.onnx --dim batch=2", "", "");
    check_form("model.onnx --dim batch=2", "", "--format=json");
    // A pass that changes what is there cannot run twice; another target cannot take over.
    cr_expect_neq(shell("\"$B\" opt stage --passes lower >again 2>log"), 0);
    cr_expect_eq(shell("grep -q 'pass lower has run on this module before' log"), 0);
    cr_expect_neq(shell("\"$B\" build stage --target cpu -o x.berth 2>log"), 0);
    cr_expect_eq(shell("grep -q 'planned for another target' log && ! test -e x.berth"), 0);
    leave_folder();
}

// External functions, too: code read from a file is in what is printed, and calls of equal types share
// their code.
Test(command, a_module_with_external_code_goes_on_from_any_pass, .timeout = 300) {
    enter_folder();
    cr_assert_eq(shell("cat >model.txt <<'END'\n"
                       "module \"external\"\n"
                       "graph @main(%a: f32[8]) {\n"
                       "  %b = call @halve(%a)\n"
                       "  %c = exp(%b)\n"
                       "  %d = call @halve(%c)\n"
                       "  %e = call @twice(%d)\n"
                       "  return %e\n}\n"
                       "external @halve fn(f32[N])->(f32[N]) language \"c\" symbol \"halve\" "
                       "file \"halve.c\" {flops = 8.0}\n"
                       "external @twice fn(f32[N])->(f32[N]) language \"opencl-c\" "
                       "symbol \"twice\" code meta(m1) {group_size = [4]}\n"
                       "meta {\n  m1 = text \"__kernel void twice(__global const float *x, \"\n"
                       "    \"__global float *y, long n) { long i = get_global_id(0); \"\n"
                       "    \"if (i < n) y[i] = 2 * x[i]; }\"\n}\n"
                       "END\n"
                       "cat >halve.c <<'END'\n"
                       "#include <stdint.h>\n"
                       "void halve(const float *x, float *y, int64_t n) {\n"
                       "    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / 2;\n}\n"
                       "END\n"
                       "echo '{\"kind\": \"multi\", \"devices\": [\"cpu\", \"opencl\"]}' "
                       ">target.json; \"$B\" build model.txt --target target.json -o whole.berth "
                       "2>log"),
                 0);
    cr_expect_eq(shell("\"$B\" inspect whole.berth | grep -c '^external code @' >count; "
                       "test $(cat count) = 2"),
                 0);
    check_form("model.txt", "", "");
    check_form("model.txt", "", "--format=json");
    leave_folder();
}

// The modules of examples/ that have a program. One with control flow is the virtual machine's, which plans its
// parts by itself: it is taken before plan-devices.
Test(command, every_example_goes_on_from_any_pass, .timeout = 600) {
    static const struct {
        const char *module, *target, *last;
    } examples[] = {{"compiler/conv.txt", "cpu", ""},
                    {"compiler/calls.txt", "cpu", ""},
                    {"planner/annotation.txt", "opencl,cpu", ""},
                    {"planner/instances.txt", "cpu,opencl", ""},
                    {"planner/scopes.txt", "cpu,opencl", ""},
                    {"planner/route.txt", "opencl,opencl,cpu", ""},
                    {"planner/control.txt", "cpu,opencl", "tensor-parallel"}};
    enter_folder();
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); ++i) {
        char script[1024];
        snprintf(script, sizeof(script), "cp examples/%s \"$F/model.txt\"", examples[i].module);
        cr_assert_eq(system(script), 0);
        snprintf(script, sizeof(script),
                 "\"$B\" target show %s --format=json >target.json && "
                 "\"$B\" build model.txt --target target.json -o whole.berth 2>log",
                 examples[i].target);
        cr_assert_eq(shell(script), 0, "%s", examples[i].module);
        check_form("model.txt", examples[i].last, "");
        check_form("model.txt", examples[i].last, "--format=json");
    }
    leave_folder();
}

// One body on two kinds of devices is scheduled for each; a call that does not fit its callee is
// refused where it stands.
Test(command, one_function_on_two_devices, .timeout = 120) {
    enter_folder();
    cr_assert_eq(shell("cat >twice.txt <<'END'\n"
                       "module \"twice\"\n"
                       "graph @main(%a: f32[8,8]) {\n"
                       "  %b = call @double(%a) on opencl:0 : f32[8,8]\n"
                       "  %c = call @double(%b) on cpu:0 : f32[8,8]\n"
                       "  return %c\n}\n"
                       "tensor @double(%x: f32[8,8] in, %y: f32[8,8] out) {\n"
                       "  parallel %i in 8 {\n    for %j in 8 {\n"
                       "      %y[%i, %j] = %x[%i, %j] * 2.0\n    }\n  }\n}\n"
                       "END"),
                 0);
    cr_expect_eq(shell("\"$B\" opt twice.txt --passes all --target cpu,opencl >out && "
                       "grep -q '@double.cpu' out && grep -q '@double.opencl' out"),
                 0);
    cr_expect_eq(shell("\"$B\" run twice.txt --target cpu,opencl >out 2>&1 && "
                       "grep -q 'cpu:0.* 1 kernels' out && grep -q 'opencl:0.* 1 kernels' out"),
                 0);
    cr_expect_neq(shell("sed 's/on cpu:0 : f32.8,8./on cpu:0 : f32[4]/' twice.txt >bad.txt; "
                        "\"$B\" run bad.txt --target cpu,opencl 2>log"),
                  0);
    cr_expect_eq(shell("grep -q 'bad.txt:4.*result 0 of @double is f32.8,8., not f32.4.' log"), 0);
    leave_folder();
}

// "1, 2, ..., count" as a file a.npy.
static void write_row(int count) {
    char path[256];
    char header[118];
    snprintf(path, sizeof(path), "%s/a.npy", getenv("F"));
    int length = snprintf(header, sizeof(header),
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", count);
    memset(header + length, ' ', sizeof(header) - (size_t)length);
    header[sizeof(header) - 1] = '\n';
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite("\x93NUMPY\x01\x00v\x00", 1, 10, file), 10);
    cr_assert_eq(fwrite(header, 1, sizeof(header), file), sizeof(header));
    for (float value = 1; value <= (float)count; ++value)
        cr_assert_eq(fwrite(&value, sizeof(value), 1, file), 1);
    cr_assert_eq(fclose(file), 0);
}

// "2 * count, ..., 4, 2" at the end of the file b.npy.
static void check_turned_row(int count) {
    char path[256];
    snprintf(path, sizeof(path), "%s/b.npy", getenv("F"));
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, -4L * count, SEEK_END), 0);
    for (float want = 2.0f * (float)count; want > 0; want -= 2) {
        float value = 0;
        cr_assert_eq(fread(&value, sizeof(value), 1, file), 1);
        cr_expect_eq(value, want, "%g, expected %g of %d", (double)value, (double)want, count);
    }
    cr_assert_eq(fclose(file), 0);
}

// A tensor function over a symbol serves every extent: one that an input gives, and one of --dim. It turns
// the row about, so that a wrong extent is a wrong result.
Test(module_stages, symbols_in_tensor_functions) {
    enter_folder();
    cr_assert_eq(shell("cat >sym.txt <<'E'\n"
                       "module \"sym\"\n"
                       "graph @main(%a: f32[N]) { %b = call @turn(%a) return %b }\n"
                       "tensor @turn(%x: f32[N] in, %y: f32[N] out) {\n"
                       "  parallel %i in N { %y[N - 1 - %i] = 2.0 * %x[%i] }\n"
                       "}\n"
                       "E\n"),
                 0);
    for (int count = 3; count <= 5; count += 2) {
        char build[256];
        write_row(count);
        cr_expect_eq(shell("\"$B\" run sym.txt --input a=a.npy --output b=b.npy --quiet"), 0);
        check_turned_row(count);
        snprintf(build, sizeof(build), "\"$B\" build sym.txt --dim N=%d -o sym.berth --quiet",
                 count);
        cr_expect_eq(shell(build), 0);
        cr_expect_eq(shell("\"$B\" run sym.berth --input a=a.npy --output b=b.npy --quiet"), 0);
        check_turned_row(count);
    }
    cr_expect_eq(
        shell("! \"$B\" build sym.txt -o sym.berth 2>log && grep -q 'as in --dim N=1' log"), 0);
    leave_folder();
}

// Two of each element: y[2 i] = x[i], y[2 i + 1] = x[i] + 100.
#define TWICE                                                                                      \
    "tensor @twice(%%x: f32[N] in, %%y: f32[2*N] out) {\n"                                         \
    "  parallel %%i in N { %%y[2 * %%i] = %%x[%%i] %%y[2 * %%i + 1] = %%x[%%i] + 100.0 }\n}\n"

static void write_module(const char *name, const char *main) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", getenv("F"), name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    cr_assert_gt(fprintf(file, "module \"m\"\n%s" TWICE, main), 0);
    cr_assert_eq(fclose(file), 0);
}

// The last elements of b.npy.
static void read_row(float *values, int count) {
    char path[256];
    snprintf(path, sizeof(path), "%s/b.npy", getenv("F"));
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, -4L * count, SEEK_END), 0);
    cr_assert_eq(fread(values, sizeof(*values), (size_t)count, file), (size_t)count);
    cr_assert_eq(fclose(file), 0);
}

static void check_twice(int count) {
    float values[64];
    read_row(values, 2 * count);
    for (int i = 0; i < 2 * count; ++i) {
        float want = (float)(i / 2 + 1) + (i % 2 ? 100.0f : 0.0f);
        cr_expect_eq(values[i], want, "%d of %d: %g", i, count, (double)values[i]);
    }
}

// Each call binds the symbols of the function that it calls: here N is 3, 6 and 4, the caller's own names are others, and
// two calls with the same extent share a copy.
Test(module_stages, a_function_serves_calls_of_several_extents) {
    enter_folder();
    write_row(3);
    write_module("poly.txt", "graph @pair(%x: f32[M]) { %y = call @twice(%x) return %y }\n"
                             "graph @main(%a: f32[3]) {\n"
                             "  %c = call @pair(%a)\n"
                             "  %d = call @twice(%c)\n"
                             "  %from = constant() {value = i64[1] (0)}\n"
                             "  %to = constant() {value = i64[1] (4)}\n"
                             "  %e = slice(%d, %from, %to)\n"
                             "  %g = call @twice(%e)\n"
                             "  %h = call @twice(%a)\n"
                             "  %b = concat(%c, %d, %g, %h) {axis = 0}\n"
                             "  return %b\n}\n");
    cr_expect_eq(shell("\"$B\" run poly.txt --input a=a.npy --output b=b.npy --quiet"), 0);
    static const float x[] = {1, 101, 2, 102, 3, 103};
    float values[32];
    read_row(values, 32);
    for (int i = 0; i < 6; ++i) cr_expect_eq(values[i], x[i]);
    for (int i = 0; i < 12; ++i) cr_expect_eq(values[6 + i], x[i / 2] + (i % 2 ? 100.0f : 0.0f));
    for (int i = 0; i < 8; ++i)
        cr_expect_eq(values[18 + i], values[6 + i / 2] + (i % 2 ? 100.0f : 0.0f));
    for (int i = 0; i < 6; ++i) cr_expect_eq(values[26 + i], x[i]);
    cr_expect_eq(shell("\"$B\" opt poly.txt --passes instantiate,plan-devices,inline-calls >out && "
                       "[ $(grep -c '^tensor @twice_3' out) = 1 ] && [ $(grep -c '^tensor @twice_' "
                       "out) = 3 ]"),
                 0);
    leave_folder();
}

// The virtual machine calls tensor functions too, one program for all extents within bounds.
Test(module_stages, a_program_within_bounds_calls_tensor_functions) {
    enter_folder();
    write_module("open.txt", "graph @main(%a: f32[K]) { %b = call @twice(%a) return %b }\n");
    cr_expect_eq(shell("\"$B\" build open.txt --dim K=1..20 -o open.berth --quiet"), 0);
    for (int count = 1; count <= 20; count += 6) {
        write_row(count);
        cr_expect_eq(shell("\"$B\" run open.berth --input a=a.npy --output b=b.npy >out && "
                           "grep -q 'compiled: nothing' out"),
                     0);
        check_twice(count);
    }
    leave_folder();
}

// In a branch that only the run chooses, of an extent that only the run knows.
Test(module_stages, tensor_functions_in_branches) {
    enter_folder();
    write_row(5);
    write_module("branch.txt",
                 "graph @main(%a: f32[K]) {\n"
                 "  %s = reduce_sum(%a) {keepdims = 0}\n"
                 "  %limit = constant() {value = f32[] (14.0)}\n"
                 "  %big = greater(%s, %limit)\n"
                 "  %b = if(%big) {\n    %d = call @twice(%a)\n    return %d\n"
                 "  } else {\n    %e = concat(%a, %a) {axis = 0}\n    return %e\n  }\n"
                 "  return %b\n}\n");
    cr_expect_eq(
        shell("\"$B\" run branch.txt --executor vm --input a=a.npy --output b=b.npy --quiet"), 0);
    check_twice(5);
    write_row(4);  // the sum is 10
    cr_expect_eq(
        shell("\"$B\" run branch.txt --executor vm --input a=a.npy --output b=b.npy --quiet"), 0);
    float values[8];
    read_row(values, 8);
    for (int i = 0; i < 8; ++i) cr_expect_eq(values[i], (float)(i % 4 + 1));
    leave_folder();
}
