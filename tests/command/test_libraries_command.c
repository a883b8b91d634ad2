// Libraries in place of kernels: plans say who computes and by which times, programs say whom they
// call, and a library that is not as it should be is named with Debian's package.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support.h"

static char folder[] = "/tmp/berth-libraries-XXXXXX";

static void put(const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
}

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(setenv("F", folder, 1), 0);
    cr_assert_eq(setenv("B", BERTH_COMMAND, 1), 0);
    put("m.txt", "module \"m\"\ngraph @main(%x: f32[64,96], %w: f32[96,80]) {\n"
                 "  %y = matmul(%x, %w)\n  %z = relu(%y)\n  return %z\n}\n");
}

static void remove_folder(void) {
    cr_assert_eq(system("rm -rf \"$F\""), 0);
}

TestSuite(libraries_command, .init = make_folder, .fini = remove_folder, .timeout = 120);

static int shell(const char *script) {
    char whole[4096];
    int length = snprintf(whole, sizeof(whole), "cd \"$F\" && { %s\n}", script);
    cr_assert_lt(length, (int)sizeof(whole));
    return system(whole);
}

// The libraries of the first operation, in a plan by the costs of a file.
static json_t *libraries_of(const char *costs) {
    char arguments[512];
    snprintf(arguments, sizeof(arguments),
             "plan %s/m.txt --target 'cpu -libs=openblas,dnnl' --costs %s -q --format=json", folder,
             costs);
    json_t *plan = berth_run_json(arguments);
    json_t *first = json_array_get(json_object_get(plan, "operations"), 0);
    json_t *libraries = json_incref(json_object_get(first, "libraries"));
    json_decref(plan);
    cr_assert_eq(json_array_size(libraries), 2);
    return libraries;
}

static bool is_chosen(const json_t *libraries, size_t index) {
    return json_is_true(json_object_get(json_array_get(libraries, index), "chosen"));
}

Test(libraries_command, what_was_not_measured_is_not_taken) {
    json_t *libraries = libraries_of("none");
    for (size_t i = 0; i < 2; ++i) {
        json_t *one = json_array_get(libraries, i);
        cr_expect(!is_chosen(libraries, i));
        cr_expect_null(json_object_get(one, "time_us"));
        cr_expect(strstr(json_string_value(json_object_get(one, "reason")), "not measured"));
    }
    json_decref(libraries);
    cr_expect_eq(
        shell("\"$B\" plan m.txt --target 'cpu -libs=dnnl' --costs none --why >out 2>log && "
              "grep -q 'not by dnnl: matmul f32 .64,96...96,80., relu, not measured' out && "
              "grep -q 'libraries compute 0 of the 1 operations' out"),
        0);
}

static bool are_here(void) {
    bool here = shell("for l in openblas dnnl; do \"$B\" run m.txt --target \"cpu -libs=$l "
                      "-libs_policy=always\" >out 2>&1 || exit 1; done") == 0;
    if (!here)
        printf("BERTH-SKIPPED 1: a library is not here (Debian packages libopenblas0-pthread, "
               "libdnnl2)\n");
    return here;
}

// The figures are edited: a library that takes a nanosecond is taken, and one that takes an hour is not.
Test(libraries_command, the_faster_one_computes) {
    if (!are_here()) cr_skip_test("a library is not here");
    cr_assert_eq(
        shell("\"$B\" calibrate m.txt --target 'cpu -libs=openblas,dnnl' --duration 50ms "
              "-q -o c.jsonl >out && test $(grep -c '\"class\": \"library\"' c.jsonl) = 3"),
        0);
    static const char *const names[] = {"openblas", "dnnl"};
    char path[256], script[1024];
    for (size_t i = 0; i < 2; ++i) {
        snprintf(script, sizeof(script),
                 "sed -e '/\"work\": \"%s: /s/\"ns\": [0-9.e+]*/\"ns\": 1/' "
                 "-e '/\"work\": \"%s: /s/\"ns\": [0-9.e+]*/\"ns\": 3.6e12/' c.jsonl >e.jsonl",
                 names[i], names[1 - i]);
        cr_assert_eq(shell(script), 0);
        snprintf(path, sizeof(path), "%s/e.jsonl", folder);
        json_t *libraries = libraries_of(path);
        cr_expect(is_chosen(libraries, i), "%s", names[i]);
        cr_expect(!is_chosen(libraries, 1 - i), "%s", names[1 - i]);
        json_decref(libraries);
        snprintf(
            script, sizeof(script),
            "\"$B\" build m.txt --target 'cpu -libs=openblas,dnnl' --costs e.jsonl -q -o p.berth "
            ">out && \"$B\" inspect p.berth | grep -q '^external code .*of %s (lib%s' && "
            "\"$B\" run p.berth --profile | grep -q 'by %s)'",
            names[i], names[i], names[i]);
        cr_expect_eq(shell(script), 0, "%s", names[i]);
    }
}

