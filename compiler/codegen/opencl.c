// OpenCL C 1.2, with subgroups 2.0 or 3.0: kernels of opencl devices. Loops over groups and work-items (GROUP_*, LOCAL_*)
// become ids; a nest without them gets one work-item per iteration of its parallel loops.
#include <string.h>

#include "compiler/codegen/c_groups.h"
#include "compiler/codegen/c_preamble.h"
#include "compiler/codegen/c_together.h"
#include "compiler/codegen/kernel_facts.h"
#include "compiler/codegen/template.h"

// clang-format off
static const char head[] =
    "#ifdef cl_khr_fp64\n"
    "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
    "#define BERTH_HAS_F64 1\n"
    "#endif\n"
    "#pragma OPENCL FP_CONTRACT ON\n"
    "#define BERTH_FN static inline\n"
    "typedef char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;\n"
    "typedef uchar uint8_t; typedef ushort uint16_t; typedef uint uint32_t; typedef ulong uint64_t;\n"
    "#define INT8_MIN (-128)\n#define INT8_MAX 127\n#define UINT8_MAX 255\n"
    "#define INT16_MIN (-32768)\n#define INT16_MAX 32767\n#define UINT16_MAX 65535\n"
    "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n#define UINT32_MAX 4294967295u\n"
    "#define INT64_MIN (-9223372036854775807l - 1)\n#define INT64_MAX 9223372036854775807l\n"
    "#define UINT64_MAX 18446744073709551615ul\n"
    "#ifdef __clang__\n"
    "#pragma clang diagnostic ignored \"-Wpass-failed\"\n"
    "#define BERTH_SIMD _Pragma(\"clang loop vectorize(assume_safety)\")\n"
    "#else\n"
    "#define BERTH_SIMD\n"
    "#endif\n"
    "#define BERTH_INF_F32 INFINITY\n#define BERTH_NAN_F32 NAN\n"
    "#define BERTH_INF_F64 ((double)INFINITY)\n#define BERTH_NAN_F64 ((double)NAN)\n"
    "#define berth_float_of_bits(bits) as_float((uint)(bits))\n"
    "#define berth_bits_of_float(x) as_uint((float)(x))\n"
    "#define __builtin_fabsf fabs\n#define __builtin_floorf floor\n#define __builtin_ceilf ceil\n"
    "#define __builtin_rintf rint\n#define __builtin_truncf trunc\n#define __builtin_sqrtf sqrt\n"
    "#define __builtin_sinf sin\n#define __builtin_cosf cos\n#define __builtin_tanf tan\n"
    "#define __builtin_asinf asin\n#define __builtin_acosf acos\n#define __builtin_atanf atan\n"
    "#define __builtin_sinhf sinh\n#define __builtin_coshf cosh\n#define __builtin_asinhf asinh\n"
    "#define __builtin_acoshf acosh\n#define __builtin_atanhf atanh\n#define __builtin_powf pow\n"
    "#define __builtin_fmodf fmod\n#define __builtin_atan2f atan2\n#define __builtin_copysignf copysign\n"
    "#define __builtin_fmaf fma\n"
    "#define __builtin_fabs fabs\n#define __builtin_floor floor\n#define __builtin_ceil ceil\n"
    "#define __builtin_rint rint\n#define __builtin_trunc trunc\n#define __builtin_sqrt sqrt\n"
    "#define __builtin_sin sin\n#define __builtin_cos cos\n#define __builtin_tan tan\n"
    "#define __builtin_asin asin\n#define __builtin_acos acos\n#define __builtin_atan atan\n"
    "#define __builtin_sinh sinh\n#define __builtin_cosh cosh\n#define __builtin_asinh asinh\n"
    "#define __builtin_acosh acosh\n#define __builtin_atanh atanh\n#define __builtin_pow pow\n"
    "#define __builtin_fmod fmod\n#define __builtin_atan2 atan2\n#define __builtin_fma fma\n"
    "#define __builtin_exp exp\n#define __builtin_log log\n#define __builtin_tanh tanh\n#define __builtin_erf erf\n";

