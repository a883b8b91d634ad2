// External functions: each language runs, and what is wrong with one is said with its name.
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/berth-external-XXXXXX";

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(setenv("F", folder, 1), 0);
    cr_assert_eq(setenv("B", BERTH_COMMAND, 1), 0);
}

static void remove_folder(void) {
    cr_assert_eq(system("rm -rf \"$F\""), 0);
}

TestSuite(external, .init = make_folder, .fini = remove_folder, .timeout = 120);

static int shell(const char *script) {
    char whole[4096];
    int length = snprintf(whole, sizeof(whole), "cd \"$F\" && { %s\n}", script);
    cr_assert_lt(length, (int)sizeof(whole));
    return system(whole);
}

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

enum { COUNT = 10 };

// NumPy's form: a header padded to 128 bytes, then the elements.
static void put_array(const char *name, const float *values) {
    char path[256], header[129];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    memset(header, ' ', sizeof(header));
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    char text[119];
    int length = snprintf(text, sizeof(text),
                          "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", COUNT);
    memcpy(header + 10, text, (size_t)length);
    header[127] = '\n';
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(header, 1, 128, file), 128u);
    cr_assert_eq(fwrite(values, sizeof(float), COUNT, file), (size_t)COUNT);
    cr_assert_eq(fclose(file), 0);
}

static void get_elements(const char *name, float *values, int count) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, -(long)((size_t)count * sizeof(float)), SEEK_END), 0);
    cr_assert_eq(fread(values, sizeof(float), (size_t)count, file), (size_t)count);
    cr_assert_eq(fclose(file), 0);
}

static void get_array(const char *name, float *values) {
    get_elements(name, values, COUNT);
}

static const char module_text[] =
    "module \"all\"\n"
    "graph @main(%a: f32[10]) {\n"
    "  %b = call @halve(%a)\n"
    "  %c = call @add(%a, %b)\n"
    "  %d = relu(%c)\n"
    "  %e = call @square(%d)\n"
    "  %f = call @twice(%e)\n"
    "  %g = call @inverse(%f)\n"
    "  return %g\n"
    "}\n"
    "external @halve fn(f32[N])->(f32[N]) language \"c\" symbol \"f\" code meta(m1)\n"
    "external @add fn(f32[N], f32[N])->(f32[N]) language \"object\" symbol \"f\" file \"add.o\"\n"
    "external @square fn(f32[N])->(f32[N]) language \"library\" symbol \"square\" "
    "file \"./libsquare.so\" {groups = [5]}\n"
    "external @twice fn(f32[N])->(f32[N]) language \"opencl-c\" symbol \"twice\" code meta(m2) "
    "{group_size = [4]}\n"
    "external @inverse fn(f32[10])->(f32[10]) language \"c\" symbol \"f\" file \"inverse.c\"\n"
    "meta {\n"
    "  m1 = text \"#include <stdint.h>\\n\"\n"
    "            \"void f(const float *x, float *y, int64_t n) {\\n\"\n"
    "            \"for (int64_t i = 0; i < n; ++i) y[i] = x[i] / 2;\\n}\\n\"\n"
    "  m2 = text \"__kernel void twice(__global const float *x, __global float *y, long n) {\\n\"\n"
    "            \"long i = get_global_id(0); if (i < n) y[i] = 2 * x[i]; }\"\n"
    "}\n";

static void put_module(void) {
    put("all.txt", module_text);
    put("add.c", "#include <stdint.h>\n"
                 "void f(const float *a, const float *b, float *y, int64_t n) {\n"
                 "    for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];\n}\n");
    put("square.c",
        "#include <stdint.h>\n"
        "void square(const float *x, float *y, int64_t n, int64_t begin, int64_t end) {\n"
        "    for (int64_t i = n * begin / 5; i < n * end / 5; ++i) y[i] = x[i] * x[i];\n}\n");
    put("inverse.c", "static float of(float x) {\n    return x ? 1 / x : -1;\n}\n"
                     "void f(const float *x, float *y) {\n    for (int i = 0; i < 10; ++i) y[i] = "
                     "of(x[i]);\n}\n");
    cr_assert_eq(shell("cc -fPIC -c add.c -o add.o && cc -fPIC -shared square.c -o libsquare.so"),
                 0);
}

