#include "compiler/passes/pack.h"

#include "base/file.h"
#include "base/parallel.h"
#include "compiler/passes/winograd.h"

#define SLICE_BYTES ((size_t)1 << 20)  // of a source: enough to make handing it out cheap
#define ALIGNMENT_BYTES 128

typedef struct job {
    berth_tensor source;
    void *packed;
    berth_layout layout;
    int64_t winograd_tile;  // 0: the layout
    int64_t part_count;
} job;

typedef struct slice {
    uint32_t job;
    int64_t first_part;
    int64_t part_count;
} slice;

struct berth_packing {
    berth_module *module;
    berth_packed_store *store;  // or NULL
    uint32_t thread_count;
    BERTH_VEC(job) jobs;
    BERTH_VEC(slice) slices;
    atomic_uint *open_slices;  // per job
    berth_parallel loop;
    bool started;
};

berth_packing *berth_packing_create(berth_module *module, uint32_t thread_count,
                                    berth_packed_store *store) {
    berth_packing *packing = berth_arena_new(module->arena, berth_packing);
    packing->module = module;
    packing->store = store;
    if (store) berth_packed_store_drop(store);  // left by a compilation that failed
    packing->thread_count = thread_count ? thread_count : berth_core_count();
    return packing;
}

// Numbers that say how a source is packed.
static berth_packed_key key_of(const berth_packing *packing, const job *j) {
    int64_t form[2 + 2 * BERTH_MAX_RANK + 2 * BERTH_LAYOUT_MAX_BLOCKS] = {j->winograd_tile};
    uint32_t at = 1;
    form[at++] = j->layout.block_count;
    for (int i = 0; i < j->layout.rank; ++i) {
        form[at++] = j->layout.outer[i];
        form[at++] = j->layout.total_block[i];
    }
    for (int i = 0; i < j->layout.block_count; ++i) {
        form[at++] = j->layout.block_dim[i];
        form[at++] = j->layout.block_size[i];
    }
    return berth_packed_store_key(packing->store, &j->source, form, at * sizeof(*form),
                                  packing->module->arena);
}

static void *add_job(berth_packing *packing, job added, size_t size_bytes) {
    berth_arena *arena = packing->module->arena;
    size_t room = size_bytes ? size_bytes : 1;
    if (packing->store) {
        berth_packed_key key = key_of(packing, &added);
        void *held = berth_packed_store_find(packing->store, key);
        if (held) return held;
        added.packed = berth_packed_store_add(packing->store, key, room, ALIGNMENT_BYTES);
    }
    if (!added.packed) added.packed = berth_arena_alloc_unset(arena, room, ALIGNMENT_BYTES);
    berth_vec_push(arena, &packing->jobs, added);
    return added.packed;
}

void *berth_packing_add_layout(berth_packing *packing, const berth_layout *layout,
                               const berth_tensor *tensor) {
    size_t size_bytes = (size_t)berth_layout_element_count(layout, tensor->dims) *
                        berth_dtype_size_bytes(tensor->dtype);
    return add_job(packing,
                   (job){.source = *tensor,
                         .layout = *layout,
                         .part_count = berth_layout_part_count(layout, tensor)},
                   size_bytes);
}

float *berth_packing_add_winograd(berth_packing *packing, const berth_tensor *weights, int64_t m) {
    return add_job(packing,
                   (job){.source = *weights,
                         .winograd_tile = m,
                         .part_count = berth_winograd_block_count(weights)},
                   berth_winograd_size_bytes(weights, m));
}

// A source that lies in a file need not stay in memory.
static void drop_source(const berth_packing *packing, const job *j) {
    const berth_module *module = packing->module;
    size_t size_bytes = berth_tensor_size_bytes(&j->source);
    for (uint32_t i = 0; i < module->sources.count; ++i)
        berth_file_drop_range(module->sources.data[i], j->source.data, size_bytes);
}

static void pack_slice(void *user, size_t index) {
    berth_packing *packing = user;
    const slice *s = &packing->slices.data[index];
    const job *j = &packing->jobs.data[s->job];
    if (j->winograd_tile)
        berth_winograd_pack(&j->source, j->winograd_tile, j->packed, s->first_part, s->part_count);
    else
        berth_layout_pack_parts(&j->layout, &j->source, j->packed, s->first_part, s->part_count);
    if (atomic_fetch_sub(&packing->open_slices[s->job], 1) == 1) drop_source(packing, j);
}

void berth_packing_start(berth_packing *packing) {
    berth_arena *arena = packing->module->arena;
    if (packing->started) return;
    packing->open_slices = berth_arena_new_array(arena, atomic_uint, packing->jobs.count + 1);
    for (uint32_t i = 0; i < packing->jobs.count; ++i) {
        const job *j = &packing->jobs.data[i];
        size_t slice_count = berth_tensor_size_bytes(&j->source) / SLICE_BYTES + 1;
        int64_t step = j->part_count / (int64_t)slice_count;
        if (step < 1) step = 1;
        for (int64_t at = 0; at < j->part_count; at += step) {
            int64_t left = j->part_count - at;
            slice s = {.job = i, .first_part = at, .part_count = left < step ? left : step};
            berth_vec_push(arena, &packing->slices, s);
            packing->open_slices[i]++;  // no other thread yet
        }
    }
    packing->started = true;
    berth_parallel_start(&packing->loop, packing->thread_count - 1, packing->slices.count,
                         pack_slice, packing);
}

void berth_packing_finish(berth_packing *packing) {
    if (!packing || !packing->started) return;
    berth_parallel_finish(&packing->loop);
    if (packing->store) berth_packed_store_commit(packing->store);
}
