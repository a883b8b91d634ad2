#include "tests/lower/op_case.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/package/in_place.h"
#include "compiler/schedule/schedule.h"
#include "ir/eval.h"
#include "ir/infer.h"
#include "ir/tensor/interpreter.h"
#include "tests/lower/spirv_check.h"

typedef struct operand {
    bool absent;
    bool constant;
    bool valued;
    berth_tensor tensor;
    char layout[16];
} operand;

typedef struct parsed {
    berth_op_kind kind;
    operand operands[10];
    uint32_t operand_count;
    char result_layouts[4][16];
    bool result_unused[4];
    uint32_t result_count;
} parsed;

static const char *skip_space(const char *s) {
    while (*s == ' ') s++;
    return s;
}

static const char *parse_values(const char *s, berth_tensor *tensor) {
    int64_t count = berth_tensor_element_count(tensor);
    for (int64_t i = 0; i < count; ++i) {
        char *end = NULL;
        double value = strtod(s, &end);
        if (berth_dtype_is_float(tensor->dtype))
            berth_tensor_set_f64(tensor, i, value);
        else
            berth_tensor_set_i64(tensor, i, (int64_t)value);
        s = *end == ',' ? end + 1 : end;
    }
    return s;
}

static const char *parse_layout(const char *s, char out[16]) {
    size_t n = 0;
    if (*s != '{') return s;
    for (++s; *s && *s != '}' && n < 15; ++s) out[n++] = *s;
    out[n] = 0;
    return *s == '}' ? s + 1 : s;
}

static const char *parse_operand(const char *s, operand *o, berth_arena *arena) {
    char name[8] = {0};
    size_t n = 0;
    int rank = 0;
    int64_t dims[BERTH_MAX_RANK] = {0};
    if (*s == '-' && (s[1] == ' ' || !s[1])) {
        o->absent = true;
        return s + 1;
    }
    while (isalnum((unsigned char)*s) && n < 7) name[n++] = *s++;
    if (*s == '[') {
        for (++s; *s != ']';) {
            char *end = NULL;
            dims[rank++] = strtoll(s, &end, 10);
            s = *end == ',' ? end + 1 : end;
        }
        s++;
    }
    o->tensor = berth_tensor_create(arena, berth_dtype_from_name(name), rank, dims);
    s = parse_layout(s, o->layout);
    if (*s == '!') {
        o->constant = true;
        berth_tensor_fill_random(&o->tensor, 3);
        return s + 1;
    }
    if (*s == '=' || *s == '~') {
        o->constant = *s == '=';
        o->valued = true;
        s = parse_values(s + 1, &o->tensor);
    }
    return s;
}

static void parse_attribute(const char *text, berth_module *module, berth_attrs *attrs) {
    const char *equals = strchr(text, '=');
    const char *value = equals + 1;
    char *name = berth_arena_strndup(module->arena, text, (size_t)(equals - text));
    bool number = isdigit((unsigned char)*value) || *value == '-' || *value == '.';
    if (!number && berth_dtype_from_name(value)) {
        berth_attrs_set(
            module, attrs, name,
            (berth_attr){.kind = BERTH_ATTR_DTYPE, .dtype = berth_dtype_from_name(value)});
        return;
    }
    if (!number) {
        berth_attrs_set_string(module, attrs, name, value[0] == '\'' ? value + 1 : value);
    } else if (strchr(value, ',')) {
        int64_t values[32];
        uint32_t count = 0;
        for (const char *s = value; *s && count < 32;) {
            char *end = NULL;
            values[count++] = strtoll(s, &end, 10);
            s = *end == ',' ? end + 1 : end;
        }
        berth_attrs_set_ints(module, attrs, name, values, count);
    } else if (strchr(value, '.') || strchr(value, 'e')) {
        berth_attrs_set_float(module, attrs, name, strtod(value, NULL));
    } else {
        berth_attrs_set_int(module, attrs, name, strtoll(value, NULL, 10));
    }
}

static void parse_results(const char *s, parsed *p) {
    for (s = skip_space(s); *s; s = skip_space(s)) {
        uint32_t i = p->result_count++;
        if (*s == '-') p->result_unused[i] = true;
        s = *s == '{' ? parse_layout(s, p->result_layouts[i]) : s + 1;
    }
}

