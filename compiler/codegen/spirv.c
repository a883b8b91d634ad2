// SPIR-V 1.5: kernels of vulkan devices (Vulkan 1.2). Every kernel is a module of its own, so that
// a driver translates each once. Buffers are reached through their addresses
// (artifact/kernel_abi.h); loops over groups and work-items become ids, and a nest without them
// gets one work-item per iteration of its parallel loops.
#include <string.h>

#include "artifact/kernel_abi.h"
#include "compiler/codegen/spirv_math.h"
#include "compiler/codegen/spirv_matrix.h"
#include "compiler/codegen/spirv_printer.h"

enum {
    flat_group_size = 64,
    most_groups = 32768,  // along one axis, which every device has
    most_unrolled = 64,   // copies of a statement
    most_unrolled_loop = 16,
};

void berth_spirv_fail(berth_spirv_printer *p, berth_status status) {
    if (p->status)
        berth_status_free(status);
    else
        p->status = status;
}

// ---- statements ---------------------------------------------------------------------------------

static void print_stmt(berth_spirv_printer *p, berth_stmt id);

static void set_var(berth_spirv_printer *p, berth_var var, uint32_t id) {
    uint32_t *lanes = berth_arena_new_array(p->arena, uint32_t, 1);
    lanes[0] = id;
    p->vars[var] = lanes;
}

static uint32_t built_in(berth_spirv_printer *p, uint32_t *variable, uint32_t which, int axis) {
    berth_spirv *m = p->m;
    uint32_t u32 = berth_spirv_type_id(m, SPIRV_TYPE_U32);
    if (!*variable) {
        uint32_t other = p->group_id ? p->group_id : p->local_id;
        static const uint32_t three = 3;
        // The two built-in variables share a type.
        if (!other)
            p->arrays[SPIRV_TYPE_VOID] =
                berth_spirv_new_type(m, SPIRV_TypeVector, (uint32_t[]){u32, three}, 2);
        *variable = berth_spirv_global(
            m, berth_spirv_pointer(m, SPIRV_STORAGE_INPUT, p->arrays[SPIRV_TYPE_VOID]),
            SPIRV_STORAGE_INPUT);
        berth_spirv_decorate_with(m, *variable, SPIRV_DECORATION_BUILT_IN, which);
    }
    uint32_t operands[] = {*variable, berth_spirv_int(m, SPIRV_TYPE_U32, (uint64_t)axis)};
    uint32_t at = berth_spirv_emit(m, SPIRV_AccessChain,
                                   berth_spirv_pointer(m, SPIRV_STORAGE_INPUT, u32), operands, 2);
    return berth_spirv_emit(m, SPIRV_Load, u32, &at, 1);
}

static uint32_t group_id(berth_spirv_printer *p, int axis) {
    return built_in(p, &p->group_id, SPIRV_BUILT_IN_WORKGROUP_ID, axis);
}
static uint32_t local_id(berth_spirv_printer *p, int axis) {
    return built_in(p, &p->local_id, SPIRV_BUILT_IN_LOCAL_ID, axis);
}

static uint32_t to_index(berth_spirv_printer *p, uint32_t value) {
    return p->index == SPIRV_TYPE_U32 ? value
                                      : berth_spirv_unary(p->m, SPIRV_UConvert, p->index, value);
}

static void print_group_loop(berth_spirv_printer *p, const berth_stmt_node *node, int64_t extent) {
    bool local = false;
    int axis = 0;
    berth_status status = berth_kernel_set_axis(p->kernel, node, extent, &local, &axis);
    if (status) berth_spirv_fail(p, status);
    set_var(p, node->var, to_index(p, local ? local_id(p, axis) : group_id(p, axis)));
    print_stmt(p, node->body);
}

static void print_unrolled(berth_spirv_printer *p, const berth_stmt_node *node, int64_t extent) {
    uint32_t before = p->unrolled;
    p->unrolled *= (uint32_t)extent;
    for (int64_t i = 0; i < extent; ++i) {
        set_var(p, node->var, berth_spirv_index_int(p, i));
        print_stmt(p, node->body);
    }
    p->unrolled = before;
}

// A loop of `rounds` rounds (1 where they are not known), each with `copies` of the body.
static void print_loop(berth_spirv_printer *p, const berth_stmt_node *node, uint32_t limit,
                       int64_t copies, int64_t rounds) {
    double around = p->around;
    uint32_t unrolled = p->unrolled;
    p->around *= (double)rounds;
    p->rounds += p->around;
    p->unrolled *= (uint32_t)copies;
    berth_spirv_forget(p, 0);
    berth_spirv_loop loop = berth_spirv_open_loop(p->m, p->index, limit);
    for (int64_t i = 0; i < copies; ++i) {
        uint32_t at = loop.counter;
        if (copies > 1)
            at = berth_spirv_binary(p->m, SPIRV_IMul, p->index, at,
                                    berth_spirv_index_int(p, copies));
        if (i > 0)
            at = berth_spirv_binary(p->m, SPIRV_IAdd, p->index, at, berth_spirv_index_int(p, i));
        set_var(p, node->var, at);
        print_stmt(p, node->body);
    }
    berth_spirv_close_loop(p->m, &loop);
    p->around = around;
    p->unrolled = unrolled;
}

