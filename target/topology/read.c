// Cores, kinds, caches and memories of a loaded hwloc topology.
#include "target/topology/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t count_of(hwloc_topology_t hwloc, hwloc_obj_type_t type) {
    int count = hwloc_get_nbobjs_by_type(hwloc, type);
    return count > 0 ? (uint32_t)count : 0;
}

static void copy_info(hwloc_obj_t object, const char *key, char *out, size_t out_bytes) {
    const char *text = object ? hwloc_obj_get_info_by_name(object, key) : NULL;
    snprintf(out, out_bytes, "%s", text ? text : "");
}

// ---- memories ----

// The node that cores of this set have as their own: of those that are local to them the one with
// the lowest number, which systems give ordinary memory.
static uint16_t own_node(hwloc_topology_t hwloc, const berth_topology *topology,
                         hwloc_const_cpuset_t cpuset) {
    uint16_t best = BERTH_TOPOLOGY_NONE;
    for (uint32_t i = 0; i < topology->node_count; ++i) {
        hwloc_obj_t node = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, i);
        if (!node || !node->cpuset || !hwloc_bitmap_isincluded(cpuset, node->cpuset)) continue;
        if (best == BERTH_TOPOLOGY_NONE) {
            best = (uint16_t)i;
            continue;
        }
        hwloc_obj_t other = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, best);
        bool within = hwloc_bitmap_isincluded(node->cpuset, other->cpuset);
        bool alike = within && hwloc_bitmap_isincluded(other->cpuset, node->cpuset);
        if (within && (!alike || node->os_index < other->os_index)) best = (uint16_t)i;
    }
    return best == BERTH_TOPOLOGY_NONE ? 0 : best;
}

uint16_t berth_topology__node_near(hwloc_topology_t hwloc, const berth_topology *topology,
                                   hwloc_obj_t object) {
    hwloc_obj_t parent = object ? hwloc_get_non_io_ancestor_obj(hwloc, object) : NULL;
    if (!parent || !parent->cpuset) return 0;
    int processor = hwloc_bitmap_first(parent->cpuset);
    if (processor < 0 || processor >= BERTH_TOPOLOGY_MAX_PROCESSORS) return 0;
    uint16_t core = topology->core_of[processor];
    return core == BERTH_TOPOLOGY_NONE ? 0 : topology->cores[core].node;
}

// Bandwidth in MiB/s and latency in ns, from the cores that are local to the node, or the best that
// is said for any.
static uint64_t memory_attribute(hwloc_topology_t hwloc, hwloc_memattr_id_t id, hwloc_obj_t node) {
    hwloc_uint64_t value = 0;
    struct hwloc_location local = {.type = HWLOC_LOCATION_TYPE_CPUSET,
                                   .location.cpuset = node->cpuset};
    if (node->cpuset && hwloc_memattr_get_value(hwloc, id, node, &local, 0, &value) == 0)
        return value;
    struct hwloc_location best;
    return hwloc_memattr_get_best_initiator(hwloc, id, node, 0, &best, &value) == 0 ? value : 0;
}

static void describe_nodes(hwloc_topology_t hwloc, berth_topology *out) {
    const uint64_t most_mib_per_s = (uint64_t)1 << 40, most_ns = (uint64_t)1 << 40;
    out->node_count = count_of(hwloc, HWLOC_OBJ_NUMANODE);
    if (out->node_count > BERTH_TOPOLOGY_MAX_NODES) {
        out->node_count = BERTH_TOPOLOGY_MAX_NODES;
        out->left_out = true;
    }
    for (uint32_t i = 0; i < out->node_count; ++i) {
        hwloc_obj_t node = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, i);
        if (!node) continue;
        snprintf(out->nodes[i].kind, sizeof(out->nodes[i].kind), "%s",
                 node->subtype ? node->subtype : "");
        if (!node->subtype)
            copy_info(node, "DAXType", out->nodes[i].kind, sizeof(out->nodes[i].kind));
        out->nodes[i].os_index = node->os_index;
        out->nodes[i].capacity_bytes = node->attr->numanode.local_memory;
        uint64_t mib_per_s = memory_attribute(hwloc, HWLOC_MEMATTR_ID_BANDWIDTH, node);
        uint64_t latency_ns = memory_attribute(hwloc, HWLOC_MEMATTR_ID_LATENCY, node);
        if (mib_per_s < most_mib_per_s) out->nodes[i].bandwidth_bytes_per_s = mib_per_s << 20;
        if (latency_ns < most_ns) out->nodes[i].latency_ns = latency_ns;
    }
    if (out->node_count == 0) out->node_count = 1;
}