static berth_status parse(const char *text, berth_module *module, parsed *p, berth_attrs *attrs) {
    char *copy = berth_arena_strdup(module->arena, text);
    char *fields[4] = {copy, NULL, NULL, NULL};
    memset(p, 0, sizeof(*p));
    int count = 1;
    for (char *s = copy; *s && count < 4; ++s)
        if (*s == '|') {
            *s = 0;
            fields[count++] = s + 1;
        }
    char *space = strchr(fields[0], ' ');
    if (space) *space = 0;
    if (!berth_op_kind_from_name(fields[0], &p->kind))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "no operation \"%s\"", fields[0]);
    for (const char *s = skip_space(fields[1] ? fields[1] : ""); *s; s = skip_space(s))
        s = parse_operand(s, &p->operands[p->operand_count++], module->arena);
    char *rest = NULL;
    for (char *word = fields[2] ? strtok_r(fields[2], " ", &rest) : NULL; word;
         word = strtok_r(NULL, " ", &rest))
        parse_attribute(word, module, attrs);
    if (fields[3]) parse_results(fields[3], p);
    if (p->result_count == 0) p->result_count = 1;
    return BERTH_OK;
}

static berth_type_id with_layout(berth_module *module, berth_type_id id, const char *layout) {
    berth_type type = *berth_type_get(module, id);
    if (!*layout) return id;
    return berth_type_tensor_layout(module, type.dtype, type.rank, type.dims,
                                    berth_module_intern(module, layout));
}

static berth_status build(const char *text, berth_module *module, parsed *p,
                          berth_func_id *out_function) {
    berth_attrs attrs = {0};
    berth_value_id inputs[10];
    berth_value_id params[10];
    uint32_t param_count = 0;
    BERTH_TRY(parse(text, module, p, &attrs));
    berth_loc_id loc = berth_loc_text(module, "case", 1, 1);
    berth_func_id f = berth_graph_create(module, "main", loc);
    for (uint32_t i = 0; i < p->operand_count; ++i) {
        operand *o = &p->operands[i];
        inputs[i] = BERTH_NONE;
        if (o->absent) continue;
        berth_type_id type =
            berth_type_tensor(module, o->tensor.dtype, o->tensor.rank, o->tensor.dims);
        if (o->constant)
            inputs[i] = berth_graph_constant(module, f, 0, &o->tensor, loc);
        else
            inputs[i] = params[param_count++] = berth_graph_add_param(module, f, "", type);
    }
    berth_op_id op =
        berth_graph_add_op(module, f, 0, p->kind, inputs, p->operand_count, p->result_count, loc);
    berth_graph *graph = berth_graph_get(module, f);
    graph->ops.data[op].attrs = attrs;
    BERTH_TRY(berth_infer_op(module, f, op));
    for (uint32_t i = 0; i < p->operand_count; ++i)
        if (inputs[i] != BERTH_NONE)
            graph->values.data[inputs[i]].type =
                with_layout(module, graph->values.data[inputs[i]].type, p->operands[i].layout);
    berth_value_id results[4];
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->result_count; ++i) {
        berth_value *value = &graph->values.data[graph->ops.data[op].outputs[i]];
        value->type = with_layout(module, value->type, p->result_layouts[i]);
        if (!p->result_unused[i]) results[count++] = graph->ops.data[op].outputs[i];
    }
    berth_graph_set_results(module, f, results, count);
    *out_function = f;
    return BERTH_OK;
}

berth_status op_case_build(const char *text, berth_module *module, berth_func_id *out_function) {
    parsed p;
    return build(text, module, &p, out_function);
}

// ---- comparison ---------------------------------------------------------------------------------

static void *pack(const berth_module *module, berth_type_id id, const berth_tensor *tensor,
                  berth_arena *arena) {
    const berth_type *type = berth_type_get(module, id);
    berth_layout layout;
    berth_status status =
        berth_layout_parse(berth_module_str(module, type->layout), type->rank, &layout);
    berth_status_ignore(status);
    size_t count = (size_t)berth_layout_element_count(&layout, type->dims);
    void *physical = berth_arena_alloc(arena, count * berth_dtype_size_bytes(type->dtype) + 1);
    if (tensor)
        berth_layout_pack(&layout, tensor, physical);
    else
        memset(physical, 0xff, count * berth_dtype_size_bytes(type->dtype));
    return physical;
}