// Statements of a loop's body; UINT32_MAX when it holds loops or branches.
static uint32_t plain_statements(const berth_tfn *fn, berth_stmt id) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    uint32_t count = 0;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_STORE:
    case BERTH_STMT_LET: return 1;
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i) {
            uint32_t part = plain_statements(fn, fn->lists.data[node->first + i]);
            if (part == UINT32_MAX) return part;
            count += part;
        }
        return count;
    default: return UINT32_MAX;
    }
}

// Short bodies of innermost loops are copied a few times: loads of several rounds are in flight
// together, and llvmpipe ends loops after 65,536 rounds.
static void print_in_parts(berth_spirv_printer *p, const berth_stmt_node *node, int64_t extent) {
    uint32_t statements = plain_statements(p->fn, node->body);
    int64_t copies = statements == 1 ? 8 : statements <= 4 ? 4 : 1;
    if (copies * p->unrolled > most_unrolled || extent < copies) copies = 1;
    int64_t rounds = extent / copies;
    print_loop(p, node, berth_spirv_index_int(p, rounds), copies, rounds);
    for (int64_t i = rounds * copies; i < extent; ++i) {
        set_var(p, node->var, berth_spirv_index_int(p, i));
        print_stmt(p, node->body);
    }
}

static void print_for(berth_spirv_printer *p, const berth_stmt_node *node) {
    int64_t extent = -1;
    berth_tfn_const_value(p->fn, node->value, &extent);
    if (node->loop_kind >= BERTH_LOOP_GROUP_X) {
        print_group_loop(p, node, extent);
        return;
    }
    if (node->loop_kind == BERTH_LOOP_VECTOR)
        berth_spirv_fail(
            p, berth_status_make(BERTH_INTERNAL, "a vector loop was left to the printer"));
    bool unroll = node->loop_kind == BERTH_LOOP_UNROLL && extent <= most_unrolled_loop &&
                  extent * p->unrolled <= most_unrolled;
    if (extent == 1 || (extent > 0 && unroll)) {
        print_unrolled(p, node, extent);
        return;
    }
    if (extent > 1) {
        print_in_parts(p, node, extent);
        return;
    }
    p->apart++;
    print_loop(p, node, berth_spirv_index(p, node->value, 0), 1, 1);
    p->apart--;
}

static void print_if(berth_spirv_printer *p, const berth_stmt_node *node) {
    uint32_t condition = berth_spirv_value(p, node->value)[0];
    uint64_t known = 0;
    berth_spirv_forget(p, 0);
    if (berth_spirv_int_value(p->m, condition, &known)) {
        if (known)
            print_stmt(p, node->body);
        else if (node->other)
            print_stmt(p, node->other);
        return;
    }
    berth_spirv_if at = berth_spirv_open_if(p->m, condition);
    p->apart++;
    print_stmt(p, node->body);
    if (node->other) {
        berth_spirv_else(p->m, &at);
        print_stmt(p, node->other);
    }
    p->apart--;
    berth_spirv_close_if(p->m, &at);
}

void berth_spirv_barrier(berth_spirv_printer *p) {
    uint32_t scope = berth_spirv_int(p->m, SPIRV_TYPE_U32, SPIRV_SCOPE_WORKGROUP);
    uint32_t order = berth_spirv_int(p->m, SPIRV_TYPE_U32,
                                     SPIRV_ORDER_LOCAL | (p->matrices ? SPIRV_ORDER_SHOW_ALL : 0));
    berth_spirv_plain(p->m, SPIRV_ControlBarrier, (uint32_t[]){scope, scope, order}, 3);
}

static void print_stmt(berth_spirv_printer *p, berth_stmt id) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    if (p->status || (p->matrices && berth_spirv_matrix_stmt(p, id))) return;
    switch ((berth_stmt_kind)node.kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node.count; ++i) print_stmt(p, p->fn->lists.data[node.first + i]);
        break;
    case BERTH_STMT_FOR: print_for(p, &node); break;
    case BERTH_STMT_STORE:
        berth_spirv_store(p, id);
        berth_spirv_forget(p, 0);
        break;
    case BERTH_STMT_LET:
        p->vars[node.var] = berth_spirv_value(p, node.value);
        berth_spirv_forget(p, 0);
        break;
    case BERTH_STMT_IF: print_if(p, &node); break;
    case BERTH_STMT_ALLOC: berth_spirv_declare(p, node.buf); break;
    case BERTH_STMT_BARRIER: berth_spirv_barrier(p); break;
    case BERTH_STMT_CALL:
        p->status =
            berth_status_make(BERTH_UNSUPPORTED,
                              "devices of kind vulkan run no external code, and call no functions");
        break;
    case BERTH_STMT_NONE: break;
    }
}