static void describe_distances(hwloc_topology_t hwloc, berth_topology *out) {
    enum { most = 8 };
    struct hwloc_distances_s *found[most];
    unsigned count = most;
    if (hwloc_distances_get_by_type(hwloc, HWLOC_OBJ_NUMANODE, &count, found,
                                    HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0)
        return;
    for (unsigned k = 0; k < count && k < most; ++k) {
        const struct hwloc_distances_s *d = found[k];
        for (unsigned i = 0; i < d->nbobjs; ++i)
            for (unsigned j = 0; j < d->nbobjs; ++j) {
                hwloc_obj_t from = d->objs[i], to = d->objs[j];
                if (!from || !to || from->logical_index >= out->node_count ||
                    to->logical_index >= out->node_count)
                    continue;
                hwloc_uint64_t value = d->values[i * d->nbobjs + j];
                uint16_t *at = &out->node_distance[from->logical_index][to->logical_index];
                if (*at == 0 && value <= UINT16_MAX) *at = (uint16_t)value;
            }
        hwloc_distances_release(hwloc, found[k]);
    }
}

// Nodes that no core has as its own are near to those of the first core that is local, or where the
// firmware says that it is nearest.
static void find_homes(hwloc_topology_t hwloc, berth_topology *out) {
    bool own[BERTH_TOPOLOGY_MAX_NODES] = {false};
    for (uint32_t i = 0; i < out->core_count; ++i) own[out->cores[i].node] = true;
    for (uint32_t i = 0; i < out->node_count; ++i) {
        out->nodes[i].home = (uint16_t)i;
        if (own[i]) continue;
        hwloc_obj_t node = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_NUMANODE, i);
        uint32_t home = berth_topology__node_near(hwloc, out, node);
        uint16_t least = UINT16_MAX;
        for (uint32_t k = 0; k < out->node_count; ++k) {
            uint16_t distance = out->node_distance[k][i];
            if (!own[k] || distance == 0 || distance >= least) continue;
            least = distance;
            home = k;
        }
        out->nodes[i].home = (uint16_t)home;
    }
}

// ---- cores ----

static void describe_caches(hwloc_topology_t hwloc, uint32_t processor, berth_topology_kind *kind) {
    hwloc_obj_t object = hwloc_get_pu_obj_by_os_index(hwloc, processor);
    for (; object; object = object->parent) {
        if (!hwloc_obj_type_is_dcache(object->type)) continue;
        unsigned level = object->attr->cache.depth;
        if (level < 1 || level > 3) continue;
        if (object->attr->cache.size < (uint64_t)1 << 50)
            kind->cache_bytes[level - 1] = (int64_t)object->attr->cache.size;
        if (object->attr->cache.linesize) kind->cache_line_bytes = object->attr->cache.linesize;
    }
}

static int64_t megahertz(const char *text) {
    long long mhz = text ? strtoll(text, NULL, 10) : 0;
    return mhz > 0 && mhz < 1000000 ? mhz * 1000000 : 0;
}

