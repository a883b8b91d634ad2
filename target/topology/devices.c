// Devices that may compute, and the links between them: PCI devices of vendors whose devices a
// target kind runs, and what the system or a vendor's library calls them (hwloc's OS devices).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/topology/read.h"

// PCI base class 03: display controllers; 12: processing accelerators. Which vendors' are run by
// which kind; display controllers of servers' management chips are no such devices.
static const struct {
    unsigned vendor;
    const char *kind;
} vendors[] = {{0x10de, "cuda"}, {0x1002, "opencl"}, {0x8086, "opencl"}};

static const char *kind_of_pci(const struct hwloc_pcidev_attr_s *pci) {
    unsigned base_class = pci->class_id >> 8;
    if (base_class != 0x03 && base_class != 0x12) return NULL;
    for (size_t i = 0; i < sizeof(vendors) / sizeof(vendors[0]); ++i)
        if (vendors[i].vendor == pci->vendor_id) return vendors[i].kind;
    return NULL;
}

// Of an OS device that nothing on a bus stands for (an integrated GPU of a chip).
static const char *kind_of_os(hwloc_obj_t object) {
    const char *backend = hwloc_obj_get_info_by_name(object, "Backend");
    const char *type = object->subtype ? object->subtype : backend;
    if (!type) return NULL;
    if (strcmp(type, "CUDA") == 0) return "cuda";
    const char *opencl = hwloc_obj_get_info_by_name(object, "OpenCLDeviceType");
    if (strcmp(type, "OpenCL") == 0 && (!opencl || strcmp(opencl, "CPU") != 0)) return "opencl";
    return NULL;
}

static int64_t number(hwloc_obj_t object, const char *key, int64_t unit) {
    const char *text = hwloc_obj_get_info_by_name(object, key);
    long long value = text ? strtoll(text, NULL, 10) : 0;
    return value > 0 && value < ((int64_t)1 << 40) ? value * unit : 0;
}

static void keep(int64_t *at, int64_t value) {
    if (*at == 0) *at = value;
}

static void keep_text(char *at, size_t bytes, const char *text) {
    if (!*at && text) snprintf(at, bytes, "%s", text);
}

// What the system says of the device under its several names.
static void describe_os(hwloc_obj_t object, berth_topology_device *device) {
    keep_text(device->model, sizeof(device->model), hwloc_obj_get_info_by_name(object, "GPUModel"));
    if (kind_of_os(object)) snprintf(device->name, sizeof(device->name), "%s", object->name);
    keep_text(device->name, sizeof(device->name), object->name);
    keep(&device->compute_units, number(object, "CUDAMultiProcessors", 1));
    keep(&device->compute_units, number(object, "OpenCLComputeUnits", 1));
    keep(&device->local_memory_bytes, number(object, "CUDASharedMemorySizePerMP", 1024));
    keep(&device->l2_bytes, number(object, "CUDAL2CacheSize", 1024));
    int64_t memory = number(object, "CUDAGlobalMemorySize", 1024);
    if (memory == 0) memory = number(object, "OpenCLGlobalMemorySize", 1024);
    if (memory == 0) memory = number(object, "RSMIVRAMSize", 1024);
    if (device->memory_bytes == 0) device->memory_bytes = (uint64_t)memory;
}

static void host_bridge(hwloc_obj_t object, char *out, size_t out_bytes) {
    for (; object; object = object->parent)
        if (object->type == HWLOC_OBJ_BRIDGE &&
            object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST) {
            snprintf(out, out_bytes, "pci:%04x:%02x", object->attr->bridge.downstream.pci.domain,
                     object->attr->bridge.downstream.pci.secondary_bus);
            return;
        }
}

typedef struct finder {
    hwloc_topology_t hwloc;
    berth_topology *out;
    hwloc_obj_t objects[BERTH_TOPOLOGY_MAX_DEVICES];  // of the devices
} finder;

static berth_topology_device *add(finder *f, hwloc_obj_t object, const char *kind) {
    if (f->out->device_count == BERTH_TOPOLOGY_MAX_DEVICES) {
        f->out->left_out = true;
        return NULL;
    }
    f->objects[f->out->device_count] = object;
    berth_topology_device *device = &f->out->devices[f->out->device_count++];
    *device = (berth_topology_device){.node = berth_topology__node_near(f->hwloc, f->out, object)};
    snprintf(device->kind, sizeof(device->kind), "%s", kind);
    return device;
}

