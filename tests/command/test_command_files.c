// What the command does to files and streams: nothing half-written stays behind, nothing is lost,
// names are any bytes.
#include <criterion/criterion.h>
#include <dirent.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DIGITS "examples/digits/digits.onnx"

static char folder[] = "/tmp/berth-files-XXXXXX";

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(setenv("W", folder, 1), 0);
    cr_assert_eq(setenv("B", BERTH_COMMAND, 1), 0);
}

static void remove_folder(void) {
    cr_assert_eq(system("rm -rf \"$W\""), 0);
}

TestSuite(command_files, .init = make_folder, .fini = remove_folder);

// Exit status of a shell's line, in the project's root; $B is the command, $W an empty folder.
static int shell(const char *line) {
    int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static size_t count_entries(const char *path) {
    DIR *dir = opendir(path);
    cr_assert_not_null(dir, "%s", path);
    size_t count = 0;
    for (struct dirent *at = readdir(dir); at; at = readdir(dir)) count += at->d_name[0] != '.';
    closedir(dir);
    return count;
}

static void wait_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

// Ends `berth build` by a signal as soon as it has its temporary folder, then `later_ms` more.
static void interrupt_build(int number, long later_ms) {
    cr_assert_eq(shell("mkdir -p $W/tmp && rm -rf $W/cache $W/out.berth"), 0);
    pid_t pid = fork();
    cr_assert_geq(pid, 0);
    if (pid == 0) {
        char path[128];
        snprintf(path, sizeof(path), "%s/tmp", folder);
        setenv("TMPDIR", path, 1);
        (void)!freopen("/dev/null", "w", stderr);
        execl("/bin/sh", "sh", "-c",
              "exec $B build " DIGITS
              " --dim batch=1 --jobs 1 --cache-dir $W/cache -o $W/out.berth",
              (char *)NULL);
        _exit(127);
    }
    char path[128];
    snprintf(path, sizeof(path), "%s/tmp", folder);
    for (int i = 0; i < 2000 && count_entries(path) == 0; ++i) wait_ms(5);
    cr_assert_eq(count_entries(path), 1, "no temporary folder in 10 s");
    wait_ms(later_ms);
    cr_assert_eq(kill(pid, number), 0);
    int status = 0;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == number, "status %d", status);
    cr_assert_eq(count_entries(path), 0, "signal %d left temporary files", number);
    cr_assert_neq(shell("test -e $W/out.berth"), 0);
    // Only whole entries are in the cache.
    cr_assert_eq(shell("! ls $W/cache 2>/dev/null | grep -qvE '^[0-9a-f]{32}\\.(o|so|version)$'"),
                 0);
}

Test(command_files, interrupted_builds_leave_nothing) {
    interrupt_build(SIGINT, 0);
    interrupt_build(SIGTERM, 20);
    interrupt_build(SIGHUP, 60);
}

// A signal that was ignored at the start (nohup) stays ignored.
Test(command_files, ignored_signals_stay_ignored) {
    cr_assert_eq(shell("trap '' HUP; $B build " DIGITS
                       " --dim batch=1 --no-cache --quiet -o $W/out.berth >$W/log & "
                       "sleep 0.3; kill -HUP $!; wait $!"),
                 0);
    cr_assert_eq(shell("test -s $W/out.berth"), 0);
}

Test(command_files, closed_streams) {
    static const char *const lines[] = {"$B inspect " DIGITS " >&- 2>/dev/null",
                                        "$B --version >/dev/full 2>/dev/null",
                                        "$B run --help >/dev/full 2>/dev/null",
                                        "$B plan --strategy list >/dev/full 2>/dev/null",
                                        "$B run " DIGITS
                                        " --dim batch=1 --format=json >&- 2>/dev/null",
                                        "$B run no-such-model >&- 2>&- <&-"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i)
        cr_expect_eq(shell(lines[i]), 1, "%s", lines[i]);
}

