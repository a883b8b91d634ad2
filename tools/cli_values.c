// Options that take one of a few values: which these are, and which of them is meant. Where they are fixed, the table of options
// lists them, as "text|json", and --help, manual pages, completion and the parser read them there.
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli.h"
#include "tools/cli_describe.h"

int berth_cli_choose(struct argp_state *state, const char *option, const char *text,
                     const char *const *names) {
    char list[512] = "";
    size_t length = 0;
    for (int i = 0; names[i]; ++i) {
        if (strcmp(text, names[i]) == 0) return i;
        if (length < sizeof(list))
            length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s",
                                       i == 0         ? ""
                                       : names[i + 1] ? ", "
                                                      : " or ",
                                       names[i]);
    }
    const char *closest = berth_closest(text, names);
    berth_cli_wrong_usage(state, "%s takes %s, not \"%s\"%s%s%s", option, list, text,
                          closest ? "; did you mean \"" : "", closest ? closest : "",
                          closest ? "\"?" : "");
    return 0;
}

void berth_cli_add_name(const char *names[BERTH_CLI_MOST_NAMES], const char *name) {
    int count = 0;
    for (; names[count]; ++count)
        if (strcmp(names[count], name) == 0) return;
    if (count + 1 < BERTH_CLI_MOST_NAMES) names[count] = name;
}

void berth_cli_values_of(const struct argp_option *option, berth_cli_option_values *out_values) {
    char *at = out_values->text;
    *out_values = (berth_cli_option_values){.names = {NULL}};
    if (!option->arg || !strchr(option->arg, '|')) return;
    snprintf(out_values->text, sizeof(out_values->text), "%s", option->arg);
    for (uint32_t i = 0; at && i + 1 < BERTH_CLI_MOST_NAMES; ++i) {
        out_values->names[i] = at;
        at = strchr(at, '|');
        if (at) *at++ = 0;
    }
}

int berth_cli_choose_value(struct argp_state *state, int key, const char *text) {
    berth_cli_options all;
    berth_cli_option_values values = {.names = {NULL}};
    char name[64] = "";
    berth_cli_collect_options(state->root_argp, &all);
    for (uint32_t i = 0; i < all.count; ++i) {
        if (all.options[i]->key != key) continue;
        snprintf(name, sizeof(name), "--%s", all.options[i]->name);
        berth_cli_values_of(all.options[i], &values);
    }
    return berth_cli_choose(state, name, text, values.names);
}

void berth_cli_take_format(berth_cli_model *cli, const char *arg, struct argp_state *state) {
    berth_cli_choose_value(state, BERTH_CLI_KEY_FORMAT, arg);
    cli->format = arg;
}
