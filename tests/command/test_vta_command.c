// berth vta, and commands that are programs of their own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/command/support.h"

// Adds 1 to sixteen accumulators of 32 bits and stores their low bytes.
static const char trace[] =
    "VTA-GOLDEN 1\nname add_one\ndesc sixteen lanes\nhw_portable yes\n"
    "config log_block_in=4 log_block_out=4\narena 1000 1000\nfill a5\n"
    "region in 1100 64 in\n"
    "00000000010000000200000003000000040000000500000006000000ff000000\n"
    "ffffffff7f00000080ffffff010203000000000000000000feffffffffffff7f\n"
    "region uop 1200 4 in\n00000000\n"
    "run 1400 6\n"
    "00000001000100010000000110000180\n"  // LOAD acc
    "00000001000100010000001200000000\n"  // LOAD uop
    "0001a000000000000002000800200044\n"  // ALU ADD 1, gives a token to store
    "000000010001000100000004c0000229\n"  // STORE, takes it and gives one back
    "00000000000000000000000000000010\n"  // LOAD of nothing, takes that
    "00000000000000000000000000000003\n"  // FINISH
    "expect out 1300 16\n%s\n"
    "stats acc_load_nbytes=64 uop_load_nbytes=4 out_store_nbytes=16 alu_counter=1\nend\n";
#define RIGHT                                                                                      \
    "01020304050607000080810201"                                                                   \
    "01ff00"

static char path[64];
static char arguments[1024];

static void write_trace(const char *expected) {
    char folder[] = "/tmp/berth-vta-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/t.vtag", folder);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, trace, expected);
    fclose(file);
}

static void remove_trace(void) {
    remove(path);
    *strrchr(path, '/') = 0;
    remove(path);
}

static const char *with_trace(const char *before, const char *after) {
    snprintf(arguments, sizeof(arguments), "vta %s %s %s", before, path, after);
    return arguments;
}

Test(vta_command, replay) {
    write_trace(RIGHT);
    json_t *report = berth_run_json(with_trace("replay --format=json", ""));
    cr_assert(json_is_true(json_object_get(report, "reproduced")));
    const json_t *one = json_array_get(json_object_get(report, "traces"), 0);
    cr_assert(json_is_true(json_object_get(one, "counters_agree")));
    cr_assert_eq(json_integer_value(json_object_get(one, "instructions")), 6);
    json_decref(report);
    remove_trace();
    write_trace("0202030405060700008081020101ff00");
    const result *r = berth_run(with_trace("replay", ""));
    cr_assert_eq(r->exit_status, 1);
    cr_assert(strstr(r->out, "NOT reproduced"), "%s", r->out);
    cr_assert(strstr(r->out, "1 bytes differ, the first at 0x1300"), "%s", r->out);
    r = berth_run(with_trace("replay", "no/such.vtag"));
    cr_assert_eq(r->exit_status, 1);
    cr_assert(strstr(r->out, "0 of 2 reproduced"), "%s", r->out);
    remove_trace();
}

Test(vta_command, disasm_and_profile) {
    write_trace(RIGHT);
    const result *r = berth_run(with_trace("disasm", ""));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert(strstr(r->out, "     2  compute  ALU.ADD push(next) uop_end=1 iter_out=1 iter_in=1 "
                             "use_imm=1 imm=1\n"),
              "%s", r->out);
    cr_assert(strstr(r->out, "     3  store    STORE out pop(prev) push(prev) dram_base=0x130 "
                             "y_size=1 x_size=1 x_stride=1\n"),
              "%s", r->out);
    json_t *report = berth_run_json(with_trace("profile --format=json", ""));
    const json_t *one = json_array_get(json_object_get(report, "profiles"), 0);
    json_int_t cycles = json_integer_value(json_object_get(one, "cycles"));
    cr_assert_gt(cycles, 0);
    cr_assert_eq(json_array_size(json_object_get(one, "units")), 3);
    json_decref(report);
    // A slower memory takes longer.
    report = berth_run_json(with_trace("profile --timing dram_latency=5000 --format=json", ""));
    one = json_array_get(json_object_get(report, "profiles"), 0);
    cr_assert_gt(json_integer_value(json_object_get(one, "cycles")), cycles + 5000);
    json_decref(report);
    r = berth_run(with_trace("profile -o -", ""));
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_assert_eq(strncmp(r->out, "<svg", 4), 0, "%.100s", r->out);
    cr_assert(strstr(r->out, "GEMM utilisation"));
    remove_trace();
}

