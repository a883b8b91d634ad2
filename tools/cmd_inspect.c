// berth inspect: what is in a model, or in a program.
#include <berth/inspect.h>
#include <berth/model.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/file.h"
#include "base/str.h"
#include "tools/cli_compiler.h"
#include "tools/commands.h"

typedef struct inspect_command {
    berth_cli_model cli;
    const char *extract;
    bool bytecode;
    berth_compiler *compiler;
    berth_model_info *model;
    berth_program *program;
    berth_contents **contents;  // [1 + fallbacks] NULL-terminated
    berth_dynamic *dynamic;
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
    case ARGP_KEY_INIT: state->child_inputs[0] = state->child_inputs[1] = &command->cli; return 0;
    case key_extract: command->extract = arg; return 0;
    case key_bytecode: command->bytecode = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

typedef struct op_count {
    const char *op;
    uint32_t count;
} op_count;

typedef struct op_counts {
    op_count *ops;
    uint32_t count;
} op_counts;

static int by_count(const void *a, const void *b) {
    const op_count *x = a;
    const op_count *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->op, y->op);
}

static op_counts count_operators(const berth_model_info *model, berth_arena *arena) {
    const uint32_t node_count = berth_model_info_node_count(model);
    op_counts counts = {.ops = berth_arena_new_array(arena, op_count, node_count + 1)};
    for (uint32_t i = 0; i < node_count; ++i) {
        const char *op = berth_model_info_node(model, i)->op;
        uint32_t at = 0;
        while (at < counts.count && strcmp(counts.ops[at].op, op) != 0) at++;
        if (at == counts.count) counts.ops[counts.count++].op = op;
        counts.ops[at].count++;
    }
    if (counts.count) qsort(counts.ops, counts.count, sizeof(*counts.ops), by_count);
    return counts;
}

static void print_model(const berth_model_info *model, berth_arena *arena) {
    const berth_model_facts *facts = berth_model_info_facts(model);
    const op_counts counts = count_operators(model, arena);
    berth_cli_print("model %s\n", facts->name);
    for (uint32_t i = 0; i < berth_model_info_input_count(model); ++i)
        berth_cli_print("input %s %s\n", berth_model_info_input(model, i)->name,
                        berth_model_info_input(model, i)->type);
    for (uint32_t i = 0; i < berth_model_info_overridable_count(model); ++i)
        berth_cli_print("input %s %s (may be given: the model has a value)\n",
                        berth_model_info_overridable(model, i)->name,
                        berth_model_info_overridable(model, i)->type);
    for (uint32_t i = 0; i < berth_model_info_output_count(model); ++i)
        berth_cli_print("output %s %s\n", berth_model_info_output(model, i)->name,
                        berth_model_info_output(model, i)->type);
    char bytes[32];
    berth_format_bytes(facts->weight_bytes, bytes);
    berth_cli_print("weights %s in %u tensors\n", bytes, facts->weight_count);
    berth_cli_print("operators %u:", berth_model_info_node_count(model));
    for (uint32_t i = 0; i < counts.count; ++i)
        berth_cli_print("%s %s %u", i ? "," : "", counts.ops[i].op, counts.ops[i].count);
    berth_cli_print("\n");
    for (uint32_t i = 0; i < berth_model_info_external_count(model); ++i)
        berth_cli_print("external code @%s, language \"%s\": runs with your rights\n",
                        berth_model_info_external(model, i)->name,
                        berth_model_info_external(model, i)->language);
    for (uint32_t i = 0; i < berth_model_info_node_count(model); ++i)
        berth_cli_print("node %-24s %s\n", berth_model_info_node(model, i)->op,
                        berth_model_info_node(model, i)->name);
}

static json_t *value_json(const berth_value_info *value) {
    json_t *shape = json_array();
    for (int d = 0; d < value->rank; ++d)
        json_array_append_new(shape, value->dims[d].extent >= 0
                                         ? json_integer(value->dims[d].extent)
                                         : berth_cli_json_text(value->dims[d].name));
    return json_pack("{s:o, s:s, s:o}", "name", berth_cli_json_text(value->name), "dtype",
                     berth_dtype_name(value->dtype), "shape", shape);
}

static json_t *nodes_json(const berth_model_info *model) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < berth_model_info_node_count(model); ++i) {
        const berth_node_info *node = berth_model_info_node(model, i);
        json_array_append_new(list, json_pack("{s:o, s:o}", "name", berth_cli_json_text(node->name),
                                              "op", berth_cli_json_text(node->op)));
    }
    return list;
}