// Every command's results, onto a full disk and into a pipe that nobody reads: an error, said once.
Test(command_files, results_that_are_lost) {
    static const char *const commands[] = {
        "--help",
        "run --help",
        "cache list --cache-dir $W",
        "cache list --cache-dir $W --format=json",
        "devices",
        "devices --format=json",
        "inspect " DIGITS,
        "inspect " DIGITS " --format=json",
        "memory solve $W/m.csv",
        "memory solve $W/m.csv --format=json",
        "memory solve $W/m.csv --output -",
        "memory plot $W/m.csv",
        "memory plot " DIGITS " --dim batch=1",
        "opt " DIGITS,
        "opt " DIGITS " --format=json",
        "place $W/p.json",
        "place $W/p.json --format=json",
        "place $W/p.json --format=svg",
        "plan " DIGITS " --dim batch=1",
        "plan " DIGITS " --dim batch=1 --format=json",
        "plan " DIGITS " --dim batch=1 --format=svg",
        "plan " DIGITS " --dim batch=1 --format=dot",
        "plan --strategy list --format=json",
        "run " DIGITS " --dim batch=1 --quiet",
        "target list",
        "target show cpu --format=json",
        "target validate cpu",
    };
    cr_assert_eq(shell("printf 'id,lower,upper,size\\na,0,2,4\\n' >$W/m.csv && echo "
                       "'{\"maxSizePerFPGA\": 1e9, \"maxFPGAs\": 1, \"maxCPUs\": 1, \"nodes\": "
                       "[{\"id\": 1, \"cpuLatency\": 2, \"fpgaLatency\": 1, \"size\": 1}], "
                       "\"edges\": []}' >$W/p.json"),
                 0);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); ++i) {
        char line[1024];
        snprintf(line, sizeof(line), "$B %s >/dev/full 2>$W/err", commands[i]);
        cr_expect_eq(shell(line), 1, "%s", line);
        cr_expect_eq(shell("test $(grep -c 'berth: error: ' $W/err) = 1"), 0, "%s", line);
        // The pipe's reader is gone before anything is written.
        snprintf(line, sizeof(line),
                 "mkfifo $W/go; { cat $W/go; $B %s 2>$W/err; echo $? >$W/status; } | "
                 "{ exec <&-; echo >$W/go; }; rm $W/go; test $(cat $W/status) = 1",
                 commands[i]);
        cr_expect_eq(shell(line), 0, "%s", line);
        cr_expect_eq(shell("test $(grep -c 'berth: error: ' $W/err) = 1"), 0, "%s", line);
    }
}

#ifdef BERTH_FAIL_AT
// One allocation fails: the result is the same, byte for byte, or the status says that it is not.
Test(command_files, results_are_whole_or_the_status_says_not) {
    static const struct {
        const char *arguments;
        int most;
    } rows[] = {{"target list --format=json", 1200},
                {"inspect " DIGITS " --format=json", 900},
                {"opt " DIGITS " --passes fold-constants --format=json", 1000},
                {"plan " DIGITS " --dim batch=1 --format=json", 1000}};
    int failures = 0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        char line[1024];
        snprintf(line, sizeof(line), "$B %s >$W/whole", rows[i].arguments);
        cr_assert_eq(shell(line), 0, "%s", line);
        for (int n = 1 + (int)i; n < rows[i].most; n += 17) {
            snprintf(line, sizeof(line),
                     "FAIL_KIND=memory FAIL_AT=%d LD_PRELOAD=" BERTH_FAIL_AT
                     " $B %s >$W/out 2>/dev/null",
                     n, rows[i].arguments);
            int status = shell(line);
            failures += status == 1;
            cr_expect(status == 0 || status == 1, "%s: %d", line, status);
            if (status == 0) cr_expect_eq(shell("cmp $W/whole $W/out"), 0, "%s", line);
        }
    }
    cr_expect_gt(failures, 20, "the allocations do not fail");
}
#endif

