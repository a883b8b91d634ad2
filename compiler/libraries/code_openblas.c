// The C source of a call of OpenBLAS: a product for each part of the result, on the thread that
// computes the part, with OpenBLAS's own threads switched off.
#include "compiler/libraries/code.h"

#include <string.h>

#include "base/str.h"
#include "ir/layout.h"

// clang-format off
static const char *const body[] = {
    "#define gemm ((gemm_function)berth_imports[0].address)\n",
    "#define set_num_threads ((void (*)(int))berth_imports[1].address)\n",
    "#define get_parallel ((int (*)(void))berth_imports[2].address)\n",
    "enum { row_major = 101, plain = 111, transposed = 112, openmp = 2 };\n",
    "\n",
    "/* The threads are Berth's: each calls for a part of the result. */\n",
    "const char *berth_open(void);\n",
    "const char *berth_open(void) {\n",
    "    if (get_parallel() == openmp)\n",
    "        return \"this OpenBLAS makes threads of its own (OpenMP) for each thread that calls it\";\n",
    "    set_num_threads(1);\n",
    "    return 0;\n",
    "}\n",
    "\n",
    "static void finish(element *y, const element *bias, const element *sum, int rows, int columns) {\n",
    "    for (int i = 0; i < rows; ++i) {\n",
    "        element *row = y + (int64_t)i * ld_y;\n",
    "        if (bias)\n",
    "            for (int j = 0; j < columns; ++j) row[j] += bias[j];\n",
    "        if (sum)\n",
    "            for (int j = 0; j < columns; ++j) row[j] += sum[(int64_t)i * ld_y + j];\n",
    "        if (has_relu)\n",
    "            for (int j = 0; j < columns; ++j) row[j] = row[j] < 0 ? 0 : row[j];\n",
    "    }\n",
    "}\n",
    "\n",
    "static void run(const element *a, const element *b, const element *bias, const element *sum,\n",
    "                element *y, int64_t begin, int64_t end) {\n",
    "    for (int64_t g = begin; g < end; ++g) {\n",
    "        const part *p = &parts[g];\n",
    "        for (int64_t i = p->first; i < p->end; ++i) {\n",
    "            element *to = y + i * batch_y + p->y;\n",
    "            gemm(row_major, transposed_a ? transposed : plain, transposed_b ? transposed : plain,\n",
    "                 p->rows, p->columns, depth, 1, a + i * batch_a + p->a, ld_a,\n",
    "                 b + i * batch_b + p->b, ld_b, 0, to, ld_y);\n",
    "            if (bias || sum || has_relu)\n",
    "                finish(to, bias ? bias + p->bias : 0, sum ? sum + i * batch_y + p->y : 0, p->rows,\n",
    "                       p->columns);\n",
    "        }\n",
    "    }\n",
    "}\n",
};
// clang-format on

static const char *const imports_f32[] = {"libopenblas.so.0", "cblas_sgemm",
                                          "libopenblas.so.0", "openblas_set_num_threads",
                                          "libopenblas.so.0", "openblas_get_parallel"};
static const char *const imports_f64[] = {"libopenblas.so.0", "cblas_dgemm",
                                          "libopenblas.so.0", "openblas_set_num_threads",
                                          "libopenblas.so.0", "openblas_get_parallel"};

static void add_constant(berth_strbuf *out, const char *name, int64_t value) {
    berth_strbuf_addf(out, "enum { %s = %lld };\n", name, (long long)value);
}

// Strides may be larger than an int.
static void add_stride(berth_strbuf *out, const char *name, int64_t value) {
    berth_strbuf_addf(out, "static const int64_t %s = INT64_C(%lld);\n", name, (long long)value);
}

static void add_parts(const berth_library_product *p, const berth_library_grid *grid,
                      berth_strbuf *out) {
    berth_strbuf_add(out, "typedef struct part {\n    int64_t first, end, a, b, bias, y;\n"
                          "    int rows, columns;\n} part;\nstatic const part parts[] = {\n");
    for (int64_t g = 0; g < grid->groups; ++g) {
        int64_t begin = berth_library__part_begin(grid, g);
        int64_t count = berth_library__part_begin(grid, g + 1) - begin;
        bool batch = grid->axis == BERTH_LIBRARY_BATCH, rows = grid->axis == BERTH_LIBRARY_ROWS;
        bool columns = grid->axis == BERTH_LIBRARY_COLUMNS;
        int64_t a = rows ? begin * (p->transposed_a ? 1 : p->depth) : 0;
        int64_t b = columns ? begin * (p->transposed_b ? p->depth : 1) : 0;
        int64_t y = rows ? begin * p->columns : columns ? begin : 0;
        berth_strbuf_addf(
            out,
            "    {%lld, %lld, INT64_C(%lld), INT64_C(%lld), %lld, INT64_C(%lld), %lld, %lld},\n",
            (long long)(batch ? begin : 0), (long long)(batch ? begin + count : p->batch),
            (long long)a, (long long)b, (long long)(columns ? begin : 0), (long long)y,
            (long long)(rows ? count : p->rows), (long long)(columns ? count : p->columns));
    }
    berth_strbuf_add(out, "};\n");
}

berth_library_code berth_library__openblas(const berth_library_use *use,
                                           const berth_library_grid *grid, berth_arena *arena) {
    const berth_library_product *p = &use->product;
    bool wide = use->dtype == BERTH_DTYPE_F64, bias = use->bias;
    const char *element = wide ? "double" : "float";
    berth_strbuf out = berth_strbuf_make(arena);
    berth_strbuf_addf(&out,
                      "#include <stdint.h>\ntypedef %s element;\n"
                      "typedef void (*gemm_function)(int, int, int, int, int, int, element, "
                      "const element *, int, const element *, int, element, element *, int);\n",
                      element);
    add_constant(&out, "depth", p->depth);
    add_constant(&out, "transposed_a", p->transposed_a);
    add_constant(&out, "transposed_b", p->transposed_b);
    add_constant(&out, "ld_a", p->transposed_a ? p->rows : p->depth);
    add_constant(&out, "ld_b", p->transposed_b ? p->depth : p->columns);
    add_constant(&out, "ld_y", p->columns);
    add_constant(&out, "has_relu", use->relu);
    add_stride(&out, "batch_a", p->rows * p->depth);
    add_stride(&out, "batch_b", p->shared_b ? 0 : p->depth * p->columns);
    add_stride(&out, "batch_y", p->rows * p->columns);
    add_parts(p, grid, &out);
    for (size_t i = 0; i < sizeof(body) / sizeof(body[0]); ++i) berth_strbuf_add(&out, body[i]);
    const char *groups = grid->groups > 0 ? ", int64_t begin, int64_t end" : "";
    for (int i = 0; i < 2; ++i)
        berth_strbuf_addf(&out,
                          "void " BERTH_LIBRARY_SYMBOL
                          "(const element *a, const element *b%s%s, element *y%s)%s",
                          bias ? ", const element *bias" : "",
                          use->sum ? ", const element *sum" : "", groups, i ? " {\n" : ";\n");
    berth_strbuf_addf(&out, "    run(a, b, %s, %s, y, begin, end);\n}\n", bias ? "bias" : "0",
                      use->sum ? "sum" : "0");
    return (berth_library_code){.source = berth_strbuf_text(&out),
                                .imports = wide ? imports_f64 : imports_f32,
                                .import_count = sizeof(imports_f32) / sizeof(imports_f32[0]),
                                .language = "c",
                                .groups = grid->groups};
}
