#include "compiler/codegen/c_plain_mve.h"

// VMLADAV adds to even registers only, and a loop of Armv8.1-M counts in LR: seven sums are the most
// that a loop has. Three columns of two rows take 11 instructions for 96 products. What is around that loop
// is assembly, too, because a compiler would keep half of it on the stack.
#define COLUMN_LOAD(to, from) "                    \"vldrb.8 " to ", [%[" from "]], #16\\n\\t\"\n"
#define COLUMN(x, sum0, sum1)                                                                      \
    "                    \"vmladava.s8 %[" sum0 "], q0, " x "\\n\\t\"\n"                           \
    "                    \"vmladava.s8 %[" sum1 "], q1, " x "\\n\\t\"\n"
#define LOOP_BEGIN                                                                                 \
    "                    \"dls lr, %[steps]\\n\"\n"                                                \
    "                    \"1:\\n\\t\"\n"                                                           \
    "                    \"vld20.8 {q0, q1}, [%[at]]\\n\\t\"\n"                                    \
    "                    \"vld21.8 {q0, q1}, [%[at]]!\\n\\t\"\n"
#define LOOP_END "                    \"le lr, 1b\\n\\t\"\n"

// clang-format off
static const char sum_bytes[] =
    "/* sums[c][r] = the sum of x[c * step + k] * w[k][r], c < count, k < depth, r < 2. */\n"
    "static void berth_sum_bytes(int32_t *sums, const int8_t *x, int32_t step, int32_t count,\n"
    "                            const int8_t *w, int32_t depth) {\n"
    "#if BERTH_MVE_LOOPS\n"
    "    const int32_t steps = depth >> 4;\n"
    "    const int8_t *a = x, *at = w;\n"
    "    int32_t *to = sums;\n"
    "    int32_t left = count - 3, a0, a1, b0, b1;\n"
    "    if (steps && left >= 0) {\n"
    "        int32_t c0, c1;\n"
    "        const int8_t *b, *d;\n"
    "        __asm__(\"2:\\n\\t\"\n"
    "                    \"ldr %[c0], %[step]\\n\\t\"\n"
    "                    \"add %[b], %[a], %[c0]\\n\\t\"\n"
    "                    \"add %[d], %[b], %[c0]\\n\\t\"\n"
    "                    \"movs %[a0], #0\\n\\t\"\n"
    "                    \"mov %[a1], %[a0]\\n\\t\"\n"
    "                    \"mov %[b0], %[a0]\\n\\t\"\n"
    "                    \"mov %[b1], %[a0]\\n\\t\"\n"
    "                    \"mov %[c0], %[a0]\\n\\t\"\n"
    "                    \"mov %[c1], %[a0]\\n\\t\"\n"
    LOOP_BEGIN COLUMN_LOAD("q2", "a") COLUMN_LOAD("q3", "b") COLUMN_LOAD("q4", "d")
    COLUMN("q2", "a0", "a1") COLUMN("q3", "b0", "b1") COLUMN("q4", "c0", "c1") LOOP_END
    "                    \"strd %[a0], %[a1], [%[to]], #8\\n\\t\"\n"
    "                    \"ldr %[a0], %[step]\\n\\t\"\n"
    "                    \"ldr %[a1], %[left]\\n\\t\"\n"
    "                    \"strd %[b0], %[b1], [%[to]], #8\\n\\t\"\n"
    "                    \"sub %[at], %[at], %[steps], lsl #5\\n\\t\"\n"
    "                    \"sub %[d], %[d], %[steps], lsl #4\\n\\t\"\n"
    "                    \"strd %[c0], %[c1], [%[to]], #8\\n\\t\"\n"
    "                    \"add %[a], %[d], %[a0]\\n\\t\"\n"
    "                    \"subs %[a1], %[a1], #3\\n\\t\"\n"
    "                    \"str %[a1], %[left]\\n\\t\"\n"
    "                    \"bge 2b\"\n"
    "                    : [a0] \"=&Te\"(a0), [a1] \"=&Te\"(a1), [b0] \"=&Te\"(b0), [b1] \"=&Te\"(b1),\n"
    "                      [c0] \"=&Te\"(c0), [c1] \"=&Te\"(c1), [a] \"+r\"(a), [b] \"=&r\"(b), [d] \"=&r\"(d),\n"
    "                      [at] \"+r\"(at), [to] \"+r\"(to), [left] \"+m\"(left)\n"
    "                    : [steps] \"r\"(steps), [step] \"m\"(step)\n"
    "                    : \"lr\", \"q0\", \"q1\", \"q2\", \"q3\", \"q4\", \"cc\", \"memory\");\n"
    "    }\n"
    "    if (steps && left > -3) {\n"
    "        const int8_t *b = left == -1 ? a + step : a;\n"
    "        a0 = a1 = b0 = b1 = 0;\n"
    "        __asm__(\n"
    LOOP_BEGIN COLUMN_LOAD("q2", "a") COLUMN_LOAD("q3", "b") COLUMN("q2", "a0", "a1")
    COLUMN("q3", "b0", "b1") LOOP_END
    "                    : [a0] \"+Te\"(a0), [a1] \"+Te\"(a1), [b0] \"+Te\"(b0), [b1] \"+Te\"(b1),\n"
    "                      [a] \"+r\"(a), [b] \"+r\"(b), [at] \"+r\"(at)\n"
    "                    : [steps] \"r\"(steps)\n"
    "                    : \"lr\", \"q0\", \"q1\", \"q2\", \"q3\", \"memory\");\n"
    "        to[0] = a0;\n"
    "        to[1] = a1;\n"
    "        if (left == -1) {\n"
    "            to[2] = b0;\n"
    "            to[3] = b1;\n"
    "        }\n"
    "    }\n";