// ---- kernels ------------------------------------------------------------------------------------

// The flat index of a work-item is taken apart into the parallel loops' variables.
static void print_flat_grid(berth_spirv_printer *p, const berth_stmt *grid, int grid_count,
                            berth_stmt body) {
    berth_kernel_source *kernel = p->kernel;
    berth_spirv *m = p->m;
    uint32_t total = kernel->groups[0], size = total < flat_group_size ? total : flat_group_size;
    uint32_t groups = size ? (total + size - 1) / size : 0;
    kernel->group_size[0] = size ? size : 1;
    kernel->groups[0] = groups < most_groups ? groups : most_groups;
    kernel->groups[1] = groups ? (groups + most_groups - 1) / most_groups : 1;
    uint32_t group = group_id(p, 0), u32_size = berth_spirv_int(m, SPIRV_TYPE_U32, size);
    if (kernel->groups[1] > 1)
        group =
            berth_spirv_binary(m, SPIRV_IAdd, SPIRV_TYPE_U32, group,
                               berth_spirv_binary(m, SPIRV_IMul, SPIRV_TYPE_U32, group_id(p, 1),
                                                  berth_spirv_int(m, SPIRV_TYPE_U32, most_groups)));
    uint32_t item = berth_spirv_binary(m, SPIRV_IMul, SPIRV_TYPE_U32, group, u32_size);
    item = berth_spirv_binary(m, SPIRV_IAdd, SPIRV_TYPE_U32, item, local_id(p, 0));
    uint32_t inside = berth_spirv_binary(m, SPIRV_ULessThan, SPIRV_TYPE_BOOL, item,
                                         berth_spirv_int(m, SPIRV_TYPE_U32, total));
    berth_spirv_if at = berth_spirv_open_if(m, inside);
    int64_t inner = total;
    for (int i = 0; i < grid_count; ++i) {
        int64_t extent = berth_kernel_extent(p->fn, grid[i]);
        inner = extent ? inner / extent : 1;
        uint32_t step = berth_spirv_int(m, SPIRV_TYPE_U32, (uint64_t)(inner ? inner : 1));
        uint32_t length = berth_spirv_int(m, SPIRV_TYPE_U32, (uint64_t)(extent ? extent : 1));
        uint32_t var = item;
        if (inner > 1) var = berth_spirv_binary(m, SPIRV_UDiv, SPIRV_TYPE_U32, item, step);
        if (i > 0) var = berth_spirv_binary(m, SPIRV_UMod, SPIRV_TYPE_U32, var, length);
        set_var(p, p->fn->stmts.data[grid[i]].var, to_index(p, var));
    }
    print_stmt(p, body);
    berth_spirv_close_if(m, &at);
}

// Buffers of a group are declared before anything else, and so are arrays of a work-item: their
// scope in the function does not matter here.
static void reset(berth_spirv_printer *p, berth_kernel_source *kernel) {
    p->m = berth_spirv_create(p->arena);
    p->kernel = kernel;
    p->buffers = berth_arena_new_array(p->arena, berth_spirv_buffer, p->fn->bufs.count + 1);
    memset(p->arrays, 0, sizeof(p->arrays));
    p->group_id = p->local_id = p->apart = 0;
    p->unrolled = 1;
    p->around = 1;
    p->rounds = 0;
    berth_spirv_forget(p, 0);
    berth_spirv_float_mode(p->m, SPIRV_MODE_KEEP_SPECIAL, 32, SPIRV_CAPABILITY_KEEP_SPECIAL);
    for (int i = 0; i < 3; ++i) kernel->groups[i] = kernel->group_size[i] = 1;
}

// As f16 is rounded elsewhere: to even, and with signed zeros, infinities and NaNs.
static void set_half_modes(berth_spirv_printer *p) {
    berth_spirv_float_mode(p->m, SPIRV_MODE_KEEP_SPECIAL, 16, SPIRV_CAPABILITY_KEEP_SPECIAL);
    berth_spirv_float_mode(p->m, SPIRV_MODE_ROUND_EVEN, 16, SPIRV_CAPABILITY_ROUND_EVEN);
    if (p->f16_denormals)
        berth_spirv_float_mode(p->m, SPIRV_MODE_KEEP_DENORMALS, 16,
                               SPIRV_CAPABILITY_KEEP_DENORMALS);
}

