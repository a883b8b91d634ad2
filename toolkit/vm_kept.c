#include "toolkit/vm_kept.h"

static berth_vm_compiled **bucket_of(berth_vm_kept *kept, berth_hash128 key) {
    return &kept->buckets[key.low % BERTH_VM_KEPT_BUCKETS];
}

static void put_first(berth_vm_kept *kept, berth_vm_compiled *c) {
    c->newer = NULL;
    c->older = kept->newest;
    *(c->older ? &c->older->newer : &kept->oldest) = c;
    kept->newest = c;
}

static void unlink(berth_vm_kept *kept, berth_vm_compiled *c) {
    *(c->newer ? &c->newer->older : &kept->newest) = c->older;
    *(c->older ? &c->older->newer : &kept->oldest) = c->newer;
}

void berth_vm_kept_add(berth_vm_kept *kept, berth_vm_compiled *made) {
    berth_vm_compiled **bucket = bucket_of(kept, made->key);
    made->next = *bucket;
    *bucket = made;
    put_first(kept, made);
    kept->count++;
    kept->size_bytes += made->size_bytes;
}

berth_vm_compiled *berth_vm_kept_find(berth_vm_kept *kept, uint32_t segment, berth_hash128 key) {
    for (berth_vm_compiled *c = *bucket_of(kept, key); c; c = c->next) {
        if (c->segment != segment || !berth_hash128_equal(c->key, key)) continue;
        unlink(kept, c);
        put_first(kept, c);
        return c;
    }
    return NULL;
}

bool berth_vm_kept_has(const berth_vm_kept *kept, uint32_t segment) {
    for (const berth_vm_compiled *c = kept->newest; c; c = c->older)
        if (c->segment == segment) return true;
    return false;
}

void berth_vm_kept_drop_oldest(berth_vm_kept *kept) {
    berth_vm_compiled *gone = kept->oldest;
    berth_vm_compiled **at = bucket_of(kept, gone->key);
    while (*at != gone) at = &(*at)->next;
    *at = gone->next;
    unlink(kept, gone);
    kept->count--;
    kept->size_bytes -= gone->size_bytes;
    berth_vm_compiled_free(gone);
}

void berth_vm_kept_clear(berth_vm_kept *kept) {
    while (kept->count) berth_vm_kept_drop_oldest(kept);
}

void berth_vm_compiled_free(berth_vm_compiled *compiled) {
    if (!compiled) return;
    berth_session_close(compiled->session);
    berth_arena_destroy(compiled->arena);
    berth_free(berth_allocator_system(), compiled, sizeof(*compiled));
}