// Three functions have the same symbol; the expected values are arithmetic.
Test(external, every_language_runs) {
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; ++i) x[i] = (float)i - 3;
    put_module();
    put_array("a.npy", x);
    cr_assert_eq(shell("\"$B\" run all.txt --target cpu,opencl --input a=a.npy -o g=g.npy "
                       ">out 2>&1 || { cat out; false; }"),
                 0);
    get_array("g.npy", y);
    for (int i = 0; i < COUNT; ++i) {
        float sum = x[i] > 0 ? x[i] + x[i] / 2 : 0;
        cr_expect_eq(y[i], sum > 0 ? 1 / (2 * (sum * sum)) : -1, "%d: %g", i, (double)y[i]);
    }
    // A program and a module from elsewhere do the same; both say what they hold.
    cr_expect_eq(shell("\"$B\" build all.txt --target cpu,opencl -o all.berth 2>log && "
                       "\"$B\" inspect all.berth >what && "
                       "test $(grep -c '^external code @.*your rights$' what) = 5 && "
                       "grep -q '^external code @twice, language \"opencl-c\"' what && "
                       "\"$B\" run all.berth --input a=a.npy -o g=h.npy >out && cmp g.npy h.npy"),
                 0);
    cr_expect_eq(shell("mkdir sub && \"$B\" opt all.txt --target cpu,opencl --passes "
                       "keep-names,fold-constants "
                       ">sub/moved.txt && \"$B\" run sub/moved.txt --target cpu,opencl "
                       "--input a=a.npy -o g=i.npy >out && cmp g.npy i.npy && "
                       "test $(\"$B\" inspect sub/moved.txt | grep -c '^external code @') = 5"),
                 0);
    cr_expect_eq(shell("\"$B\" inspect all.berth --format=json | grep -q '@square, language'"), 0);
    // Its source is kept as it was written, without what kernels have in front of theirs.
    cr_expect_eq(shell("\"$B\" build all.txt --target cpu,opencl --keep-source -o k.berth 2>log && "
                       "\"$B\" inspect k.berth --extract k >out && "
                       "grep -q 'of(x.i.)' k/source/*/external.c && "
                       "! grep -q BERTH_FN k/source/*/external.c"),
                 0);
}

// Kernels that call external code row by row, in C and OpenCL C. Two functions have statics of one name;
// the expected values are arithmetic.
static const char inner_text[] =
    "module \"inner\"\n"
    "graph @main(%x: f32[10]) {\n  %y = call @pairs(%x)\n  return %y\n}\n"
    "tensor @pairs(%x: f32[10] in, %y: f32[10] out) {\n  workspace %t: f32[5,2]\n"
    "  parallel %i in 5 {\n    call @halve(%x[%i * 2 for 2], %t[%i, 0 for 2])\n  }\n"
    "  for %i in 5 {\n    call @both(%t[%i, 0 for 2], %y[8 - %i * 2 for 2])\n  }\n}\n"
    "tensor @both(%a: f32[2] in, %b: f32[2] out) {\n  call @swap(%a, %b)\n"
    "  for %i in 2 {\n    %b[%i] = %b[%i] + 1.0\n  }\n}\n"
    "external @halve fn(f32[N])->(f32[N]) language \"c\" symbol \"halve\" file \"halve.c\"\n"
    "external @swap fn(f32[2])->(f32[2]) language \"c\" symbol \"swap\" file \"swap.c\"\n";

