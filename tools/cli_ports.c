#include <string.h>

#include "artifact/file.h"
#include "ir/dim.h"
#include "toolkit/module_file.h"
#include "tools/cli_inputs.h"

typedef struct port_list {
    berth_arena *arena;
    BERTH_VEC(berth_cli_port) ports;
} port_list;

static void add_program_ports(port_list *list, const berth_program *program) {
    for (uint32_t i = 0; i < program->input_count; ++i) {
        const berth_program_tensor *tensor = &program->tensors[program->inputs[i].tensor];
        berth_cli_port port = {.name = berth_arena_strdup(list->arena, program->inputs[i].name),
                               .dtype = tensor->dtype,
                               .rank = tensor->rank};
        memcpy(port.dims, tensor->dims, sizeof(port.dims));
        berth_vec_push(list->arena, &list->ports, port);
    }
}

static void add_module_ports(port_list *list, const berth_module *module, berth_func_id main) {
    const berth_graph *graph = berth_graph_get(module, main);
    const berth_region *root = &graph->regions.data[0];
    for (uint32_t i = 0; i < root->params.count; ++i) {
        const berth_value *value = &graph->values.data[root->params.data[i]];
        const berth_type *type = berth_type_get(module, value->type);
        berth_cli_port port = {
            .name = berth_arena_strdup(list->arena, berth_module_str(module, value->name)),
            .dtype = type->dtype,
            .rank = type->kind == BERTH_TYPE_TENSOR ? type->rank : -1};
        for (int d = 0; d < port.rank; ++d) port.dims[d] = type->dims[d] < 0 ? -1 : type->dims[d];
        berth_vec_push(list->arena, &list->ports, port);
    }
}

// In an arena of its own, since the model's file stays mapped with it.
static berth_status read_ports(berth_arena *scratch, const berth_cli_model *cli, port_list *list) {
    if (berth_program_file_is(cli->model)) {
        const berth_program *program = NULL;
        BERTH_TRY(berth_program_read(scratch, cli->model, &program));
        add_program_ports(list, program);
        return BERTH_OK;
    }
    const berth_import_options options = {.dims = NULL};
    berth_module *module = NULL;
    BERTH_TRY(berth_module_load(scratch, cli->model, &options, NULL, &module));
    berth_func_id main = berth_module_find_function(module, "main");
    if (main == BERTH_NONE)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "\"%s\" has no function @main",
                                 cli->model);
    add_module_ports(list, module, main);
    return BERTH_OK;
}

berth_status berth_cli_ports(berth_cli_model *cli, const berth_cli_port **out_ports,
                             uint32_t *out_count) {
    port_list list = {.arena = cli->arena};
    berth_arena *scratch = berth_arena_create_child(cli->arena);
    berth_status status = read_ports(scratch, cli, &list);
    berth_arena_destroy(scratch);
    *out_ports = list.ports.data;
    *out_count = list.ports.count;
    return status;
}