static json_t *model_json(const berth_model_info *model, berth_arena *arena) {
    const op_counts counts = count_operators(model, arena);
    json_t *ops = json_object(), *inputs = json_array(), *outputs = json_array();
    json_t *overridable = json_array();
    for (uint32_t i = 0; i < counts.count; ++i)
        json_object_set_new(ops, counts.ops[i].op, json_integer(counts.ops[i].count));
    for (uint32_t i = 0; i < berth_model_info_input_count(model); ++i)
        json_array_append_new(inputs, value_json(berth_model_info_input(model, i)));
    for (uint32_t i = 0; i < berth_model_info_overridable_count(model); ++i)
        json_array_append_new(overridable, value_json(berth_model_info_overridable(model, i)));
    for (uint32_t i = 0; i < berth_model_info_output_count(model); ++i)
        json_array_append_new(outputs, value_json(berth_model_info_output(model, i)));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:i, s:o}", "model",
                     berth_cli_json_text(berth_model_info_facts(model)->name), "inputs", inputs,
                     "overridable", overridable, "outputs", outputs, "operators", ops,
                     "weight_bytes", (json_int_t)berth_model_info_facts(model)->weight_bytes,
                     "node_count", (int)berth_model_info_node_count(model), "nodes",
                     nodes_json(model));
}

static berth_status inspect_model(inspect_command *command, bool json) {
    berth_cli_model *cli = &command->cli;
    BERTH_TRY(berth_cli_compiler(cli, false, &command->compiler));
    BERTH_TRY(berth_compiler_read_model(command->compiler, cli->model, &command->model));
    if (json)
        berth_cli_print_json(model_json(command->model, cli->arena));
    else
        print_model(command->model, cli->arena);
    return BERTH_OK;
}

// ---- program files ------------------------------------------------------------------------------

static const char *usage_text(const char *usage) {
    if (strcmp(usage, "io") == 0) return "inputs and outputs";
    return strcmp(usage, "store") == 0 ? "a store of constants" : usage;
}

// Where a plan runs, and in which memory.
static void print_plan(const berth_program *program, const berth_contents *contents) {
    for (uint32_t i = 0; i < berth_contents_device_count(contents); ++i)
        berth_cli_print("device %s%s\n", berth_contents_device(contents, i)->name,
                        berth_contents_device(contents, i)->is_host_only ? ", host only" : "");
    for (uint32_t i = 0; i < berth_contents_pool_count(contents); ++i) {
        const berth_content_pool *pool = berth_contents_pool(contents, i);
        char bytes[32];
        berth_format_bytes(pool->size_bytes, bytes);
        berth_cli_print("memory on %s", pool->device);
        if (strcmp(pool->scope, "global") != 0) berth_cli_print(", scope %s", pool->scope);
        berth_cli_print(": %s of %s\n", bytes, usage_text(pool->usage));
    }
    berth_cli_print("target %s\n", berth_program_target(program));
}

// What a program of byte code has code for.
static void print_variants(const berth_contents *contents) {
    for (uint32_t i = 0; i < berth_contents_variant_count(contents); ++i) {
        const berth_content_variant *variant = berth_contents_variant(contents, i);
        berth_cli_print("variant %u: %s %s (%s) for", i,
                        variant->is_results ? "results of" : "code of", variant->piece,
                        variant->op);
        for (uint32_t k = 0; k < variant->input_count; ++k)
            berth_cli_print(" %s", variant->inputs[k]);
        berth_cli_print("%s%s%s\n", variant->is_any_run ? " any run" : "",
                        variant->family ? "; " : "", variant->family ? variant->family : "");
    }
}

static void print_ports(const berth_program *program, const berth_contents *contents) {
    for (uint32_t i = 0; i < berth_program_input_count(program); ++i)
        berth_cli_print("input %s %s\n", berth_program_input(program, i)->name,
                        berth_contents_input_type(contents, i));
    for (uint32_t i = 0; i < berth_program_output_count(program); ++i)
        berth_cli_print("output %s %s\n", berth_program_output(program, i)->name,
                        berth_contents_output_type(contents, i));
}