static void put_inner(void) {
    put("inner.txt", inner_text);
    put("halve.c", "#include <stdint.h>\nvoid halve(const float *x, float *y, int64_t n) {\n"
                   "    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / 2;\n}\n");
    put("swap.c", "void swap(const float *x, float *y) {\n    y[0] = x[1], y[1] = x[0];\n}\n");
    put("halve.cl", "void halve(__global const float *x, __global float *y, long n) {\n"
                    "    for (long i = 0; i < n; ++i) y[i] = x[i] / 2;\n}\n");
    put("swap.cl", "void swap(__global const float *x, __global float *y) {\n"
                   "    y[0] = x[1], y[1] = x[0];\n}\n");
    cr_assert_eq(shell("sed 's/\"c\"/\"opencl-c\"/; s/[.]c\"/.cl\"/' inner.txt >inner_cl.txt"), 0);
}

Test(external, kernels_call_it) {
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; ++i) x[i] = (float)i - 3;
    put_inner();
    put_array("x.npy", x);
    static const char *const runs[] = {"inner.txt --target cpu", "inner_cl.txt --target opencl",
                                       "inner_cl.txt --target cpu,opencl"};
    for (int r = 0; r < 3; ++r) {
        char script[512];
        snprintf(script, sizeof(script),
                 "\"$B\" run %s --input x=x.npy -o y=y.npy >out 2>&1 || { cat out; false; }",
                 runs[r]);
        cr_assert_eq(shell(script), 0, "%s", runs[r]);
        get_array("y.npy", y);
        for (int i = 0; i < COUNT; ++i)
            cr_expect_eq(y[i], x[COUNT - 1 - i] / 2 + 1, "%s: %d: %g", runs[r], i, (double)y[i]);
    }
    cr_expect_eq(shell("\"$B\" build inner.txt --target cpu -o inner.berth 2>log && "
                       "\"$B\" inspect inner.berth | grep -q '^external code @halve.*@swap'"),
                 0);
}

// Kernels that call two symbols of one object file, and two libraries that have one symbol; in parallel. The
// expected values are arithmetic.
static const char linked_text[] =
    "module \"linked\"\n"
    "graph @main(%x: f32[10]) {\n  %y = call @rows(%x)\n  return %y\n}\n"
    "tensor @rows(%x: f32[10] in, %y: f32[10] out) {\n"
    "  workspace %t: f32[5,2]\n  workspace %u: f32[5,2]\n"
    "  parallel %i in 5 {\n    call @halve(%x[%i * 2 for 2], %t[%i, 0 for 2])\n"
    "    call @swap(%t[%i, 0 for 2], %u[%i, 0 for 2])\n"
    "    call @plus(%u[%i, 0 for 2], %t[%i, 0 for 2])\n"
    "    call @thrice(%t[%i, 0 for 2], %y[%i * 2 for 2])\n  }\n}\n"
    "external @halve fn(f32[N])->(f32[N]) language \"library\" symbol \"f\" file "
    "\"./libhalve.so\"\n"
    "external @thrice fn(f32[N])->(f32[N]) language \"library\" symbol \"f\" file "
    "\"./libthrice.so\"\n"
    "external @swap fn(f32[2])->(f32[2]) language \"object\" symbol \"swap\" file \"two.o\"\n"
    "external @plus fn(f32[N])->(f32[N]) language \"object\" symbol \"plus\" file \"two.o\"\n";

