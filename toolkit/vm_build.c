#include "toolkit/vm_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compiler/kernels/generic_kernels.h"
#include "compiler/kernels/later_code.h"
#include "compiler/package/plans.h"
#include "compiler/package/program_copy.h"
#include "compiler/passes/packed_store.h"
#include "compiler/schedule/seen_extents.h"
#include "compiler/vm/families.h"
#include "compiler/vm/walk.h"
#include "ir/dim.h"

typedef struct builder {
    berth_arena *arena;
    berth_module *module;
    berth_compile_options compile;
    berth_multi_target target;  // of segments
    berth_vm_code code;
    berth_vm_reached reached;
    const char *const *specialisations;
    uint32_t specialisation_count;
    const berth_tensor *const *shapes;  // or these
    uint32_t shape_count;
    bool counted;  // extents that data decides are counted, and every count is compiled for
    BERTH_VEC(const berth_tensor *) sets;  // inputs of the model for each set of numbers
    berth_vm_variant *variants;
    // Constants of all, each once:
    berth_interner *hashes;
    uint32_t last_hash;
    BERTH_VEC(berth_program_constant) constants;
    BERTH_VEC(berth_program_tensor) tensors;
    uint64_t constant_bytes;
    // Where bounds are given: what programs for all values share.
    bool many;
    berth_generic_kernels *generic_kernels;
    berth_packed_store *packed_store;
    berth_arena *work;  // of programs, of which few are kept
    berth_vm_families families;
    const berth_program **out_program;
} builder;

// Shapes that a program is compiled for.
enum { MOST_SETS = 4096 };

// ---- specialisations ----------------------------------------------------------------------------

// Of low .. high, `value` is that of the set that is made.
typedef struct number {
    const char *name;
    int64_t low, high, value;
    bool used;
} number;

typedef BERTH_VEC(number) number_list;

static const berth_type *input_type(const builder *b, uint32_t input) {
    const berth_graph *graph =
        berth_graph_get(b->module, berth_module_find_function(b->module, "main"));
    return berth_type_get(b->module,
                          graph->values.data[graph->regions.data[0].params.data[input]].type);
}

// The number that is given for dimension `axis` of an input; NULL: none.
static number *number_of_axis(const builder *b, number *numbers, uint32_t count, uint32_t input,
                              int axis) {
    int64_t dim = input_type(b, input)->dims[axis];
    const char *symbol = berth_module_str(b->module, berth_dim_symbol_name(dim));
    const char *place =
        berth_arena_printf(b->arena, "%s.%d", b->code.program->inputs[input].name, axis);
    for (uint32_t i = 0; i < count; ++i)
        if (strcmp(numbers[i].name, place) == 0 ||
            (dim != BERTH_DIM_UNKNOWN && strcmp(numbers[i].name, symbol) == 0))
            return &numbers[i];
    return NULL;
}

static berth_status say_open(const builder *b, uint32_t input, int axis) {
    const berth_vm_port *port = &b->code.program->inputs[input];
    int64_t dim = port->rank < 0 ? BERTH_DIM_UNKNOWN : input_type(b, input)->dims[axis];
    const char *name = dim == BERTH_DIM_UNKNOWN
                           ? berth_arena_printf(b->arena, "%s.%d", port->name, axis)
                           : berth_module_str(b->module, berth_dim_symbol_name(dim));
    if (port->rank < 0)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "input \"%s\" has any number of dimensions: a program file needs "
                                 "its shape",
                                 port->name);
    const berth_remedy extent = {BERTH_REMEDY_DIMENSION, name};
    return berth_status_with_remedies(
        berth_status_make(BERTH_INVALID_ARGUMENT,
                          "input \"%s\" is %s: say for which values of %s the program is to have "
                          "code (specialisations, \"%s=1,%s=8\"), or fix it",
                          port->name, port->type, name, name, name),
        &extent, 1);
}

typedef struct numbers_job {
    number *numbers;
    uint32_t count;
} numbers_job;

static int64_t find_number(void *user, const char *symbol) {
    const numbers_job *job = user;
    for (uint32_t i = 0; i < job->count; ++i) {
        if (strcmp(job->numbers[i].name, symbol) != 0) continue;
        job->numbers[i].used = true;
        return job->numbers[i].value;
    }
    return BERTH_DIM_UNKNOWN;
}

