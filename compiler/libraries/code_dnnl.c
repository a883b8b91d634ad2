// The C source of a call of oneDNN: primitives are made when a program is opened, one for each distinct
// shape of a part, and run by Berth's threads, a part each, with OpenMP's threads switched off.
//
// Tables of shapes come first, then text that is the same for all. Memory is described by strides and
// blocks (dnnl_memory_desc_t) and not by oneDNN's numbers of tags, which differ between versions 2.x.
#include "compiler/libraries/code.h"

#include <string.h>

#include "base/str.h"
#include "ir/layout.h"

// clang-format off
static const char *const body[] = {
    "/* oneDNN's C API, version 2, as far as it is called here. */\n",
    "enum { f32 = 3, blocked = 2, inference = 96, direct = 1, relu = 0x1f, user_scratchpad = 1 };\n",
    "enum { most_dims = 12, scratchpad_md = 136 };\n",
    "typedef struct memory_desc {\n",
    "    int ndims;\n",
    "    int64_t dims[most_dims];\n",
    "    int data_type;\n",
    "    int64_t padded_dims[most_dims];\n",
    "    int64_t padded_offsets[most_dims];\n",
    "    int64_t offset0;\n",
    "    int format_kind;\n",
    "    struct {\n",
    "        int64_t strides[most_dims];\n",
    "        int inner_nblks;\n",
    "        int64_t inner_blks[most_dims];\n",
    "        int64_t inner_idxs[most_dims];\n",
    "    } blocking;\n",
    "    struct {\n",
    "        uint64_t flags;\n",
    "        int compensation_mask;\n",
    "        float scale_adjust;\n",
    "        int asymm_compensation_mask;\n",
    "        char reserved[60];\n",
    "    } extra;\n",
    "} memory_desc;\n",
    "typedef struct exec_arg {\n",
    "    int arg;\n",
    "    void *memory;\n",
    "} exec_arg;\n",
    "typedef struct version {\n",
    "    int major, minor, patch;\n",
    "} version;\n",
    "#define CALL(i, type) ((type)berth_imports[i].address)\n",
    "#define get_version CALL(0, const version *(*)(void))\n",
    "#define engine_create CALL(1, int (*)(void **, int, size_t))\n",
    "#define stream_create CALL(2, int (*)(void **, void *, unsigned))\n",
    "#define attr_create CALL(3, int (*)(void **))\n",
    "#define attr_set_scratchpad_mode CALL(4, int (*)(void *, int))\n",
    "#define attr_set_post_ops CALL(5, int (*)(void *, const void *))\n",
    "#define post_ops_create CALL(6, int (*)(void **))\n",
    "#define post_ops_append_eltwise CALL(7, int (*)(void *, float, int, float, float))\n",
    "#define conv_desc_init                                                                            \\\n",
    "    CALL(8, int (*)(void *, int, int, const memory_desc *, const memory_desc *,                   \\\n",
    "                    const memory_desc *, const memory_desc *, const int64_t *, const int64_t *,   \\\n",
    "                    const int64_t *, const int64_t *))\n",
    "#define matmul_desc_init                                                                          \\\n",
    "    CALL(9, int (*)(void *, const memory_desc *, const memory_desc *, const memory_desc *,        \\\n",
    "                    const memory_desc *))\n",
    "#define primitive_desc_create CALL(10, int (*)(void **, const void *, const void *, void *, void *))\n",
    "#define primitive_create CALL(11, int (*)(void **, const void *))\n",
    "#define query_md CALL(12, const memory_desc *(*)(const void *, int, int))\n",
    "#define get_size CALL(13, size_t (*)(const memory_desc *))\n",
    "#define memory_create CALL(14, int (*)(void **, const memory_desc *, void *, void *))\n",
    "#define memory_destroy CALL(15, int (*)(void *))\n",
    "#define execute CALL(16, int (*)(const void *, void *, int, const exec_arg *))\n",
    "#define primitive_destroy CALL(17, int (*)(void *))\n",
    "#define primitive_desc_destroy CALL(18, int (*)(void *))\n",
    "#define attr_destroy CALL(19, int (*)(void *))\n",
    "#define post_ops_destroy CALL(20, int (*)(void *))\n",
    "#define stream_destroy CALL(21, int (*)(void *))\n",
    "#define engine_destroy CALL(22, int (*)(void *))\n",
    "#define omp_set_num_threads CALL(23, void (*)(int))\n",
    "#define omp_get_max_threads CALL(24, int (*)(void))\n",
    "#define post_ops_append_sum CALL(25, int (*)(void *, float))\n",
    "\n",
    "/* Operands and result: source, weights, bias, destination. */\n",
    "enum { operands = 4 };\n",
    "static const int arguments[operands] = {1, 33, 41, 17};\n",
    "static void *engine, *primitives[shapes];\n",
    "static memory_desc descs[shapes][operands], scratch_desc[shapes];\n",
    "static size_t scratch_bytes[shapes];\n",
    "/* Of a part of the grid: a stream and scratch memory, for one thread at a time. */\n",
    "static void *streams[groups], *rooms[groups];\n",
    "static atomic_flag busy[groups];\n",
    "\n",
    "static void describe(const operand *from, memory_desc *to) {\n",
    "    memset(to, 0, sizeof(*to));\n",
    "    to->ndims = from->rank;\n",
    "    to->data_type = f32;\n",
    "    to->format_kind = blocked;\n",
    "    to->blocking.inner_nblks = from->blocks;\n",
    "    for (int d = 0; d < from->rank; ++d) {\n",
    "        to->dims[d] = to->padded_dims[d] = from->dims[d];\n",
    "        to->blocking.strides[d] = from->strides[d];\n",
    "    }\n",
    "    for (int i = 0; i < from->blocks; ++i) {\n",
    "        to->blocking.inner_blks[i] = from->block[i];\n",
    "        to->blocking.inner_idxs[i] = from->block_dim[i];\n",
    "    }\n",
    "}\n",
    "\n",
    "static int make_primitive(int shape, const void *attr) {\n",
    "    _Alignas(16) static char desc[32768];\n",
    "    memory_desc *d = descs[shape];\n",
    "    const memory_desc *bias = has_bias ? &d[2] : 0;\n",
    "    void *made = 0;\n",
    "    for (int i = 0; i < operands; ++i) describe(&tables[shape][i], &d[i]);\n",
    "    memset(desc, 0, sizeof(desc));\n",
    "    int failed = is_convolution ? conv_desc_init(desc, inference, direct, &d[0], &d[1], bias, &d[3],\n",
    "                                                 strides, dilations, pads_begin, pads_end)\n",
    "                                : matmul_desc_init(desc, &d[0], &d[1], bias, &d[3]);\n",
    "    if (failed) return failed;\n",
    "    failed = primitive_desc_create(&made, desc, attr, engine, 0);\n",
    "    if (failed) return failed;\n",
    "    failed = primitive_create(&primitives[shape], made);\n",
    "    const memory_desc *needed = failed ? 0 : query_md(made, scratchpad_md, 0);\n",
    "    if (needed) scratch_desc[shape] = *needed;\n",
    "    if (needed) scratch_bytes[shape] = get_size(needed);\n",
    "    primitive_desc_destroy(made);\n",
    "    return failed;\n",
    "}\n",
    "\n",
    "static int make_all(void) {\n",
    "    void *attr = 0, *post_ops = 0;\n",
    "    int failed = engine_create(&engine, 1, 0);\n",
    "    if (!failed) failed = attr_create(&attr);\n",
    "    if (!failed) failed = attr_set_scratchpad_mode(attr, user_scratchpad);\n",
    "    if (!failed) failed = post_ops_create(&post_ops);\n",
    "    if (!failed && has_sum) failed = post_ops_append_sum(post_ops, 1);\n",
    "    if (!failed && has_relu) failed = post_ops_append_eltwise(post_ops, 1, relu, 0, 0);\n",
    "    if (!failed) failed = attr_set_post_ops(attr, post_ops);\n",
    "    for (int i = 0; i < shapes && !failed; ++i) failed = make_primitive(i, attr);\n",
    "    for (int i = 0; i < groups && !failed; ++i) {\n",
    "        size_t bytes = (scratch_bytes[parts[i].shape] + 4095) / 4096 * 4096;\n",
    "        if (bytes) rooms[i] = aligned_alloc(4096, bytes);\n",
    "        failed = bytes && !rooms[i] ? 1 : stream_create(&streams[i], engine, 1);\n",
    "    }\n",
    "    if (post_ops) post_ops_destroy(post_ops);\n",
    "    if (attr) attr_destroy(attr);\n",
    "    return failed;\n",
    "}\n",
    "\n",
    "const char *berth_open(void);\n",
    "const char *berth_open(void) {\n",
    "    static char text[128];\n",
    "    const version *v = get_version();\n",
    "    if (v->major != 2) {\n",
    "        snprintf(text, sizeof(text),\n",
    "                 \"the shared library \\\"libdnnl.so.2\\\" is oneDNN %d.%d.%d, and version 2 is called\",\n",
    "                 v->major, v->minor, v->patch);\n",
    "        return text;\n",
    "    }\n",
    "    int threads = omp_get_max_threads();\n",
    "    omp_set_num_threads(1);\n",
    "    int failed = make_all();\n",
    "    omp_set_num_threads(threads);\n",
    "    if (!failed) return 0;\n",
    "    snprintf(text, sizeof(text), \"oneDNN %d.%d.%d cannot compute this operation here: its status %d\",\n",
    "             v->major, v->minor, v->patch, failed);\n",
    "    return text;\n",
    "}\n",
    "\n",
    "__attribute__((destructor)) static void berth_end(void) {\n",
    "    for (int i = 0; i < groups; ++i) {\n",
    "        if (streams[i]) stream_destroy(streams[i]);\n",
    "        free(rooms[i]);\n",
    "    }\n",
    "    for (int i = 0; i < shapes; ++i)\n",
    "        if (primitives[i]) primitive_destroy(primitives[i]);\n",
    "    if (engine) engine_destroy(engine);\n",
    "}\n",
    "\n",
    "/* The sum is of what the result's place has held. Parts in blocks are whole; of others rows lie apart. */\n",
    "static void copy_sum(int part, const float *from, float *to) {\n",
    "    const operand *o = &tables[parts[part].shape][3];\n",
    "    int64_t batch = o->rank > 2 ? o->dims[0] : 1, rows = o->dims[o->rank - 2];\n",
    "    from += parts[part].offsets[3];\n",
    "    to += parts[part].offsets[3];\n",
    "    if (o->blocks) memcpy(to, from, sizeof(float) * (size_t)o->span);\n",
    "    for (int64_t b = 0; b < batch && !o->blocks; ++b)\n",
    "        for (int64_t i = 0; i < rows; ++i) {\n",
    "            int64_t at = (batch > 1 ? b * o->strides[0] : 0) + i * o->strides[o->rank - 2];\n",
    "            memcpy(to + at, from + at, sizeof(float) * (size_t)o->dims[o->rank - 1]);\n",
    "        }\n",
    "}\n",
    "\n",
    "/* What cannot be computed for want of memory is no number, so that it is seen. */\n",
    "static void spoil(int part, float *result) {\n",
    "    const operand *to = &tables[parts[part].shape][3];\n",
    "    memset(result + parts[part].offsets[3], 0xff, sizeof(float) * (size_t)to->span);\n",
    "}\n",
    "\n",
    "static void run_part(int part, float *const *data) {\n",
    "    int shape = parts[part].shape, count = 0, failed = 0;\n",
    "    int mine = scratch_bytes[shape] && !atomic_flag_test_and_set(&busy[part]);\n",
    "    void *room = mine ? rooms[part]\n",
    "                      : scratch_bytes[shape]\n",
    "                            ? aligned_alloc(4096, (scratch_bytes[shape] + 4095) / 4096 * 4096)\n",
    "                            : 0;\n",
    "    exec_arg args[operands + 1];\n",
    "    for (int i = 0; i < operands && !failed; ++i) {\n",
    "        if (!data[i]) continue;\n",
    "        failed = memory_create(&args[count].memory, &descs[shape][i], engine,\n",
    "                               data[i] + parts[part].offsets[i]);\n",
    "        args[count].arg = arguments[i];\n",
    "        if (!failed) count++;\n",
    "    }\n",
    "    if (scratch_bytes[shape] && !failed) {\n",
    "        failed = !room || memory_create(&args[count].memory, &scratch_desc[shape], engine, room);\n",
    "        args[count].arg = 80;\n",
    "        if (!failed) count++;\n",
    "    }\n",
    "    if (!failed) failed = execute(primitives[shape], streams[part], count, args);\n",
    "    for (int i = 0; i < count; ++i) memory_destroy(args[i].memory);\n",
    "    if (mine)\n",
    "        atomic_flag_clear(&busy[part]);\n",
    "    else\n",
    "        free(room);\n",
    "    if (failed) spoil(part, data[3]);\n",
    "}\n",
    "\n",
    "static void run(float *const *data, const float *sum, int64_t begin, int64_t end) {\n",
    "    int threads = omp_get_max_threads();\n",
    "    omp_set_num_threads(1);\n",
    "    for (int64_t i = begin; i < end; ++i) {\n",
    "        if (has_sum) copy_sum((int)i, sum, data[3]);\n",
    "        run_part((int)i, data);\n",
    "    }\n",
    "    omp_set_num_threads(threads);\n",
    "}\n",
};
// clang-format on