Test(external, kernels_call_objects_and_libraries) {
    float x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; ++i) x[i] = (float)i - 3;
    put("linked.txt", linked_text);
    put("two.c", "#include <stdint.h>\nstatic const float one = 1;\n"
                 "void swap(const float *x, float *y) {\n    y[0] = x[1], y[1] = x[0];\n}\n"
                 "void plus(const float *x, float *y, int64_t n) {\n"
                 "    for (int64_t i = 0; i < n; ++i) y[i] = x[i] + one;\n}\n");
    put("scale.c", "#include <stdint.h>\nvoid f(const float *x, float *y, int64_t n) {\n"
                   "    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * (FACTOR);\n}\n");
    put_array("x.npy", x);
    cr_assert_eq(shell("cc -O2 -fPIC -c two.c -o two.o && "
                       "cc -fPIC -shared -DFACTOR=0.5f scale.c -o libhalve.so && "
                       "cc -fPIC -shared -DFACTOR=3 scale.c -o libthrice.so"),
                 0);
    cr_assert_eq(shell("\"$B\" run linked.txt --target cpu --input x=x.npy -o y=y.npy >out 2>&1 || "
                       "{ cat out; false; }"),
                 0);
    get_array("y.npy", y);
    for (int i = 0; i < COUNT; ++i)
        cr_expect_eq(y[i], (x[i ^ 1] / 2 + 1) * 3, "%d: %g", i, (double)y[i]);
    // A program holds the object, and says so, and that it wants the libraries.
    cr_expect_eq(
        shell("\"$B\" build linked.txt --target cpu -o linked.berth 2>log && rm two.o && "
              "\"$B\" inspect linked.berth | grep -q '^external code @halve.*@plus' && "
              "\"$B\" run linked.berth --input x=x.npy -o y=z.npy >out && cmp y.npy z.npy"),
        0);
    // What an object wants and nobody has is an error of the build.
    put("two.c", "void elsewhere(float *);\nvoid swap(const float *x, float *y) {\n"
                 "    y[0] = x[1], elsewhere(y);\n}\nvoid plus(void) {\n}\n");
    cr_expect_eq(shell("cc -fPIC -c two.c -o two.o && "
                       "\"$B\" build linked.txt --target cpu -o other.berth 2>log; "
                       "test $? = 1 && grep -q 'elsewhere' log"),
                 0);
    cr_expect_eq(shell("rm libthrice.so; \"$B\" run linked.berth --input x=x.npy >out 2>log; "
                       "test $? = 1 && grep -q 'libthrice.so' log"),
                 0);
}

typedef struct inner_mistake {
    const char *edit;  // of sed, on the module
    const char *target;
    const char *says;
} inner_mistake;

static const inner_mistake inner_mistakes[] = {
    {"", "opencl", "devices of kind opencl do not run external code for cpu (@halve"},
    {"", "vulkan", "devices of kind vulkan do not run external code"},
    {"", "cpu -executor=aot", "the executor aot prints no code in another language"},
    {"s/language \"c\" symbol \"swap\"/language \"object\" symbol \"swap\"/", "cpu",
     "is no object file (ELF)"},
    {"s/symbol \"swap\"/symbol \"halve\"/", "cpu", "have one symbol, \"halve\""},
    {"s/file \"halve.c\"/file \"halve.c\" {groups = [2]}/", "cpu", "its attribute groups"},
    {"s/symbol \"swap\"/symbol \"swap;\"/", "cpu", "is no name in C"},
    {"s/file \"swap.c\"/file \"halve.cl\"/", "cpu", "@swap:1:"},
    {"s/%x\\[%i \\* 2 for 2\\]/%x[%i * 3 for 2]/", "cpu", "goes from 0 to 14"},
};

Test(external, what_kernels_cannot_call_is_said) {
    put_inner();
    cr_assert_eq(shell("mv inner.txt good.txt"), 0);
    for (size_t i = 0; i < sizeof(inner_mistakes) / sizeof(inner_mistakes[0]); ++i) {
        const inner_mistake *m = &inner_mistakes[i];
        char script[512];
        put("edit", m->edit);
        put("wanted", m->says);
        snprintf(script, sizeof(script),
                 "sed -f edit good.txt >inner.txt; \"$B\" run inner.txt --target '%s' >out 2>log",
                 m->target);
        int status = shell(script);
        cr_expect_eq(WEXITSTATUS(status), 1, "%s: %d", m->edit, status);
        cr_expect_eq(shell("grep -qF -f wanted log || { cat log; false; }"), 0, "%s: \"%s\"",
                     m->edit, m->says);
    }
}

typedef struct mistake {
    const char *edit;     // of sed, on the module
    const char *says[3];  // texts of the message
} mistake;