// The PCI device that an OS device is, or itself.
static hwloc_obj_t physical(hwloc_obj_t object) {
    hwloc_obj_t at = object;
    while (at && at->type == HWLOC_OBJ_OS_DEVICE) at = at->parent;
    return at && at->type == HWLOC_OBJ_PCI_DEVICE ? at : object;
}

static void find_pci(finder *f) {
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(f->hwloc, o));) {
        const struct hwloc_pcidev_attr_s *pci = &o->attr->pcidev;
        const char *kind = kind_of_pci(pci);
        berth_topology_device *device = kind ? add(f, o, kind) : NULL;
        if (!device) continue;
        keep_text(device->model, sizeof(device->model), hwloc_obj_get_info_by_name(o, "PCIDevice"));
        char *model = device->model;  // what a driver says names the product better
        char listed[sizeof(device->model)];
        snprintf(listed, sizeof(listed), "%s", model);
        *model = 0;
        for (hwloc_obj_t child = o->io_first_child; child; child = child->next_sibling)
            if (child->type == HWLOC_OBJ_OS_DEVICE) describe_os(child, device);
        keep_text(device->model, sizeof(device->model), listed);
        if (!*device->name)
            snprintf(device->name, sizeof(device->name), "%04x:%02x:%02x.%x", pci->domain, pci->bus,
                     pci->dev, pci->func);
        if (pci->linkspeed > 0 && pci->linkspeed < 1e6f)
            device->link_bytes_per_s = (uint64_t)((double)pci->linkspeed * 1e9);
        host_bridge(o, device->bus, sizeof(device->bus));
    }
}

static void find_os(finder *f) {
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_osdev(f->hwloc, o));) {
        const char *kind = kind_of_os(o);
        if (!kind || physical(o) != o) continue;
        berth_topology_device *device = add(f, o, kind);
        if (device) describe_os(o, device);
    }
}

static uint32_t index_of(const finder *f, hwloc_obj_t object) {
    hwloc_obj_t device = object ? physical(object) : NULL;
    for (uint32_t i = 0; device && i < f->out->device_count; ++i)
        if (f->objects[i] == device) return i;
    return BERTH_TOPOLOGY_MAX_DEVICES;
}

// Matrices of bandwidths in MB/s (hwloc's NVLinkBandwidth and XGMIBandwidth). GPUs at switches are
// linked through them.
static void take_links(finder *f, struct hwloc_distances_s *d) {
    // Without switches the closure would leave nothing of direct links.
    if (hwloc_distances_transform(f->hwloc, d, HWLOC_DISTANCES_TRANSFORM_MERGE_SWITCH_PORTS, NULL,
                                  0) == 0)
        (void)hwloc_distances_transform(f->hwloc, d, HWLOC_DISTANCES_TRANSFORM_TRANSITIVE_CLOSURE,
                                        NULL, 0);
    const uint64_t most_mb_per_s = (uint64_t)1 << 40;
    for (unsigned i = 0; i < d->nbobjs; ++i)
        for (unsigned j = 0; j < d->nbobjs; ++j) {
            uint32_t from = index_of(f, d->objs[i]), to = index_of(f, d->objs[j]);
            hwloc_uint64_t value = d->values[i * d->nbobjs + j];
            if (from == to || from == BERTH_TOPOLOGY_MAX_DEVICES ||
                to == BERTH_TOPOLOGY_MAX_DEVICES || value > most_mb_per_s)
                continue;
            f->out->device_link_bytes_per_s[from][to] = value * 1000000;
        }
}

void berth_topology__describe_devices(hwloc_topology_t hwloc, berth_topology *out) {
    finder f = {.hwloc = hwloc, .out = out};
    find_pci(&f);
    find_os(&f);
    static const char *const names[] = {"NVLinkBandwidth", "XGMIBandwidth"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        struct hwloc_distances_s *found[1];
        unsigned count = 1;
        if (hwloc_distances_get_by_name(hwloc, names[i], &count, found, 0) != 0 || count == 0)
            continue;
        take_links(&f, found[0]);
        hwloc_distances_release(hwloc, found[0]);
    }
}