// In front of kernels that use subgroups. A device without them has other kernels, or none: it is no matter of its
// compiler's choice.
static const char subgroups[] =
    "#if !defined(cl_khr_subgroups) && !defined(__opencl_c_subgroups)\n"
    "#error these kernels need subgroups (cl_khr_subgroups), which the device lacks\n"
    "#endif\n"
    "#ifdef cl_khr_subgroups\n"
    "#pragma OPENCL EXTENSION cl_khr_subgroups : enable\n"
    "#endif\n";

static const char vectors[] =
    "#define BERTH_EACH(OP, N) BERTH_FN berth_f32x##N berth_##OP##_f32x##N(berth_f32x##N a) { return OP(a); }\n"
    "#define BERTH_VECTORS(N) \\\n"
    "typedef float##N berth_f32x##N; \\\n"
    "typedef int##N berth_i32x##N; \\\n"
    "BERTH_FN berth_f32x##N berth_select_f32x##N(berth_i32x##N m, berth_f32x##N a, berth_f32x##N b) { return select(b, a, m); } \\\n"
    "BERTH_FN berth_i32x##N berth_select_i32x##N(berth_i32x##N m, berth_i32x##N a, berth_i32x##N b) { return select(b, a, m); } \\\n"
    "BERTH_FN berth_f32x##N berth_max_const_f32x##N(berth_f32x##N a, berth_f32x##N c) { return select(a, c, c > a); } \\\n"
    "BERTH_FN berth_f32x##N berth_min_const_f32x##N(berth_f32x##N a, berth_f32x##N c) { return select(a, c, c < a); } \\\n"
    "BERTH_FN berth_f32x##N berth_max_f32x##N(berth_f32x##N a, berth_f32x##N b) { return select(b, a, (a > b) | (a != a)); } \\\n"
    "BERTH_FN berth_f32x##N berth_min_f32x##N(berth_f32x##N a, berth_f32x##N b) { return select(b, a, (a < b) | (a != a)); } \\\n"
    "BERTH_FN berth_i32x##N berth_max_i32x##N(berth_i32x##N a, berth_i32x##N b) { return max(a, b); } \\\n"
    "BERTH_FN berth_i32x##N berth_min_i32x##N(berth_i32x##N a, berth_i32x##N b) { return min(a, b); } \\\n"
    "BERTH_FN berth_f32x##N berth_fma_f32x##N(berth_f32x##N a, berth_f32x##N b, berth_f32x##N c) { return a * b + c; } \\\n"
    "BERTH_FN berth_f32x##N berth_cast_f32_i32x##N(berth_i32x##N a) { return convert_float##N(a); } \\\n"
    "BERTH_FN berth_i32x##N berth_cast_i32_f32x##N(berth_f32x##N a) { return convert_int##N##_sat_rtz(a); } \\\n"
    "BERTH_FN berth_i32x##N berth_is_nan_f32x##N(berth_f32x##N a) { return a != a; } \\\n"
    "BERTH_FN berth_f32x##N berth_abs_f32x##N(berth_f32x##N a) { return fabs(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_sign_f32x##N(berth_f32x##N a) { \\\n"
    "    return select(select(a, (berth_f32x##N)-1, a < 0), (berth_f32x##N)1, a > 0); } \\\n"
    "BERTH_FN berth_f32x##N berth_floor_f32x##N(berth_f32x##N a) { return floor(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_ceil_f32x##N(berth_f32x##N a) { return ceil(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_round_f32x##N(berth_f32x##N a) { return rint(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_trunc_f32x##N(berth_f32x##N a) { return trunc(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_sqrt_f32x##N(berth_f32x##N a) { return sqrt(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_rsqrt_f32x##N(berth_f32x##N a) { return 1.0f / sqrt(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_exp_f32x##N(berth_f32x##N a) { return exp(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_log_f32x##N(berth_f32x##N a) { return log(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_tanh_f32x##N(berth_f32x##N a) { return tanh(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_sin_f32x##N(berth_f32x##N a) { return sin(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_cos_f32x##N(berth_f32x##N a) { return cos(a); } \\\n"
    "BERTH_EACH(tan, N) BERTH_EACH(asin, N) BERTH_EACH(acos, N) BERTH_EACH(atan, N) BERTH_EACH(sinh, N) BERTH_EACH(cosh, N) \\\n"
    "BERTH_EACH(asinh, N) BERTH_EACH(acosh, N) BERTH_EACH(atanh, N) \\\n"
    "BERTH_FN berth_f32x##N berth_sigmoid_f32x##N(berth_f32x##N a) { return 1.0f / (1.0f + exp(-a)); } \\\n"
    "BERTH_FN berth_f32x##N berth_erf_f32x##N(berth_f32x##N a) { return erf(a); } \\\n"
    "BERTH_FN berth_f32x##N berth_pow_f32x##N(berth_f32x##N a, berth_f32x##N b) { return pow(a, b); }\n"
    "BERTH_VECTORS(2)\nBERTH_VECTORS(4)\nBERTH_VECTORS(8)\nBERTH_VECTORS(16)\n"
    "BERTH_FN float berth_reduce_add_f32x2(float2 a) { return a.x + a.y; }\n"
    "BERTH_FN float berth_reduce_add_f32x4(float4 a) { return berth_reduce_add_f32x2(a.lo + a.hi); }\n"
    "BERTH_FN float berth_reduce_add_f32x8(float8 a) { return berth_reduce_add_f32x4(a.lo + a.hi); }\n"
    "BERTH_FN float berth_reduce_add_f32x16(float16 a) { return berth_reduce_add_f32x8(a.lo + a.hi); }\n";