// On which device a product runs depends on what the library takes: by our kernels' time alone it goes to
// the GPU, whatever else was measured.
Test(libraries_command, devices_are_chosen_by_their_times) {
    if (!are_here()) cr_skip_test("a library is not here");
    put("big.txt", "module \"m\"\ngraph @main(%x: f32[512,512], %w: f32[512,512]) {\n"
                   "  %y = matmul(%x, %w)\n  %z = relu(%y)\n  return %z\n}\n");
    cr_assert_eq(shell("\"$B\" calibrate big.txt --target 'cpu -libs=openblas' --duration 50ms -q "
                       "-o b.jsonl >out"),
                 0);
    static const char *const times[] = {"1", "3.6e12"}, *const devices[] = {"cpu:0", "cuda:0"};
    for (size_t i = 0; i < 2; ++i) {
        char script[1024];
        snprintf(script, sizeof(script),
                 "sed -e '/\"work\": \"openblas: /s/\"ns\": [0-9.e+]*/\"ns\": %s/' b.jsonl "
                 ">be.jsonl && \"$B\" plan big.txt --target 'cuda,cpu -libs=openblas' --costs "
                 "be.jsonl --strategy auto -q >out && grep -q '^%s .* us' out && "
                 "test $(grep -c 'computed by openblas' out) = %d",
                 times[i], devices[i], i == 0);
        cr_expect_eq(shell(script), 0, "%s", devices[i]);
    }
}

// Of times written by hand, no library is needed: a product takes 1 s by dnnl, with the relu after it 5 s, and longer by
// our kernels. A relu on another device is not taken with it; a simulation takes the same time.
static void put_times(void) {
    put("named.txt", "module \"m\"\ngraph @main(%x: f32[64,96], %w: f32[96,80]) {\n"
                     "  %y = matmul(%x, %w) #1\n  %z = relu(%y) #2\n  return %z\n}\n"
                     "locations {\n  #1 = \"m\" node \"y\" op \"MatMul\"\n  #2 = \"m\" node \"z\" "
                     "op \"Relu\"\n}\n");
    cr_assert_eq(
        shell(
            "\"$B\" calibrate m.txt --target 'cpu -cores=1' --duration 1ms -q "
            "-o h.jsonl >out && : >t.jsonl && sed -n 's/\"class\": \"matmul.plain\".*//p' h.jsonl "
            "| "
            "sed 's/\"kind\": \"cpu\"/&, \"libs\": [\"dnnl\"]/' >of && test -s of && "
            "put() { printf '%s\"class\": \"library\", \"work\": \"%s\", \"flops\": 1, "
            "\"bytes\": 1, \"ns\": %s, \"runs\": 1}\\n' \"$(cat of)\" \"$1\" $2 >>t.jsonl; }; "
            "k='matmul f32 [64,96]*[96,80]'; put \"dnnl: $k\" 1e9; put \"berth: $k\" 3e9; "
            "put \"dnnl: $k, relu\" 5e9; put \"berth: $k, relu\" 7e9"),
        0);
}

static double figure(const char *command, const char *relu_on, const char *name) {
    char arguments[512];
    snprintf(
        arguments, sizeof(arguments),
        "%s %s/named.txt --target 'cpu -cores=1,cpu -cores=1 -libs=dnnl' --costs %s/t.jsonl -q "
        "--pin op:MatMul=cpu:1 --pin op:Relu=%s --format=json",
        command, folder, folder, relu_on);
    json_t *report = berth_run_json(arguments);
    double ms = json_number_value(json_object_get(report, name));
    json_decref(report);
    return ms;
}

