// What four warps do together, emulated: wgmma.mma_async, which reads its operands in shared memory by
// descriptors. Written from the PTX ISA ("Asynchronous Warpgroup Level Matrix Instructions": Register
// Fragments, Shared Memory Matrix Layout, Matrix Descriptor Format, Async Proxy), apart from what the compiler
// knows of them. Part of emulated.h.
#ifndef BERTH_TESTS_CUDA_WARPGROUPS_H_
#define BERTH_TESTS_CUDA_WARPGROUPS_H_

// A descriptor has 18 bits of an address: which place of the processor's they are of.
static thread_local const char *berth_emulated_places[1 << 14];
static inline uint32_t berth_shared_place(const void *p) {
    const uint32_t low = (uint32_t)(uintptr_t)p & 0x3ffff;
    berth_emulated_places[low >> 4] = (const char *)p;
    return low;
}

// What a thread has to do before units read what it stored (fence.proxy.async), and before they get sums
// (wgmma.fence).
struct berth_emulated_order {
    bool stored, given;
};
static thread_local berth_emulated_order berth_orders[1024];

static inline void berth_units_see() {
    berth_orders[berth_emulated_thread()].stored = false;
}

// One operand, as its descriptor says.
struct berth_emulated_tile {
    const char *begin;
    long leading, stride;
    int size;  // of an element
    bool across, swizzled;

    const char *at(int line, int term) const {
        const int wide = 128 / size;
        // No swizzle: 8 lines of 16 bytes beside each other, the next 16 bytes of the sum `leading` away.
        if (!swizzled)
            return begin + line / 8 * stride + line % 8 * 16 + term * size / 16 * leading +
                   term * size % 16;
        const long offset =
            across ? line / wide * leading + line % wide * size + term / 8 * stride + term % 8 * 128
                   : line / 8 * stride + line % 8 * 128 + term * size;
        const uintptr_t place = (uintptr_t)begin + (uintptr_t)offset;
        return (const char *)(place ^ (place >> 7 & 7) << 4);  // 128-byte swizzle
    }
};

static inline berth_emulated_tile berth_emulated_tile_of(uint64_t bits, int size, bool across) {
    const uint64_t unused = (uint64_t)3 << 14 | (uint64_t)3 << 30 | (uint64_t)0xffff << 46;
    berth_emulated_tile tile = {berth_emulated_places[bits & 0x3fff],
                                (long)(bits >> 16 & 0x3fff) * 16,
                                (long)(bits >> 32 & 0x3fff) * 16,
                                size,
                                across,
                                bits >> 62 == 1};
    if (bits >> 62 == 0) {
        if ((bits & unused) || !tile.begin || (uintptr_t)tile.begin % 16 || across)
            __builtin_trap();
        return tile;
    }
    // 128-byte swizzle, whose pattern begins where the operand does (base offset 0): at a multiple of 1024 bytes
    // but for the 128 bytes of a line.
    if (bits >> 62 != 1 || (bits & unused) || !tile.begin || (uintptr_t)tile.begin % 1024 >= 128 ||
        (across && size != 2))
        __builtin_trap();
    return tile;
}

// A hash of an operand of an instruction that goes on: nobody may store there until it is waited for.
struct berth_emulated_read {
    berth_emulated_tile tile;
    int lines, terms;
    int group;  // of those that were committed
    uint64_t hash;

    uint64_t now() const {
        uint64_t h = 14695981039346656037u;
        for (int i = 0; i < lines; ++i)
            for (int k = 0; k < terms; ++k)
                for (int b = 0; b < tile.size; ++b)
                    h = (h ^ (unsigned char)tile.at(i, k)[b]) * 1099511628211u;
        return h;
    }
};
enum { berth_emulated_most_reads = 256 };
static thread_local berth_emulated_read berth_reads[8][berth_emulated_most_reads];  // by warpgroup
static thread_local int berth_read_count[8], berth_group_count[8];

static inline void berth_emulated_reads(berth_emulated_tile tile, int lines, int terms) {
    const int group = berth_emulated_thread() / 128;
    if (berth_read_count[group] == berth_emulated_most_reads) __builtin_trap();
    berth_emulated_read read = {tile, lines, terms, berth_group_count[group], 0};
    read.hash = read.now();
    berth_reads[group][berth_read_count[group]++] = read;
    // As the units read: 8 lines (across: 8 terms) of 16 bytes at once.
    const int piece = 16 / tile.size;
    berth_emulated_part rows[8];
    for (int i = 0; i < lines; i += tile.across ? piece : 8)
        for (int k = 0; k < terms; k += tile.across ? 8 : piece) {
            for (int r = 0; r < 8; ++r)
                rows[r].row = tile.across ? tile.at(i, k + r) : tile.at(i + r, k);
            BERTH_COUNT(rows_loaded, 8);
            BERTH_COUNT(cycles, berth_emulated_bank_cycles(rows));
        }
}

