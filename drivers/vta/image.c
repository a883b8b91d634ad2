#include "drivers/vta/image.h"

#include <string.h>

enum {
    magic = 0x41545642,  // "BVTA"
    version = 1,
    header_words = 2 + 9 + 1,
    kernel_bytes = BERTH_VTA_IMAGE_NAME_BYTES + 48,
    relocation_bytes = 12,
    binding_bytes = 16,
};

// ---- writing ----

typedef struct writer {
    uint8_t *data;  // NULL: only counts
    size_t at;
} writer;

static void put_bytes(writer *w, const void *data, size_t size_bytes) {
    if (w->data && size_bytes) memcpy(w->data + w->at, data, size_bytes);
    w->at += size_bytes;
}

static void put(writer *w, uint32_t value) {
    const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                              (uint8_t)(value >> 24)};
    put_bytes(w, bytes, sizeof(bytes));
}

static void put_tables(writer *w, const berth_vta_kernel *k, uint32_t out_offsets[4]) {
    out_offsets[0] = (uint32_t)w->at;
    put_bytes(w, k->stream, (size_t)k->instruction_count * BERTH_VTA_INSTRUCTION_BYTES);
    out_offsets[1] = (uint32_t)w->at;
    put_bytes(w, k->constants, k->constant_bytes);
    out_offsets[2] = (uint32_t)w->at;
    for (uint32_t i = 0; i < k->relocation_count; ++i) {
        put(w, k->relocations[i].instruction);
        put(w, k->relocations[i].buffer);
        put(w, k->relocations[i].added_bytes);
    }
    out_offsets[3] = (uint32_t)w->at;
    for (uint32_t i = 0; i < k->binding_count; ++i) {
        put(w, (uint32_t)k->bindings[i].size_bytes);
        put(w, (uint32_t)(k->bindings[i].size_bytes >> 32));
        put(w, k->bindings[i].access);
        put(w, 0);
    }
}

static void put_kernel(writer *w, const berth_vta_kernel *k, const uint32_t offsets[4]) {
    const uint32_t counts[4] = {k->instruction_count, k->constant_bytes, k->relocation_count,
                                k->binding_count};
    put_bytes(w, k->name, sizeof(k->name));
    for (int i = 0; i < 4; ++i) {
        put(w, offsets[i]);
        put(w, counts[i]);
    }
    for (int i = 0; i < 4; ++i) put(w, 0);
}

static void put_image(writer *w, const berth_vta_config *config, const berth_vta_kernel *kernels,
                      uint32_t count) {
    put(w, magic);
    put(w, version);
#define LOG(name, value, trace_name) put(w, config->name);
#include "drivers/vta/config.def"
    put(w, count);
    writer tables = {w->data, w->at + (size_t)count * kernel_bytes};
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t offsets[4];
        put_tables(&tables, &kernels[i], offsets);
        put_kernel(w, &kernels[i], offsets);
    }
    w->at = tables.at;
}

berth_status berth_vta_image_write(berth_arena *arena, const berth_vta_config *config,
                                   const berth_vta_kernel *kernels, uint32_t count,
                                   uint8_t **out_data, size_t *out_size_bytes) {
    bool fits = count <= BERTH_VTA_MOST_KERNELS;
    for (uint32_t i = 0; i < count; ++i)
        fits = fits && kernels[i].binding_count <= BERTH_VTA_MOST_KERNEL_BINDINGS;
    writer counter = {NULL, 0};
    if (fits) put_image(&counter, config, kernels, count);
    if (!fits || counter.at > INT32_MAX)
        return berth_status_make(BERTH_OUT_OF_RANGE, "too much for one image of VTA kernels");
    writer w = {berth_arena_alloc(arena, counter.at), 0};
    put_image(&w, config, kernels, count);
    *out_data = w.data;
    *out_size_bytes = w.at;
    return BERTH_OK;
}

// ---- reading ----

static uint32_t get(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

// `count` items of `item_bytes` that an entry of a kernel's record names.
static const uint8_t *table(const uint8_t *data, size_t size_bytes, const uint8_t *entry,
                            size_t item_bytes, uint32_t *out_count) {
    uint64_t offset = get(entry), count = get(entry + 4);
    *out_count = (uint32_t)count;
    return offset <= size_bytes && count * item_bytes <= size_bytes - offset ? data + offset : NULL;
}

static berth_status read_tables(berth_vta_kernel *k, const uint8_t *relocations,
                                const uint8_t *bindings, uint8_t **inout_tables) {
    berth_vta_relocation *r = (berth_vta_relocation *)(void *)*inout_tables;
    k->relocations = r;
    for (uint32_t i = 0; i < k->relocation_count; ++i, relocations += relocation_bytes) {
        r[i] = (berth_vta_relocation){get(relocations), get(relocations + 4), get(relocations + 8)};
        if (r[i].instruction >= k->instruction_count ||
            (r[i].buffer != BERTH_VTA_CONSTANTS && r[i].buffer >= k->binding_count) ||
            (i > 0 && r[i].instruction <= r[i - 1].instruction))
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "kernel %s: relocation %u names an instruction or buffer that "
                                     "is not there, or out of order",
                                     k->name, i);
    }
    *inout_tables += ((size_t)k->relocation_count * sizeof(*r) + 7) & ~(size_t)7;
    berth_kernel_binding *b = (berth_kernel_binding *)(void *)*inout_tables;
    k->bindings = b;
    for (uint32_t i = 0; i < k->binding_count; ++i, bindings += binding_bytes)
        b[i] = (berth_kernel_binding){get(bindings) | (uint64_t)get(bindings + 4) << 32,
                                      get(bindings + 8)};
    *inout_tables += k->binding_count * sizeof(*b);
    return BERTH_OK;
}