#define IMAGE "tests/fuzz/corpus/vta_image/"

// Executables: their kernels as text, and over time.
Test(vta_command, executables) {
    const result *r = berth_run("vta disasm " IMAGE "both");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    const char *first = strstr(r->out, IMAGE "both: kernel conv on 1x16_i8w8a32_15_15_18_17, ");
    cr_assert(first && strstr(first + 1, "kernel conv on "), "%s", r->out);
    cr_assert(strstr(r->out, "  store    STORE out pop(prev) push(prev) "), "%s", r->out);
    json_t *both = berth_run_json("vta profile --format=json " IMAGE "both " IMAGE "conv");
    const json_t *profiles = json_object_get(both, "profiles");
    // 4 x 4 pixels, 9 positions, 16 x 16 channels; and a dense layer of 32 x 48.
    cr_assert_eq(
        json_integer_value(json_object_get(json_array_get(profiles, 0), "multiplications")),
        4 * 4 * 9 * 16 * 16 + 32 * 48);
    cr_assert_eq(
        json_integer_value(json_object_get(json_array_get(profiles, 1), "multiplications")),
        4 * 4 * 9 * 16 * 16);
    json_decref(both);
    berth_run_fails("vta profile " IMAGE "other_configuration", 1, "buffers too deep");
    r = berth_run("vta replay " IMAGE "conv");
    cr_assert_eq(r->exit_status, 1);
    cr_assert(strstr(r->out, "is an executable"), "%s", r->out);
}

Test(vta_command, wrong_usage) {
    berth_run_fails("vta", 2, "replay, disasm or profile?");
    berth_run_fails("vta replay", 2, "replay which file?");
    berth_run_fails("vta repla x", 2, "did you mean \"replay\"?");
    berth_run_fails("vta disasm --order=time x", 2, "--order goes with replay");
    berth_run_fails("vta replay -o x y", 2, "--output goes with profile");
    berth_run_fails("vta profile --timing=dram_latenc=1 x", 2, "did you mean dram_latency?");
    berth_run_fails("vta profile --timing=dram_bytes_per_cycle=0 x", 2, "from 1 to 1000000");
    berth_run_fails("vta replay --ordr=time x", 2, "did you mean --order?");
    berth_run_fails("vta disasm CMakeLists.txt", 1, "CMakeLists.txt:1: no recorded program");
}

// A program beside the command is a command, with its arguments and exit status; one that is only
// in PATH is not.
Test(vta_command, programs_beside_the_command) {
    const result *r = berth_run("help");
    cr_assert(strstr(r->out, "  vta        (the program berth-vta)\n"), "%s", r->out);
    r = berth_run("help vta");
    cr_assert_eq(r->exit_status, 0);
    cr_assert(strstr(r->out, "Usage: berth vta "), "%s", r->out);
    berth_run_fails("vtb", 2, "did you mean \"vta\"?");
    char folder[] = "/tmp/berth-beside-XXXXXX", program[64];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(program, sizeof(program), "%s/berth-hello", folder);
    FILE *file = fopen(program, "w");
    cr_assert_not_null(file);
    fputs("#!/bin/sh\necho \"hello $1\"\nexit 7\n", file);
    fclose(file);
    cr_assert_eq(chmod(program, 0755), 0);
    // `berth` itself, copied beside the program: `berth_run` begins with its path, so the shell
    // does the rest.
    snprintf(arguments, sizeof(arguments), "--version >/dev/null; cp " BERTH_COMMAND " %s/berth",
             folder);
    r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(arguments, sizeof(arguments), "--version >/dev/null; %s/berth hello you", folder);
    r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 7, "%s", r->err);
    cr_assert_str_eq(r->out, "hello you\n");
    snprintf(arguments, sizeof(arguments),
             "--version >/dev/null; PATH=%s:$PATH " BERTH_COMMAND " hello you", folder);
    berth_run_fails(arguments, 2, "unknown command \"hello\"");
    // Names are names: no path leads anywhere.
    snprintf(arguments, sizeof(arguments), "--version >/dev/null; %s/berth ./hello", folder);
    berth_run_fails(arguments, 2, "unknown command");
    snprintf(arguments, sizeof(arguments), "--version >/dev/null; rm -r %s", folder);
    berth_run(arguments);
}