Test(libraries_command, plans_and_simulations_take_their_times) {
    put_times();
    static const struct {
        const char *relu_on;
        double ms;
    } cases[] = {{"cpu:0", 1000}, {"cpu:1", 5000}};
    for (size_t i = 0; i < 2; ++i) {
        double planned = figure("plan", cases[i].relu_on, "predicted_ms");
        double simulated = figure("simulate", cases[i].relu_on, "total_ms");
        cr_expect(planned >= cases[i].ms && planned < cases[i].ms + 1, "%s: planned %g ms",
                  cases[i].relu_on, planned);
        cr_expect(simulated >= cases[i].ms && simulated < cases[i].ms + 1, "%s: simulated %g ms",
                  cases[i].relu_on, simulated);
    }
}

// An expected value from elsewhere: the module as it is printed after its layouts runs as it did.
Test(libraries_command, printed_modules_go_on) {
    if (!are_here()) cr_skip_test("a library is not here");
    cr_expect_eq(
        shell("t='cpu -libs=dnnl -libs_policy=always'; \"$B\" opt m.txt --target \"$t\" --passes "
              "keep-names,fold-constants,find-integers,simplify,expose-values,plan-devices,"
              "inline-calls,layout >n.txt && grep -q 'call @dnnl_matmul' n.txt && "
              "\"$B\" build m.txt --target \"$t\" -o m.berth -q >out && "
              "\"$B\" build n.txt --target \"$t\" -o n.berth -q >out && "
              "\"$B\" run m.berth -o z=m.npy -q >out && \"$B\" run n.berth -o z=n.npy -q >out && "
              "cmp m.npy n.npy"),
        0);
}

// Taken apart by backend and put together again, the library computes what it did.
Test(libraries_command, modules_by_backend_go_on) {
    if (!are_here()) cr_skip_test("a library is not here");
    cr_expect_eq(
        shell("t='cpu -libs=dnnl -libs_policy=always'; \"$B\" opt m.txt --target \"$t\" --passes "
              "keep-names,fold-constants,find-integers,simplify,expose-values,plan-devices,"
              "inline-calls,split-backends,check-targets >s.txt && "
              "grep -q 'call @main_dnnl_0' s.txt && grep -q 'backend = \"dnnl\"' s.txt && "
              "\"$B\" build m.txt --target \"$t\" -o m.berth -q >out && "
              "\"$B\" build s.txt --target \"$t\" -o s.berth -q >out && "
              "\"$B\" inspect s.berth | grep -q 'of dnnl (lib' && "
              "\"$B\" run m.berth -o z=m.npy -q >out && \"$B\" run s.berth -o z=s.npy -q >out && "
              "cmp m.npy s.npy"),
        0);
}

// The printed calls please both compilers, which need no library for that.
Test(libraries_command, printed_calls_compile_without_warnings) {
    for (int i = 0; i < 2; ++i) {
        cr_assert_eq(setenv("L", i ? "dnnl" : "openblas", 1), 0);
        cr_expect_eq(
            shell(
                "\"$B\" build m.txt --keep-source --target \"cpu -libs=$L -libs_policy=always\" -q "
                "-o k.berth >out && rm -rf k && \"$B\" inspect k.berth --extract k >out && "
                "for c in gcc clang; do command -v $c >out || continue; "
                "$c -std=c17 -O2 -Wall -Wextra -Wshadow -Wconversion -Werror -c "
                "k/source/0/external.c -o k.o || exit 1; done"),
            0, "%s", getenv("L"));
    }
}

// ---- what is wrong ------------------------------------------------------------------------------

// One that has each function and says that it is of version 3.
static const char version_3[] =
    "for s in engine_create stream_create primitive_attr_create primitive_attr_set_scratchpad_mode "
    "primitive_attr_set_post_ops post_ops_create post_ops_append_eltwise "
    "dilated_convolution_forward_desc_init matmul_desc_init primitive_desc_create primitive_create "
    "primitive_desc_query_md memory_desc_get_size memory_create memory_destroy primitive_execute "
    "primitive_destroy primitive_desc_destroy primitive_attr_destroy post_ops_destroy "
    "stream_destroy "
    "engine_destroy post_ops_append_sum; do echo \"int dnnl_$s(void) { return 1; }\"; done >v.c; "
    "echo 'void omp_set_num_threads(int n) { (void)n; } int omp_get_max_threads(void) { return 1; "
    "} "
    "static const int v[3] = {3, 1, 4}; const int *dnnl_version(void) { return v; }' >>v.c; "
    "cc -shared -fPIC v.c -o libdnnl.so.2";