static berth_status print_program(const inspect_command *command) {
    const berth_program *program = command->program;
    const berth_contents *contents = command->contents[0];
    berth_program_facts facts;
    BERTH_TRY(berth_program_get_facts(program, &facts, sizeof(facts)));
    berth_cli_print("program of model %s, executor %s: %u steps, %u kernels\n",
                    berth_program_name(program), facts.executor, facts.step_count,
                    facts.kernel_count);
    print_ports(program, contents);
    print_variants(contents);
    for (uint32_t i = 0; i < berth_contents_external_count(contents); ++i)
        berth_cli_print("external code %s: not made by the compiler, runs with your rights\n",
                        berth_contents_external(contents, i));
    for (uint32_t i = 0; i < berth_contents_file_count(contents); ++i)
        if (berth_contents_file(contents, i)->is_attachment)
            berth_cli_print("attachment %s: %llu bytes\n", berth_contents_file(contents, i)->name,
                            (unsigned long long)berth_contents_file(contents, i)->size_bytes);
    print_plan(program, contents);
    for (uint32_t i = 0; i < berth_program_fallback_count(program); ++i) {
        const berth_program *fallback = berth_program_fallback(program, i);
        BERTH_TRY(berth_program_get_facts(fallback, &facts, sizeof(facts)));
        berth_cli_print("fallback %u: %u steps, %u kernels\n", i + 1, facts.step_count,
                        facts.kernel_count);
        print_plan(fallback, command->contents[i + 1]);
    }
    return BERTH_OK;
}

// `type` is in words, for programs of byte code, whose ports may be no tensors.
static json_t *port_json(const berth_port *port, const char *type) {
    json_t *shape = port->type.rank < 0 ? json_null() : json_array();
    for (int d = 0; d < port->type.rank; ++d)
        json_array_append_new(shape, port->type.dims[d] < 0 ? json_null()
                                                            : json_integer(port->type.dims[d]));
    json_t *json = json_pack("{s:o, s:s, s:o}", "name", berth_cli_json_text(port->name), "dtype",
                             berth_dtype_name(port->type.dtype), "shape", shape);
    if (type) json_object_set_new(json, "type", berth_cli_json_text(type));
    return json;
}

static json_t *pools_json(const berth_contents *contents) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < berth_contents_pool_count(contents); ++i) {
        const berth_content_pool *pool = berth_contents_pool(contents, i);
        json_array_append_new(
            list, json_pack("{s:o, s:o, s:s, s:I}", "device", berth_cli_json_text(pool->device),
                            "scope", berth_cli_json_text(pool->scope), "usage",
                            usage_text(pool->usage), "size_bytes", (json_int_t)pool->size_bytes));
    }
    return list;
}

static json_t *external_json(const berth_contents *contents) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < berth_contents_external_count(contents); ++i)
        json_array_append_new(list, berth_cli_json_text(berth_contents_external(contents, i)));
    return list;
}

static json_t *attachments_json(const berth_contents *contents) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < berth_contents_file_count(contents); ++i) {
        const berth_content_file *file = berth_contents_file(contents, i);
        if (file->is_attachment)
            json_array_append_new(list,
                                  json_pack("{s:o, s:I}", "name", berth_cli_json_text(file->name),
                                            "bytes", (json_int_t)file->size_bytes));
    }
    return list;
}

static berth_status fallbacks_json(const inspect_command *command, json_t *list) {
    json_error_t error;
    for (uint32_t i = 0; i < berth_program_fallback_count(command->program); ++i) {
        const berth_program *fallback = berth_program_fallback(command->program, i);
        berth_program_facts facts;
        BERTH_TRY(berth_program_get_facts(fallback, &facts, sizeof(facts)));
        json_array_append_new(
            list, json_pack("{s:i, s:i, s:o, s:o}", "steps", (int)facts.step_count, "kernels",
                            (int)facts.kernel_count, "memory", pools_json(command->contents[i + 1]),
                            "target", json_loads(berth_program_target(fallback), 0, &error)));
    }
    return BERTH_OK;
}

static json_t *program_json(const inspect_command *command, const berth_program_facts *facts,
                            json_t *fallbacks) {
    const berth_program *program = command->program;
    const berth_contents *contents = command->contents[0];
    const bool code = strcmp(facts->executor, "vm") == 0;
    json_t *inputs = json_array(), *outputs = json_array();
    json_error_t error;
    for (uint32_t i = 0; i < berth_program_input_count(program); ++i)
        json_array_append_new(inputs,
                              port_json(berth_program_input(program, i),
                                        code ? berth_contents_input_type(contents, i) : NULL));
    for (uint32_t i = 0; i < berth_program_output_count(program); ++i)
        json_array_append_new(outputs,
                              port_json(berth_program_output(program, i),
                                        code ? berth_contents_output_type(contents, i) : NULL));
    return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:o, s:O, s:o}", "program",
                     berth_cli_json_text(berth_program_name(program)), "executor",
                     berth_cli_json_text(facts->executor), "inputs", inputs, "outputs", outputs,
                     "steps", (int)facts->step_count, "kernels", (int)facts->kernel_count, "memory",
                     pools_json(contents), "external_code", external_json(contents), "attachments",
                     attachments_json(contents), "fallbacks", fallbacks, "target",
                     json_loads(berth_program_target(program), 0, &error));
}

