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
    // Only whole kernels are in the cache.
    cr_assert_eq(shell("! ls $W/cache 2>/dev/null | grep -qvE '^[0-9a-f]{32}\\.so$'"), 0);
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
