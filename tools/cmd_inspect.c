// berth inspect: what is in a model, or in a program.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact/file.h"
#include "artifact/vm.h"
#include "ir/external.h"
#include "toolkit/module_file.h"
#include "toolkit/vm_session.h"
#include "tools/cli_model.h"
#include "tools/commands.h"

typedef struct inspect_command {
    berth_cli_model cli;
    const char *extract;
    bool bytecode;
} inspect_command;

enum { key_extract = 0x200, key_bytecode };

static const struct argp_option options[] = {
    {"extract", key_extract, "FOLDER", 0,
     "Write a program's code, and its source where that was kept, to files in FOLDER", 0},
    {"bytecode", key_bytecode, NULL, 0,
     "Show the model's code for the virtual machine (docs/vm.md) instead", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
    inspect_command *command = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &command->cli; return 0;
    case key_extract: command->extract = arg; return 0;
    case key_bytecode: command->bytecode = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

typedef struct op_count {
    const char *op;
    uint32_t count;
} op_count;

typedef struct facts {
    const berth_module *module;
    const berth_graph *graph;
    op_count *ops;
    uint32_t op_kinds;
    uint32_t node_count;
    berth_loc_id *nodes;  // [node_count] in the order of the model
    uint64_t weight_bytes;
    uint32_t weight_count;
} facts;

static int by_count(const void *a, const void *b) {
    const op_count *x = a;
    const op_count *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->op, y->op);
}

// Operators are those of the model: one location per node, whatever the importer made of it.
static facts gather(const berth_module *module, berth_arena *arena) {
    facts f = {.module = module,
               .graph = berth_graph_get(module, berth_module_find_function(module, "main"))};
    uint32_t *counts = berth_arena_new_array(arena, uint32_t, module->locs.count + 1);
    berth_str_id *names = berth_arena_new_array(arena, berth_str_id, module->locs.count + 1);
    f.nodes = berth_arena_new_array(arena, berth_loc_id, module->locs.count + 1);
    for (uint32_t i = 0; i < module->locs.count; ++i) {
        const berth_loc *loc = &module->locs.data[i];
        if (!loc->op_type || loc->part_count) continue;
        if (strcmp(berth_module_str(module, loc->op_type), "initializer") == 0) continue;
        uint32_t at = 0;
        while (at < f.op_kinds && names[at] != loc->op_type) at++;
        if (at == f.op_kinds) names[f.op_kinds++] = loc->op_type;
        counts[at]++;
        f.nodes[f.node_count++] = i;
    }
    f.ops = berth_arena_new_array(arena, op_count, f.op_kinds);
    for (uint32_t i = 0; i < f.op_kinds; ++i)
        f.ops[i] = (op_count){berth_module_str(module, names[i]), counts[i]};
    qsort(f.ops, f.op_kinds, sizeof(*f.ops), by_count);
    for (uint32_t i = 0; i < f.graph->values.count; ++i) {
        const berth_tensor *tensor = berth_graph_raw_constant_of(module, f.graph, i);
        if (!tensor) continue;
        f.weight_count++;
        f.weight_bytes += berth_tensor_size_bytes(tensor);
    }
    return f;
}

static const char *type_text(const facts *f, berth_value_id value, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    berth_type_print(f->module, f->graph->values.data[value].type, &text);
    return berth_strbuf_text(&text);
}

static const char *name_of(const facts *f, berth_value_id value) {
    return berth_module_str(f->module, f->graph->values.data[value].name);
}

static void print_text(const facts *f, berth_arena *arena) {
    const berth_region *root = &f->graph->regions.data[0];
    berth_cli_print("model %s\n", berth_module_str(f->module, f->module->name));
    for (uint32_t i = 0; i < root->params.count; ++i)
        berth_cli_print("input %s %s\n", name_of(f, root->params.data[i]),
                        type_text(f, root->params.data[i], arena));
    for (uint32_t i = 0; i < root->results.count; ++i)
        berth_cli_print("output %s %s\n", name_of(f, root->results.data[i]),
                        type_text(f, root->results.data[i], arena));
    char bytes[32];
    berth_format_bytes(f->weight_bytes, bytes);
    berth_cli_print("weights %s in %u tensors\n", bytes, f->weight_count);
    berth_cli_print("operators %u:", f->node_count);
    for (uint32_t i = 0; i < f->op_kinds; ++i)
        berth_cli_print("%s %s %u", i ? "," : "", f->ops[i].op, f->ops[i].count);
    berth_cli_print("\n");
    for (berth_func_id i = 0; i < f->module->functions.count; ++i) {
        const berth_external *external = berth_external_get(f->module, i);
        if (!external) continue;
        berth_cli_print("external code @%s, language \"%s\": runs with your rights\n",
                        berth_module_str(f->module, f->module->functions.data[i].name),
                        berth_module_str(f->module, external->language));
    }
    for (uint32_t i = 0; i < f->node_count; ++i) {
        const berth_loc *loc = &f->module->locs.data[f->nodes[i]];
        berth_cli_print("node %-24s %s\n", berth_module_str(f->module, loc->op_type),
                        berth_module_str(f->module, loc->node));
    }
}

static json_t *values_json(const facts *f, const berth_value_id *values, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; ++i) {
        const berth_type *type = berth_type_get(f->module, f->graph->values.data[values[i]].type);
        json_t *shape = json_array();
        for (int d = 0; d < type->rank; ++d)
            json_array_append_new(shape, berth_dim_is_symbol(type->dims[d])
                                             ? berth_cli_json_text(berth_module_str(
                                                   f->module, berth_dim_symbol_name(type->dims[d])))
                                             : json_integer(type->dims[d]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o}", "name",
                                              berth_cli_json_text(name_of(f, values[i])), "dtype",
                                              berth_dtype_name(type->dtype), "shape", shape));
    }
    return list;
}