// What lies in `physical`, and whether its padding is zero (packing the logical part again gives
// the same bytes).
static const char *unpack(const berth_module *module, berth_type_id id, void *physical,
                          berth_tensor *out, berth_arena *arena) {
    const berth_type *type = berth_type_get(module, id);
    berth_layout layout;
    berth_status_ignore(
        berth_layout_parse(berth_module_str(module, type->layout), type->rank, &layout));
    *out = berth_tensor_create(arena, type->dtype, type->rank, type->dims);
    berth_layout_unpack(&layout, physical, out);
    size_t bytes = (size_t)berth_layout_element_count(&layout, type->dims) *
                   berth_dtype_size_bytes(type->dtype);
    void *again = pack(module, id, out, arena);
    return memcmp(again, physical, bytes) == 0 ? NULL : "the padding is not zero";
}

static const char *differ(const berth_tensor *expected, const berth_tensor *got, uint32_t result,
                          double tolerance, berth_arena *arena) {
    char a[192];
    char b[192];
    berth_tensor_format_shape(expected, a);
    berth_tensor_format_shape(got, b);
    if (strcmp(a, b) != 0)
        return berth_arena_printf(arena, "result %u: expected %s, got %s", result, a, b);
    for (int64_t i = 0; i < berth_tensor_element_count(expected); ++i) {
        if (!berth_dtype_is_float(expected->dtype)) {
            int64_t x = berth_tensor_get_i64(expected, i);
            int64_t y = berth_tensor_get_i64(got, i);
            if (x != y)
                return berth_arena_printf(arena, "result %u[%lld]: expected %lld, got %lld", result,
                                          (long long)i, (long long)x, (long long)y);
            continue;
        }
        double x = berth_tensor_get_f64(expected, i);
        double y = berth_tensor_get_f64(got, i);
        bool same = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance * (1 + fabs(x));
        if (!same)
            return berth_arena_printf(arena, "result %u[%lld]: expected %.9g, got %.9g", result,
                                      (long long)i, x, y);
    }
    return NULL;
}

static double tolerance_of(berth_dtype dtype, double wanted) {
    if (wanted == 0) return 0;
    if (dtype == BERTH_DTYPE_F64) return 1e-12 > wanted ? 1e-12 : wanted;
    if (dtype == BERTH_DTYPE_F16) return 4e-3;
    return dtype == BERTH_DTYPE_BF16 ? 3e-2 : wanted;
}

static const char *message_of(berth_status status, const char *what, berth_arena *arena) {
    const char *text = berth_arena_printf(arena, "%s: %s", what, berth_status_message(status));
    berth_status_ignore(status);
    return text;
}

const char *op_case_differ(const berth_tensor *expected, const berth_tensor *got, uint32_t result,
                           double tolerance, berth_arena *arena) {
    return differ(expected, got, result, tolerance_of(got->dtype, tolerance), arena);
}

// Runs the operations of the function one after the other.
static berth_status evaluate(const berth_module *module, berth_func_id function,
                             const berth_tensor *inputs, berth_tensor *out_results,
                             berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, function);
    const berth_region *root = &graph->regions.data[0];
    berth_tensor *values = berth_arena_new_array(arena, berth_tensor, graph->values.count);
    for (uint32_t i = 0; i < root->params.count; ++i) values[root->params.data[i]] = inputs[i];
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &graph->ops.data[root->ops.data[i]];
        berth_tensor operands[32] = {0};
        berth_tensor results[8] = {0};
        for (uint32_t k = 0; k < op->input_count && k < 32; ++k)
            if (op->inputs[k] != BERTH_NONE) operands[k] = values[op->inputs[k]];
        BERTH_TRY(berth_eval_op(module, function, root->ops.data[i], operands, results, arena));
        for (uint32_t k = 0; k < op->output_count && k < 8; ++k)
            values[op->outputs[k]] = results[k];
    }
    for (uint32_t r = 0; r < root->results.count; ++r)
        out_results[r] = values[root->results.data[r]];
    return BERTH_OK;
}

