// The subcommands of `berth`, one file each (cmd_NAME.c). argv[0] is the subcommand's name; the
// result is the exit status.
#ifndef BERTH_TOOLS_COMMANDS_H_
#define BERTH_TOOLS_COMMANDS_H_

#include <stdint.h>

int berth_cmd_inspect(int argc, char **argv);
int berth_cmd_devices(int argc, char **argv);
int berth_cmd_target(int argc, char **argv);
int berth_cmd_explain(int argc, char **argv);
int berth_cmd_plan(int argc, char **argv);
int berth_cmd_build(int argc, char **argv);
int berth_cmd_run(int argc, char **argv);
int berth_cmd_bench(int argc, char **argv);
int berth_cmd_verify(int argc, char **argv);
int berth_cmd_opt(int argc, char **argv);
int berth_cmd_cache(int argc, char **argv);
int berth_cmd_key(int argc, char **argv);
int berth_cmd_memory(int argc, char **argv);
int berth_cmd_calibrate(int argc, char **argv);
int berth_cmd_tune(int argc, char **argv);
int berth_cmd_quantize(int argc, char **argv);
int berth_cmd_simulate(int argc, char **argv);
int berth_cmd_place(int argc, char **argv);
int berth_cmd_completion(int argc, char **argv);
int berth_cmd_manual(int argc, char **argv);

// The table of them (main.c).
typedef struct berth_command_entry {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;  // one line
} berth_command_entry;

// NULL when there is no such index.
const berth_command_entry *berth_command_at(uint32_t index);

#endif  // BERTH_TOOLS_COMMANDS_H_