static void expect_refusal(const char *make, const char *says) {
    cr_assert_eq(shell(make), 0, "%s", make);
    int status = shell("LD_LIBRARY_PATH=. \"$B\" run m.txt --target 'cpu -libs=dnnl "
                       "-libs_policy=always' >out 2>log");
    cr_expect_eq(WEXITSTATUS(status), 1, "%s", says);
    put("wanted", says);
    cr_expect_eq(shell("grep -qF -f wanted log && grep -q 'Debian package libdnnl2' log || "
                       "{ cat log; false; }"),
                 0, "%s", says);
}

Test(libraries_command, a_library_that_is_not_as_it_should_be) {
    expect_refusal("echo nothing >libdnnl.so.2", "the shared library \"libdnnl.so.2\"");
    expect_refusal("echo 'int dnnl_version;' >v.c; cc -shared -fPIC v.c -o libdnnl.so.2",
                   "\"libdnnl.so.2\" has no symbol \"dnnl_engine_create\"");
    expect_refusal(version_3, "is oneDNN 3.1.4, and version 2 is called");
    cr_assert_eq(shell("sed 's/{3, 1, 4}/{2, 1, 4}/' v.c >w.c; cc -shared -fPIC w.c -o x.so"), 0);
    expect_refusal("mv x.so libdnnl.so.2", "oneDNN 2.1.4 cannot compute this operation here");
}

Test(libraries_command, words_that_name_nothing) {
    char arguments[256];
    snprintf(arguments, sizeof(arguments), "plan %s/m.txt --target 'cpu -libs=mkl'", folder);
    berth_run_fails(arguments, 1, "names \"mkl\"; libraries for cpu are: openblas, dnnl");
    snprintf(arguments, sizeof(arguments), "plan %s/m.txt --target 'cpu -libs_policy=often'",
             folder);
    berth_run_fails(arguments, 1, "it is measured or always");
    snprintf(arguments, sizeof(arguments), "plan %s/m.txt --target 'cuda -libs=dnnl'", folder);
    berth_run_fails(arguments, 1, "names \"dnnl\"; libraries for cuda are: cublas, cudnn");
    cr_expect_eq(shell("\"$B\" plan m.txt --target 'vulkan -libs=vkfft' 2>log | grep -q "
                       "'\"vkfft\" of device \"vulkan:0\" is none that such devices have'"),
                 0);
    cr_expect_eq(shell("\"$B\" plan m.txt --executor aot --target 'cpu -libs=dnnl' 2>log | grep -q "
                       "'libraries are not called by the sources that the executor aot makes'"),
                 0);
}

// ---- code of one's own --------------------------------------------------------------------------

static const char own_module[] =
    "module \"own\"\ngraph @main(%x: f32[4]) {\n  %y = call @root(%x)\n  return %y\n}\n"
    "external @root fn(f32[4])->(f32[4]) language \"c\" symbol \"root\" file \"root.c\" "
    "{imports = [\"libm.so.6\", \"cbrtf\"]}\n";

static const char own_code[] =
    "#include <stdint.h>\nstatic int opened;\nconst char *berth_open(void);\n"
    "const char *berth_open(void) {\n    opened = 1;\n    return WHY;\n}\n"
    "void root(const float *x, float *y) {\n"
    "    float (*f)(float) = (float (*)(float))berth_imports[0].address;\n"
    "    for (int i = 0; i < 4; ++i) y[i] = opened ? f(x[i] * x[i] * x[i]) / x[i] : 0;\n}\n";

// The cube root of a cube, over its side, is 1: once the code was opened.
Test(libraries_command, code_in_c_calls_libraries) {
    put("own.txt", own_module);
    put("all.c", own_code);
    cr_expect_eq(shell("sed 's/WHY/0/' all.c >root.c && \"$B\" run own.txt >out 2>&1 && "
                       "grep -q 'range \\(0.99999\\|1\\).* .. 1' out || { cat out; false; }"),
                 0);
    cr_expect_eq(shell("sed 's/WHY/\"the moon is full\"/' all.c >root.c && ! \"$B\" run own.txt "
                       ">out 2>log && grep -q 'the moon is full' log || { cat log; false; }"),
                 0);
    cr_expect_eq(
        shell("sed 's/, .\"cbrtf\"//; s/, \"cbrtf\"//' own.txt >bad.txt && ! \"$B\" run bad.txt "
              ">out 2>log && grep -q '@root.*imports' log || { cat log; false; }"),
        0);
}
