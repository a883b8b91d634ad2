#include "compiler/codegen/cuda_bulk.h"

#include <string.h>

#include "compiler/codegen/kernel_facts.h"
#include "ir/tensor/copies.h"

enum { widest_access = 16, mbarrier_bytes = 8 };

// ---- helper functions ---------------------------------------------------------------------------

// clang-format off
// Bytes are announced by the thread that begins the copy, in front of its arrival, so that a phase ends with the last of
// them. An emulation on the processor has its own of what is PTX.
static const char helpers[] =
    "#ifndef BERTH_EMULATED\n"
    "BERTH_FN void berth_mbarrier_init(uint64_t *at, int arrivals) {\n"
    "    asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\" :: \"r\"(berth_shared_place(at)), \"r\"(arrivals) : \"memory\"); }\n"
    "BERTH_FN void berth_mbarrier_see() { asm volatile(\"fence.mbarrier_init.release.cluster;\" ::: \"memory\"); }\n"
    "BERTH_FN void berth_mbarrier_expect(uint64_t *at, int bytes) {\n"
    "    asm volatile(\"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;\" :: \"r\"(berth_shared_place(at)), \"r\"(bytes) : \"memory\"); }\n"
    "BERTH_FN void berth_mbarrier_arrive(uint64_t *at) {\n"
    "    asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" :: \"r\"(berth_shared_place(at)) : \"memory\"); }\n"
    "BERTH_FN void berth_mbarrier_wait(uint64_t *at, int parity) {\n"
    "    uint32_t done;\n"
    "    do asm volatile(\"{\\n\\t.reg .pred p;\\n\\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\n\\tselp.u32 %0, 1, 0, p;\\n\\t}\"\n"
    "            : \"=r\"(done) : \"r\"(berth_shared_place(at)), \"r\"(parity) : \"memory\");\n"
    "    while (!done); }\n"
    "BERTH_FN void berth_bulk_begin(void *to, const void *from, int bytes, uint64_t *at) {\n"
    "    asm volatile(\"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\"\n"
    "        :: \"r\"(berth_shared_place(to)), \"l\"(__cvta_generic_to_global(from)), \"r\"(bytes), \"r\"(berth_shared_place(at)) : \"memory\"); }\n"
    "#endif\n"
    "BERTH_FN bool berth_is_first_thread() { return threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0; }\n"
    "template <int TURNS> BERTH_FN void berth_bulk_open(uint64_t *arrivals) {\n"
    "    if (berth_is_first_thread()) {\n"
    "        _Pragma(\"unroll\") for (int i = 0; i < TURNS; ++i) berth_mbarrier_init(arrivals + i, 1);\n"
    "        berth_mbarrier_see(); }\n"
    "    __syncthreads(); }\n"
    "template <int BYTES, int TURNS> BERTH_FN void berth_bulk_copy(void *to, const void *from, uint64_t *arrivals, int stretch) {\n"
    "    berth_mbarrier_expect(arrivals + stretch % TURNS, BYTES);\n"
    "    berth_bulk_begin(to, from, BYTES, arrivals + stretch % TURNS); }\n"
    "template <int TURNS, int PENDING> BERTH_FN void berth_bulk_wait(uint64_t *arrivals, int &stretch) {\n"
    "    if (berth_is_first_thread()) berth_mbarrier_arrive(arrivals + stretch % TURNS);\n"
    "    _Pragma(\"unroll\") for (int back = TURNS - 1; back >= PENDING; --back)\n"
    "        if (stretch >= back) berth_mbarrier_wait(arrivals + (stretch - back) % TURNS, (stretch - back) / TURNS % 2);\n"
    "    ++stretch; }\n";
// clang-format on

void berth_cuda_bulk_preamble(berth_strbuf *out, const berth_codegen_job *job) {
    for (uint32_t i = 0; i < job->count; ++i)
        if (strstr(job->units[i].code->source, "berth_bulk_copy<")) {
            berth_strbuf_add(out, helpers);
            return;
        }
}

// ---- copies -------------------------------------------------------------------------------------

static bool is_bulk(const berth_tfn *fn, const berth_stmt_node *store) {
    const berth_buf_info *to = &fn->bufs.data[store->buf];
    const berth_expr_node *load = &fn->exprs.data[store->value];
    if (to->scope != BERTH_SCOPE_LOCAL || load->kind != BERTH_EXPR_LOAD ||
        load->lanes * berth_dtype_size_bytes(to->dtype) <= widest_access)
        return false;
    const berth_buf_info *from = &fn->bufs.data[load->load.buf];
    return from->dtype == to->dtype &&
           (from->scope == BERTH_SCOPE_PARAM || from->scope == BERTH_SCOPE_WORKSPACE);
}

