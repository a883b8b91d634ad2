#include "tools/cli_describe.h"

#include <berth/compile.h>
#include <berth/placement.h>
#include <stdio.h>
#include <string.h>

static bool has_letter(const struct argp_option *option) {
    return option->key > ' ' && option->key < 0x7f;
}

// ---- manual page --------------------------------------------------------------------------------

void berth_cli_print_roff(const char *text) {
    bool line_begins = true;
    for (; *text; ++text) {
        if (line_begins && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
        line_begins = *text == '\n';
    }
}

static void print_man_option(const struct argp_option *option) {
    fputs(".TP\n", stdout);
    if (has_letter(option)) printf("\\fB\\-%c\\fR%s", option->key, option->name ? ", " : "");
    if (option->name) {
        fputs("\\fB\\-\\-", stdout);
        berth_cli_print_roff(option->name);
        fputs("\\fR", stdout);
    }
    if (option->arg) {
        fputs(option->name ? "=\\fI" : " \\fI", stdout);
        berth_cli_print_roff(option->arg);
        fputs("\\fR", stdout);
    }
    putchar('\n');
    berth_cli_print_roff(option->doc ? option->doc : "");
    putchar('\n');
}

// "create FILE\nshow FILE" is a line each.
static void print_synopsis(const char *name, const char *arguments) {
    const char *at = arguments ? arguments : "";
    do {
        size_t length = strcspn(at, "\n");
        char line[256];
        snprintf(line, sizeof(line), "%.*s", (int)length, at);
        printf(".B berth %s\n[\\fIOPTION\\fR...] ", name);
        berth_cli_print_roff(line);
        putchar('\n');
        at += length;
        if (*at) puts(".br");
    } while (*at++);
}

static void print_man(const struct argp *argp, const char *name, const char *title,
                      const berth_cli_options *all) {
    const char *doc = argp->doc ? argp->doc : "", *more = strchr(doc, '\v');
    size_t length = more ? (size_t)(more - doc) : strlen(doc);
    char first[4096];
    snprintf(first, sizeof(first), "%.*s", (int)length, doc);
    printf(".TH berth-%s 1 \"\" \"berth " BERTH_VERSION "\"\n.SH NAME\nberth\\-%s \\- ", name,
           name);
    berth_cli_print_roff(title);
    puts("\n.SH SYNOPSIS");
    print_synopsis(name, argp->args_doc);
    puts(".SH DESCRIPTION");
    berth_cli_print_roff(first);
    if (more) {
        puts("\n.PP");
        berth_cli_print_roff(more + 1);
    }
    puts("\n.SH OPTIONS");
    for (uint32_t i = 0; i < all->count; ++i) print_man_option(all->options[i]);
    puts(".SH EXIT STATUS\n0 done, 1 could not do it, 2 wrong usage.\n.SH SEE ALSO\n.BR berth (1)");
}

// ---- completion ---------------------------------------------------------------------------------

// What an option takes where that is one of a few words; names[0] is NULL otherwise.
static void find_values(const char *command, const struct argp_option *option,
                        berth_cli_option_values *out) {
    const char *name = NULL, *doc = NULL;
    berth_cli_values_of(option, out);
    if (!option->name || strcmp(option->name, "strategy") != 0) return;
    bool place = strcmp(command, "place") == 0;  // which has strategies of its own
    berth_cli_add_name(out->names, place ? "auto" : "list");
    for (uint32_t i = 0; place ? berth_placement_strategy_at(i, &name, &doc)
                               : berth_compiler_strategy_at(i, &name, &doc);
         ++i)
        berth_cli_add_name(out->names, name);
}

static void print_words(const char *const *words) {
    for (uint32_t i = 0; words[i]; ++i) printf("%s%s", i ? " " : "", words[i]);
}

static void print_bash(const char *name, const berth_cli_options *all) {
    printf("    %s)\n      options='", name);
    for (uint32_t i = 0; i < all->count; ++i)
        if (all->options[i]->name) printf("%s--%s", i ? " " : "", all->options[i]->name);
    puts("'\n      case $option in");
    for (uint32_t i = 0; i < all->count; ++i) {
        const struct argp_option *option = all->options[i];
        berth_cli_option_values values;
        find_values(name, option, &values);
        if (!option->name || !values.names[0]) continue;
        printf("        --%s", option->name);
        if (has_letter(option)) printf("|-%c", option->key);
        fputs(") values='", stdout);
        print_words(values.names);
        puts("' ;;");
    }
    puts("      esac ;;");
}

void berth_cli_print_zsh(const char *text) {
    for (; *text; ++text) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text == '\n' ? ' ' : *text);
    }
}

static void print_zsh(const char *name, const berth_cli_options *all) {
    printf("    %s)\n      _arguments \\\n", name);
    for (uint32_t i = 0; i < all->count; ++i) {
        const struct argp_option *option = all->options[i];
        if (!option->name) continue;
        printf("        '*--%s%s[", option->name, option->arg ? "=" : "");
        berth_cli_print_zsh(option->doc ? option->doc : "");
        putchar(']');
        if (option->arg) {
            putchar(':');
            berth_cli_print_zsh(option->arg);
            berth_cli_option_values values;
            find_values(name, option, &values);
            fputs(values.names[0] ? ":(" : ":_files", stdout);
            print_words(values.names);
            if (values.names[0]) putchar(')');
        }
        puts("' \\");
    }
    puts("        '*:file:_files' ;;");
}

bool berth_cli_describe(const struct argp *argp, int argc, char **argv) {
    static const char prefix[] = "--describe=";
    enum { prefix_length = sizeof(prefix) - 1 };
    if (argc != 2 || strncmp(argv[1], prefix, prefix_length) != 0) return false;
    const char *form = argv[1] + prefix_length;
    berth_cli_options all;
    berth_cli_collect_options(argp, &all);
    if (strncmp(form, "man:", 4) == 0)
        print_man(argp, argv[0], form + 4, &all);
    else if (strcmp(form, "bash") == 0)
        print_bash(argv[0], &all);
    else if (strcmp(form, "zsh") == 0)
        print_zsh(argv[0], &all);
    else
        return false;
    return true;
}