// Of a dimension that is open; false: nothing gives it an extent.
static bool extent_of_axis(const builder *b, number *numbers, uint32_t count, uint32_t input,
                           int axis, int64_t *out_extent) {
    int64_t dim = input_type(b, input)->dims[axis];
    number *given = number_of_axis(b, numbers, count, input, axis);
    numbers_job job = {numbers, count};
    if (!given) return berth_dim_evaluate(b->module, dim, find_number, &job, b->arena, out_extent);
    given->used = true;
    *out_extent = given->value;
    return true;
}

// Of a dimension that the set's numbers gave an extent, but only within the bounds that it has.
static berth_status check_extent(const builder *b, uint32_t input, int axis, int64_t extent) {
    const berth_vm_port *port = &b->code.program->inputs[input];
    const int64_t least = port->least[axis], most = port->most[axis];
    if ((!least && !most) || (extent >= least && extent <= most)) return BERTH_OK;
    return berth_status_make(BERTH_INVALID_ARGUMENT,
                             "a specialisation makes dimension %d of input \"%s\" %lld, outside "
                             "its bounds %lld..%lld",
                             axis, port->name, (long long)extent, (long long)least,
                             (long long)most);
}

static berth_status set_input(const builder *b, number *numbers, uint32_t count, uint32_t input,
                              berth_tensor *out) {
    const berth_vm_port *port = &b->code.program->inputs[input];
    *out = (berth_tensor){.dtype = port->dtype, .rank = port->rank};
    if (!port->is_tensor) return BERTH_OK;
    if (port->rank < 0 || !port->dtype) return say_open(b, input, 0);
    for (int d = 0; d < port->rank; ++d) {
        out->dims[d] = port->dims[d];
        if (port->dims[d] >= 0) continue;
        if (!extent_of_axis(b, numbers, count, input, d, &out->dims[d]))
            return say_open(b, input, d);
        BERTH_TRY(check_extent(b, input, d, out->dims[d]));
    }
    BERTH_TRY(
        berth_status_prefix(berth_shape_size_bytes(out->dtype, out->rank, out->dims, NULL, NULL),
                            "input \"%s\"", port->name));
    bool is_number = berth_tensor_element_count(out) == 1 &&
                     (berth_dtype_is_integer(out->dtype) || out->dtype == BERTH_DTYPE_BOOL);
    for (uint32_t i = 0; i < count && is_number; ++i) {
        if (strcmp(numbers[i].name, port->name) != 0) continue;
        numbers[i].used = true;
        *out = berth_tensor_create(b->arena, out->dtype, out->rank, out->dims);
        berth_tensor_set_i64(out, 0, numbers[i].value);
    }
    return BERTH_OK;
}

static bool is_listed(const number_list *numbers, const char *name) {
    for (uint32_t i = 0; i < numbers->count; ++i)
        if (strcmp(numbers->data[i].name, name) == 0) return true;
    return false;
}

// Of dimensions that are left open and have bounds: of the symbols that they are, or follow from.
static void list_bounds(const builder *b, number_list *out) {
    const berth_vm_program *code = b->code.program;
    for (uint32_t i = 0; i < code->input_count; ++i)
        for (int d = 0; d < code->inputs[i].rank; ++d) {
            const berth_vm_port *port = &code->inputs[i];
            if (port->dims[d] >= 0 || (!port->least[d] && !port->most[d]) ||
                number_of_axis(b, out->data, out->count, i, d))
                continue;
            int64_t dim = input_type(b, i)->dims[d];
            berth_dim_linear linear = {
                .symbol = berth_module_str(b->module, berth_dim_symbol_name(dim)), .factor = 1};
            if (berth_dim_is_expression(b->module, dim))
                (void)berth_dim_read_linear(b->module, dim, b->arena, &linear);
            const number made = {.name = linear.symbol,
                                 .low = berth_dim_linear_solve(&linear, port->least[d]),
                                 .high = berth_dim_linear_solve(&linear, port->most[d])};
            if (!is_listed(out, made.name)) berth_vec_push(b->arena, out, made);
        }
}