typedef struct in_place_check {
    berth_module *module;
    berth_func_id function;
    const berth_tfn *fn;  // lowered, scheduled
    const berth_tensor *inputs;
    const berth_tensor *expected;
    uint32_t params;
    double tolerance;
} in_place_check;

// The function again with one result written over an operand; pairs in the last nest only, so that
// nothing reads the operand later.
static const char *run_in_place(const in_place_check *c, const berth_in_place *pair,
                                berth_arena *arena) {
    const berth_stmt_node *body = &c->fn->stmts.data[c->fn->body];
    uint32_t nests = body->kind == BERTH_STMT_SEQ ? body->count : 1;
    if (pair->nest + 1 != nests || pair->from >= c->params || pair->to < c->params ||
        pair->to >= c->fn->param_count)
        return NULL;
    const berth_region *root = &berth_graph_get(c->module, c->function)->regions.data[0];
    const berth_graph *graph = berth_graph_get(c->module, c->function);
    void **buffers = berth_arena_new_array(arena, void *, c->fn->param_count);
    for (uint32_t i = 0; i < c->params; ++i)
        buffers[i] =
            pack(c->module, graph->values.data[root->params.data[i]].type, &c->inputs[i], arena);
    for (uint32_t r = 0; r < root->results.count; ++r)
        buffers[c->params + r] =
            pack(c->module, graph->values.data[root->results.data[r]].type, NULL, arena);
    buffers[pair->to] = buffers[pair->from];
    berth_status status = berth_tfn_interpret(c->fn, buffers, arena);
    if (status) return message_of(status, "interpret in place", arena);
    uint32_t r = pair->to - c->params;
    berth_tensor got;
    const char *problem = unpack(c->module, graph->values.data[root->results.data[r]].type,
                                 buffers[pair->to], &got, arena);
    if (!problem)
        problem = differ(&c->expected[r], &got, r, tolerance_of(got.dtype, c->tolerance), arena);
    return problem
               ? berth_arena_printf(arena, "result %u over operand %u: %s", r, pair->from, problem)
               : NULL;
}

static op_case_runner runner;

void op_case_set_runner(op_case_runner wanted) {
    runner = wanted;
}

const char *compare_function(berth_module *module, berth_func_id function,
                             const berth_tensor *given, const berth_target *target, uint64_t seed,
                             double tolerance, berth_arena *arena) {
    const berth_graph *graph = berth_graph_get(module, function);
    uint32_t params = graph->regions.data[0].params.count;
    uint32_t results = graph->regions.data[0].results.count;
    berth_tensor *inputs = berth_arena_new_array(arena, berth_tensor, params + 1);
    berth_tensor *expected = berth_arena_new_array(arena, berth_tensor, results + 1);
    void **buffers = berth_arena_new_array(arena, void *, params + results + 1);
    for (uint32_t i = 0; i < params; ++i) {
        berth_type_id id = graph->values.data[graph->regions.data[0].params.data[i]].type;
        const berth_type *type = berth_type_get(module, id);
        inputs[i] = berth_tensor_create(arena, type->dtype, type->rank, type->dims);
        if (given && given[i].dtype)
            inputs[i] = given[i];
        else
            berth_tensor_fill_random(&inputs[i], seed + i);
        buffers[i] = pack(module, id, &inputs[i], arena);
    }
    berth_func_id lowered = BERTH_NONE;
    berth_status status = berth_lower_function(module, function, &lowered);
    if (status) return message_of(status, "lower", arena);
    const berth_in_place *pairs = NULL;
    uint32_t pair_count = berth_in_place_find(berth_tfn_get(module, lowered), &pairs);
    status = target ? berth_schedule_apply(berth_tfn_get(module, lowered), target) : NULL;
    if (status) return message_of(status, "schedule", arena);
    if (target && target->kind == BERTH_DEVICE_VULKAN) {
        const char *problem = spirv_check(berth_tfn_get(module, lowered), target, arena);
        if (problem) return problem;
    }
    graph = berth_graph_get(module, function);
    for (uint32_t r = 0; r < results; ++r)
        buffers[params + r] = pack(
            module, graph->values.data[graph->regions.data[0].results.data[r]].type, NULL, arena);
    status = evaluate(module, function, inputs, expected, arena);
    if (status) return message_of(status, "eval", arena);
    status = runner ? runner(berth_tfn_get(module, lowered), buffers, arena)
                    : berth_tfn_interpret(berth_tfn_get(module, lowered), buffers, arena);
    if (status) return message_of(status, runner ? "run" : "interpret", arena);
    for (uint32_t r = 0; r < results; ++r) {
        berth_tensor got;
        berth_type_id id = graph->values.data[graph->regions.data[0].results.data[r]].type;
        const char *problem = unpack(module, id, buffers[params + r], &got, arena);
        if (!problem)
            problem = differ(&expected[r], &got, r, tolerance_of(got.dtype, tolerance), arena);
        if (problem) return problem;
    }
    in_place_check check = {module, function, berth_tfn_get(module, lowered), inputs, expected,
                            params, tolerance};
    for (uint32_t i = 0; i < pair_count; ++i) {
        const char *problem = run_in_place(&check, &pairs[i], arena);
        if (problem) return problem;
    }
    return NULL;
}