static berth_status print_program_json(const inspect_command *command) {
    berth_program_facts facts;
    BERTH_TRY(berth_program_get_facts(command->program, &facts, sizeof(facts)));
    json_t *fallbacks = json_array();
    berth_status status = fallbacks_json(command, fallbacks);
    if (!status) berth_cli_print_json(program_json(command, &facts, fallbacks));
    json_decref(fallbacks);
    return status;
}

static berth_status extract_file(berth_arena *arena, const char *folder,
                                 const berth_content_file *file) {
    char *path = berth_arena_printf(arena, "%s/%s", folder, file->name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    BERTH_TRY(berth_file_make_folders(path));
    *slash = '/';
    return berth_file_write(path, file->data, (size_t)file->size_bytes);
}

static berth_status read_contents(inspect_command *command) {
    const uint32_t count = berth_program_fallback_count(command->program);
    command->contents = berth_arena_new_array(command->cli.arena, berth_contents *, count + 2);
    BERTH_TRY(berth_contents_read(command->program, &command->contents[0]));
    for (uint32_t i = 0; i < count; ++i)
        BERTH_TRY(berth_contents_read(berth_program_fallback(command->program, i),
                                      &command->contents[i + 1]));
    return BERTH_OK;
}

static berth_status inspect_program(inspect_command *command, bool json) {
    berth_cli_model *cli = &command->cli;
    berth_cli_refuse_with_program(cli);
    BERTH_TRY(berth_program_open_limited(cli->model, NULL, cli->limits, &command->program));
    BERTH_TRY(read_contents(command));
    const berth_contents *contents = command->contents[0];
    for (uint32_t i = 0; command->extract && i < berth_contents_file_count(contents); ++i)
        BERTH_TRY(extract_file(cli->arena, command->extract, berth_contents_file(contents, i)));
    return json ? print_program_json(command) : print_program(command);
}

static void print_lines(const char *text) {
    for (const char *end; (end = strchr(text, '\n')); text = end + 1)
        berth_cli_print("%.*s\n", (int)(end - text), text);
}

static berth_status inspect_bytecode(inspect_command *command, bool json) {
    berth_cli_model *cli = &command->cli;
    const char *text = NULL;
    BERTH_TRY(berth_cli_compiler(cli, false, &command->compiler));
    BERTH_TRY(
        berth_compiler_load_dynamic_file(command->compiler, cli->model, 1, &command->dynamic));
    BERTH_TRY(berth_dynamic_code(command->dynamic, &text));
    if (json)
        berth_cli_print_json(json_pack("{s:o}", "bytecode", berth_cli_json_text(text)));
    else
        print_lines(text);
    return BERTH_OK;
}

static berth_status inspect(void *state) {
    inspect_command *command = state;
    berth_cli_model *cli = &command->cli;
    bool json = berth_cli_wants_json(cli);
    if (command->bytecode) return inspect_bytecode(command, json);
    if (berth_program_file_is(cli->model)) return inspect_program(command, json);
    if (command->extract)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "\"%s\" is no program: `berth build` makes one whose code "
                                 "--extract can write",
                                 cli->model);
    return inspect_model(command, json);
}

static void end(void *state) {
    inspect_command *command = state;
    for (uint32_t i = 0; command->contents && command->contents[i]; ++i)
        berth_contents_free(command->contents[i]);
    berth_dynamic_destroy(command->dynamic);
    berth_program_release(command->program);
    berth_model_info_free(command->model);
    berth_compiler_destroy(command->compiler);
}

int berth_cmd_inspect(int argc, char **argv) {
    static const struct argp_child children[] = {
        {&berth_cli_file_argp, 0, NULL, 0}, {&berth_cli_format_argp, 0, NULL, 0}, {0}};
    static const berth_cli_command command = {
        .argp = {options, parse, "MODEL",
                 "Shows inputs, outputs, shapes, types, operators, weights and nodes of MODEL (an "
                 "ONNX file), or what is in a program made by `berth build`.",
                 children, NULL, NULL},
        .run = inspect,
        .end = end};
    inspect_command state = {0};
    return berth_cli_run(&command, &state, argc, argv);
}