static berth_status add_set(builder *b, number *numbers, uint32_t count) {
    uint32_t input_count = b->code.program->input_count;
    berth_tensor *inputs = berth_arena_new_array(b->arena, berth_tensor, input_count + 1);
    for (uint32_t i = 0; i < count; ++i) numbers[i].used = false;
    for (uint32_t i = 0; i < input_count; ++i)
        BERTH_TRY(set_input(b, numbers, count, i, &inputs[i]));
    for (uint32_t i = 0; i < count; ++i)
        if (!numbers[i].used)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "specialisation %s=%lld: the inputs have no open dimension "
                                     "of this name, and no input of it is one integer",
                                     numbers[i].name, (long long)numbers[i].value);
    berth_vec_push(b->arena, &b->sets, inputs);
    return BERTH_OK;
}

// "NAME=NUMBER" up to a comma or the end; `*at` goes behind it.
// "N" or "N..M"; false: neither.
static bool read_bounds(const char *text, number *out) {
    char *end = NULL;
    errno = 0;
    out->low = out->high = strtoll(text, &end, 10);
    if (end != text && strncmp(end, "..", 2) == 0 && end[2]) out->high = strtoll(end + 2, &end, 10);
    return end != text && !*end && !errno && out->low <= out->high;
}

static berth_status read_number(const builder *b, const char *text, const char **at, number *out) {
    size_t length = strcspn(*at, ",");
    char *word = berth_arena_strndup(b->arena, *at, length);
    char *equals = strrchr(word, '=');
    *at += length + ((*at)[length] == ',');
    *out = (number){.name = word};
    if (!equals || equals == word || !read_bounds(equals + 1, out))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "a specialisation is NAME=NUMBER,... or NAME=LEAST..MOST,..., not "
                                 "\"%s\"",
                                 text);
    *equals = 0;
    return BERTH_OK;
}

// A set for each combination of values, those of dimensions with bounds too, the largest first.
static berth_status add_sets(builder *b, const number_list *given) {
    number_list all = {0};
    uint64_t total = 1;
    for (uint32_t i = 0; i < given->count; ++i) berth_vec_push(b->arena, &all, given->data[i]);
    list_bounds(b, &all);
    number *numbers = all.data;
    const uint32_t count = all.count;
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t values = (uint64_t)(numbers[i].high - numbers[i].low) + 1;
        numbers[i].value = numbers[i].high;
        b->many |= values > 1;
        total = values == 0 || values > MOST_SETS ? MOST_SETS + 1 : total * values;
        if (total > MOST_SETS)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "the bounds hold more than %d shapes (%s=%lld..%lld): narrow "
                                     "them, or leave a dimension to a specialisation",
                                     (int)MOST_SETS, numbers[i].name, (long long)numbers[i].low,
                                     (long long)numbers[i].high);
    }
    for (uint64_t n = 0; n < total; ++n) {
        BERTH_TRY(add_set(b, numbers, count));
        for (uint32_t i = count; i-- > 0;) {
            if (numbers[i].value-- > numbers[i].low) break;
            numbers[i].value = numbers[i].high;
        }
    }
    return BERTH_OK;
}

static berth_status read_specialisation(builder *b, const char *text) {
    number_list numbers = {0};
    const char *at = text;
    do {
        number given;
        BERTH_TRY(read_number(b, text, &at, &given));
        for (uint32_t i = 0; i < numbers.count; ++i) {
            if (strcmp(numbers.data[i].name, given.name) != 0) continue;
            BERTH_TRY(add_sets(b, &numbers));
            numbers.count = 0;
        }
        berth_vec_push(b->arena, &numbers, given);
    } while (*at);
    return add_sets(b, &numbers);
}

static berth_status check_and_read_sets(void *user) {
    builder *b = user;
    BERTH_TRY(berth_plan_check_pins(b->module, &b->target, b->compile.log, b->arena));
    for (uint32_t i = 0; i < b->specialisation_count; ++i)
        BERTH_TRY(read_specialisation(b, b->specialisations[i]));
    return b->sets.count ? BERTH_OK : add_sets(b, &(number_list){0});
}

typedef struct names_job {
    berth_arena *arena;
    const char *const *specialisations;
    uint32_t specialisation_count;
    BERTH_VEC(const char *) names;
} names_job;