// Integers of 8 and 16 bits, and rounding to floats of 16.
static const char narrow_vectors[] =
    "#define BERTH_HALF(H, N) \\\n"
    "BERTH_FN berth_f32x##N berth_round_##H##_f32x##N(berth_f32x##N x) { \\\n"
    "    union { berth_f32x##N v; float at[N]; } u; \\\n"
    "    u.v = x; \\\n"
    "    for (int i = 0; i < N; ++i) u.at[i] = berth_round_##H(u.at[i]); \\\n"
    "    return u.v; }\n"
    "#define BERTH_NARROW_CAST(TO, T, FROM, N) \\\n"
    "BERTH_FN berth_##TO##x##N berth_cast_##TO##_##FROM##x##N(berth_##FROM##x##N a) { return convert_##T##N(a); }\n"
    "#define BERTH_NARROW_ONE(S, T, M, N) \\\n"
    "BERTH_FN berth_i32x##N berth_mask_##S##x##N(M##N m) { return convert_int##N(m); } \\\n"
    "BERTH_FN berth_##S##x##N berth_select_##S##x##N(berth_i32x##N m, berth_##S##x##N a, berth_##S##x##N b) { \\\n"
    "    return select(b, a, convert_##M##N(m)); } \\\n"
    "BERTH_FN berth_##S##x##N berth_max_##S##x##N(berth_##S##x##N a, berth_##S##x##N b) { return max(a, b); } \\\n"
    "BERTH_FN berth_##S##x##N berth_min_##S##x##N(berth_##S##x##N a, berth_##S##x##N b) { return min(a, b); } \\\n"
    "BERTH_NARROW_CAST(i32, int, S, N) BERTH_NARROW_CAST(S, T, i32, N) BERTH_NARROW_CAST(f32, float, S, N) \\\n"
    "BERTH_FN berth_##S##x##N berth_cast_##S##_f32x##N(berth_f32x##N a) { \\\n"
    "    return convert_##T##N##_sat_rtz(select(a, (float##N)0.0f, a != a)); } \\\n"
    "BERTH_FN berth_##S##x##N berth_nearest_##S##_f32x##N(berth_f32x##N a, int z) { \\\n"
    "    int##N near = convert_int##N##_sat_rtz(rint(select(a, (float##N)(float)-z, a != a))); \\\n"
    "    return convert_##T##N##_sat(add_sat(near, (int##N)z)); }\n"
    "#define BERTH_NARROW(N) \\\n"
    "typedef char##N berth_i8x##N; typedef uchar##N berth_u8x##N; \\\n"
    "typedef short##N berth_i16x##N; typedef ushort##N berth_u16x##N; \\\n"
    "BERTH_NARROW_ONE(i8, char, char, N) BERTH_NARROW_ONE(u8, uchar, char, N) \\\n"
    "BERTH_NARROW_ONE(i16, short, short, N) BERTH_NARROW_ONE(u16, ushort, short, N) \\\n"
    "BERTH_NARROW_CAST(i8, char, u8, N) BERTH_NARROW_CAST(i8, char, i16, N) BERTH_NARROW_CAST(i8, char, u16, N) \\\n"
    "BERTH_NARROW_CAST(u8, uchar, i8, N) BERTH_NARROW_CAST(u8, uchar, i16, N) BERTH_NARROW_CAST(u8, uchar, u16, N) \\\n"
    "BERTH_NARROW_CAST(i16, short, i8, N) BERTH_NARROW_CAST(i16, short, u8, N) BERTH_NARROW_CAST(i16, short, u16, N) \\\n"
    "BERTH_NARROW_CAST(u16, ushort, i8, N) BERTH_NARROW_CAST(u16, ushort, u8, N) BERTH_NARROW_CAST(u16, ushort, i16, N)\n"
    "BERTH_NARROW(2)\nBERTH_NARROW(4)\nBERTH_NARROW(8)\nBERTH_NARROW(16)\n"
    "BERTH_HALF(f16, 2) BERTH_HALF(f16, 4) BERTH_HALF(f16, 8) BERTH_HALF(f16, 16)\n"
    "BERTH_HALF(bf16, 2) BERTH_HALF(bf16, 4) BERTH_HALF(bf16, 8) BERTH_HALF(bf16, 16)\n";
