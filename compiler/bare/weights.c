// Constants as const arrays.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "compiler/bare/printer.h"
#include "compiler/codegen/codegen.h"

static void add_f32(berth_strbuf *out, float value) {
    char digits[32];
    if (isnan(value) || isinf(value)) {
        berth_strbuf_add(out, isnan(value) ? "NAN" : value < 0 ? "-INFINITY" : "INFINITY");
        return;
    }
    berth_format_f32(value, digits);
    berth_strbuf_addf(out, "%s%sf", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void add_f64(berth_strbuf *out, double value) {
    char digits[32];
    if (isnan(value) || isinf(value)) {
        berth_strbuf_add(out, isnan(value) ? "NAN" : value < 0 ? "-INFINITY" : "INFINITY");
        return;
    }
    berth_format_f64(value, digits);
    berth_strbuf_addf(out, "%s%s", digits, strpbrk(digits, ".e") ? "" : ".0");
}

static void add_i64(berth_strbuf *out, int64_t value) {
    if (value == INT64_MIN)
        berth_strbuf_add(out, "-9223372036854775807LL - 1");
    else
        berth_strbuf_addf(out, "%" PRId64 "%s", value,
                          value > INT32_MAX || value < INT32_MIN ? "LL" : "");
}

static void add_i32(berth_strbuf *out, int32_t value) {
    if (value == INT32_MIN)
        berth_strbuf_add(out, "-2147483647 - 1");
    else
        berth_strbuf_addf(out, "%" PRId32, value);
}

// One element; `data` may be unaligned.
static void add_element(berth_strbuf *out, berth_dtype dtype, const unsigned char *data) {
    union {
        float f32;
        double f64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } x;
    memcpy(&x, data, berth_dtype_size_bytes(dtype));
    switch (dtype) {
    case BERTH_DTYPE_F32: add_f32(out, x.f32); break;
    case BERTH_DTYPE_F64: add_f64(out, x.f64); break;
    case BERTH_DTYPE_F16:
    case BERTH_DTYPE_BF16: berth_strbuf_addf(out, "0x%04x", (unsigned)x.u16); break;
    case BERTH_DTYPE_I8: berth_strbuf_addf(out, "%d", x.i8); break;
    case BERTH_DTYPE_I16: berth_strbuf_addf(out, "%d", x.i16); break;
    case BERTH_DTYPE_I32: add_i32(out, x.i32); break;
    case BERTH_DTYPE_I64: add_i64(out, x.i64); break;
    case BERTH_DTYPE_BOOL:
    case BERTH_DTYPE_U8: berth_strbuf_addf(out, "%u", (unsigned)x.u8); break;
    case BERTH_DTYPE_U16: berth_strbuf_addf(out, "%u", (unsigned)x.u16); break;
    case BERTH_DTYPE_U32: berth_strbuf_addf(out, "%" PRIu32 "u", x.u32); break;
    case BERTH_DTYPE_U64: berth_strbuf_addf(out, "%" PRIu64 "ull", x.u64); break;
    case BERTH_DTYPE_NONE:
    default: break;
    }
}

static void declare(const berth_bare_printer *p, uint32_t constant, berth_strbuf *out) {
    const berth_program_tensor *tensor =
        &p->program->tensors[p->program->constants[constant].tensor];
    uint64_t count = berth_bare__elements(tensor);
    berth_strbuf_addf(out, "const %s %s_c%u[%llu]", berth_codegen_c_type(tensor->dtype), p->name,
                      constant, (unsigned long long)(count ? count : 1));
}

static void define(const berth_bare_printer *p, uint32_t constant, berth_strbuf *out) {
    const berth_program_constant *held = &p->program->constants[constant];
    const berth_program_tensor *tensor = &p->program->tensors[held->tensor];
    const unsigned char *data = held->data;
    size_t size = berth_dtype_size_bytes(tensor->dtype), line = out->length;
    uint64_t count = berth_bare__elements(tensor);
    berth_strbuf_addf(out, "%s_CONSTANT_ATTRIBUTE ", p->upper);
    declare(p, constant, out);
    berth_strbuf_add(out, " = {");
    for (uint64_t i = 0; i < count; ++i) {
        if (i) berth_strbuf_add(out, ",");
        if (out->length - line > 88 || i == 0) {
            berth_strbuf_add(out, "\n    ");
            line = out->length;
        } else {
            berth_strbuf_add(out, " ");
        }
        add_element(out, tensor->dtype, data + i * size);
    }
    berth_strbuf_add(out, count ? "};\n\n" : "0};\n\n");
}

const char *berth_bare__weights_header(const berth_bare_printer *p) {
    berth_strbuf out = berth_strbuf_make(p->arena);
    berth_strbuf_addf(&out,
                      "/* Constants of %s.c: %llu bytes. For that file alone. */\n"
                      "#ifndef %s_WEIGHTS_H\n#define %s_WEIGHTS_H\n\n#include <stdint.h>\n\n",
                      p->name, (unsigned long long)p->constant_bytes, p->upper, p->upper);
    for (uint32_t i = 0; i < p->program->constant_count; ++i) {
        if (!p->used_constants[i]) continue;
        const berth_program_tensor *tensor = &p->program->tensors[p->program->constants[i].tensor];
        berth_strbuf_add(&out, "extern ");
        declare(p, i, &out);
        berth_strbuf_addf(&out, "; /* %s%s%s */\n", berth_bare__shape(p->arena, tensor),
                          *tensor->name ? " " : "", berth_bare__comment(p->arena, tensor->name));
    }
    berth_strbuf_add(&out, "\n#endif\n");
    return berth_strbuf_text(&out);
}

const char *berth_bare__weights(const berth_bare_printer *p) {
    berth_strbuf out = berth_strbuf_make(p->arena);
    berth_strbuf_addf(&out,
                      "/* Constants: all that is not zero at the start and never written. "
                      "%s_CONSTANT_ATTRIBUTE puts them\n"
                      "   into a section of your choice, as -D%s_CONSTANT_ATTRIBUTE="
                      "'__attribute__((section(\".qspi\")))'. */\n"
                      "#include \"%s_weights.h\"\n\n#include <math.h>\n\n"
                      "#ifndef %s_CONSTANT_ATTRIBUTE\n#define %s_CONSTANT_ATTRIBUTE\n#endif\n\n",
                      p->upper, p->upper, p->name, p->upper, p->upper);
    for (uint32_t i = 0; i < p->program->constant_count; ++i)
        if (p->used_constants[i]) define(p, i, &out);
    return berth_strbuf_text(&out);
}