// wgmma.commit_group and wgmma.wait_group LEFT: all groups but the last LEFT are done.
template <int LEFT, typename T, int N, int COUNT>
static inline void berth_units_wait(berth_vec<T, N> (&sums)[COUNT]) {
    const int thread = berth_emulated_thread(), group = thread / 128;
    int kept = 0;
    (void)sums;
    berth_orders[thread].given = false;
    if (thread % 128) return;
    berth_group_count[group]++;
    for (int i = 0; i < berth_read_count[group]; ++i) {
        const berth_emulated_read read = berth_reads[group][i];
        if (read.now() != read.hash) __builtin_trap();  // overwritten while read
        if (read.group >= berth_group_count[group] - LEFT) berth_reads[group][kept++] = read;
    }
    berth_read_count[group] = kept;
}
template <typename T, int N, int COUNT>
static inline void berth_units_begin(berth_vec<T, N> (&sums)[COUNT]) {
    (void)sums;
    berth_orders[berth_emulated_thread()].given = true;
}

// m64nNk16 (elements of 16 bits), m64nNk32 (8 bits). Element e of a thread: row 16 (warp of the group) + lane / 4 +
// 8 (e / 2 % 2), column 8 (e / 4) + lane % 4 * 2 + e % 2.
template <int COLUMNS, typename A, typename B, typename C>
static void berth_emulated_wgmma(C *c, uint64_t a, uint64_t b, bool a_across, bool b_across) {
    static const char operation = 0;
    const int thread = berth_emulated_thread(), lane = thread % 32, warp = thread % 128 / 32,
              depth = 32 / (int)sizeof(A);
    const uint32_t bits[] = {(uint32_t)a, (uint32_t)(a >> 32), (uint32_t)b, (uint32_t)(b >> 32)};
    berth_emulated_together({nullptr, {bits[0], bits[1], bits[2], bits[3]}, {}, &operation});
    const berth_emulated_part *group = berth_parts + thread / 128 * 128;
    for (int i = 0; i < 128; ++i)
        if (group[i].operation != &operation || memcmp(group[i].a, bits, sizeof(bits)))
            __builtin_trap();
    for (unsigned i = 0; i < blockDim.x * blockDim.y * blockDim.z; ++i)
        if (berth_orders[i].stored) __builtin_trap();   // no fence.proxy.async behind a store
    if (!berth_orders[thread].given) __builtin_trap();  // no wgmma.fence
    const berth_emulated_tile x = berth_emulated_tile_of(a, sizeof(A), a_across),
                              y = berth_emulated_tile_of(b, sizeof(B), b_across);
    if (thread % 128 == 0) {
        BERTH_COUNT(products, 4 * COLUMNS / 8);  // as many as those of a warp
        berth_emulated_reads(x, 64, depth);
        berth_emulated_reads(y, COLUMNS, depth);
    }
    for (int e = 0; e < COLUMNS / 2; ++e) {
        const int row = 16 * warp + lane / 4 + e / 2 % 2 * 8,
                  column = e / 4 * 8 + lane % 4 * 2 + e % 2;
        for (int k = 0; k < depth; ++k) {
            A of_a;
            B of_b;
            memcpy(&of_a, x.at(row, k), sizeof(of_a));
            memcpy(&of_b, y.at(column, k), sizeof(of_b));
            c[e] += berth_emulated_value(of_a) * berth_emulated_value(of_b);
        }
    }
    berth_emulated_done();
}
#define BERTH_EMULATED_WGMMA(NAME, COLUMNS, A, B, C)                                               \
    template <bool A_ACROSS, bool B_ACROSS>                                                        \
    static inline void berth_unit_wgmma_##NAME##_n##COLUMNS(C *c, uint64_t a, uint64_t b) {        \
        berth_emulated_wgmma<COLUMNS, A, B>(c, a, b, A_ACROSS, B_ACROSS);                          \
    }
#define BERTH_EMULATED_WGMMAS(NAME, A, B, C)                                                       \
    BERTH_EMULATED_WGMMA(NAME, 64, A, B, C) BERTH_EMULATED_WGMMA(NAME, 128, A, B, C)
BERTH_EMULATED_WGMMAS(f16, _Float16, _Float16, float)
BERTH_EMULATED_WGMMAS(bf16, berth_emulated_bf16, berth_emulated_bf16, float)
BERTH_EMULATED_WGMMAS(i8, int8_t, int8_t, int32_t)
BERTH_EMULATED_WGMMAS(u8, uint8_t, uint8_t, int32_t)
BERTH_EMULATED_WGMMAS(u8_i8, uint8_t, int8_t, int32_t)
BERTH_EMULATED_WGMMAS(i8_u8, int8_t, uint8_t, int32_t)

#endif  // BERTH_TESTS_CUDA_WARPGROUPS_H_