static void print_kernel(berth_spirv_printer *p, berth_stmt nest, berth_kernel_source *kernel,
                         berth_spirv_words *out) {
    berth_stmt grid[BERTH_MAX_RANK];
    int64_t groups = 1;
    int grid_count = berth_kernel_find_grid(p->fn, nest, grid, &groups);
    reset(p, kernel);
    kernel->groups[0] = (uint32_t)groups;
    berth_kernel_collect_facts(p->fn, p->arena, nest, kernel);
    berth_spirv_bind(p);
    berth_spirv_matrix_open(p, nest);
    if (grid_count == 0 && berth_kernel_has_group_loops(p->fn, nest))
        print_stmt(p, nest);
    else
        print_flat_grid(p, grid, grid_count,
                        grid_count ? p->fn->stmts.data[grid[grid_count - 1]].body : nest);
    berth_program_kernel record = berth_kernel_source_record(kernel);
    berth_spirv_string(p->m, berth_arena_printf(p->arena, BERTH_DECLARATION_PREFIX "%s: %s",
                                                kernel->entry,
                                                berth_kernel_declaration(p->arena, &record)));
    if (p->rounds > 0)
        berth_spirv_string(
            p->m, berth_arena_printf(p->arena, BERTH_SPIRV_ROUNDS_PREFIX "%.0f", p->rounds));
    if (berth_spirv_has_type(p->m, SPIRV_TYPE_F16)) set_half_modes(p);
    berth_spirv_words words = {0};
    berth_spirv_finish(p->m, kernel->entry, kernel->group_size, &words);
    berth_vec_push(p->arena, out, words.count);
    for (uint32_t i = 0; i < words.count; ++i) berth_vec_push(p->arena, out, words.data[i]);
}

static berth_status print(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result) {
    memset(out_result, 0, sizeof(*out_result));
    berth_stmt *nests = NULL;
    uint32_t count = 0;
    berth_spirv_printer printer = {.fn = berth_kernel_copy_fn(fn, arena), .arena = arena};
    berth_spirv_printer *p = &printer;
    BERTH_TRY(berth_kernel_nests(p->fn, arena, &nests, &count));
    p->ranges = berth_ranges_collect(p->fn);
    p->float16 = target && berth_target_has_feature(target, "float16");
    p->f16_denormals = p->float16 && berth_target_has_feature(target, "float16_denormals");
    p->index = berth_kernel_fits_narrow(fn) ? SPIRV_TYPE_U32 : SPIRV_TYPE_U64;
    p->vars = berth_arena_new_array(arena, const uint32_t *, fn->vars.count + 1);
    p->memo_count = fn->exprs.count;
    p->memo = berth_arena_new_array(arena, const uint32_t *, fn->exprs.count + 1);
    berth_kernel_source *kernels = berth_arena_new_array(arena, berth_kernel_source, count + 1);
    berth_spirv_words words = {0};
    for (uint32_t i = 0; i < count && !p->status; ++i) {
        kernels[i].entry = berth_arena_printf(arena, "%s_%u", prefix, i);
        print_kernel(p, nests[i], &kernels[i], &words);
    }
    out_result->code = words.data;
    out_result->code_bytes = words.count * sizeof(uint32_t);
    out_result->kernels = kernels;
    out_result->kernel_count = count;
    return p->status;
}

// Assembly of all kernels of a unit.
static const char *source(const berth_codegen_result *code, berth_arena *arena) {
    const uint32_t *words = code->code;
    size_t count = code->code_bytes / sizeof(uint32_t);
    berth_strbuf text = berth_strbuf_make(arena);
    for (size_t i = 0; i < count; i += 1 + words[i])
        berth_spirv_print(words + i + 1, words[i], &text);
    return berth_strbuf_text(&text);
}

// The modules of all units in a row.
static berth_status finish(const berth_codegen_job *job, berth_codegen_bytes *out_bytes) {
    uint64_t size_bytes = 0;
    for (uint32_t i = 0; i < job->count; ++i) size_bytes += job->units[i].code->code_bytes;
    unsigned char *data = berth_arena_alloc(job->arena, (size_t)size_bytes);
    *out_bytes = (berth_codegen_bytes){.data = data, .size_bytes = size_bytes, .options = ""};
    for (uint32_t i = 0; i < job->count; ++i) {
        const berth_codegen_result *code = job->units[i].code;
        if (code->code_bytes) memcpy(data, code->code, (size_t)code->code_bytes);
        data += code->code_bytes;
    }
    return BERTH_OK;
}

const berth_codegen berth_codegen_spirv = {.kind = "vulkan",
                                           .format = BERTH_FORMAT_SPIRV,
                                           .source_suffix = "spvasm",
                                           .print = print,
                                           .source = source,
                                           .finish = finish,
                                           .features = "float16|float16_denormals"};