// hwloc lists kinds from the slowest to the fastest.
static void describe_kinds(hwloc_topology_t hwloc, berth_topology *out) {
    int count = hwloc_cpukinds_get_nr(hwloc, 0);
    out->kind_count = 1;
    if (count < 1 || count > BERTH_TOPOLOGY_MAX_KINDS) return;
    hwloc_bitmap_t cpuset = hwloc_bitmap_alloc();
    if (!cpuset) return;
    out->kind_count = (uint32_t)count;
    for (uint32_t k = 0; k < out->kind_count; ++k) {
        berth_topology_kind *kind = &out->kinds[k];
        int efficiency = 0;
        unsigned info_count = 0;
        struct hwloc_info_s *infos = NULL;
        if (hwloc_cpukinds_get_info(hwloc, (unsigned)count - 1 - k, cpuset, &efficiency,
                                    &info_count, &infos, 0) != 0)
            continue;
        for (unsigned i = 0; i < info_count; ++i) {
            if (strcmp(infos[i].name, "CoreType") == 0)
                snprintf(kind->name, sizeof(kind->name), "%s", infos[i].value);
            if (strcmp(infos[i].name, "FrequencyMaxMHz") == 0 ||
                (kind->clock_hz == 0 && strcmp(infos[i].name, "FrequencyBaseMHz") == 0))
                kind->clock_hz = megahertz(infos[i].value);
        }
        int processor = -1;
        hwloc_bitmap_foreach_begin(processor, cpuset) uint16_t core =
            processor < BERTH_TOPOLOGY_MAX_PROCESSORS ? out->core_of[processor]
                                                      : BERTH_TOPOLOGY_NONE;
        if (core != BERTH_TOPOLOGY_NONE) out->cores[core].kind = (uint16_t)k;
        hwloc_bitmap_foreach_end();
    }
    hwloc_bitmap_free(cpuset);
}

static void describe_core(hwloc_topology_t hwloc, hwloc_obj_t object, uint16_t index,
                          berth_topology *out) {
    berth_topology_core *core = &out->cores[index];
    core->l3 = BERTH_TOPOLOGY_NONE;
    if (!object || !object->cpuset) return;
    int processor = -1;
    hwloc_bitmap_foreach_begin(processor,
                               object->cpuset) if (processor >= BERTH_TOPOLOGY_MAX_PROCESSORS) {
        out->left_out = true;
        break;
    }
    if (core->first == BERTH_TOPOLOGY_NONE) core->first = (uint16_t)processor;
    core->threads++;
    out->core_of[processor] = index;
    hwloc_bitmap_foreach_end();
    core->node = own_node(hwloc, out, object->cpuset);
    hwloc_obj_t l3 = hwloc_get_ancestor_obj_by_type(hwloc, HWLOC_OBJ_L3CACHE, object);
    if (l3) core->l3 = (uint16_t)l3->logical_index;
}

static void describe_cores(hwloc_topology_t hwloc, berth_topology *out) {
    const hwloc_obj_type_t type =
        count_of(hwloc, HWLOC_OBJ_CORE) ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;  // none known: threads
    uint32_t count = count_of(hwloc, type);
    if (count > BERTH_TOPOLOGY_MAX_PROCESSORS) {
        count = BERTH_TOPOLOGY_MAX_PROCESSORS;
        out->left_out = true;
    }
    out->core_count = count ? count : 1;
    memset(out->core_of, 0xff, sizeof(out->core_of));
    for (uint32_t i = 0; i < out->core_count; ++i) {
        out->cores[i] =
            (berth_topology_core){.first = BERTH_TOPOLOGY_NONE, .l3 = BERTH_TOPOLOGY_NONE};
        describe_core(hwloc, hwloc_get_obj_by_type(hwloc, type, i), (uint16_t)i, out);
    }
    describe_kinds(hwloc, out);
    for (uint32_t i = out->core_count; i-- > 0;)
        if (out->cores[i].first != BERTH_TOPOLOGY_NONE)
            describe_caches(hwloc, out->cores[i].first, &out->kinds[out->cores[i].kind]);
}

void berth_topology__describe(hwloc_topology_t hwloc, berth_topology *out) {
    hwloc_obj_t root = hwloc_get_root_obj(hwloc);
    hwloc_obj_t package = hwloc_get_obj_by_type(hwloc, HWLOC_OBJ_PACKAGE, 0);
    out->hwloc_version = hwloc_get_api_version();
    out->package_count = count_of(hwloc, HWLOC_OBJ_PACKAGE);
    copy_info(root, "Architecture", out->arch, sizeof(out->arch));
    copy_info(root, "DMIProductName", out->product, sizeof(out->product));
    copy_info(package, "CPUModel", out->model, sizeof(out->model));
    copy_info(package, "CPUVendor", out->vendor, sizeof(out->vendor));
    if (!*out->model) copy_info(root, "CPUModel", out->model, sizeof(out->model));
    describe_nodes(hwloc, out);
    describe_cores(hwloc, out);
    describe_distances(hwloc, out);
    find_homes(hwloc, out);
    berth_topology__describe_devices(hwloc, out);
    out->known = true;
}