// Whether there are such copies below a statement; *most: pending stretches of its barriers.
static bool find(const berth_tfn *fn, berth_stmt id, int *most) {
    const berth_stmt_node *node = &fn->stmts.data[id];
    bool found = false;
    if (!id) return false;
    switch ((berth_stmt_kind)node->kind) {
    case BERTH_STMT_SEQ:
        for (uint32_t i = 0; i < node->count; ++i)
            found |= find(fn, fn->lists.data[node->first + i], most);
        return found;
    case BERTH_STMT_FOR:
    case BERTH_STMT_IF:
        found = find(fn, node->body, most);
        return find(fn, node->other, most) || found;
    case BERTH_STMT_BARRIER:
        if (berth_tfn_pending_of(node) > *most) *most = berth_tfn_pending_of(node);
        return false;
    case BERTH_STMT_STORE: return is_bulk(fn, node);
    default: return false;
    }
}

void berth_cuda_bulk_open(berth_c_printer *p) {
    int most = 0;
    p->bulk_turns = p->copies_async && find(p->fn, p->nest, &most) ? most + 1 : 0;
}

int64_t berth_cuda_bulk_bytes(const berth_c_printer *p) {
    return (int64_t)p->bulk_turns * mbarrier_bytes;
}

void berth_cuda_bulk_begin(berth_c_printer *p, const char *place) {
    if (!p->bulk_turns) return;
    if (place)
        berth_c_line(p, "uint64_t *const berth_arrivals = (uint64_t *)(%s);", place);
    else
        berth_c_line(p, "__shared__ __align__(8) uint64_t berth_arrivals[%d];", p->bulk_turns);
    berth_c_line(p, "int berth_stretch = 0;");
    berth_c_line(p, "berth_bulk_open<%d>(berth_arrivals);", p->bulk_turns);
}

// Marks the variables of loops below a statement that are the same for all work-items of a group.
static void mark_common(const berth_c_printer *p, berth_stmt id, bool *common) {
    const berth_stmt_node node = p->fn->stmts.data[id];
    if (!id) return;
    if (node.kind == BERTH_STMT_SEQ)
        for (uint32_t i = 0; i < node.count; ++i)
            mark_common(p, p->fn->lists.data[node.first + i], common);
    if (node.kind == BERTH_STMT_FOR) common[node.var] |= node.loop_kind < BERTH_LOOP_LOCAL_X;
    if (node.kind == BERTH_STMT_FOR || node.kind == BERTH_STMT_IF) {
        mark_common(p, node.body, common);
        mark_common(p, node.other, common);
    }
}

static bool is_common(const berth_c_printer *p, const berth_linear *at) {
    bool *common = berth_arena_new_array(p->arena, bool, p->fn->vars.count);
    mark_common(p, p->nest, common);
    for (int i = 0; i < at->count; ++i)
        for (berth_var v = 0; v < p->fn->vars.count; ++v)
            if (!common[v] && berth_tfn_uses_var(p->fn, at->terms[i].atom, v)) return false;
    return true;
}

// Where the elements of an access lie beside each other, from a multiple of 16 bytes on, for all work-items alike; NULL.
static const char *place_of(berth_c_printer *p, berth_buf buf, const berth_expr *from, int count,
                            int lanes) {
    berth_expr indices[BERTH_MAX_RANK];
    berth_linear first;
    int64_t *places = berth_arena_new_array(p->arena, int64_t, (size_t)lanes);
    int64_t size = (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[buf].dtype);
    memcpy(indices, from, (size_t)count * sizeof(berth_expr));
    if (!berth_c_lane_places(p, buf, indices, count, lanes, &first, places)) return NULL;
    for (int l = 0; l < lanes; ++l)
        if (places[l] != l) return NULL;
    if (!is_common(p, &first) ||
        berth_c_offset_alignment(p, buf, indices, count) * size % widest_access)
        return NULL;
    return berth_arena_printf(p->arena, "%s + %s", berth_c_buffer_name(p, buf),
                              berth_c_linear(p, first));
}

bool berth_cuda_bulk_copy(berth_c_printer *p, berth_stmt id) {
    const berth_stmt_node store = p->fn->stmts.data[id];
    if (!p->bulk_turns || !is_bulk(p->fn, &store)) return false;
    const berth_expr_node load = p->fn->exprs.data[store.value];
    int64_t bytes = load.lanes * (int64_t)berth_dtype_size_bytes(p->fn->bufs.data[store.buf].dtype);
    const char *to =
        place_of(p, store.buf, berth_tfn_store_indices(p->fn, id), store.index_count, load.lanes);
    const char *from = place_of(p, load.load.buf, berth_tfn_load_indices(p->fn, store.value),
                                load.index_count, load.lanes);
    if (!to || !from || bytes % widest_access) {
        berth_c_fail(p, berth_status_make(BERTH_UNSUPPORTED,
                                          "a copy of %lld bytes at once whose elements do not lie "
                                          "beside each other, at multiples of 16 bytes, for all "
                                          "work-items alike",
                                          (long long)bytes));
        return true;
    }
    berth_c_line(p, "if (berth_is_first_thread())");
    berth_c_line(p, "    berth_bulk_copy<%lld, %d>(%s, %s, berth_arrivals, berth_stretch);",
                 (long long)bytes, p->bulk_turns, to, from);
    return true;
}

void berth_cuda_bulk_wait(berth_c_printer *p, int pending) {
    if (p->bulk_turns)
        berth_c_line(p, "berth_bulk_wait<%d, %d>(berth_arrivals, berth_stretch);", p->bulk_turns,
                     pending);
}