#define D "libdnnl.so.2"
static const char *const imports[] = {D, "dnnl_version",
                                      D, "dnnl_engine_create",
                                      D, "dnnl_stream_create",
                                      D, "dnnl_primitive_attr_create",
                                      D, "dnnl_primitive_attr_set_scratchpad_mode",
                                      D, "dnnl_primitive_attr_set_post_ops",
                                      D, "dnnl_post_ops_create",
                                      D, "dnnl_post_ops_append_eltwise",
                                      D, "dnnl_dilated_convolution_forward_desc_init",
                                      D, "dnnl_matmul_desc_init",
                                      D, "dnnl_primitive_desc_create",
                                      D, "dnnl_primitive_create",
                                      D, "dnnl_primitive_desc_query_md",
                                      D, "dnnl_memory_desc_get_size",
                                      D, "dnnl_memory_create",
                                      D, "dnnl_memory_destroy",
                                      D, "dnnl_primitive_execute",
                                      D, "dnnl_primitive_destroy",
                                      D, "dnnl_primitive_desc_destroy",
                                      D, "dnnl_primitive_attr_destroy",
                                      D, "dnnl_post_ops_destroy",
                                      D, "dnnl_stream_destroy",
                                      D, "dnnl_engine_destroy",
                                      D, "omp_set_num_threads",
                                      D, "omp_get_max_threads",
                                      D, "dnnl_post_ops_append_sum"};