// Names of models that would steer a terminal or break a document.
Test(command_files, names_are_shown_harmless) {
    cr_assert_eq(
        shell("/usr/bin/python3 -c 'import onnx' 2>/dev/null || exit 0; "
              "/usr/bin/python3 - $W/n.onnx <<'END'\n"
              "import sys, onnx\n"
              "from onnx import helper as h, TensorProto as t\n"
              "n = '\\x1b]0;x\\x07</title>&\\x9b2J\\u202e\"\\\\'\n"
              "i = h.make_tensor_value_info(n + 'i', t.FLOAT, [2])\n"
              "o = h.make_tensor_value_info(n + 'o', t.FLOAT, [2])\n"
              "g = h.make_graph([h.make_node('Relu', [n + 'i'], [n + 'o'], n)], n, [i], [o])\n"
              "onnx.save(h.make_model(g, opset_imports=[h.make_opsetid('', 17)]), sys.argv[1])\n"
              "END"),
        0);
    if (shell("test -s $W/n.onnx") != 0) return;  // no python3-onnx
    static const char *const commands[] = {
        "inspect $W/n.onnx",
        "inspect $W/n.onnx --format=json",
        "plan $W/n.onnx",
        "plan $W/n.onnx --format=json",
        "plan $W/n.onnx --why --target cpu,cpu",
        "plan $W/n.onnx --format=dot",
        "plan $W/n.onnx --format=svg",
        "plan $W/n.onnx --pin \"$(printf 'no\\033[2J=cpu:0')\"",
        "opt $W/n.onnx",
        "opt $W/n.onnx --format=json",
        "opt $W/n.onnx --passes all --places",
        "run $W/n.onnx",
        "run $W/n.onnx --format=json",
        "build $W/n.onnx -o $W/n.berth",
        "inspect $W/n.berth",
        "inspect $W/n.berth --format=json",
        "run $W/n.berth",
        "verify $W/n.onnx --data $W",
    };
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); ++i) {
        char line[512];
        snprintf(line, sizeof(line), "$B %s >$W/out 2>&1; test -s $W/out", commands[i]);
        cr_expect_eq(shell(line), 0, "%s", line);
        // C0 but tabs and line ends, DEL, C1 in UTF-8, U+202E
        cr_expect_neq(shell("LC_ALL=C grep -qP '[\\x00-\\x08\\x0b-\\x1f\\x7f]|\\xc2[\\x80-\\x9f]"
                            "|\\xe2\\x80\\xae' $W/out"),
                      0, "%s", line);
    }
    cr_expect_eq(shell("$B plan $W/n.onnx --format=svg | /usr/bin/python3 -c "
                       "'import sys, xml.dom.minidom as m; m.parse(sys.stdin)'"),
                 0);
}

Test(command_files, data_with_an_input_too_many_is_refused) {
    cr_assert_eq(shell("cp -r tests/models/domains/bias_gelu/test_data_set_0 $W/more && "
                       "$B verify tests/models/domains/bias_gelu/model.onnx --data $W/more && "
                       "cp $W/more/input_0.pb $W/more/input_2.pb"),
                 0);
    cr_expect_eq(shell("$B verify tests/models/domains/bias_gelu/model.onnx --data $W/more "
                       "2>$W/error"),
                 1);
    cr_expect_eq(shell("grep -q 'input_2.pb\" is one input too many: the model has 2' $W/error"),
                 0);
}

static json_t *list_cache(void) {
    char path[128];
    cr_assert_eq(shell("$B cache list --cache-dir $W/kernels --format=json >$W/list"), 0);
    snprintf(path, sizeof(path), "%s/list", folder);
    json_t *json = json_load_file(path, 0, NULL);
    cr_assert_not_null(json);
    return json;
}

