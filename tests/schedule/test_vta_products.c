// The schedule of a VTA: sums of products become its matrix unit's intrinsic, compute the same under
// the interpreter, and are read back as the convolution that they were.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "compiler/codegen/kernel_facts.h"
#include "compiler/schedule/decisions.h"
#include "drivers/vta/compiler/compiler.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "tests/schedule/support.h"

typedef struct shape {
    int block, in, out, groups, size, out_size, kernel, stride, pad;
} shape;

static const shape shapes[] = {
    {16, 16, 16, 1, 5, 5, 3, 1, 1},  // padding
    {16, 32, 32, 1, 4, 2, 2, 2, 0},  // several blocks, strides
    {16, 3, 20, 1, 4, 4, 1, 1, 0},   // blocks that channels do not fill
    {16, 1, 16, 1, 4, 4, 3, 1, 1},   // one channel
    {16, 1, 16, 1, 2, 2, 1, 1, 0},   // one channel, one position: a sum without loops
    {8, 32, 16, 2, 3, 3, 3, 1, 1},   // groups
    {2, 6, 4, 1, 3, 3, 1, 1, 0},     // small blocks
    {32, 40, 32, 1, 2, 2, 1, 1, 0},  // weights of 1024 lanes
    {16, 32, 48, 1, 3, 1, 3, 1, 0},  // one position: results in a plain row
};

static int filled(int count, int block) {
    return (count + block - 1) / block * block;
}

// A convolution as compiler/lower makes it for channels in blocks.
static void write_conv(const shape *s, char *text, size_t size) {
    char channel[64], input[128], row[64], column[64], condition[512] = "";
    int within = s->in / s->groups, blocks = filled(s->out, s->block) / s->block / s->groups;
    bool plain = s->out_size == 1;  // and full blocks: a loop over all results
    int lanes = plain ? s->out : s->block;
    if (plain) blocks = 1;
    snprintf(channel, sizeof(channel), "(%%g * %d + %%oo) * %d + %%oi", blocks, s->block);
    const char *ic = within > 1 ? "%ic" : "0";
    if (s->groups == 1) snprintf(channel, sizeof(channel), "%%oo * %d + %%oi", s->block);
    snprintf(input, sizeof(input), s->groups > 1 ? "%%g * %d + %s" : "%.0d%s",
             s->groups > 1 ? within : 0, ic);
    snprintf(row, sizeof(row), "%%oh * %d + %s + -%d", s->stride, s->kernel > 1 ? "%kh" : "0",
             s->pad);
    snprintf(column, sizeof(column), "%%ow * %d + %s + -%d", s->stride, s->kernel > 1 ? "%kw" : "0",
             s->pad);
    if (s->pad)
        snprintf(condition, sizeof(condition), "%s >= 0 && %s < %d && %s >= 0 && %s < %d", row, row,
                 s->size, column, column, s->size);
    char loops[256] = "", close[16] = "";
    if (within > 1) {
        snprintf(loops, sizeof(loops), "for %%ic in %d {\n", within);
        strcat(close, "} ");
    }
    if (s->kernel > 1) {
        size_t at = strlen(loops);
        snprintf(loops + at, sizeof(loops) - at, "for %%kh in %d { for %%kw in %d {\n", s->kernel,
                 s->kernel);
        strcat(close, "} } ");
    }
    int n = snprintf(
        text, size,
        "module \"m\"\n"
        "tensor @f(%%x: i8[1,%d,%d,%d]{aBcd%db} in, %%w: i8[%d,%d,%d,%d]{ABcd%da%db} in,\n"
        "    %%b: i32[%d]{A%da} in, %%y: i8[1,%d,%d,%d]{aBcd%db} out) {\n"
        "  for %%g in %d { for %%oo in %d { for %%oh in %d { for %%ow in %d { for %%oi in %d {\n"
        "    register %%acc: i32[]\n"
        "    %%acc[] = 0:i32\n%s",
        s->in, s->size, s->size, s->block, s->out, within, s->kernel, s->kernel, s->block, s->block,
        s->out, s->block, s->out, s->out_size, s->out_size, s->block, s->groups, blocks,
        s->out_size, s->out_size, lanes, loops);
    const char *k = s->kernel > 1 ? "%kh, %kw" : "0, 0";
    n += snprintf(text + n, size - (size_t)n,
                  "    %%acc[] = %%acc[] + %s%s%si32(%%x[0, %s, %s, %s]) - i32(0:i8)%s * "
                  "(i32(%%w[%s, %s, %s]) - i32(0:i8))\n",
                  s->pad ? "select(" : "(", condition, s->pad ? ", " : "", input, row, column,
                  s->pad ? ", 0:i32)" : ")", channel, within > 1 ? "%ic" : "0", k);
    snprintf(text + n, size - (size_t)n,
             "    %s\n    %%y[0, %s, %%oh, %%ow] = select(%s < %d,\n"
             "        i8(round(f32(%%acc[] + %%b[%s]) * (0.0625 * 0.0078125) / 0.0625)), 0:i8)\n"
             "  } } } } }\n}\n",
             close, channel, channel, s->out, channel);
}

