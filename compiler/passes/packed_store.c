#include "compiler/passes/packed_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ir/graph/graph.h"

typedef struct entry {
    berth_hash128 key;
    void *packed;
    uint32_t next;  // + 1, in the same chain
} entry;

enum { chain_count = 1024 };

struct berth_packed_store {
    berth_allocator allocator;
    berth_arena *arena;
    BERTH_VEC(const void *) trusted;  // ascending
    BERTH_VEC(entry) entries;
    uint32_t committed;            // of the entries, the first
    size_t content_bytes;          // packed of those that are known by their content
    uint32_t chains[chain_count];  // + 1, the newest entry
};

berth_status berth_packed_store_create(berth_allocator allocator, berth_packed_store **out_store) {
    *out_store = NULL;
    berth_packed_store *made = berth_calloc(allocator, 1, sizeof(*made));
    if (!made) return berth_status_oom();
    made->allocator = allocator;
    berth_status status = berth_arena_create(allocator, &made->arena);
    if (status)
        berth_free(allocator, made, sizeof(*made));
    else
        *out_store = made;
    return status;
}

void berth_packed_store_destroy(berth_packed_store *store) {
    if (!store) return;
    berth_arena_destroy(store->arena);
    berth_free(store->allocator, store, sizeof(*store));
}

// ---- constants that are known by their addresses ------------------------------------------------

static int compare_addresses(const void *a, const void *b) {
    uintptr_t x = (uintptr_t) * (const void *const *)a;
    uintptr_t y = (uintptr_t) * (const void *const *)b;
    return (x > y) - (x < y);
}

typedef struct trust_job {
    berth_packed_store *store;
    const berth_module *module;
} trust_job;

static void trust_graph(const trust_job *job, const berth_graph *graph) {
    for (uint32_t v = 0; v < graph->values.count; ++v) {
        const berth_tensor *tensor = berth_graph_raw_constant_of(job->module, graph, v);
        if (tensor && tensor->data)
            berth_vec_push(job->store->arena, &job->store->trusted, tensor->data);
    }
}

static berth_status run_trust(void *user) {
    const trust_job *job = user;
    berth_packed_store *store = job->store;
    for (uint32_t f = 0; f < job->module->functions.count; ++f) {
        const berth_graph *graph = berth_graph_get(job->module, f);
        if (graph) trust_graph(job, graph);
    }
    if (store->trusted.count)
        qsort(store->trusted.data, store->trusted.count, sizeof(void *), compare_addresses);
    return BERTH_OK;
}

berth_status berth_packed_store_trust(berth_packed_store *store, const berth_module *module) {
    trust_job job = {store, module};
    return berth_arena_try(store->arena, run_trust, &job);
}

// ---- entries ------------------------------------------------------------------------------------

static bool is_trusted(const berth_packed_store *store, const void *data) {
    return store->trusted.count && bsearch(&data, store->trusted.data, store->trusted.count,
                                           sizeof(void *), compare_addresses);
}

berth_packed_key berth_packed_store_key(const berth_packed_store *store, const berth_tensor *source,
                                        const void *form, size_t form_bytes, berth_arena *arena) {
    berth_strbuf text = berth_strbuf_make(arena);
    int64_t head[3] = {source->dtype, source->rank, 0};
    bool trusted = is_trusted(store, source->data);
    if (trusted) {
        head[2] = (int64_t)(uintptr_t)source->data;
    } else {
        berth_hash128 content = berth_hash128_of(source->data, berth_tensor_size_bytes(source));
        berth_strbuf_add_n(&text, (const char *)&content, sizeof(content));
    }
    berth_strbuf_add_n(&text, (const char *)head, sizeof(head));
    berth_strbuf_add_n(&text, (const char *)source->dims,
                       (size_t)source->rank * sizeof(*source->dims));
    berth_strbuf_add_n(&text, form, form_bytes);
    return (berth_packed_key){berth_hash128_of(text.data, text.length), !trusted};
}

void *berth_packed_store_find(const berth_packed_store *store, berth_packed_key key) {
    for (uint32_t at = store->chains[key.hash.low % chain_count]; at;
         at = store->entries.data[at - 1].next) {
        const entry *e = &store->entries.data[at - 1];
        if (at <= store->committed && berth_hash128_equal(e->key, key.hash)) return e->packed;
    }
    return NULL;
}

typedef struct add_job {
    berth_packed_store *store;
    berth_hash128 key;
    size_t size_bytes, alignment_bytes;
    void *packed;
} add_job;

static berth_status run_add(void *user) {
    add_job *job = user;
    berth_packed_store *store = job->store;
    uint32_t *chain = &store->chains[job->key.low % chain_count];
    void *packed = berth_arena_alloc_unset(store->arena, job->size_bytes, job->alignment_bytes);
    berth_vec_push(store->arena, &store->entries, (entry){job->key, packed, *chain});
    *chain = store->entries.count;
    job->packed = packed;
    return BERTH_OK;
}

void *berth_packed_store_add(berth_packed_store *store, berth_packed_key key, size_t size_bytes,
                             size_t alignment_bytes) {
    if (key.by_content && size_bytes > BERTH_PACKED_STORE_MOST_BYTES - store->content_bytes)
        return NULL;
    add_job job = {store, key.hash, size_bytes, alignment_bytes, NULL};
    berth_status_ignore(berth_arena_try(store->arena, run_add, &job));
    if (job.packed && key.by_content) store->content_bytes += size_bytes;
    return job.packed;
}

void berth_packed_store_commit(berth_packed_store *store) {
    store->committed = store->entries.count;
}

void berth_packed_store_drop(berth_packed_store *store) {
    while (store->entries.count > store->committed) {
        const entry *last = &store->entries.data[--store->entries.count];
        store->chains[last->key.low % chain_count] = last->next;
    }
}