static berth_status list_names(void *user) {
    names_job *job = user;
    for (uint32_t i = 0; i < job->specialisation_count; ++i)
        for (const char *at = job->specialisations[i]; *at;) {
            size_t length = strcspn(at, ",");
            char *word = berth_arena_strndup(job->arena, at, length);
            char *equals = strrchr(word, '=');
            if (equals) *equals = 0;
            berth_vec_push(job->arena, &job->names, word);
            at += length + (at[length] == ',');
        }
    return BERTH_OK;
}

berth_status berth_vm_build_names(berth_arena *arena, const char *const *specialisations,
                                  uint32_t specialisation_count, const char *const **out_names,
                                  uint32_t *out_count) {
    names_job job = {arena, specialisations, specialisation_count, {0}};
    BERTH_TRY(berth_arena_try(arena, list_names, &job));
    *out_names = job.names.data;
    *out_count = job.names.count;
    return BERTH_OK;
}

// ---- compiling ----------------------------------------------------------------------------------

typedef struct piece_job {
    builder *builder;
    const berth_vm_reach *reach;
    berth_arena *arena;
    berth_module *module;
    const berth_program *program;
    const berth_program *copy;
} piece_job;

static berth_status make_module(void *user) {
    piece_job *job = user;
    job->module =
        berth_vm_reach_module(job->builder->module, &job->builder->code, job->reach, job->arena);
    return BERTH_OK;
}

static berth_status keep_program(void *user) {
    piece_job *job = user;
    job->copy = berth_program_copy(job->program, job->arena, job->builder->work);
    return BERTH_OK;
}

static berth_status compile_in_arena(piece_job *job) {
    builder *b = job->builder;
    berth_compile_result result;
    BERTH_TRY(berth_arena_try(job->arena, make_module, job));
    BERTH_TRY(berth_compile(job->module, &b->compile, &result));
    job->program = result.program;
    return job->program ? berth_arena_try(b->work, keep_program, job) : BERTH_OK;
}

static berth_status compile_piece(builder *b, const berth_vm_reach *reach,
                                  const berth_program **out_program) {
    const berth_vm_piece *piece = berth_vm_piece_at(b->code.program, reach->piece);
    piece_job job = {.builder = b, .reach = reach};
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &job.arena));
    berth_status status = compile_in_arena(&job);
    berth_arena_destroy(job.arena);
    *out_program = job.copy;
    return berth_status_prefix(status, "%s (%s)", piece->name, piece->op);
}

// ---- constants of all ---------------------------------------------------------------------------