static json_t *nodes_json(const facts *f) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < f->node_count; ++i) {
        const berth_loc *loc = &f->module->locs.data[f->nodes[i]];
        json_array_append_new(
            list, json_pack("{s:o, s:o}", "name",
                            berth_cli_json_text(berth_module_str(f->module, loc->node)), "op",
                            berth_cli_json_text(berth_module_str(f->module, loc->op_type))));
    }
    return list;
}

static json_t *facts_json(const facts *f) {
    const berth_region *root = &f->graph->regions.data[0];
    json_t *ops = json_object();
    for (uint32_t i = 0; i < f->op_kinds; ++i)
        json_object_set_new(ops, f->ops[i].op, json_integer(f->ops[i].count));
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:i, s:o}", "model",
                     berth_cli_json_text(berth_module_str(f->module, f->module->name)), "inputs",
                     values_json(f, root->params.data, root->params.count), "outputs",
                     values_json(f, root->results.data, root->results.count), "operators", ops,
                     "weight_bytes", (json_int_t)f->weight_bytes, "node_count", (int)f->node_count,
                     "nodes", nodes_json(f));
}

static berth_status inspect_model(berth_cli_model *cli, bool json) {
    berth_model_options model_options;
    berth_module *module = NULL;
    BERTH_TRY(berth_cli_model_options(cli, false, &model_options));
    model_options.import.default_batch = 0;  // the model as it is
    BERTH_TRY(berth_module_load(cli->arena, cli->model, &model_options.import, NULL, &module));
    facts f = gather(module, cli->arena);
    if (json)
        berth_cli_print_json(facts_json(&f));
    else
        print_text(&f, cli->arena);
    return BERTH_OK;
}

// ---- program files ------------------------------------------------------------------------------

static const char *const usages[] = {"workspace", "constants", "inputs and outputs",
                                     "a store of constants"};

static void print_ends(const char *what, const berth_program *program, const berth_program_io *ends,
                       uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &program->tensors[ends[i].tensor];
        berth_cli_print("%s %s %s[", what, ends[i].name, berth_dtype_name(tensor->dtype));
        for (int d = 0; d < tensor->rank; ++d)
            berth_cli_print(d ? ",%lld" : "%lld", (long long)tensor->dims[d]);
        berth_cli_print("]\n");
    }
}

// Where a plan runs, and in which memory.
static void print_plan(const berth_program *program) {
    for (uint32_t i = 0; i < program->device_count; ++i)
        berth_cli_print("device %s%s\n", program->devices[i].name,
                        program->devices[i].host_only ? ", host only" : "");
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        char bytes[32];
        berth_format_bytes(pool->size_bytes, bytes);
        berth_cli_print("memory on %s", program->devices[pool->device].name);
        if (strcmp(pool->scope, "global") != 0) berth_cli_print(", scope %s", pool->scope);
        berth_cli_print(": %s of %s\n", bytes, usages[pool->usage]);
    }
    berth_cli_print("target %s\n", program->target_json);
}

static const berth_program *sum_of(const berth_program *program, berth_program *sum) {
    *sum = *program;
    for (uint32_t i = 0; program->vm && i < program->vm->variant_count; ++i) {
        const berth_program *variant = program->vm->variants[i].program;
        sum->step_count += variant ? variant->step_count : 0;
        sum->kernel_count += variant ? variant->kernel_count : 0;
    }
    return sum;
}

static void print_ports(const char *what, const berth_vm_port *ports, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        berth_cli_print("%s %s %s\n", what, ports[i].name, ports[i].type);
}

