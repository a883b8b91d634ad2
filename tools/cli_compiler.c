#include "tools/cli_compiler.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli_inputs.h"

void berth_cli_level_message(void *user, berth_message_level level, const char *message) {
    static const char *const names[] = {"error", "warning", "note"};
    const berth_cli_model *cli = user;
    if (cli->quiet && level > BERTH_MESSAGE_WARNING) return;
    berth_cli_message(names[level], message);
}

static void defer(void *user, int on) {
    berth_interrupt_defer(berth_cli_interrupt(user), on != 0);
}

static int is_pending(void *user) {
    return berth_interrupt_pending(berth_cli_interrupt(user));
}

// 0 = the option's default.
static berth_status set_number(berth_compiler *compiler, berth_arena *arena, const char *option,
                               uint64_t number) {
    if (number == 0) return BERTH_OK;
    return berth_compiler_set(compiler, option,
                              berth_arena_printf(arena, "%llu", (unsigned long long)number));
}

static berth_status set_options(berth_cli_model *cli, berth_compiler *compiler) {
    const struct {
        const char *option, *value;
    } texts[] = {{"target", cli->target},
                 {"host", cli->host},
                 {"executor", cli->executor},
                 {"runtime", cli->runtime},
                 {"memory", cli->memory},
                 {"tag_folder", getenv("BERTH_TAGS")},
                 {"strategy", cli->strategy},
                 {"objective", cli->objective},
                 {"patches", cli->patches},
                 {"parallel", cli->parallel},
                 {"costs", berth_cli_costs(cli)},
                 {"tuned", berth_cli_tuned(cli)},
                 {"default_batch", "1"},
                 {"limits", cli->limits},
                 {"cache_folder", berth_cli_driver_cache(cli)},
                 {"search_path", getenv("PATH")},
                 {"temporary_folder", getenv("TMPDIR")},
                 {"fusion", cli->no_fusion ? "off" : "on"},
                 {"layouts", cli->no_layouts ? "off" : "on"},
                 {"winograd", cli->no_winograd ? "off" : "on"}};
    const struct {
        const char *option;
        uint64_t value;
    } numbers[] = {{"nodes", cli->node_budget},
                   {"time_budget_ns", (uint64_t)cli->time_budget_ns},
                   {"cache_limit_bytes", cli->cache_limit_bytes},
                   {"compiler_time_limit_ns", (uint64_t)cli->compiler_time_limit_ns},
                   {"jobs", cli->jobs}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i)
        BERTH_TRY(berth_compiler_set(compiler, texts[i].option, texts[i].value));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i)
        BERTH_TRY(set_number(compiler, cli->arena, numbers[i].option, numbers[i].value));
    for (uint32_t i = 0; i < cli->pins.count; ++i)
        BERTH_TRY(berth_compiler_add_pin(compiler, cli->pins.data[i]));
    for (uint32_t i = 0; i < cli->overrides.count; ++i)
        BERTH_TRY(berth_compiler_add_override(compiler, cli->overrides.data[i]));
    return BERTH_OK;
}

// "NAME=LEAST..MOST", which take_bounds (cli.c) has checked, and "NAME=EXPRESSION".
static berth_status set_bounds(const berth_cli_model *cli, berth_compiler *compiler) {
    for (uint32_t i = 0; i < cli->bounds.count; ++i) {
        const char *text = cli->bounds.data[i], *equals = strrchr(text, '=');
        const char *name = berth_arena_strndup(cli->arena, text, (size_t)(equals - text));
        BERTH_TRY(berth_compiler_set_dim_bounds(compiler, name, strtoll(equals + 1, NULL, 10),
                                                strtoll(strstr(equals, "..") + 2, NULL, 10)));
    }
    for (uint32_t i = 0; i < cli->relations.count; ++i) {
        const char *text = cli->relations.data[i], *equals = strrchr(text, '=');
        const char *name = berth_arena_strndup(cli->arena, text, (size_t)(equals - text));
        BERTH_TRY(berth_compiler_set_dim_expression(compiler, name, equals + 1));
    }
    return BERTH_OK;
}

static berth_status set_values(const berth_cli_values *values, berth_compiler *compiler) {
    for (uint32_t i = 0; i < values->dim_count; ++i)
        BERTH_TRY(berth_compiler_set_dim(compiler, values->dims[i].name, values->dims[i].extent));
    for (uint32_t i = 0; i < values->input_count; ++i)
        BERTH_TRY(berth_compiler_set_input_value(compiler, values->inputs[i].name,
                                                 &values->inputs[i].tensor));
    return BERTH_OK;
}

berth_status berth_cli_target_compiler(berth_cli_model *cli, berth_compiler **out_compiler) {
    BERTH_TRY(berth_compiler_create(out_compiler));
    berth_compiler_on_level_message(*out_compiler, berth_cli_level_message, cli);
    return set_options(cli, *out_compiler);
}

// They are of programs for all values within bounds.
static berth_status set_states(const berth_cli_model *cli, berth_compiler *compiler) {
    if (cli->states.count && cli->executor && strcmp(cli->executor, "vm") != 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "--state is of programs of the executor vm, not of \"%s\"",
                                 cli->executor);
    for (uint32_t i = 0; i < cli->states.count; ++i)
        BERTH_TRY(berth_compiler_add_state(compiler, cli->states.data[i]));
    return cli->states.count ? berth_compiler_set(compiler, "executor", "vm") : BERTH_OK;
}

static berth_status make_compiler(berth_cli_model *cli, bool read_inputs,
                                  berth_compiler **out_compiler, berth_cli_values *out_values) {
    berth_cli_refuse_with_program(cli);
    BERTH_TRY(berth_cli_target_compiler(cli, out_compiler));
    berth_compiler_on_interrupt(*out_compiler, defer, is_pending, cli);
    if (berth_cli_shows_progress(cli))
        berth_compiler_on_progress(*out_compiler, berth_cli_show_progress, cli);
    BERTH_TRY(berth_cli_read_values(cli, read_inputs, out_values));
    BERTH_TRY(set_bounds(cli, *out_compiler));
    BERTH_TRY(set_states(cli, *out_compiler));
    return set_values(out_values, *out_compiler);
}

berth_status berth_cli_compiler(berth_cli_model *cli, bool read_inputs,
                                berth_compiler **out_compiler) {
    berth_cli_values values;
    return make_compiler(cli, read_inputs, out_compiler, &values);
}

berth_status berth_cli_compiler_of(berth_cli_model *cli, berth_compiler **out_compiler,
                                   berth_cli_values *out_values) {
    return make_compiler(cli, true, out_compiler, out_values);
}