static const mistake mistakes[] = {
    {"s/add.o/none.o/", {"@add", "file \"none.o\" is not there"}},
    {"s/inverse.c/..\\/inverse.c/", {"@inverse", "leaves the model's folder"}},
    {"s/add.o/\\/add.o/", {"@add", "not a path relative to the model's folder"}},
    {"s/libsquare.so/libnone.so/", {"@square", "library \"libnone.so\" is not there"}},
    {"s/.\\/libsquare.so/libnone.so.7/", {"@square", "shared library \"libnone.so.7\""}},
    {"s/.\\/libsquare.so/libm.so.6/",
     {"@square", "shared library \"libm.so.6\" has no symbol \"square\""}},
    {"s/symbol \"f\" file \"add.o\"/symbol \"h\" file \"add.o\"/", {"@add", "h"}},
    {"s/symbol \"f\" file \"inverse/symbol \"h\" file \"inverse/", {"@inverse", "h"}},
    {"s/symbol \"f\" file \"inverse/symbol \"f;\" file \"inverse/",
     {"@inverse", "\"f;\" is no name in C"}},
    {"s/add.o/add.c/", {"@add", "no object file"}},
    {"s/ y\\[i\\] = x\\[i\\] \\/ 2;/ y[i] = x[i] \\/ 2/", {"@halve:3:", "error"}},
    {"s/void f(const float \\*x, float/void f(const int *x, float/",
     {"the call of @halve", "incompatible pointer"}},
    {"s/void f(const float \\*x, float \\*y, int64_t n) {/void f(const float *x, float *y) { int n "
     "= 10;/",
     {"the call of @halve", "argument"}},
    {"s/y\\[i\\] = 2 \\*/z[i] = 2 */", {"@twice", "build log"}},
    {"s/symbol \"twice\"/symbol \"thrice\"/", {"@twice", "no kernel \"thrice\""}},
    {"s/language \"opencl-c\"/language \"abacus\"/",
     {"all.txt:7", "no device runs external code", "abacus"}},
    {"s/call @twice(%e)/call @twice(%e) on cpu:0/", {"all.txt:7", "kind cpu do not run", "@twice"}},
    {"s/call @halve(%a)/call @halve(%a) on opencl:0/",
     {"all.txt:3", "kind opencl do not run", "@halve"}},
    {"s/call @add(%a, %b)/call @add(%a, %b) : f32[9]/", {"all.txt:4", "result 0 of @add is"}},
    {"s/call @add(%a, %b)/call @add(%a) : f32[10]/", {"all.txt:4", "@add takes 2 arguments"}},
    {"s/%a: f32\\[10\\]/%a: f32[12]/", {"all.txt:8", "@inverse"}},
    {"s/{group_size = \\[4\\]}/{group_size = [0]}/", {"@twice", "group_size"}},
    {"s/{groups = \\[5\\]}/{groups = [5, 5]}/", {"@square", "groups"}},
    {"s/language \"object\" symbol \"f\" file \"add.o\"/language \"object\" symbol \"f\" code "
     "meta(m1)/",
     {"@add", "no object file"}},
};

Test(external, what_is_wrong_is_said_with_the_function) {
    put_module();
    cr_assert_eq(shell("mv all.txt good.txt"), 0);
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); ++i) {
        put("edit", mistakes[i].edit);
        cr_assert_eq(shell("sed -f edit good.txt >all.txt; ! cmp -s good.txt all.txt"), 0, "%s",
                     mistakes[i].edit);
        int status = shell("\"$B\" run all.txt --target cpu,opencl >out 2>log");
        cr_expect_eq(WEXITSTATUS(status), 1, "%s: %d", mistakes[i].edit, status);
        for (size_t k = 0; k < 3 && mistakes[i].says[k]; ++k) {
            put("wanted", mistakes[i].says[k]);
            cr_expect_eq(shell("grep -qF -f wanted log || { cat log; false; }"), 0, "%s: \"%s\"",
                         mistakes[i].edit, mistakes[i].says[k]);
        }
    }
}

