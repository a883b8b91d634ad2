// What the command trusts: targets choose no programs, signatures hold, odd folders do no harm.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

#define MODEL "examples/digits/digits.onnx"
#define DIGITS MODEL " --dim batch=1"

static char folder[] = "/tmp/berth-trust-XXXXXX";

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(setenv("W", folder, 1), 0);
    cr_assert_eq(setenv("B", BERTH_COMMAND, 1), 0);
}

static void remove_folder(void) {
    cr_assert_eq(system("rm -rf -- \"$W\""), 0);
}

TestSuite(trust, .init = make_folder, .fini = remove_folder);

// Exit status of a shell's line, in the project's root; $B is the command, $W an empty folder. What
// it prints goes to $W/log.
static int shell(const char *line) {
    char whole[2048];
    snprintf(whole, sizeof(whole), "{ %s\n} >\"$W/log\" 2>&1 </dev/null", line);
    int status = system(whole);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool log_has(const char *text) {
    char path[128], log[8192];
    snprintf(path, sizeof(path), "%s/log", folder);
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(log, 1, sizeof(log) - 1, file) : 0;
    log[got] = 0;
    if (file) fclose(file);
    return strstr(log, text) != NULL;
}

// A target file that names an executable beside it, and one on the search path.
Test(trust, targets_choose_no_program) {
    cr_assert_eq(shell("printf '#!/bin/sh\\ntouch %s/ran\\n' \"$W\" >$W/evil-linux-gnu-gcc && "
                       "chmod +x $W/evil-linux-gnu-gcc && ln -s evil-linux-gnu-gcc $W/cc"),
                 0);
    static const char *const arches[] = {"evil", "./evil", "../x/evil", "$(touch ran)",
                                         "evil -o x"};
    for (size_t i = 0; i < sizeof(arches) / sizeof(arches[0]); ++i) {
        cr_assert_eq(setenv("ARCH", arches[i], 1), 0);
        cr_assert_eq(shell("printf '{\"kind\": \"cpu\", \"arch\": \"%s\"}' \"$ARCH\" >$W/t.json"),
                     0);
        cr_expect_eq(shell("M=$PWD/" MODEL "; B=$(realpath $B); cd $W && PATH=.:$W:$PATH $B build "
                           "$M --dim batch=1 --target t.json --no-cache -o p.berth"),
                     1, "%s", arches[i]);
        cr_expect(log_has("arch"), "%s: the field is not named", arches[i]);
        cr_expect_eq(shell("test ! -e $W/ran && test ! -e $W/p.berth"), 0, "%s: ran", arches[i]);
    }
}

Test(trust, temporary_and_cache_folders_of_any_name) {
    static const char *const names[] = {"-rf", "a b", "new\nline", "--help", "'\"$x"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        cr_assert_eq(setenv("NAME", names[i], 1), 0);
        cr_expect_eq(shell("M=$PWD/" MODEL "; B=$(realpath $B); cd $W && mkdir -- \"$NAME\" && "
                           "TMPDIR=$NAME BERTH_CACHE_DIR=$NAME/cache $B run $M --dim batch=1 && "
                           "test $(ls -A -- \"$NAME\") = cache && test -n \"$(ls -- "
                           "\"$NAME/cache\")\""),
                     0, "%s", names[i]);
    }
}

Test(trust, a_compiler_that_hangs_is_stopped) {
    cr_expect_eq(shell("mkdir $W/bin && printf '#!/bin/sh\\nsleep 600\\n' >$W/bin/cc && chmod +x "
                       "$W/bin/cc && PATH=$W/bin:$PATH timeout 60 $B run " DIGITS
                       " --no-cache --compiler-time-limit 300ms"),
                 1);
    cr_expect(log_has("did not finish"));
    cr_expect_eq(shell("$B run " DIGITS " --compiler-time-limit soon"), 2);
}

Test(trust, signed_programs) {
    cr_assert_eq(shell("$B key create $W/k && $B key create $W/other && "
                       "$B build " DIGITS " -o $W/p.berth --sign $W/k && "
                       "$B build " DIGITS " -o $W/plain.berth"),
                 0);
    static const struct {
        const char *line;
        int exit_status;
        const char *message;
    } cases[] = {
        {"$B run $W/p.berth --require-signature $W/k.pub", 0, "latency"},
        {"$B run $W/p.berth", 0, "latency"},
        {"$B run $W/p.berth --require-signature $W/other.pub", 1, "another key"},
        {"$B run $W/plain.berth --require-signature $W/k.pub", 1, "no signature"},
        {"$B run " DIGITS " --require-signature $W/k.pub", 1, "no program file"},
        {"$B run " DIGITS " --executor vm --require-signature $W/k.pub", 1, "no program file"},
        {"$B run $W/p.berth --require-signature $W/k", 1, "secret key"},
        {"$B run $W/p.berth --require-signature $W/none.pub", 1, "none.pub"},
        {"! $B build " DIGITS " -o $W/q.berth --sign $W/k.pub && test ! -e $W/q.berth", 0,
         "the secret one is wanted"},
        {"$B key create $W/k", 1, "File exists"},
        {"$B key show $W/p.berth", 0, "public key "},
        {"$B key show $W/plain.berth", 0, "not signed"},
        {"test \"$($B key show $W/p.berth | sed 's/.*key //')\" = \"$(sed 's/.*: //' $W/k.pub)\"",
         0, ""},
        {"test \"$($B key show $W/k | sed 's/.*key //')\" = \"$(sed 's/.*: //' $W/k.pub)\"", 0, ""},
        {"$B key show $W/k.pub --format json", 0, "public_key"},
        {"$B key", 2, "create or show?"},
        {"$B key sign x", 2, "the actions are create and show"},
        // A byte of a weight, of code, of the header's end.
        {"cp $W/p.berth $W/t.berth && S=$(stat -c %s $W/t.berth) && for at in 60 $((S / 2)) "
         "$((S - 200)) $((S - 40)); do cp $W/p.berth $W/t.berth; printf Q | dd of=$W/t.berth bs=1 "
         "seek=$at conv=notrunc status=none; cmp -s $W/p.berth $W/t.berth && continue; $B run "
         "$W/t.berth --require-signature $W/k.pub && exit 9; done; true",
         0, "error"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        cr_expect_eq(shell(cases[i].line), cases[i].exit_status, "%s", cases[i].line);
        cr_expect(log_has(cases[i].message), "%s: no \"%s\"", cases[i].line, cases[i].message);
    }
}

// What a file may have is one item, byte or level less than it has.
Test(trust, limits_of_files) {
    static const char *const commands[] = {
        "inspect " MODEL " --limits items=1",
        "run " MODEL " --limits bytes=10",
        "plan " MODEL " --limits bytes=10,time=1m",
        "verify " MODEL " --data . --limits items=1",
        "run " MODEL " --input README.md --limits items=1",
        "memory solve tests/fuzz/corpus/memory_problem/chain.csv --limits items=1"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); ++i)
        berth_run_fails(commands[i], 1, "raise it for a file that you trust");
    cr_expect_eq(shell("$B build " DIGITS " -o $W/p.berth"), 0);
    cr_expect_eq(shell("$B verify $W/p.berth --data $W --limits bytes=1KiB"), 1);
    cr_expect(log_has("the limit is bytes=1024"));
    berth_run_fails("inspect " MODEL " --limits items", 2, "--limits: limits are bytes=");
    berth_run_fails("memory solve m.csv --limits items=x", 2, "limit items takes a number");
    berth_run_fails("place m.json --limits depth=1000", 2, "1 to 500");
}