// What a program of byte code has code for.
static void print_variants(const berth_vm_body *vm) {
    char shape[192];
    print_ports("input", vm->code->inputs, vm->code->input_count);
    print_ports("output", vm->code->outputs, vm->code->output_count);
    for (uint32_t i = 0; i < vm->variant_count; ++i) {
        const berth_vm_variant *variant = &vm->variants[i];
        const berth_vm_piece *piece = berth_vm_piece_at(vm->code, variant->piece);
        bool host = variant->piece >= vm->code->segment_count;
        berth_cli_print(
            "%s %c%u (%s) for", variant->program ? "code of" : "results of", host ? 'h' : 's',
            host ? variant->piece - vm->code->segment_count : variant->piece, piece->op);
        for (uint32_t k = 0; k < piece->input_count; ++k) {
            if (variant->inputs[k].dtype == BERTH_DTYPE_NONE) continue;
            berth_tensor_format_shape(&variant->inputs[k], shape);
            berth_cli_print(" %s%s", shape, variant->inputs[k].data ? " of one value" : "");
        }
        berth_cli_print("%s\n", piece->input_count ? "" : " any run");
    }
}

static void print_program(const berth_program *program) {
    berth_program sum;
    const berth_program *whole = program;
    program = sum_of(program, &sum);
    berth_cli_print("program of model %s, executor %s: %u steps, %u kernels\n", program->name,
                    program->executor, program->step_count, program->kernel_count);
    if (whole->vm) print_variants(whole->vm);
    print_ends("input", program, program->inputs, program->input_count);
    print_ends("output", program, program->outputs, program->output_count);
    for (uint32_t i = 0; i < program->executable_count; ++i)
        if (*program->executables[i].external)
            berth_cli_print("external code %s: not made by the compiler, runs with your rights\n",
                            program->executables[i].external);
    for (uint32_t i = 0; i < program->attachment_count; ++i)
        berth_cli_print("attachment %s: %llu bytes\n", program->attachments[i].name,
                        (unsigned long long)program->attachments[i].size_bytes);
    print_plan(program);
    for (uint32_t i = 0; i < program->fallback_count; ++i) {
        const berth_program *fallback = program->fallbacks[i];
        berth_cli_print("fallback %u: %u steps, %u kernels\n", i + 1, fallback->step_count,
                        fallback->kernel_count);
        print_plan(fallback);
    }
}

static json_t *ends_json(const berth_program *program, const berth_program_io *ends,
                         uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; ++i) {
        const berth_program_tensor *tensor = &program->tensors[ends[i].tensor];
        json_t *shape = json_array();
        for (int d = 0; d < tensor->rank; ++d)
            json_array_append_new(shape, json_integer(tensor->dims[d]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o}", "name",
                                              berth_cli_json_text(ends[i].name), "dtype",
                                              berth_dtype_name(tensor->dtype), "shape", shape));
    }
    return list;
}

static json_t *pools_json(const berth_program *program) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < program->pool_count; ++i) {
        const berth_program_pool *pool = &program->pools[i];
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:s, s:I}", "device",
                            berth_cli_json_text(program->devices[pool->device].name), "scope",
                            berth_cli_json_text(pool->scope), "usage", usages[pool->usage],
                            "size_bytes", (json_int_t)pool->size_bytes));
    }
    return list;
}

static json_t *external_json(const berth_program *program) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < program->executable_count; ++i)
        if (*program->executables[i].external)
            json_array_append_new(list, berth_cli_json_text(program->executables[i].external));
    return list;
}

static json_t *attachments_json(const berth_program *program) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < program->attachment_count; ++i)
        json_array_append_new(
            list, json_pack("{s:o, s:I}", "name", berth_cli_json_text(program->attachments[i].name),
                            "size_bytes", (json_int_t)program->attachments[i].size_bytes));
    return list;
}

static json_t *fallbacks_json(const berth_program *program) {
    json_t *list = json_array();
    json_error_t error;
    for (uint32_t i = 0; i < program->fallback_count; ++i) {
        const berth_program *fallback = program->fallbacks[i];
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:o, s:o}", "steps", (int)fallback->step_count, "kernels",
                            (int)fallback->kernel_count, "memory", pools_json(fallback), "target",
                            json_loads(fallback->target_json, 0, &error)));
    }
    return list;
}

static json_t *ports_json(const berth_vm_port *ports, uint32_t count) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; ++i) {
        json_t *shape = ports[i].rank < 0 ? json_null() : json_array();
        for (int d = 0; d < ports[i].rank; ++d)
            json_array_append_new(shape, ports[i].dims[d] < 0 ? json_null()
                                                              : json_integer(ports[i].dims[d]));
        json_array_append_new(list, json_pack("{s:o, s:s, s:o, s:o}", "name",
                                              berth_cli_json_text(ports[i].name), "dtype",
                                              berth_dtype_name(ports[i].dtype), "shape", shape,
                                              "type", berth_cli_json_text(ports[i].type)));
    }
    return list;
}