Test(command_files, the_cache_lists_what_is_in_it) {
    cr_assert_eq(shell("mkdir -m 700 $W/kernels"), 0);
    json_t *json = list_cache();
    cr_expect_eq(json_array_size(json_object_get(json, "entries")), 0);
    json_decref(json);
    cr_assert_eq(
        shell("$B build " DIGITS " --dim batch=1 --cache-dir $W/kernels -o $W/p.berth >$W/log"), 0);
    char path[128];
    snprintf(path, sizeof(path), "%s/kernels", folder);
    json = list_cache();
    const json_t *entries = json_object_get(json, "entries"), *entry = NULL;
    cr_assert_gt(json_array_size(entries), 2);
    cr_expect_eq(json_array_size(entries), count_entries(path));
    json_int_t total = 0;
    size_t i = 0, programs = 0;
    json_array_foreach(entries, i, entry) {
        struct stat info;
        snprintf(path, sizeof(path), "%s/kernels/%s", folder,
                 json_string_value(json_object_get(entry, "name")));
        cr_assert_eq(stat(path, &info), 0, "%s", path);
        cr_expect_eq(json_integer_value(json_object_get(entry, "size_bytes")), info.st_size);
        cr_expect_lt(json_integer_value(json_object_get(entry, "age_s")), 600);
        cr_expect(json_is_null(json_object_get(entry, "fault")));
        total += info.st_size;
        programs += strcmp(json_string_value(json_object_get(entry, "what")),
                           "all kernels of a program") == 0;
    }
    cr_expect_eq(programs, 1);
    cr_expect_eq(json_integer_value(json_object_get(json, "size_bytes")), total);
    json_decref(json);
    cr_expect_eq(shell("chmod 666 $W/kernels/*.so && "
                       "$B cache list --cache-dir $W/kernels | grep '\\.so ' | "
                       "grep -q 'used .* ago, .*; will be removed: others can write it'"),
                 0);
}

Test(command_files, models_are_not_overwritten) {
    cr_assert_eq(
        shell("cp " DIGITS " $W/m.onnx && ln -s m.onnx $W/link.onnx && cd $W && "
              "for o in m.onnx ./m.onnx link.onnx; do "
              "$B build m.onnx --dim batch=1 -o $o 2>err && exit 3; "
              "grep -q 'the model itself' err || exit 4; done; cmp m.onnx $OLDPWD/" DIGITS),
        0);
}

// One bit of a weight: the results would only be wrong.
Test(command_files, damaged_constants_are_refused) {
    cr_assert_eq(shell("$B build " DIGITS " --dim batch=1 --quiet -o $W/p.berth >$W/log"), 0);
    char path[128];
    snprintf(path, sizeof(path), "%s/p.berth", folder);
    FILE *file = fopen(path, "r+b");
    cr_assert_not_null(file);
    cr_assert_eq(fseek(file, -200, SEEK_END), 0);  // the file ends with its constants
    int byte = fgetc(file);
    cr_assert_eq(fseek(file, -200, SEEK_END), 0);
    cr_assert_neq(fputc(byte ^ 0x40, file), EOF);
    cr_assert_eq(fclose(file), 0);
    static const char *const lines[] = {"$B run $W/p.berth 2>$W/err",
                                        "$B inspect $W/p.berth 2>$W/err"};
    for (size_t i = 0; i < 2; ++i) {
        cr_expect_eq(shell(lines[i]), 1, "%s", lines[i]);
        cr_expect_eq(shell("grep -q damaged $W/err"), 0);
    }
}