// clang-format on

// ---- kernels and loops --------------------------------------------------------------------------

static const berth_c_group_words words = {.kernel = "__kernel void",
                                          .global = "__global ",
                                          .restrict_word = "restrict",
                                          .local = "__local ",
                                          .local_end = " __attribute__((aligned(64)))",
                                          .array_end = "",
                                          .item = "get_global_id(0)",
                                          .flat_group_size = 64};

static void open_kernel(berth_c_printer *p, const berth_kernel_source *kernel,
                        const berth_stmt *grid, int grid_count) {
    berth_c_groups_open(p, kernel, grid, grid_count, &words);
}

static bool open_loop(berth_c_printer *p, const berth_stmt_node *loop, int64_t extent) {
    const char *type = p->language->index_type;
    const char *var = berth_c_var_name(p, loop->var);
    // Whose rounds depend on none before: compilers see that where offsets are numbers, not where they are arguments.
    if (loop->loop_kind == BERTH_LOOP_SIMD && extent != 1)
        berth_strbuf_add(&p->out, "BERTH_SIMD\n");
    // Loops to be unrolled are left to the device's compiler: hints doubled PoCL's build time and
    // made nothing faster.
    if (loop->loop_kind < BERTH_LOOP_GROUP_X) return false;
    bool local = false;
    int axis = 0;
    berth_status status = berth_kernel_set_axis(p->kernel, loop, extent, &local, &axis);
    if (status) berth_c_fail(p, status);
    berth_c_line(p, "{");
    berth_c_line(p, "    const %s %s = (%s)get_%s_id(%d);", type, var, type,
                 local ? "local" : "group", axis);
    return true;
}