berth_status op_case_build_given(const char *text, berth_module *module,
                                 berth_func_id *out_function, berth_tensor *out_given) {
    parsed p;
    uint32_t params = 0;
    BERTH_TRY(build(text, module, &p, out_function));
    for (uint32_t i = 0; i < p.operand_count; ++i) {
        if (p.operands[i].absent || p.operands[i].constant) continue;
        if (p.operands[i].valued) out_given[params] = p.operands[i].tensor;
        params++;
    }
    return BERTH_OK;
}

berth_status op_case_schedule(const char *text, const berth_target *target, berth_arena *arena,
                              const berth_tfn **out_fn) {
    berth_module *module = berth_module_create(arena, "case");
    berth_func_id function = BERTH_NONE, lowered = BERTH_NONE;
    berth_tensor given[10] = {0};
    BERTH_TRY(op_case_build_given(text, module, &function, given));
    BERTH_TRY(berth_lower_function(module, function, &lowered));
    const berth_in_place *pairs = NULL;
    (void)berth_in_place_find(berth_tfn_get(module, lowered), &pairs);  // marks what may alias
    BERTH_TRY(berth_schedule_apply(berth_tfn_get(module, lowered), target));
    *out_fn = berth_tfn_get(module, lowered);
    return BERTH_OK;
}

static const char *run_case(const char *text, const berth_target *target, double tolerance,
                            berth_arena *arena) {
    berth_module *module = berth_module_create(arena, "case");
    berth_func_id function = BERTH_NONE;
    berth_tensor given[10] = {0};
    berth_status status = op_case_build_given(text, module, &function, given);
    if (status) return message_of(status, "build", arena);
    const char *refusal = berth_lower_check(
        module, function, berth_graph_get(module, function)->ops.count - 1, arena);
    const char *problem = compare_function(module, function, given, target, 7, tolerance, arena);
    if (refusal && !problem)
        return berth_arena_printf(arena, "berth_lower_check refuses: %s", refusal);
    return problem;
}

typedef struct run_request {
    const char *text;
    const berth_target *target;
    double tolerance;
    berth_arena *arena;
    const char *problem;
} run_request;

static berth_status run_body(void *user) {
    run_request *r = user;
    r->problem = run_case(r->text, r->target, r->tolerance, r->arena);
    return BERTH_OK;
}

const char *op_case_compare(const char *text, const berth_target *target, double tolerance,
                            berth_arena *arena) {
    run_request r = {text, target, tolerance, arena, NULL};
    berth_status status = berth_arena_try(arena, run_body, &r);
    return status ? message_of(status, "memory", arena) : r.problem;
}

const char *op_case_run(const char *text, const berth_target *target, berth_arena *arena) {
    return op_case_compare(text, target, 1e-5, arena);
}

void with_target(const char *text, void (*body)(const berth_target *target)) {
    berth_arena *arena = NULL;
    berth_multi_target *target = NULL;
    cr_assert_null(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status = berth_target_parse(arena, text, NULL, &target);
    cr_assert_null(status, "%s", berth_status_message(status));
    body(target->devices[target->default_device].target);
    berth_arena_destroy(arena);
}