// A path that is not UTF-8 is shown with U+FFFD, and the JSON is JSON.
Test(command_files, names_of_any_bytes) {
    cr_assert_eq(shell("cp " DIGITS " $W/\"$(printf 'a\\377b \\nc').onnx\""), 0);
    static const char *const lines[] = {
        "cd $W; $B inspect *.onnx --format=json >out",
        "cd $W; $B plan *.onnx --dim batch=1 --format=json >out",
        "cd $W; $B run *.onnx --dim batch=1 --format=json >out",
        "cd $W; $B build *.onnx --dim batch=1 --format=json -o \"$(printf '\\376').berth\" >out",
        "cd $W; $B inspect *.berth --format=json >out"};
    char path[128];
    snprintf(path, sizeof(path), "%s/out", folder);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); ++i) {
        cr_assert_eq(shell(lines[i]), 0, "%s", lines[i]);
        json_t *json = json_load_file(path, 0, NULL);
        cr_assert_not_null(json, "%s", lines[i]);
        const char *name = json_string_value(json_object_get(json, "model"));
        if (name)
            cr_expect_str_eq(name, "a\xef\xbf\xbd"
                                   "b \nc.onnx");
        json_decref(json);
    }
}

// What is wrong is said before anything is compiled or run.
Test(command_files, outputs_are_checked_first) {
    cr_expect_eq(
        shell("$B run " DIGITS " --dim batch=1 --repeat 10000000 --output x=$W/x.npy 2>$W/err"), 1);
    cr_expect_eq(shell("grep -q 'no output is named \"x\"' $W/err"), 0);
    cr_expect_eq(shell("$B run " DIGITS
                       " --dim batch=1 --repeat 10000000 --output probabilities=$W/x.txt 2>$W/err"),
                 1);
    cr_expect_eq(shell("grep -q 'ends in .pb' $W/err"), 0);
    cr_expect_eq(shell("test -e $W/x.npy || test -e $W/x.txt"), 1);
}

Test(command_files, temporary_folders) {
    cr_expect_eq(shell("TMPDIR=/nowhere $B run " DIGITS " --dim batch=1 --no-cache 2>$W/err"), 1);
    cr_expect_eq(shell("grep -q 'temporary folder in \"/nowhere\"' $W/err"), 0);
    cr_expect_eq(shell("mkdir \"$W/a b\" && TMPDIR=\"$W/a b\" $B run " DIGITS
                       " --dim batch=1 --no-cache >$W/out 2>&1 && rmdir \"$W/a b\""),
                 0);
}

// A killed process leaves unfinished entries; clearing takes them along.
Test(command_files, cache_clear_takes_unfinished_entries) {
    cr_assert_eq(
        shell("mkdir -m 700 $W/cache && : >$W/cache/0123456789abcdef0123456789abcdef.so.aBc123 && "
              ": >$W/cache/note.txt && $B cache clear --cache-dir $W/cache >$W/out && "
              "test \"$(ls $W/cache)\" = note.txt"),
        0);
}

// The source of CPU kernels stays with the program when asked for, and comes out as files that
// compile; without, only the images do.
Test(command_files, kernels_keep_their_source_when_asked) {
    cr_assert_eq(shell("$B build " DIGITS " --dim batch=1 --target cpu --cache-dir $W/cache "
                       "-o $W/plain.berth >$W/out && "
                       "$B build " DIGITS " --dim batch=1 --target cpu --cache-dir $W/cache "
                       "--keep-source -o $W/source.berth >$W/out"),
                 0);
    cr_assert_eq(shell("$B inspect $W/plain.berth | grep -c attachment >$W/count; "
                       "test \"$(cat $W/count)\" = 0"),
                 0);
    cr_assert_eq(shell("$B inspect $W/source.berth --extract $W/code >$W/out && "
                       "grep -q 'attachment source/0/u0.c' $W/out"),
                 0);
    cr_assert_eq(shell("test -s $W/code/image/0.so && for f in $W/code/source/0/*.c; do "
                       "cc -march=native -fsyntax-only -w $f || exit 1; done"),
                 0);
    cr_assert_eq(shell("$B inspect $W/plain.berth --extract $W/less >$W/out && "
                       "cmp $W/less/image/0.so $W/code/image/0.so && ! test -e $W/less/source"),
                 0);
    cr_assert_eq(shell("$B inspect " DIGITS " --extract $W/none 2>$W/err"), 1);
    cr_assert_eq(shell("grep -q 'is no program' $W/err && ! test -e $W/none"), 0);
}