// The only nest, as the code generator reads it.
static berth_status read_back(const bench_case *c, berth_vta_nest *out_nest) {
    berth_stmt *nests = NULL;
    uint32_t count = 0;
    const berth_tfn *copy = berth_kernel_copy_fn(c->fn, c->arena);
    BERTH_TRY(berth_kernel_nests(copy, c->arena, &nests, &count));
    cr_assert_eq(count, 1);
    return berth_vta_nest_read_scheduled(copy, nests[0], out_nest);
}

// What fills up blocks is zero, as in all tensors with channels in blocks.
static void fill(bench_case *c, uint64_t seed) {
    support_fill(c, seed);
    for (berth_buf b = 0; b < 3; ++b) {
        const berth_buf_info *info = &c->fn->bufs.data[b];
        berth_tensor tensor = {.dtype = info->dtype, .rank = 1, .data = c->buffers[b]};
        berth_layout layout;
        size_t bytes = support_buffer_bytes(c, b);
        unsigned char *old = berth_arena_copy(c->arena, c->buffers[b], bytes);
        size_t size = berth_dtype_size_bytes(info->dtype);
        cr_assert_null(
            berth_layout_parse(berth_module_str(c->module, info->layout), info->rank, &layout));
        memset(c->buffers[b], 0, bytes);
        int64_t at[4] = {0}, count = 1;
        for (int d = 0; d < info->rank; ++d) count *= info->dims[d];
        for (int64_t i = 0; i < count; ++i) {
            int64_t left = i;
            for (int d = info->rank - 1; d >= 0; --d) {
                at[d] = left % info->dims[d];
                left /= info->dims[d];
            }
            size_t offset = (size_t)berth_layout_offset(&layout, info->dims, at) * size;
            memcpy((unsigned char *)tensor.data + offset, old + offset, size);
        }
    }
}

