// The command line before argp reads it. Options are spelt in full: argp would take any unique
// beginning, so that a slip (--d=8) silently means another option, and a new option breaks scripts.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "tools/cli.h"
#include "tools/cli_describe.h"

typedef berth_cli_options option_list;

// What argp adds to every command.
static const struct argp_option own[] = {{"help", '?', NULL, 0, "Show the options", 0},
                                         {"usage", 0, NULL, 0, "Show a short usage message", 0},
                                         {"version", 'V', NULL, 0, "Show the version", 0},
                                         {0}};

static void add_options(option_list *list, const struct argp_option *options) {
    for (; options && (options->name || options->key); ++options)
        if (list->count < BERTH_CLI_MOST_OPTIONS) list->options[list->count++] = options;
}

static void collect(option_list *list, const struct argp *argp) {
    add_options(list, argp->options);
    for (const struct argp_child *child = argp->children; child && child->argp; ++child)
        collect(list, child->argp);
}

void berth_cli_collect_options(const struct argp *argp, berth_cli_options *out_options) {
    out_options->count = 0;
    collect(out_options, argp);
    add_options(out_options, own);
}

static const struct argp_option *find_long(const option_list *list, const char *name,
                                           size_t length) {
    for (uint32_t i = 0; i < list->count; ++i) {
        const char *own_name = list->options[i]->name;
        if (own_name && strlen(own_name) == length && memcmp(own_name, name, length) == 0)
            return list->options[i];
    }
    return NULL;
}

static const struct argp_option *find_short(const option_list *list, char letter) {
    for (uint32_t i = 0; i < list->count; ++i)
        if (list->options[i]->key == letter) return list->options[i];
    return NULL;
}

// The only option that begins so, else the closest.
static const char *suggestion(const option_list *list, const char *name) {
    const char *names[BERTH_CLI_MOST_OPTIONS + 1] = {0};
    const char *begun = NULL;
    uint32_t count = 0, beginnings = 0;
    for (uint32_t i = 0; i < list->count; ++i) {
        if (!list->options[i]->name) continue;
        names[count++] = list->options[i]->name;
        if (strncmp(names[count - 1], name, strlen(name)) != 0) continue;
        begun = names[count - 1];
        beginnings++;
    }
    return beginnings == 1 ? begun : berth_closest(name, names);
}

// "--batch=8" where the command fixes dimensions is probably one.
static bool may_be_dimension(const option_list *list, const char *value) {
    uint64_t extent = 0;
    return find_long(list, "dim", 3) && value && berth_cli_parse_u64(value, &extent);
}

static _Noreturn void refuse(const option_list *list, const char *command, const char *text) {
    char name[64];
    size_t dashes = strspn(text, "-"), length = strcspn(text + dashes, "=");
    snprintf(name, sizeof(name), "%.*s", (int)length, text + dashes);
    const char *value = text[dashes + length] ? text + dashes + length + 1 : NULL;
    const char *near = suggestion(list, name);
    char message[512];
    int at = snprintf(message, sizeof(message), "there is no option %.*s",
                      (int)(dashes + length > 99 ? 99 : dashes + length), text);
    if (near)
        at += snprintf(message + at, sizeof(message) - (size_t)at, "; did you mean --%s?", near);
    else if (may_be_dimension(list, value))
        at += snprintf(message + at, sizeof(message) - (size_t)at,
                       "; a dimension of the model is fixed with --dim %s=%.20s", name, value);
    snprintf(message + at, sizeof(message) - (size_t)at, " (`berth %s --help` lists them)",
             command);
    berth_cli_message("error", message);
    exit(2);
}

// Whether the argument after this one is its value.
static bool check_long(const option_list *list, const char *command, const char *text) {
    size_t length = strcspn(text + 2, "=");
    const struct argp_option *option = find_long(list, text + 2, length);
    if (!option) refuse(list, command, text);
    return option->arg && !(option->flags & OPTION_ARG_OPTIONAL) && text[2 + length] == 0;
}

static bool check_short(const option_list *list, const char *command, const char *text) {
    for (const char *at = text + 1; *at; ++at) {
        const struct argp_option *option = find_short(list, *at);
        if (!option) refuse(list, command, text);
        if (option->arg) return at[1] == 0;
    }
    return false;
}

static _Noreturn void refuse_alone(const char *command, const char *text) {
    char message[256];
    snprintf(message, sizeof(message), "%.99s needs a value (`berth %s --help` says which)", text,
             command);
    berth_cli_message("error", message);
    exit(2);
}

void berth_cli_check_budgets(const char *text, struct argp_state *state) {
    for (const char *at = text;; ++at) {
        size_t length = strcspn(at, ",");
        const char *equals = memchr(at, '=', length);
        if (!equals || equals == at || equals + 1 == at + length)
            berth_cli_wrong_usage(state, "--memory takes NAME=BYTES,..., not \"%s\"", text);
        at += length;
        if (*at == 0) return;
    }
}

static bool asks_for_help(const char *text) {
    return strcmp(text, "--help") == 0 || strcmp(text, "--usage") == 0 ||
           (text[0] == '-' && text[1] != '-' && strchr(text, '?'));
}

enum { lost_help = 3 };  // exit status of the child

// The child's last: what the parent registered for its own end (a leak check, say) is not run here.
static void end_child(void) {
    bool lost = fflush(stdout) != 0;
    _exit(lost || ferror(stdout) ? lost_help : 0);  // text beyond the buffer was written before
}

void berth_cli_give_help(const struct argp *argp, int argc, char **argv, void *state) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        if (atexit(end_child) == 0) (void)argp_parse(argp, argc, argv, 0, NULL, state);
        _exit(1);  // argp ends the child when it has printed the help
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == lost_help) {
        berth_cli_message("error", "cannot write the help to standard output");
        exit(1);
    }
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) berth_cli_end_without_memory();
    exit(0);
}

bool berth_cli_check_arguments(const struct argp *argp, int argc, char **argv) {
    static char help[] = "--help";
    option_list list;
    berth_cli_collect_options(argp, &list);
    for (int i = 1; i < argc; ++i) {
        const char *text = argv[i];
        if (text[0] != '-' || text[1] == 0) continue;
        if (strcmp(text, "--") == 0) break;
        if (strcmp(text, "-h") == 0 && !find_short(&list, 'h')) text = argv[i] = help;
        if (asks_for_help(text)) return true;
        if (text[1] == '-' ? check_long(&list, argv[0], text) : check_short(&list, argv[0], text)) {
            if (++i >= argc) refuse_alone(argv[0], text);
        }
    }
    return false;
}

void berth_cli_take_state(struct argp_state *state, berth_cli_model *cli, const char *arg) {
    if (!strchr(arg, '='))
        berth_cli_wrong_usage(state, "--state takes INPUT=OUTPUT, not \"%s\"", arg);
    berth_cli_push(cli, &cli->states, arg);
}

void berth_cli_take_device_options(struct argp_state *state, berth_cli_model *cli,
                                   berth_cli_words *list, const char *text) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        berth_cli_wrong_usage(state, "--device-options takes DEVICE=WORDS, not \"%s\"", text);
    berth_device_words words = {.device =
                                    berth_arena_strndup(cli->arena, text, (size_t)(equals - text)),
                                .words = equals + 1};
    berth_vec_push(cli->arena, list, words);
}