static const char sum_bytes_rest[] =
    "    if (depth & 15) {\n"
    "        const int8_t *tail = w + 32 * steps;\n"
    "        const mve_pred16_t rest = vctp8q((uint32_t)depth & 15);\n"
    "        const uint8x16_t pairs = vidupq_n_u8(0, 2);\n"
    "        BERTH_MVE_BARRIER;\n"
    "        const int8x16_t w0 = vldrbq_gather_offset_z_s8(tail, pairs, rest);\n"
    "        const int8x16_t w1 = vldrbq_gather_offset_z_s8(tail + 1, pairs, rest);\n"
    "        for (x += 16 * steps; count > 0; --count, x += step, sums += 2) {\n"
    "            const int8x16_t bytes = vldrbq_z_s8(x, rest);\n"
    "            sums[0] = vmladavaq_s8(steps ? sums[0] : 0, w0, bytes);\n"
    "            sums[1] = vmladavaq_s8(steps ? sums[1] : 0, w1, bytes);\n"
    "        }\n"
    "        BERTH_MVE_BARRIER;\n"
    "    }\n"
    "#else\n"
    "    for (; count > 0; --count, sums += 2, x += step) {\n"
    "        const int8_t *at = w;\n"
    "        int32_t k, sum0 = 0, sum1 = 0;\n"
    "        for (k = 0; k < depth; ++k, at += 2) {\n"
    "            sum0 += x[k] * at[0];\n"
    "            sum1 += x[k] * at[1];\n"
    "        }\n"
    "        sums[0] = sum0;\n"
    "        sums[1] = sum1;\n"
    "    }\n"
    "#endif\n"
    "}\n\n";
// clang-format on

void berth_c_plain_add_sum_bytes(berth_strbuf *out) {
    berth_strbuf_add(out, sum_bytes);
    berth_strbuf_add(out, sum_bytes_rest);
}

// 24 instructions for four results of 3 x 3 weights. A load that widens has a low register for its address.
#define WINDOW_COLUMN(w, from)                                                                     \
    "                    \"vldrb.u32 q1, " from "\\n\\t\"\n"                                       \
    "                    \"vmla.s32 q0, q1, %[w" w "]\\n\\t\"\n"

// clang-format off
static const char windows_3x3[] =
    "#if BERTH_MVE_LOOPS\n"
    "/* berth_sum_windows of 3 x 3 weights, which take nine registers. */\n"
    "__attribute__((noinline, noclone, optimize(\"O2\", \"omit-frame-pointer\")))\n"
    "static void berth_sum_windows_3x3(int32_t *sums, const uint8_t *x, int32_t pitch, int32_t row_step,\n"
    "                                  int32_t rows, int32_t count, const int8_t *w) {\n"
    "    const int32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3], w4 = w[4], w5 = w[5];\n"
    "    const int32_t w6 = w[6], w7 = w[7], w8 = w[8];\n"
    "    volatile int32_t columns = count;\n"
    "    for (; rows > 0; --rows, x += row_step, sums += count) {\n"
    "        const uint8_t *at = x;\n"
    "        int32_t *to = sums;\n"
    "        __asm__ volatile(\"ldr lr, %[columns]\\n\\t\"\n"
    "                    \"dlstp.32 lr, lr\\n\"\n"
    "                    \"1:\\n\\t\"\n"
    "                    \"vmov.i32 q0, #0\\n\\t\"\n"
    WINDOW_COLUMN("1", "[%[at], #1]") WINDOW_COLUMN("2", "[%[at], #2]")
    WINDOW_COLUMN("0", "[%[at]], #4")
    "                    \"add %[at], %[at], %[pitch]\\n\\t\"\n"
    WINDOW_COLUMN("3", "[%[at], #-4]") WINDOW_COLUMN("4", "[%[at], #-3]")
    WINDOW_COLUMN("5", "[%[at], #-2]")
    "                    \"add %[at], %[at], %[pitch]\\n\\t\"\n"
    WINDOW_COLUMN("6", "[%[at], #-4]") WINDOW_COLUMN("7", "[%[at], #-3]")
    WINDOW_COLUMN("8", "[%[at], #-2]")
    "                    \"sub %[at], %[at], %[pitch], lsl #1\\n\\t\"\n"
    "                    \"vstrw.32 q0, [%[to]], #16\\n\\t\"\n"
    "                    \"letp lr, 1b\"\n"
    "                    : [at] \"+l\"(at), [to] \"+r\"(to)\n"
    "                    : [pitch] \"r\"(pitch), [columns] \"m\"(columns), [w0] \"r\"(w0), [w1] \"r\"(w1),\n"
    "                      [w2] \"r\"(w2), [w3] \"r\"(w3), [w4] \"r\"(w4), [w5] \"r\"(w5), [w6] \"r\"(w6),\n"
    "                      [w7] \"r\"(w7), [w8] \"r\"(w8)\n"
    "                    : \"lr\", \"q0\", \"q1\", \"memory\");\n"
    "    }\n"
    "}\n"
    "#endif\n";
// clang-format on

void berth_c_plain_add_sum_windows_3x3(berth_strbuf *out) {
    berth_strbuf_add(out, windows_3x3);
}