static void same_after_schedule(const shape *s, int which) {
    char text[4096], name[32], target[120];
    write_conv(s, text, sizeof(text));
    bench_case plain = support_case_parse(text), scheduled = support_case_parse(text);
    int log_block = __builtin_ctz((unsigned)s->block);  // 2^9 elements in each buffer
    snprintf(target, sizeof(target),
             "vta -log_block=%d -log_inp_buff_size=%d -log_wgt_buff_size=%d -log_acc_buff_size=%d",
             log_block, log_block + 9, 2 * log_block + 9, log_block + 11);
    berth_status status =
        berth_vta_schedule.apply(scheduled.fn, support_target(scheduled.arena, target));
    cr_assert_null(status, "%d: %s", which, berth_status_message(status));
    status = berth_module_verify(scheduled.module);
    cr_assert_null(status, "%d: %s", which, berth_status_message(status));
    berth_strbuf printed = berth_strbuf_make(scheduled.arena);
    cr_assert_null(berth_module_to_text(scheduled.module, NULL, &printed));
    snprintf(name, sizeof(name), " vta_gemm_%d(", s->block);
    cr_expect(strstr(berth_strbuf_text(&printed), name), "%d: %s", which,
              berth_strbuf_text(&printed));

    berth_vta_nest nest;
    status = read_back(&scheduled, &nest);
    cr_assert_null(status, "%d: %s\n%s", which, berth_status_message(status),
                   berth_strbuf_text(&printed));
    cr_expect_eq(nest.form, BERTH_VTA_PRODUCTS);
    cr_expect(nest.input == 0 && nest.weights == 1 && nest.bias == 2 && nest.output == 3, "%d",
              which);
    cr_expect(nest.in_channels == s->in && nest.out_channels == s->out && nest.groups == s->groups,
              "%d: channels %ld, %ld, groups %ld", which, nest.in_channels, nest.out_channels,
              nest.groups);
    cr_expect(nest.kernel_h == s->kernel && nest.kernel_w == s->kernel && nest.pad_h == s->pad &&
                  nest.pad_w == s->pad && nest.stride_h == s->stride && nest.stride_w == s->stride,
              "%d: kernel %ld, padding %ld, stride %ld", which, nest.kernel_h, nest.pad_h,
              nest.stride_h);

    for (uint64_t round = 0; round < 3; ++round) {
        fill(&plain, round);
        fill(&scheduled, round);
        status = support_interpret(&plain);
        cr_assert_null(status, "%d: %s", which, berth_status_message(status));
        status = support_interpret(&scheduled);
        cr_assert_null(status, "%d: %s", which, berth_status_message(status));
        cr_expect_eq(
            memcmp(plain.buffers[3], scheduled.buffers[3], support_buffer_bytes(&plain, 3)), 0,
            "%d: results differ", which);
    }
    support_case_destroy(&plain);
    support_case_destroy(&scheduled);
}

Test(vta_products, same_values_and_the_same_convolution, .timeout = 120) {
    cr_assert_null(berth_vta_intrinsics_register());
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); ++i)
        same_after_schedule(&shapes[i], (int)i);
}

// A multiplication and an addition that stand in the function as such are no call of the matrix unit.
Test(vta_products, plain_products_are_no_stream) {
    char text[4096];
    write_conv(&shapes[0], text, sizeof(text));
    bench_case c = support_case_parse(text);
    berth_vta_nest nest;
    berth_status status = read_back(&c, &nest);
    cr_expect_eq(berth_status_code(status), BERTH_UNSUPPORTED);
    cr_expect(strstr(berth_status_message(status), "a nest that is not scheduled for one"), "%s",
              berth_status_message(status));
    berth_status_free(status);
    support_case_destroy(&c);
}

// What is not a product of bytes, or has no block of results, stays as it is. Where the loops are as
// the schedule wants them, it says why.
Test(vta_products, others_stay) {
    static const struct {
        const char *from, *to;
        uint32_t refusals;
    } changes[] = {
        {" * (i32(%w", " - (i32(%w", 1},
        {"%acc[] = 0:i32", "%acc[] = 1:i32", 1},
        {"for %oi in 16", "for %oi in 8", 0},
    };
    cr_assert_null(berth_vta_intrinsics_register());
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); ++i) {
        char text[4096], changed[4096];
        write_conv(&shapes[0], text, sizeof(text));
        char *at = strstr(text, changes[i].from);
        cr_assert_not_null(at, "%s", changes[i].from);
        snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, changes[i].to,
                 at + strlen(changes[i].from));
        bench_case c = support_case_parse(changed);
        c.fn->decisions = berth_decisions_create(c.arena, 1);
        cr_assert_null(berth_vta_schedule.apply(c.fn, support_target(c.arena, "vta")));
        for (uint32_t e = 0; e < c.fn->exprs.count; ++e)
            cr_expect_neq((int)c.fn->exprs.data[e].kind, BERTH_EXPR_INTRINSIC, "%s", changes[i].to);
        const berth_nest_decisions *nest = &c.fn->decisions->nests[0];
        cr_expect_eq(nest->alternatives.count, changes[i].refusals, "%s", changes[i].to);
        for (uint32_t a = 0; a < nest->alternatives.count; ++a)
            cr_expect_str_eq(nest->alternatives.data[a].what, "units of the device");
        support_case_destroy(&c);
    }
}