#undef D

enum { SOURCE, WEIGHTS, BIAS, RESULT, OPERANDS, MOST_RANK = 5 };

// A tensor as oneDNN describes it, and how far apart the parts of it lie that the grid divides.
typedef struct operand {
    int rank;
    int64_t dims[MOST_RANK], strides[MOST_RANK];
    int blocks;
    int64_t block[2];
    int block_dim[2];
} operand;

static void fill_plain(operand *o, int rank, const int64_t *dims, const int64_t *strides) {
    *o = (operand){.rank = rank};
    for (int d = 0; d < rank; ++d) {
        o->dims[d] = dims[d];
        o->strides[d] = strides[d];
    }
}

// Elements in a row as the layout has them. The layouts are those that the pass layout gave.
static void fill_layout(operand *o, const char *tag, int rank, const int64_t *dims) {
    berth_layout layout;
    int64_t physical[BERTH_MAX_RANK + BERTH_LAYOUT_MAX_BLOCKS];
    berth_status_ignore(berth_layout_parse(tag, rank, &layout));
    int count = berth_layout_physical_dims(&layout, dims, physical);
    int64_t stride = 1;
    *o = (operand){.rank = rank, .blocks = layout.block_count};
    for (int i = count - 1; i >= rank; --i) {
        o->block[i - rank] = layout.block_size[i - rank];
        o->block_dim[i - rank] = layout.block_dim[i - rank];
        stride *= physical[i];
    }
    for (int i = rank - 1; i >= 0; --i) {
        o->dims[layout.outer[i]] = dims[layout.outer[i]];
        o->strides[layout.outer[i]] = stride;
        stride *= physical[i];
    }
}