static void declare_buffer(berth_c_printer *p, berth_buf buf, int64_t element_count,
                           int64_t scratch_offset) {
    (void)scratch_offset;
    berth_c_groups_buffer(p, buf, element_count, &words);
}

// ---- vectors ------------------------------------------------------------------------------------

static const char *vector_load(berth_c_printer *p, berth_buf buf, const char *offset, int lanes) {
    (void)berth_c_value_type(p, p->fn->bufs.data[buf].dtype, lanes);
    return berth_arena_printf(p->arena, "vload%d(0, b%u + %s)", lanes, buf, offset);
}

static void vector_store(berth_c_printer *p, berth_buf buf, const char *offset, int lanes,
                         const char *value) {
    berth_c_line(p, "vstore%d(%s, 0, b%u + %s);", lanes, value, buf, offset);
}

static const char *vector_literal(berth_c_printer *p, berth_dtype dtype, const char *const *lanes,
                                  int count) {
    berth_strbuf text = berth_strbuf_make(p->arena);
    berth_strbuf_addf(&text, "(%s)(", berth_c_value_type(p, dtype, count));
    for (int i = 0; i < count; ++i) berth_strbuf_addf(&text, i ? ", %s" : "%s", lanes[i]);
    berth_strbuf_add(&text, ")");
    return berth_strbuf_text(&text);
}

static const char *vector_lane(berth_c_printer *p, const char *name, int lane) {
    return berth_arena_printf(p->arena, "%s.s%x", name, (unsigned)lane);
}

// ---- the language -------------------------------------------------------------------------------

static const char *intrinsic_text(const berth_intrinsic_facts *facts) {
    return facts->opencl;
}

static const char *fragment(berth_c_printer *p, berth_expr id) {
    const berth_expr_node *load = &p->fn->exprs.data[id];
    berth_stmt items = 0;
    if (p->fn->bufs.data[load->load.buf].scope != BERTH_SCOPE_LOCAL || load->lanes != 32 ||
        !berth_c_has_together(p->fn, p->nest, false) || !berth_c_all_come_by(p, &items))
        return NULL;
    return berth_c_part(p, id, p->fn->stmts.data[items].var);
}

