// berth completion, berth manual: what shells and `man` show of the commands, from their own tables.
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tools/beside.h"
#include "tools/cli.h"
#include "tools/cli_describe.h"
#include "tools/commands.h"

typedef struct words_command {
    berth_cli_model cli;
    const char *what;
} words_command;

static const struct argp_option options[] = {{0}};

static error_t parse_completion(int key, char *arg, struct argp_state *state) {
    words_command *command = state->input;
    static const char *const shells[] = {"bash", "zsh", NULL};
    switch (key) {
    case ARGP_KEY_ARG:
        if (command->what) berth_cli_wrong_usage(state, "only one shell");
        command->what = shells[berth_cli_choose(state, "completion", arg, shells)];
        return 0;
    case ARGP_KEY_END:
        if (!command->what) berth_cli_wrong_usage(state, "bash or zsh?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_manual(int key, char *arg, struct argp_state *state) {
    words_command *command = state->input;
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    if (command->what) berth_cli_wrong_usage(state, "only one command");
    command->what = arg;
    return 0;
}

// Has a command describe itself.
static void describe(const berth_command_entry *entry, const char *form) {
    char name[32], option[256];
    bool manual = strcmp(form, "man") == 0;
    snprintf(name, sizeof(name), "%s", entry->name);
    snprintf(option, sizeof(option), "--describe=%s%s%s", form, manual ? ":" : "",
             manual ? entry->help : "");
    char *arguments[] = {name, option, NULL};
    (void)entry->run(2, arguments);
}

// ---- completion ---------------------------------------------------------------------------------

static void print_bash(const berth_beside *others) {
    fputs("# Completion of berth for bash: `berth completion bash`.\n"
          "_berth() {\n"
          "  local word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} options= "
          "values=\n"
          "  COMPREPLY=()\n"
          "  if [ \"$word\" = = ]; then word=; elif [ \"$option\" = = ]; then "
          "option=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
          "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "    COMPREPLY=($(compgen -W '",
          stdout);
    for (uint32_t i = 0; berth_command_at(i); ++i) printf("%s ", berth_command_at(i)->name);
    for (uint32_t i = 0; i < others->count; ++i) printf("%s ", others->names[i]);
    fputs("help --help --version' -- \"$word\"))\n"
          "    return\n"
          "  fi\n"
          "  case ${COMP_WORDS[1]} in\n",
          stdout);
    for (uint32_t i = 0; berth_command_at(i); ++i) describe(berth_command_at(i), "bash");
    fputs("  esac\n"
          "  if [ -n \"$values\" ]; then\n"
          "    compopt +o default +o bashdefault 2>/dev/null\n"
          "    COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
          "    return\n"
          "  fi\n"
          "  case $word in\n"
          "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
          "  esac\n"
          "}\n"
          "complete -o default -o bashdefault -F _berth berth\n",
          stdout);
}

static void print_zsh(const berth_beside *others) {
    fputs("#compdef berth\n# Completion of berth for zsh: `berth completion zsh`.\n"
          "_berth() {\n"
          "  local -a commands=(\n",
          stdout);
    for (uint32_t i = 0; berth_command_at(i); ++i) {
        printf("    '%s:", berth_command_at(i)->name);
        berth_cli_print_zsh(berth_command_at(i)->help);
        puts("'");
    }
    for (uint32_t i = 0; i < others->count; ++i)
        printf("    '%s:the program berth-%s'\n", others->names[i], others->names[i]);
    fputs("    'help:explain a command'\n"
          "  )\n"
          "  if (( CURRENT == 2 )); then\n"
          "    _describe 'command' commands\n"
          "    return\n"
          "  fi\n"
          "  local command=$words[2]\n"
          "  shift words\n"
          "  (( CURRENT-- ))\n"
          "  case $command in\n",
          stdout);
    for (uint32_t i = 0; berth_command_at(i); ++i) describe(berth_command_at(i), "zsh");
    fputs("    *) _files ;;\n"
          "  esac\n"
          "}\n"
          "_berth \"$@\"\n",
          stdout);
}

static berth_status run_completion(void *state) {
    const words_command *command = state;
    berth_beside others;
    berth_beside_list(&others);
    if (strcmp(command->what, "bash") == 0)
        print_bash(&others);
    else
        print_zsh(&others);
    return BERTH_OK;
}

int berth_cmd_completion(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp = {options, parse_completion, "bash\nzsh",
                 "Prints what a shell needs to complete berth's commands and options.\vAn "
                 "installation has it where bash-completion and zsh look. Without one, for bash: "
                 "eval \"$(berth completion bash)\"",
                 NULL, NULL, NULL},
        .run = run_completion};
    words_command state = {.what = NULL};
    return berth_cli_run(&command, &state, argc, argv);
}

// ---- manual -------------------------------------------------------------------------------------

static void print_overview(void) {
    fputs(
        ".TH berth 1 \"\" \"berth " BERTH_VERSION "\"\n"
        ".SH NAME\nberth \\- plans, compiles and runs ONNX models across the devices of a machine\n"
        ".SH SYNOPSIS\n.B berth\n\\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH COMMANDS\n",
        stdout);
    for (uint32_t i = 0; berth_command_at(i); ++i) {
        printf(".TP\n.BR berth\\-%s (1)\n", berth_command_at(i)->name);
        berth_cli_print_roff(berth_command_at(i)->help);
        putchar('\n');
    }
    fputs(".SH ENVIRONMENT\n"
          ".TP\n.B BERTH_CACHE_DIR\nFolder of compiled kernels (default: ~/.cache/berth).\n"
          ".TP\n.B BERTH_TAGS\nFolder of more targets.\n"
          ".SH EXIT STATUS\n0 done, 1 could not do it, 2 wrong usage.\n",
          stdout);
}

static berth_status run_manual(void *state) {
    const words_command *command = state;
    if (!command->what) {
        print_overview();
        return BERTH_OK;
    }
    const char *names[BERTH_CLI_MOST_NAMES] = {NULL};
    for (uint32_t i = 0; berth_command_at(i); ++i) {
        berth_cli_add_name(names, berth_command_at(i)->name);
        if (strcmp(berth_command_at(i)->name, command->what) != 0) continue;
        describe(berth_command_at(i), "man");
        return BERTH_OK;
    }
    const char *closest = berth_closest(command->what, names);
    return berth_status_make(BERTH_NOT_FOUND, "no command is named \"%s\"%s%s%s", command->what,
                             closest ? "; did you mean \"" : "", closest ? closest : "",
                             closest ? "\"?" : "");
}

int berth_cmd_manual(int argc, char **argv) {
    static const berth_cli_command command = {
        .argp = {options, parse_manual, "[COMMAND]",
                 "Prints the manual page of a command, or that of berth itself, in the form that "
                 "man reads.\vWhere it is not installed: berth manual run | man -l -",
                 NULL, NULL, NULL},
        .run = run_manual};
    words_command state = {.what = NULL};
    return berth_cli_run(&command, &state, argc, argv);
}