static void describe_product(const berth_library_use *use, const berth_library_grid *grid,
                             int64_t count, operand out[OPERANDS]) {
    const berth_library_product *p = &use->product;
    int64_t batch = grid->axis == BERTH_LIBRARY_BATCH ? count : p->batch;
    int64_t rows = grid->axis == BERTH_LIBRARY_ROWS ? count : p->rows;
    int64_t columns = grid->axis == BERTH_LIBRARY_COLUMNS ? count : p->columns;
    int skip = p->batch == 1;  // then matrices
    int64_t sizes[][3] = {{batch, rows, p->depth},
                          {batch, p->depth, columns},
                          {1, 1, columns},
                          {batch, rows, columns}};
    int64_t steps[][3] = {
        {p->rows * p->depth, p->transposed_a ? 1 : p->depth, p->transposed_a ? p->rows : 1},
        {p->depth * p->columns, p->transposed_b ? 1 : p->columns, p->transposed_b ? p->depth : 1},
        {columns, columns, 1},
        {p->rows * p->columns, p->columns, 1}};
    for (int i = 0; i < OPERANDS; ++i)
        fill_plain(&out[i], 3 - skip, sizes[i] + skip, steps[i] + skip);
}

static void describe_convolution(const berth_library_use *use, const char *const *layouts,
                                 const berth_library_grid *grid, int64_t count,
                                 operand out[OPERANDS]) {
    const berth_library_convolution *c = &use->convolution;
    const berth_window *w = &c->window;
    bool columns = grid->axis == BERTH_LIBRARY_COLUMNS;
    int64_t images = columns ? c->images : count, outputs = columns ? count : c->outputs;
    int64_t inputs = c->depthwise ? outputs : c->inputs;
    fill_layout(&out[SOURCE], layouts[0], 4, (int64_t[]){images, inputs, w->input[0], w->input[1]});
    if (c->depthwise)  // a group per channel: one more dimension in front of the same bytes
        fill_layout(&out[WEIGHTS], c->block == 16 ? "Abcde16a" : "Abcde8a", 5,
                    (int64_t[]){outputs, 1, 1, w->kernel[0], w->kernel[1]});
    else
        fill_layout(&out[WEIGHTS], layouts[1], 4,
                    (int64_t[]){outputs, inputs, w->kernel[0], w->kernel[1]});
    fill_plain(&out[BIAS], 1, &outputs, (int64_t[]){1});
    fill_layout(&out[RESULT], layouts[use->operand_count], 4,
                (int64_t[]){images, outputs, w->output[0], w->output[1]});
}