static json_t *program_json(const berth_program *program) {
    json_error_t error;
    berth_program sum;
    const berth_vm_program *code = program->vm ? program->vm->code : NULL;
    program = sum_of(program, &sum);
    json_t *inputs = code ? ports_json(code->inputs, code->input_count)
                          : ends_json(program, program->inputs, program->input_count);
    json_t *outputs = code ? ports_json(code->outputs, code->output_count)
                           : ends_json(program, program->outputs, program->output_count);
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "program",
                     berth_cli_json_text(program->name), "executor",
                     berth_cli_json_text(program->executor), "inputs", inputs, "outputs", outputs,
                     "steps", (int)program->step_count, "kernels", (int)program->kernel_count,
                     "memory", pools_json(program), "external_code", external_json(program),
                     "attachments", attachments_json(program), "fallbacks", fallbacks_json(program),
                     "target", json_loads(program->target_json, 0, &error));
}

static berth_status extract_file(berth_arena *arena, const char *folder, const char *name,
                                 const void *data, uint64_t size_bytes) {
    char *path = berth_arena_printf(arena, "%s/%s", folder, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    BERTH_TRY(berth_file_make_folders(path));
    *slash = '/';
    return berth_file_write(path, data, (size_t)size_bytes);
}

// The verifier has seen that names of attachments stay in a folder.
static berth_status extract(berth_arena *arena, const berth_program *program, const char *folder) {
    for (uint32_t i = 0; i < program->executable_count; ++i) {
        const berth_executable_image *image = &program->executables[i];
        bool cuda = strcmp(image->format, BERTH_FORMAT_CUDA_C) == 0;
        bool text = cuda || strcmp(image->format, BERTH_FORMAT_OPENCL_C) == 0;
        bool spirv = strcmp(image->format, BERTH_FORMAT_SPIRV) == 0;
        uint64_t size_bytes = image->size_bytes;
        if (text && size_bytes > 0) size_bytes--;  // the NUL at its end
        BERTH_TRY(extract_file(arena, folder,
                               berth_arena_printf(arena, "image/%u.%s", i,
                                                  cuda    ? "cu"
                                                  : text  ? "cl"
                                                  : spirv ? "spirv"
                                                          : "so"),
                               image->data, size_bytes));
    }
    for (uint32_t i = 0; i < program->attachment_count; ++i)
        BERTH_TRY(extract_file(arena, folder, program->attachments[i].name,
                               program->attachments[i].data, program->attachments[i].size_bytes));
    return BERTH_OK;
}

static berth_status inspect_program(berth_cli_model *cli, const char *folder, bool json) {
    const berth_program *program = NULL;
    berth_cli_refuse_with_program(cli);
    BERTH_TRY(berth_program_file_check(berth_allocator_system(), cli->model));
    BERTH_TRY(berth_program_read(cli->arena, cli->model, &program));
    if (folder) BERTH_TRY(extract(cli->arena, program, folder));
    if (json)
        berth_cli_print_json(program_json(program));
    else
        print_program(program);
    return BERTH_OK;
}

static void print_lines(const char *text) {
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        berth_cli_print("%.*s\n", (int)(end - text), text);
}

static berth_status inspect_bytecode(berth_cli_model *cli, bool json) {
    berth_model_options model;
    berth_vm_session *session = NULL;
    BERTH_TRY(berth_cli_model_options(cli, false, &model));
    BERTH_TRY(berth_vm_session_open(cli->model, &model, 1, &session));
    berth_strbuf text = berth_strbuf_make(cli->arena);
    berth_vm_print(berth_vm_session_program(session), &text);
    if (json)
        berth_cli_print_json(
            json_pack("{s:o}", "bytecode", berth_cli_json_text(berth_strbuf_text(&text))));
    else
        print_lines(berth_strbuf_text(&text));
    berth_vm_session_close(session);
    return BERTH_OK;
}

static berth_status inspect(void *state) {
    inspect_command *command = state;
    berth_cli_model *cli = &command->cli;
    bool json = berth_cli_wants_json(cli);
    if (command->bytecode) return inspect_bytecode(cli, json);
    if (berth_program_is_file(cli->model)) return inspect_program(cli, command->extract, json);
    if (command->extract)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is no program: `berth build` makes one whose code "
                                 "--extract can write",
                                 cli->model);
    return inspect_model(cli, json);
}

int berth_cmd_inspect(int argc, char **argv) {
    static const struct argp_child children[] = {{&berth_cli_file_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL",
                 "Shows inputs, outputs, shapes, types, operators, weights and nodes of MODEL (an "
                 "ONNX file), or what is in a program made by `berth build`.",
                 children, NULL, NULL},
        .run = inspect};
    inspect_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