#define LANGUAGE(index, bits)                                                                      \
    {                                                                                              \
        .kind = BERTH_DEVICE_OPENCL, .index_type = index, .index_bits = bits,                      \
        .storage_types = {[BERTH_DTYPE_F32] = "float",  [BERTH_DTYPE_F64] = "double",              \
                          [BERTH_DTYPE_F16] = "ushort", [BERTH_DTYPE_BF16] = "ushort",             \
                          [BERTH_DTYPE_I8] = "char",    [BERTH_DTYPE_I16] = "short",               \
                          [BERTH_DTYPE_I32] = "int",    [BERTH_DTYPE_I64] = "long",                \
                          [BERTH_DTYPE_U8] = "uchar",   [BERTH_DTYPE_U16] = "ushort",              \
                          [BERTH_DTYPE_U32] = "uint",   [BERTH_DTYPE_U64] = "ulong",               \
                          [BERTH_DTYPE_BOOL] = "uchar"},                                           \
        .value_types = {[BERTH_DTYPE_F32] = "float", [BERTH_DTYPE_F64] = "double",                 \
                        [BERTH_DTYPE_F16] = "float", [BERTH_DTYPE_BF16] = "float",                 \
                        [BERTH_DTYPE_I8] = "char",   [BERTH_DTYPE_I16] = "short",                  \
                        [BERTH_DTYPE_I32] = "int",   [BERTH_DTYPE_I64] = "long",                   \
                        [BERTH_DTYPE_U8] = "uchar",  [BERTH_DTYPE_U16] = "ushort",                 \
                        [BERTH_DTYPE_U32] = "uint",  [BERTH_DTYPE_U64] = "ulong",                  \
                        [BERTH_DTYPE_BOOL] = "int"},                                               \
        .global_pointer = "__global ", .restrict_word = "restrict", .f64_suffix = "",              \
        .open_kernel = open_kernel, .close_kernel = berth_c_groups_close,                          \
        .declare_kernel = berth_c_groups_declare, .open_loop = open_loop,                          \
        .declare_buffer = declare_buffer, .vector_load = vector_load,                              \
        .vector_store = vector_store, .vector_literal = vector_literal,                            \
        .vector_lane = vector_lane, .intrinsic_text = intrinsic_text, .fragment = fragment,        \
        .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",                                                \
    }
static const berth_c_language narrow = LANGUAGE("int", 32);
static const berth_c_language wide = LANGUAGE("long", 64);

static berth_status print_text(const berth_tfn *fn, const char *prefix, bool marks_numbers,
                               berth_arena *arena, berth_codegen_result *out_result) {
    memset(out_result, 0, sizeof(*out_result));
    berth_c_printer *p =
        berth_c_printer_create(fn, berth_kernel_fits_narrow(fn) ? &narrow : &wide, arena);
    p->marks_numbers = marks_numbers;
    berth_kernel_source *kernels = NULL;
    BERTH_TRY(berth_c_printer_run(p, prefix, &kernels, &out_result->kernel_count));
    berth_strbuf whole = berth_strbuf_make(arena);
    berth_c_add_intrinsics(p, &whole);
    berth_c_add_callees(p, &whole);
    berth_strbuf_add(&whole, berth_strbuf_text(&p->out));
    out_result->source = berth_strbuf_text(&whole);
    out_result->kernels = kernels;
    return BERTH_OK;
}

static berth_status print(const berth_tfn *fn, const berth_target *target, const char *prefix,
                          berth_arena *arena, berth_codegen_result *out_result) {
    (void)target;
    return print_text(fn, prefix, false, arena, out_result);
}

static berth_status print_template(const berth_tfn *fn, berth_arena *arena,
                                   berth_codegen_result *out_result) {
    return print_text(fn, BERTH_TEMPLATE_PREFIX, true, arena, out_result);
}

static const char *number_arguments(uint32_t count, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < count; ++i) berth_strbuf_addf(&text, ", const long a%u", i);
    return berth_strbuf_text(&text);
}

static const char *number_lines(uint32_t count, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(&text, "    const berth_index n%u = (berth_index)a%u;\n", i, i);
    return berth_strbuf_text(&text);
}

static bool uses_subgroups(const berth_codegen_job *job) {
    for (uint32_t i = 0; !job->foreign && i < job->count; ++i)
        if (strstr(job->units[i].code->source, "sub_group_")) return true;
    return false;
}

// Source text is the image; every program has the helper functions once.
static berth_status finish(const berth_codegen_job *job, berth_codegen_bytes *out_bytes) {
    berth_strbuf text = berth_strbuf_make(job->arena);
    const char *options = "";
    if (uses_subgroups(job)) {
        berth_strbuf_add(&text, subgroups);
        options = berth_target_has_feature(job->target, BERTH_OPENCL_C_2) ? "-cl-std=CL2.0"
                                                                          : "-cl-std=CL3.0";
    }
    if (!job->foreign) {
        berth_strbuf_add(&text, head);
        berth_c_preamble_shared(&text);
        berth_strbuf_add(&text, vectors);
        berth_strbuf_add(&text, narrow_vectors);
    }
    for (uint32_t i = 0; i < job->count; ++i) berth_strbuf_add(&text, job->units[i].code->source);
    *out_bytes = (berth_codegen_bytes){
        .data = berth_strbuf_text(&text), .size_bytes = text.length + 1, .options = options};
    return BERTH_OK;
}

const berth_codegen berth_codegen_opencl = {.kind = "opencl",
                                            .format = BERTH_FORMAT_OPENCL_C,
                                            .print = print,
                                            .print_template = print_template,
                                            .number_arguments = number_arguments,
                                            .number_lines = number_lines,
                                            .finish = finish};