// Where the part that begins at `begin` of the grid's dimension lies in the operands.
static void find_offsets(const berth_library_use *use, const berth_library_grid *grid,
                         int64_t begin, int64_t offsets[OPERANDS]) {
    const berth_library_product *p = &use->product;
    const berth_library_convolution *c = &use->convolution;
    const berth_window *w = &c->window;
    int64_t in = w->input[0] * w->input[1], out = w->output[0] * w->output[1];
    bool conv = use->kind == BERTH_OP_CONV;
    memset(offsets, 0, OPERANDS * sizeof(*offsets));
    if (grid->axis == BERTH_LIBRARY_BATCH) {
        offsets[SOURCE] = begin * (conv ? c->inputs * in : p->rows * p->depth);
        offsets[WEIGHTS] = conv || p->shared_b ? 0 : begin * p->depth * p->columns;
        offsets[RESULT] = begin * (conv ? c->outputs * out : p->rows * p->columns);
    } else if (grid->axis == BERTH_LIBRARY_ROWS) {
        offsets[SOURCE] = begin * (p->transposed_a ? 1 : p->depth);
        offsets[RESULT] = begin * p->columns;
    } else if (conv) {
        offsets[SOURCE] = c->depthwise ? begin * in : 0;
        offsets[WEIGHTS] = begin * (c->depthwise ? 1 : c->inputs) * w->kernel[0] * w->kernel[1];
        offsets[BIAS] = begin;
        offsets[RESULT] = begin * out;
    } else {
        offsets[WEIGHTS] = begin * (p->transposed_b ? p->depth : 1);
        offsets[BIAS] = offsets[RESULT] = begin;
    }
}

// ---- text ---------------------------------------------------------------------------------------

static void add_list(berth_strbuf *out, const int64_t *values, int count) {
    berth_strbuf_add(out, "{");
    for (int i = 0; i < count; ++i)
        berth_strbuf_addf(out, "%s%lld", i ? ", " : "", (long long)values[i]);
    berth_strbuf_add(out, count ? "}" : "0}");
}

static void add_operand(berth_strbuf *out, const operand *o) {
    int64_t span = 1, which[2] = {o->block_dim[0], o->block_dim[1]};
    for (int d = 0; d < o->rank; ++d) span *= o->dims[d];
    berth_strbuf_addf(out, "        {%d, ", o->rank);
    add_list(out, o->dims, o->rank);
    berth_strbuf_add(out, ", ");
    add_list(out, o->strides, o->rank);
    berth_strbuf_addf(out, ", %d, ", o->blocks);
    add_list(out, o->block, o->blocks);
    berth_strbuf_add(out, ", ");
    add_list(out, which, o->blocks);
    berth_strbuf_addf(out, ", %lld},\n", (long long)span);
}