static berth_status damaged(const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "the image of VTA kernels is damaged: %s",
                             what);
}

typedef struct sources {
    const uint8_t *relocations, *bindings;
} sources;

// What a kernel's record says, without its tables.
static berth_status read_kernel(const uint8_t *data, size_t size_bytes, const uint8_t *record,
                                berth_vta_kernel *k, sources *out) {
    memcpy(k->name, record, sizeof(k->name));
    if (k->name[sizeof(k->name) - 1]) return damaged("a name without an end");
    const uint8_t *entry = record + sizeof(k->name);
    k->stream = table(data, size_bytes, entry, BERTH_VTA_INSTRUCTION_BYTES, &k->instruction_count);
    k->constants = table(data, size_bytes, entry + 8, 1, &k->constant_bytes);
    out->relocations = table(data, size_bytes, entry + 16, relocation_bytes, &k->relocation_count);
    out->bindings = table(data, size_bytes, entry + 24, binding_bytes, &k->binding_count);
    if (!k->stream || !k->constants || !out->relocations || !out->bindings)
        return damaged("a table beyond its end");
    return k->binding_count <= BERTH_VTA_MOST_KERNEL_BINDINGS ? BERTH_OK
                                                              : damaged("too many bindings");
}

static size_t table_bytes_of(const berth_vta_kernel *k) {
    return (((size_t)k->relocation_count * sizeof(berth_vta_relocation) + 7) & ~(size_t)7) +
           k->binding_count * sizeof(berth_kernel_binding);
}

static berth_status read_kernels(berth_vta_image *image, const uint8_t *data, size_t size_bytes) {
    const uint8_t *records = data + header_words * 4;
    sources s;
    for (uint32_t i = 0; i < image->kernel_count; ++i) {
        berth_vta_kernel *k = &image->kernels[i];
        BERTH_TRY(read_kernel(data, size_bytes, records + (size_t)i * kernel_bytes, k, &s));
        image->table_bytes += table_bytes_of(k);
        // Records may share tables; what is made of them may not be many times the image.
        if (image->table_bytes > 4 * size_bytes + 4096) return damaged("tables that overlap");
    }
    image->tables = berth_alloc(image->allocator, image->table_bytes + 8);
    if (!image->tables) return berth_status_oom();
    uint8_t *at = image->tables;
    for (uint32_t i = 0; i < image->kernel_count; ++i) {
        berth_vta_kernel *k = &image->kernels[i];
        BERTH_TRY(read_kernel(data, size_bytes, records + (size_t)i * kernel_bytes, k, &s));
        BERTH_TRY(read_tables(k, s.relocations, s.bindings, &at));
    }
    return BERTH_OK;
}

berth_status berth_vta_image_read(berth_allocator allocator, const void *data, size_t size_bytes,
                                  berth_vta_image *out_image) {
    memset(out_image, 0, sizeof(*out_image));
    out_image->allocator = allocator;
    const uint8_t *bytes = data;
    if (size_bytes < header_words * 4 || get(bytes) != magic)
        return berth_status_make(BERTH_INVALID_ARGUMENT, "this is no image of VTA kernels");
    if (get(bytes + 4) != version)
        return berth_status_make(BERTH_UNSUPPORTED,
                                 "an image of VTA kernels of version %u; this is version %d",
                                 get(bytes + 4), version);
    const uint8_t *at = bytes + 8;
#define LOG(name, value, trace_name)                                                               \
    out_image->config.name = get(at);                                                              \
    at += 4;
#include "drivers/vta/config.def"
    uint32_t count = get(at);
    if (count > BERTH_VTA_MOST_KERNELS ||
        (size_t)count * kernel_bytes > size_bytes - header_words * 4)
        return damaged("more kernels than there is room for");
    out_image->kernel_count = count;
    out_image->kernels = berth_calloc(allocator, count + 1, sizeof(*out_image->kernels));
    berth_status status =
        out_image->kernels ? read_kernels(out_image, bytes, size_bytes) : berth_status_oom();
    if (status) berth_vta_image_free(out_image);
    return status;
}

void berth_vta_image_free(berth_vta_image *image) {
    if (image->kernels)
        berth_free(image->allocator, image->kernels,
                   (image->kernel_count + 1) * sizeof(*image->kernels));
    if (image->tables) berth_free(image->allocator, image->tables, image->table_bytes + 8);
    memset(image, 0, sizeof(*image));
}
