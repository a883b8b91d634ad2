// berth: the command. Finds the subcommand; everything else is in cmd_NAME.c, or in a program of its
// own (beside.h).
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tools/beside.h"
#include "tools/cli.h"
#include "tools/commands.h"

static const berth_command_entry commands[] = {
    {"run", berth_cmd_run, "run a model (or a built program) and report results and times"},
    {"bench", berth_cmd_bench, "measure latency and throughput of a model or a built program"},
    {"verify", berth_cmd_verify, "compare a model's results with expected ones"},
    {"plan", berth_cmd_plan, "show where every operation would run, and why"},
    {"explain", berth_cmd_explain, "explain a plan, and what another machine would gain"},
    {"build", berth_cmd_build, "compile a model into one program file"},
    {"inspect", berth_cmd_inspect, "show inputs, outputs, operators and weights of a model"},
    {"opt", berth_cmd_opt, "run compiler passes and print the module"},
    {"devices", berth_cmd_devices, "show drivers and devices of this machine"},
    {"target", berth_cmd_target, "list, show and validate targets"},
    {"cache", berth_cmd_cache, "show or clear the cache of compiled kernels"},
    {"key", berth_cmd_key, "make and show keys that programs are signed with"},
    {"simulate", berth_cmd_simulate,
     "show how a model would run on a machine, which may be absent"},
    {"calibrate", berth_cmd_calibrate, "measure kernels and copies, for plans to predict by"},
    {"tune", berth_cmd_tune, "search faster schedules of a model's kernels by measuring"},
    {"quantize", berth_cmd_quantize, "make a float model one of 8-bit integers"},
    {"memory", berth_cmd_memory, "solve static memory allocation problems"},
    {"place", berth_cmd_place, "solve device placement problems"},
    {"completion", berth_cmd_completion, "print what a shell needs to complete commands"},
    {"manual", berth_cmd_manual, "print the manual page of a command"},
};
enum { command_count = sizeof(commands) / sizeof(commands[0]) };

const berth_command_entry *berth_command_at(uint32_t index) {
    return index < command_count ? &commands[index] : NULL;
}

static void print_help(FILE *out) {
    fputs("Usage: berth COMMAND [OPTION...]\n"
          "Plans, compiles and runs ONNX models across the devices of a machine.\n\n",
          out);
    for (int i = 0; i < command_count; ++i)
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    berth_beside others;
    berth_beside_list(&others);
    for (uint32_t i = 0; i < others.count; ++i)
        fprintf(out, "  %-10s (the program berth-%s)\n", others.names[i], others.names[i]);
    fputs("\n`berth COMMAND --help` explains a command. `berth --version` prints the version.\n"
          "Exit status: 0 done, 1 could not do it, 2 wrong usage.\n",
          out);
}

static int run_command(int argc, char **argv) {
    const char *names[command_count + 3 + BERTH_BESIDE_MOST] = {NULL};
    for (int i = 0; i < command_count; ++i) {
        if (strcmp(argv[0], commands[i].name) == 0) return commands[i].run(argc, argv);
        names[i] = commands[i].name;
    }
    berth_beside_run(argc, argv);
    names[command_count] = "--help";
    names[command_count + 1] = "--version";
    berth_beside others;
    berth_beside_list(&others);
    for (uint32_t i = 0; i < others.count; ++i) names[command_count + 2 + i] = others.names[i];
    const char *close_name = berth_closest(argv[0], names);
    char message[256];
    snprintf(message, sizeof(message),
             "unknown command \"%.100s\"%s%s%s; `berth --help` lists them", argv[0],
             close_name ? "; did you mean \"" : "", close_name ? close_name : "",
             close_name ? "\"?" : "");
    berth_cli_message("error", message);
    return 2;
}

static bool is_one_of(const char *text, const char *const *words) {
    for (; *words; ++words)
        if (strcmp(text, *words) == 0) return true;
    return false;
}

// "berth help run" is "berth run --help".
static int help(int argc, char **argv) {
    static char option[] = "--help";
    if (argc < 3) {
        print_help(stdout);
        return 0;
    }
    char *arguments[] = {argv[2], option, NULL};
    return run_command(2, arguments);
}

int main(int argc, char **argv) {
    static const char *const help_words[] = {"help", "--help", "-h", "-?", NULL};
    static const char *const version_words[] = {"version", "--version", "-V", NULL};
    if (!berth_cli_begin()) return 1;
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (is_one_of(argv[1], help_words)) return help(argc, argv);
    if (is_one_of(argv[1], version_words)) {
        puts("berth " BERTH_VERSION);
        return 0;
    }
    return run_command(argc - 1, argv + 1);
}