static void describe(const berth_library_use *use, const char *const *layouts,
                     const berth_library_grid *grid, int64_t count, operand out[OPERANDS]) {
    if (use->kind == BERTH_OP_CONV)
        describe_convolution(use, layouts, grid, count, out);
    else
        describe_product(use, grid, count, out);
}

// Parts differ by a unit at most, so that there are few shapes.
static void add_tables(const berth_library_use *use, const char *const *layouts,
                       const berth_library_grid *grid, berth_arena *arena, berth_strbuf *out) {
    berth_strbuf parts = berth_strbuf_make(arena);
    BERTH_VEC(int64_t) counts = {0};
    for (int64_t g = 0; g < grid->groups; ++g) {
        int64_t begin = berth_library__part_begin(grid, g), offsets[OPERANDS];
        int64_t count = berth_library__part_begin(grid, g + 1) - begin;
        uint32_t shape = 0;
        while (shape < counts.count && counts.data[shape] != count) shape++;
        if (shape == counts.count) berth_vec_push(arena, &counts, count);
        find_offsets(use, grid, begin, offsets);
        berth_strbuf_addf(&parts, "    {%u, ", shape);
        add_list(&parts, offsets, OPERANDS);
        berth_strbuf_add(&parts, "},\n");
    }
    berth_strbuf_addf(out,
                      "enum { shapes = %u, groups = %lld };\n"
                      "typedef struct operand {\n    int rank;\n    int64_t dims[5], strides[5];\n"
                      "    int blocks;\n    int64_t block[2], block_dim[2], span;\n} operand;\n"
                      "static const operand tables[shapes][4] = {\n",
                      counts.count, (long long)grid->groups);
    for (uint32_t i = 0; i < counts.count; ++i) {
        operand operands[OPERANDS];
        describe(use, layouts, grid, counts.data[i], operands);
        berth_strbuf_add(out, "    {\n");
        for (int k = 0; k < OPERANDS; ++k) add_operand(out, &operands[k]);
        berth_strbuf_add(out, "    },\n");
    }
    berth_strbuf_addf(out,
                      "};\nstatic const struct {\n    int shape;\n    int64_t offsets[4];\n} "
                      "parts[groups] = {\n%s};\n",
                      berth_strbuf_text(&parts));
}

static void add_window(const berth_window *w, berth_strbuf *out) {
    static const char *const names[] = {"strides", "dilations", "pads_begin", "pads_end"};
    const int64_t *values[] = {w->strides, w->dilations, w->pads_begin, w->pads_end};
    for (int i = 0; i < 4; ++i) {
        int64_t less = i == 1;  // oneDNN counts the elements left out
        berth_strbuf_addf(out, "static const int64_t %s[] = {%lld, %lld};\n", names[i],
                          (long long)(values[i][0] - less), (long long)(values[i][1] - less));
    }
}

berth_library_code berth_library__dnnl(const berth_library_use *use, const char *const *layouts,
                                       const berth_library_grid *grid, berth_arena *arena) {
    bool bias = use->bias, sum = use->sum;
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_addf(&out,
                      "#include <stdatomic.h>\n#include <stdint.h>\n#include <stdio.h>\n"
                      "#include <stdlib.h>\n#include <string.h>\n"
                      "enum { is_convolution = %d, has_bias = %d, has_sum = %d, has_relu = %d };\n",
                      use->kind == BERTH_OP_CONV, bias, sum, use->relu);
    add_window(&use->convolution.window, &out);
    add_tables(use, layouts, grid, arena, &out);
    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); ++i) berth_strbuf_add(&out, body[i]);
    for (int i = 0; i < 2; ++i)
        berth_strbuf_addf(&out,
                          "void " BERTH_LIBRARY_SYMBOL
                          "(const float *x, const float *w%s%s, float *y, int64_t begin, "
                          "int64_t end)%s",
                          bias ? ", const float *bias" : "", sum ? ", const float *sum" : "",
                          i ? " {\n" : ";\n");
    berth_strbuf_addf(&out,
                      "    float *const data[operands] = {(float *)(uintptr_t)x, "
                      "(float *)(uintptr_t)w, %s, y};\n    run(data, %s, begin, end);\n}\n",
                      bias ? "(float *)(uintptr_t)bias" : "0", sum ? "sum" : "0");
    return (berth_library_code){.source = berth_strbuf_text(&out),
                                .imports = imports,
                                .import_count = sizeof(imports) / sizeof(imports[0]),
                                .language = "c",
                                .groups = grid->groups};
}
