#include "executor/vm_shapes.h"

#include <string.h>

static uint32_t bucket_of(uint32_t family, const int64_t *values) {
    uint64_t hash = family;
    for (int i = 0; i < BERTH_FAMILY_VARIABLES; ++i)
        hash = (hash ^ (uint64_t)values[i]) * 0x9e3779b97f4a7c15u;  // 2^64 / the golden ratio
    return (uint32_t)(hash >> 32) % BERTH_VM_SHAPE_BUCKETS;
}

static int kind_of(const berth_vm_shape *shape) {
    return shape->variant.program != NULL;
}

static void link_newest(berth_vm_shapes *shapes, berth_vm_shape *shape) {
    berth_vm_shape **newest = &shapes->kinds[kind_of(shape)].newest;
    shape->newer = NULL;
    shape->older = *newest;
    if (*newest)
        (*newest)->newer = shape;
    else
        shapes->kinds[kind_of(shape)].oldest = shape;
    *newest = shape;
}

static void unlink_use(berth_vm_shapes *shapes, const berth_vm_shape *shape) {
    if (shape->newer)
        shape->newer->older = shape->older;
    else
        shapes->kinds[kind_of(shape)].newest = shape->older;
    if (shape->older)
        shape->older->newer = shape->newer;
    else
        shapes->kinds[kind_of(shape)].oldest = shape->newer;
}

berth_vm_shape *berth_vm_shapes_find(berth_vm_shapes *shapes, uint32_t family,
                                     const int64_t *values) {
    berth_vm_shape *found = shapes->buckets[bucket_of(family, values)];
    while (found &&
           (found->family != family || memcmp(found->values, values, sizeof(found->values)) != 0))
        found = found->next;
    if (!found || found == shapes->firsts[family]) return found;
    unlink_use(shapes, found);
    link_newest(shapes, found);
    return found;
}

static void drop_oldest(berth_vm_shapes *shapes, int kind) {
    berth_vm_shape *oldest = shapes->kinds[kind].oldest;
    berth_vm_shape **at = &shapes->buckets[bucket_of(oldest->family, oldest->values)];
    while (*at != oldest) at = &(*at)->next;
    *at = oldest->next;
    unlink_use(shapes, oldest);
    shapes->kinds[kind].count--;
    berth_vm_shape_close(oldest);
}

void berth_vm_shapes_add(berth_vm_shapes *shapes, berth_vm_shape *made) {
    const int kind = kind_of(made);
    const uint32_t most = kind ? BERTH_VM_SHAPES_KEPT : BERTH_VM_SHAPE_RESULTS_KEPT;
    berth_vm_shape **bucket = &shapes->buckets[bucket_of(made->family, made->values)];
    made->next = *bucket;
    *bucket = made;
    if (kind && !shapes->firsts[made->family]) {
        shapes->firsts[made->family] = made;
        return;
    }
    link_newest(shapes, made);
    if (++shapes->kinds[kind].count > most) drop_oldest(shapes, kind);
}

berth_session *berth_vm_shapes_base(const berth_vm_shapes *shapes, uint32_t family,
                                    const berth_program *program) {
    const berth_vm_shape *first = shapes->firsts[family];
    if (!first || !berth_vm_family_shares_code(first->variant.program, program)) return NULL;
    return first->opened.session;
}

void berth_vm_shape_close(berth_vm_shape *shape) {
    berth_session_close(shape->opened.session);
    berth_arena_destroy(shape->arena);
    berth_free(berth_allocator_system(), shape, sizeof(*shape));
}

// Those that share code go before the one whose code it is.
void berth_vm_shapes_close(berth_vm_shapes *shapes) {
    for (int kind = 0; kind < 2; ++kind)
        while (shapes->kinds[kind].oldest) drop_oldest(shapes, kind);
    for (int i = 0; i < BERTH_VM_SHAPE_BUCKETS; ++i) {
        for (berth_vm_shape *next; shapes->buckets[i]; shapes->buckets[i] = next) {
            next = shapes->buckets[i]->next;
            berth_vm_shape_close(shapes->buckets[i]);
        }
    }
}