static void add_constant(builder *b, const void *data, uint64_t size_bytes) {
    enum { alignment_bytes = 128 };
    char hex[33];
    if (size_bytes == 0) return;
    berth_hash128_hex(berth_hash128_of(data, (size_t)size_bytes), hex);
    uint32_t id = berth_intern(b->hashes, hex);  // they are given out in order
    if (id <= b->last_hash) return;
    b->last_hash = id;
    berth_program_tensor tensor = {.name = "",
                                   .offset_bytes = b->constant_bytes,
                                   .size_bytes = size_bytes,
                                   .dtype = BERTH_DTYPE_U8,
                                   .rank = 1,
                                   .dims = {(int64_t)size_bytes},
                                   .layout = ""};
    berth_vec_push(b->arena, &b->tensors, tensor);
    berth_program_constant constant = {.tensor = b->tensors.count - 1, .data = data};
    berth_vec_push(b->arena, &b->constants, constant);
    b->constant_bytes += (size_bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

static void add_tensors(builder *b, const berth_tensor *tensors, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        if (tensors[i].dtype && tensors[i].data)
            add_constant(b, tensors[i].data, berth_tensor_size_bytes(&tensors[i]));
}

static void gather_constants(builder *b) {
    const berth_vm_program *code = b->code.program;
    b->hashes = berth_interner_create(b->arena);
    b->last_hash = berth_intern(b->hashes, "");
    add_tensors(b, code->constants, code->constant_count);
    for (uint32_t i = 0; i < b->families.variant_count; ++i) {
        const berth_vm_variant *variant = &b->families.variants[i];
        const berth_vm_piece *piece = berth_vm_piece_at(code, variant->piece);
        const berth_program *program = variant->program;
        add_tensors(b, variant->inputs, piece->input_count);
        if (!program) add_tensors(b, variant->results, piece->output_count);
        for (uint32_t k = 0; program && k < program->constant_count; ++k)
            add_constant(b, program->constants[k].data,
                         program->tensors[program->constants[k].tensor].size_bytes);
    }
}

// ---- the program --------------------------------------------------------------------------------

static berth_program_device *describe_devices(const builder *b) {
    const berth_multi_target *target = &b->target;
    berth_program_device *devices =
        berth_arena_new_array(b->arena, berth_program_device, target->device_count);
    for (uint32_t d = 0; d < target->device_count; ++d)
        devices[d] =
            (berth_program_device){.name = target->devices[d].name,
                                   .kind = berth_device_kind_name(target->devices[d].target->kind),
                                   .virtual_id = target->devices[d].virtual_id,
                                   .host_only = target->devices[d].host_only,
                                   .target_json = target->devices[d].target->canonical};
    return devices;
}

// Where the operations of the first code for each piece run.
static void gather_placements(const builder *b, berth_program *program) {
    BERTH_VEC(berth_program_placement) all = {0};
    const berth_vm_variant *variants = b->families.variants;
    for (uint32_t i = 0; i < b->families.variant_count; ++i) {
        const berth_vm_variant *variant = &variants[i];
        bool first = variant->program != NULL;
        for (uint32_t k = 0; k < i && first; ++k)
            first = variants[k].piece != variant->piece || !variants[k].program;
        for (uint32_t k = 0; first && k < variant->program->placement_count; ++k)
            berth_vec_push(b->arena, &all, variant->program->placements[k]);
    }
    program->placements = all.data;
    program->placement_count = all.count;
}

static berth_status assemble(void *user) {
    enum { alignment_bytes = 128 };
    builder *b = user;
    gather_constants(b);
    berth_program_pool store = {.device = b->target.host,
                                .scope = "global",
                                .usage = BERTH_POOL_STORE,
                                .size_bytes = b->constant_bytes,
                                .alignment_bytes = alignment_bytes};
    const berth_vm_body vm = {b->code.program, b->families.variants, b->families.variant_count,
                              b->families.families, b->families.family_count};
    berth_program program = {.name = b->code.program->name,
                             .target_json = b->target.canonical,
                             .devices = describe_devices(b),
                             .device_count = b->target.device_count,
                             .pools = berth_arena_copy(b->arena, &store, sizeof(store)),
                             .pool_count = 1,
                             .tensors = b->tensors.data,
                             .tensor_count = b->tensors.count,
                             .constants = b->constants.data,
                             .constant_count = b->constants.count,
                             .vm = berth_arena_copy(b->arena, &vm, sizeof(vm)),
                             .executor = berth_executor_kind_name(BERTH_EXECUTOR_VM)};
    gather_placements(b, &program);
    *b->out_program = berth_arena_copy(b->arena, &program, sizeof(program));
    return berth_program_verify(*b->out_program);
}

static berth_status make_variants(void *user) {
    builder *b = user;
    b->variants = berth_arena_new_array(b->arena, berth_vm_variant, b->reached.list.count + 1);
    return BERTH_OK;
}

static berth_status make_plans(void *user) {
    builder *b = user;
    b->compile.plans = berth_memory_plans_create(b->arena);
    return BERTH_OK;
}

static berth_status make_seen(void *user) {
    builder *b = user;
    b->compile.seen_extents = berth_seen_extents_create(b->arena);
    return BERTH_OK;
}

// What programs for many shapes have in common lives as long as the arena.
static void destroy_kernels(void *kernels) {
    berth_generic_kernels_destroy(kernels);
}
static void destroy_packed(void *store) {
    berth_packed_store_destroy(store);
}

// All code of the file is one image.
static berth_status open_kernels(void *user) {
    builder *b = user;
    b->compile.later_code = berth_later_code_create(b->arena);
    BERTH_TRY(berth_generic_kernels_create(berth_allocator_system(), &b->generic_kernels));
    berth_arena_defer(b->arena, destroy_kernels, b->generic_kernels);
    b->compile.generic_kernels = b->generic_kernels;
    if (!b->many) berth_generic_kernels_stay_exact(b->generic_kernels);
    return BERTH_OK;
}

static berth_status open_stores(void *user) {
    builder *b = user;
    BERTH_TRY(berth_packed_store_create(berth_allocator_system(), &b->packed_store));
    berth_arena_defer(b->arena, destroy_packed, b->packed_store);
    b->compile.packed_store = b->packed_store;
    BERTH_TRY(berth_arena_try(b->arena, make_seen, b));
    return berth_packed_store_trust(b->packed_store, b->module);
}

static bool was_compiled(const builder *b, uint32_t index) {
    for (uint32_t i = 0; i < index; ++i)
        if (b->reached.list.data[i].piece == b->reached.list.data[index].piece) return true;
    return false;
}

static berth_status compile_reached(builder *b, uint32_t index, bool planned) {
    const berth_vm_reach *reach = &b->reached.list.data[index];
    if (berth_interrupt_pending(b->compile.interrupt))
        return berth_status_make(BERTH_CANCELLED, "the compilation was cancelled");
    b->variants[index] = (berth_vm_variant){
        .piece = reach->piece, .inputs = reach->inputs, .results = reach->results};
    b->compile.generic_scope = reach->piece;
    b->compile.resident = true;
    b->compile.any_size = b->many;
    b->compile.other_sizes = planned || (b->many && was_compiled(b, index));
    return reach->results ? BERTH_OK : compile_piece(b, reach, &b->variants[index].program);
}

// Which of `count` are looked at before all: the first and the last 16, and some between, which fall evenly without a step
// that the extents could have, too (multiples of 2^32 / the golden ratio; Knuth, "The Art of Computer Programming" 6.4).
static bool is_looked_at(uint32_t index, uint32_t count) {
    enum { most_between = 160 };
    const uint32_t apart = count / most_between + 1;
    return index < 16 || index + 16 >= count || index * 2654435769u <= UINT32_MAX / apart;
}

// Before a kernel is compiled: which loops have other extents for other shapes, so that schedules know, and then which
// numbers of the functions that these schedules make.
static berth_status look_ahead(builder *b) {
    const uint32_t count = b->reached.list.count;
    const char *const stop_after = b->compile.stop_after;
    b->compile.stop_after = "schedule";
    for (uint32_t i = 0; i < count; ++i)
        if (is_looked_at(i, count)) BERTH_TRY(compile_reached(b, i, false));
    berth_seen_extents_close(b->compile.seen_extents);
    b->compile.stop_after = stop_after;
    b->compile.note_sizes = true;
    for (uint32_t i = 0; i < count; ++i)
        if (is_looked_at(i, count)) BERTH_TRY(compile_reached(b, i, true));
    b->compile.note_sizes = false;
    berth_generic_kernels_prefer_general(b->generic_kernels);
    return berth_arena_try(b->arena, make_plans, b);
}

static berth_status compile_all(builder *b) {
    uint32_t count = b->reached.list.count;
    BERTH_TRY(berth_arena_try(b->arena, make_variants, b));
    if (b->many) BERTH_TRY(look_ahead(b));
    for (uint32_t i = 0; i < count; ++i) BERTH_TRY(compile_reached(b, i, b->many));
    return BERTH_OK;
}

// The programs of all shapes become as few as possible.
static berth_status find_families(void *user) {
    builder *b = user;
    b->families = (berth_vm_families){b->variants, b->reached.list.count, NULL, 0};
    if (b->many)
        BERTH_TRY(berth_vm_families_find(b->arena, b->code.program, b->variants,
                                         b->reached.list.count, &b->families));
    berth_vm_variant *kept =
        berth_arena_copy(b->arena, b->families.variants, b->families.variant_count * sizeof(*kept));
    b->families.variants = kept;
    BERTH_TRY(berth_later_code_compile(b->compile.later_code, &b->compile));
    for (uint32_t i = 0; i < b->families.variant_count; ++i) {
        if (!kept[i].program) continue;
        kept[i].program = berth_program_copy(kept[i].program, b->work, b->arena);
        kept[i].program = berth_later_code_put(b->compile.later_code, kept[i].program, b->arena);
    }
    return BERTH_OK;
}

// Each segment would keep a budget, but not all of them together.
berth_status berth_vm_refuse_budgets(const berth_multi_target *target) {
    for (uint32_t i = 0; i < target->memory_count; ++i)
        if (target->memories[i].budget_bytes != target->memories[i].capacity_bytes)
            return berth_status_make(BERTH_UNSUPPORTED,
                                     "the executor vm, which this model needs or which was asked "
                                     "for, keeps no budget of memory \"%s\": leave it out",
                                     target->memories[i].name);
    return BERTH_OK;
}

// What runs can reach. Counts of data make more shapes of a piece than the sets are.
static berth_status walk_sets(builder *b) {
    const berth_vm_program *code = b->code.program;
    for (uint32_t i = 0; i < b->sets.count; ++i)
        BERTH_TRY(berth_vm_walk(b->module, &b->code, b->sets.data[i], b->compile.log, &b->reached));
    berth_vm_reached_simplify(&b->reached, &b->code);
    b->many |= b->reached.count_total > 0;
    for (uint32_t p = 0; p < code->segment_count + code->host_operation_count; ++p) {
        uint32_t shapes = 0;
        for (uint32_t i = 0; i < b->reached.list.count; ++i)
            shapes += b->reached.list.data[i].piece == p && !b->reached.list.data[i].results;
        if (shapes > MOST_SETS)
            return berth_status_make(BERTH_UNSUPPORTED,
                                     "%s (%s): bounds and what data decides make %u shapes of it, "
                                     "more than the %d that a program file has code for",
                                     berth_vm_piece_at(code, p)->name,
                                     berth_vm_piece_at(code, p)->op, shapes, (int)MOST_SETS);
    }
    return BERTH_OK;
}

static berth_status build_in_work(builder *b) {
    BERTH_TRY(compile_all(b));
    BERTH_TRY(berth_arena_try(b->arena, find_families, b));
    return berth_arena_try(b->arena, assemble, b);
}

static builder make_builder(berth_arena *arena, berth_module *module,
                            const berth_compile_options *options,
                            const berth_program **out_program) {
    *out_program = NULL;
    return (builder){.arena = arena,
                     .module = module,
                     .compile = *options,
                     .target = *options->target,
                     .reached = {.arena = arena},
                     .out_program = out_program};
}

// `read_sets` says which shapes it is for.
static berth_status build(builder *b, berth_status (*read_sets)(void *builder)) {
    BERTH_TRY(berth_vm_refuse_budgets(b->compile.target));
    b->target.executor = BERTH_EXECUTOR_GRAPH;
    b->compile.target = &b->target;
    b->compile.known_inputs = NULL;
    b->compile.known_input_count = 0;
    // Notes about operations on the host are of runs that compile; here they are compiled, or refused.
    const berth_log silent = {.write = NULL};
    BERTH_TRY(b->counted ? berth_vm_emit_counted(b->module, &b->code)
                         : berth_vm_emit(b->module, silent, false, &b->code));
    BERTH_TRY(berth_arena_try(b->arena, read_sets, b));
    BERTH_TRY(walk_sets(b));
    BERTH_TRY(berth_arena_try(b->arena, open_kernels, b));
    if (b->many) BERTH_TRY(berth_arena_try(b->arena, open_stores, b));
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &b->work));
    berth_status status = build_in_work(b);
    berth_arena_destroy(b->work);
    return status;
}

berth_status berth_vm_build(berth_arena *arena, berth_module *module,
                            const berth_compile_options *options,
                            const char *const *specialisations, uint32_t specialisation_count,
                            const berth_program **out_program) {
    builder b = make_builder(arena, module, options, out_program);
    b.specialisations = specialisations;
    b.specialisation_count = specialisation_count;
    b.counted = true;
    return build(&b, check_and_read_sets);
}

static berth_status take_shapes(void *user) {
    builder *b = user;
    for (uint32_t i = 0; i < b->shape_count; ++i) berth_vec_push(b->arena, &b->sets, b->shapes[i]);
    b->many = true;
    return berth_plan_check_pins(b->module, &b->target, b->compile.log, b->arena);
}

berth_status berth_vm_build_shapes(berth_arena *arena, berth_module *module,
                                   const berth_compile_options *options,
                                   const berth_tensor *const *shapes, uint32_t count,
                                   const berth_program **out_program) {
    builder b = make_builder(arena, module, options, out_program);
    b.shapes = shapes;
    b.shape_count = count;
    return build(&b, take_shapes);
}
