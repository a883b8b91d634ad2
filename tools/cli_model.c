#include "tools/cli_model.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli_inputs.h"

static void write_log(void *state, berth_log_level level, const char *message) {
    const berth_cli_model *cli = state;
    static const char *const names[] = {"error", "warning", "note", "debug"};
    if (level > (cli->quiet ? BERTH_LOG_WARNING : BERTH_LOG_INFO)) return;
    berth_cli_message(names[level], message);
}

berth_log berth_cli_log(const berth_cli_model *cli) {
    union {
        const berth_cli_model *constant;
        void *mutable_pointer;
    } state = {.constant = cli};
    return (berth_log){write_log, state.mutable_pointer};
}

static berth_status read_values(berth_cli_model *cli, bool read_inputs,
                                berth_import_options *import) {
    berth_cli_values values;
    BERTH_TRY(berth_cli_read_values(cli, read_inputs, &values));
    berth_dim_binding *dims =
        berth_arena_new_array(cli->arena, berth_dim_binding, values.dim_count);
    berth_input_binding *inputs =
        berth_arena_new_array(cli->arena, berth_input_binding, values.input_count);
    for (uint32_t i = 0; i < values.dim_count; ++i)
        dims[i] = (berth_dim_binding){values.dims[i].name, values.dims[i].extent};
    for (uint32_t i = 0; i < values.input_count; ++i)
        inputs[i] =
            (berth_input_binding){.name = values.inputs[i].name, .tensor = values.inputs[i].tensor};
    import->dims = dims;
    import->dim_count = values.dim_count;
    import->inputs = inputs;
    import->input_count = values.input_count;
    return BERTH_OK;
}

berth_status berth_cli_model_options(berth_cli_model *cli, bool read_inputs,
                                     berth_model_options *out) {
    berth_cli_refuse_with_program(cli);
    memset(out, 0, sizeof(*out));
    out->target = cli->target;
    out->target_options =
        (berth_target_options){.host = cli->host,
                               .executor = cli->executor,
                               .runtime = cli->runtime,
                               .budgets = cli->memory,
                               .pins = cli->pins.count ? cli->pins.data : NULL,
                               .overrides = cli->overrides.count ? cli->overrides.data : NULL,
                               .tag_folder = getenv("BERTH_TAGS"),
                               .log = berth_cli_log(cli)};
    out->costs = berth_cli_costs(cli);
    out->tuned = berth_cli_tuned(cli);
    out->import.log = berth_cli_log(cli);
    out->import.default_batch = 1;
    BERTH_TRY(read_values(cli, read_inputs, &out->import));
    out->compile = (berth_compile_options){
        .strategy = cli->strategy,
        .objective = cli->objective,
        .patches = cli->patches,
        .parallel = cli->parallel,
        .node_budget = cli->node_budget,
        .time_budget_ns = cli->time_budget_ns,
        .cache_folder = berth_cli_driver_cache(cli),
        .cache_limit_bytes = cli->cache_limit_bytes,
        .search_path = getenv("PATH"),
        .temporary_folder = getenv("TMPDIR"),
        .jobs = cli->jobs,
        .compiler_time_limit_ns = cli->compiler_time_limit_ns,
        .no_fusion = cli->no_fusion,
        .no_layouts = cli->no_layouts,
        .no_winograd = cli->no_winograd,
        .log = berth_cli_log(cli),
        .interrupt = berth_cli_interrupt(cli),
        .progress = berth_cli_shows_progress(cli) ? berth_cli_show_progress : NULL};
    return BERTH_OK;
}