// Two branches of 10 us are not worth waking another processor's threads, two of a millisecond are.
Test(external, branches_are_handed_over_where_that_pays) {
    put("two.txt",
        "module \"two\"\ngraph @main(%a: f32[8]) {\n  %b = call @f(%a)\n  %c = call @f(%a)\n"
        "  %d = add(%b, %c)\n  return %d\n}\n"
        "external @f fn(f32[8])->(f32[8]) language \"c\" symbol \"f\" code meta(m1) "
        "{time_ns = 1.0e4}\nmeta {\n  m1 = text \"a plan compiles nothing\"\n}\n");
    cr_expect_eq(shell("\"$B\" plan two.txt --target 'cpu -cores=1,cpu -cores=1' --strategy auto "
                       "--costs none >out && ! grep -q '^cpu:1 ' out || { cat out; false; }"),
                 0);
    cr_expect_eq(shell("sed 's/1.0e4/1.0e6/' two.txt >more.txt; "
                       "\"$B\" plan more.txt --target 'cpu -cores=1,cpu -cores=1' --strategy auto "
                       "--costs none >out && grep -q '^cpu:1 ' out || { cat out; false; }"),
                 0);
}

// A time counts alone; operations count against the device: 0.7 of the peak is the model's efficiency,
// so 7e11 operations at 1e12 a second take one second.
Test(external, costs_are_what_the_function_says) {
    put("hint.txt",
        "module \"hint\"\ngraph @main(%a: f32[8]) {\n  %b = call @f(%a)\n  return %b\n}\n"
        "external @f fn(f32[8])->(f32[8]) language \"c\" symbol \"f\" code meta(m1) "
        "{time_ns = 2.0e6}\nmeta {\n  m1 = text \"not even C: a plan compiles nothing\"\n}\n");
    cr_expect_eq(shell("\"$B\" plan hint.txt >out && grep -q 'cpu:0 .* 2000.0 us' out || "
                       "{ cat out; false; }"),
                 0);
    cr_expect_eq(
        shell("sed 's/time_ns = 2.0e6/flops = 7.0e11/' hint.txt >more.txt; "
              "\"$B\" plan more.txt --target cpu --set peak_flops.f32=1e12 "
              "--set cores=1 --set dispatch_ns=0 >out && grep -q 'cpu:0 .* 1000000.0 us' out || "
              "{ cat out; false; }"),
        0);
}

// An expression of a function's type is no extent of its own: the code is told of N alone. The virtual machine calls it,
// for an extent that only the input knows.
Test(external, expressions_of_symbols) {
    float x[COUNT], y[2 * COUNT];
    for (int i = 0; i < COUNT; ++i) x[i] = (float)i;
    put("open.txt",
        "module \"open\"\n"
        "graph @main(%a: f32[K]) { %g = call @twice(%a) return %g }\n"
        "external @twice fn(f32[N])->(f32[2*N]) language \"c\" symbol \"f\" code meta(m1)\n"
        "meta {\n"
        "  m1 = text \"#include <stdint.h>\\n\"\n"
        "            \"void f(const float *x, float *y, int64_t n) {\\n\"\n"
        "            \"for (int64_t i = 0; i < 2 * n; ++i) y[i] = x[i / 2] + 1;\\n}\\n\"\n"
        "}\n");
    put_array("a.npy", x);
    for (int vm = 0; vm < 2; ++vm) {
        cr_assert_eq(shell(vm ? "\"$B\" run open.txt --executor vm --input a=a.npy -o g=g.npy >out"
                              : "\"$B\" run open.txt --input a=a.npy -o g=g.npy >out"),
                     0);
        get_elements("g.npy", y, 2 * COUNT);
        for (int i = 0; i < 2 * COUNT; ++i)
            cr_expect_eq(y[i], (float)(i / 2 + 1), "%d: %g", i, (double)y[i]);
    }
}
