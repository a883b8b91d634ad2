// A module that keeps its program runs where there is no compiler.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/command/support.h"

static char folder[] = "/tmp/berth-kept-XXXXXX";

static void make_folder(void) {
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(setenv("W", folder, 1), 0);
    cr_assert_eq(setenv("B", BERTH_COMMAND, 1), 0);
}

static void remove_folder(void) {
    cr_assert_eq(system("rm -rf -- \"$W\""), 0);
}

TestSuite(kept_program_command, .init = make_folder, .fini = remove_folder);

#define WITHOUT_COMPILER "PATH=$W $B run --no-cache --quiet "

static void expect(const char *line, int exit_status) {
    int status = system(line);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == exit_status, "%s", line);
}

Test(kept_program_command, runs_without_a_compiler) {
    expect("$B opt examples/digits/digits.onnx --dim batch=2 --target cpu --passes all "
           "--keep-program --quiet >$W/m.txt 2>$W/log",
           0);
    expect("$B opt $W/m.txt --format=json >$W/m.json 2>$W/log", 0);
    expect(WITHOUT_COMPILER "$W/m.txt >$W/text.out 2>$W/log", 0);
    expect(WITHOUT_COMPILER "$W/m.json >$W/json.out 2>$W/log", 0);
    expect("test \"$(head -1 $W/text.out)\" = \"$(head -1 $W/json.out)\"", 0);
    expect("test \"$(head -1 $W/text.out)\" = \"$($B run examples/digits/digits.onnx --dim batch=2 "
           "--target cpu --quiet 2>$W/log | head -1)\"",
           0);
    expect(
        "PATH=$W $B run --no-cache $W/m.txt >/dev/null 2>$W/log && grep -q 'native code that was "
        "made before' $W/log",
        0);
    // A line that says something else makes it another module.
    expect(
        "sed 's/^module \"[^\"]*\"/module \"other\"/' $W/m.txt >$W/other.txt && ! cmp -s $W/m.txt "
        "$W/other.txt",
        0);
    expect(WITHOUT_COMPILER "$W/other.txt 2>$W/log", 1);
    expect("grep -q 'no C compiler' $W/log", 0);
    berth_run_fails("opt examples/digits/digits.onnx --keep-program", 2, "add --passes all");
}
