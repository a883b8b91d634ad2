#include <berth/model.h>
#include <berth/program.h>
#include <string.h>

#include "base/str.h"
#include "tools/cli_inputs.h"

typedef struct port_list {
    berth_arena *arena;
    BERTH_VEC(berth_cli_port) ports;
} port_list;

static void add_program_ports(port_list *list, const berth_program *program) {
    for (uint32_t i = 0; i < berth_program_input_count(program); ++i) {
        const berth_port *input = berth_program_input(program, i);
        berth_cli_port port = {.name = berth_arena_strdup(list->arena, input->name),
                               .dtype = input->type.dtype,
                               .rank = input->type.rank};
        memcpy(port.dims, input->type.dims, sizeof(port.dims));
        berth_vec_push(list->arena, &list->ports, port);
    }
}

static void add_model_ports(port_list *list, const berth_model_info *info) {
    for (uint32_t i = 0; i < berth_model_info_input_count(info); ++i) {
        const berth_value_info *input = berth_model_info_input(info, i);
        berth_cli_port port = {.name = berth_arena_strdup(list->arena, input->name),
                               .dtype = input->dtype,
                               .rank = input->rank};
        for (int d = 0; d < port.rank; ++d) {
            port.dims[d] = input->dims[d].extent;
            if (input->dims[d].name)
                port.dim_names[d] = berth_arena_strdup(list->arena, input->dims[d].name);
        }
        berth_vec_push(list->arena, &list->ports, port);
    }
}

// The model or program, until its inputs are copied.
typedef struct ports_job {
    port_list list;
    berth_program *program;
    berth_model_info *info;
} ports_job;

static berth_status add_ports(void *user) {
    ports_job *job = user;
    if (job->program) add_program_ports(&job->list, job->program);
    if (job->info) add_model_ports(&job->list, job->info);
    return BERTH_OK;
}

static berth_status read_info(const berth_cli_model *cli, berth_model_info **out_info) {
    berth_compiler *compiler = NULL;
    BERTH_TRY(berth_compiler_create(&compiler));
    berth_status status = berth_compiler_set(compiler, "limits", cli->limits);
    if (!status) status = berth_compiler_read_model(compiler, cli->model, out_info);
    berth_compiler_destroy(compiler);
    return status;
}

berth_status berth_cli_ports(berth_cli_model *cli, const berth_cli_port **out_ports,
                             uint32_t *out_count) {
    ports_job job = {.list = {.arena = cli->arena}};
    berth_status status =
        berth_program_file_is(cli->model)
            ? berth_program_open_limited(cli->model, NULL, cli->limits, &job.program)
            : read_info(cli, &job.info);
    if (!status) status = berth_arena_try(cli->arena, add_ports, &job);
    berth_program_release(job.program);
    berth_model_info_free(job.info);
    *out_ports = job.list.ports.data;
    *out_count = job.list.ports.count;
    return status;
}
