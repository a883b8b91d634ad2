// Asks hwloc, in a helper process.
#define _GNU_SOURCE  // memmem
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/helper.h"
#include "target/topology/read.h"

#define TIME_LIMIT_NS INT64_C(30000000000)
#define XML_TIME_LIMIT_NS INT64_C(20000000000)

typedef struct question {
    pid_t process;
    bool devices;
    const char *xml;  // NULL = this machine
    size_t xml_bytes;
} question;

// Leaves out what the process may not run on (taskset, containers).
static void restrict_to_process(hwloc_topology_t hwloc, pid_t process) {
    hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
    if (!allowed) return;
    if (hwloc_get_proc_cpubind(hwloc, process, allowed, 0) == 0 && hwloc_bitmap_first(allowed) >= 0)
        hwloc_topology_restrict(hwloc, allowed, 0);
    hwloc_bitmap_free(allowed);
}

// Memory and time, so that a hostile file ends the helper and nothing else. (A sanitizer reserves
// more address space than any limit.)
static void limit_helper(void) {
    const struct rlimit seconds = {20, 20};
    setrlimit(RLIMIT_CPU, &seconds);
#ifndef __SANITIZE_ADDRESS__
    const rlim_t bytes = (rlim_t)2 << 30;
    setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
#endif
}

static bool prepare(hwloc_topology_t hwloc, const question *asked) {
    if (asked->xml && hwloc_topology_set_xmlbuffer(hwloc, asked->xml, (int)asked->xml_bytes) != 0)
        return false;
    // Drivers say more of the devices here than hwloc's plug-ins, which would load each vendor's
    // library.
    static const char *const plugins[] = {"opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"};
    for (size_t i = 0; !asked->xml && i < sizeof(plugins) / sizeof(plugins[0]); ++i)
        (void)hwloc_topology_set_components(hwloc, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                            plugins[i]);
    if (asked->devices) hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_ALL);
    return true;
}

static void ask(const void *user, void *answer) {
    const question *asked = user;
    berth_topology *topology = answer;
    hwloc_topology_t hwloc = NULL;
    memset(topology, 0, sizeof(*topology));
    if (asked->xml) limit_helper();
    if (hwloc_topology_init(&hwloc) != 0) return;
    if (prepare(hwloc, asked) && hwloc_topology_load(hwloc) == 0) {
        if (!asked->xml) restrict_to_process(hwloc, asked->process);
        topology->here = !asked->xml && hwloc_topology_is_thissystem(hwloc) == 1;
        berth_topology__describe(hwloc, topology);
    }
    hwloc_topology_destroy(hwloc);
}

// ---- this machine ----

berth_status berth_topology__ask(bool devices, berth_topology *out_topology) {
    const question asked = {.process = getpid(), .devices = devices};
#ifdef __SANITIZE_ADDRESS__
    // A fork of a process with threads may find this sanitizer's allocator locked for ever.
    ask(&asked, out_topology);
#else
    BERTH_TRY(berth_helper_ask("this machine's topology", ask, &asked, out_topology,
                               sizeof(*out_topology), TIME_LIMIT_NS));
#endif
    if (out_topology->known) return BERTH_OK;
    return berth_status_make(BERTH_UNAVAILABLE, "hwloc cannot read this machine's topology");
}

// ---- another machine ----

static bool has(const char *text, size_t length, const char *word) {
    return memmem(text, length, word, strlen(word)) != NULL;
}

bool berth_topology_is_xml(const char *text, size_t length) {
    while (length > 0 && strchr(" \t\r\n", *text)) {
        text++;
        length--;
    }
    return length > 0 && *text == '<';
}

// Exports are flat: an element holds other elements, never text of others. What hwloc reads has
// no entities of its own, which could stand for more text than memory holds or for other files.
static berth_status check_text(const char *text, size_t length) {
    const size_t limit_bytes = (size_t)16 << 20;
    if (length > limit_bytes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the file has %zu bytes; exports have 16 MiB at most", length);
    if (!berth_topology_is_xml(text, length) || !has(text, length, "<topology"))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "this is no export of hwloc: there is no <topology> in it; "
                                 "\"lstopo machine.xml\" writes one");
    if (has(text, length, "<!ENTITY"))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "it declares entities, which exports of hwloc do not");
    if (memchr(text, 0, length))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "there is a zero byte in it");
    if (has(text, length, "<topology version=\"3"))
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "it is an export of hwloc 3, which hwloc %u does not read: "
                                 "\"lstopo --of xml --export-xml-flags v2\" writes version 2",
                                 hwloc_get_api_version() >> 16);
    return BERTH_OK;
}

berth_status berth_topology_read(berth_arena *arena, const char *text, size_t length,
                                 berth_topology **out_topology) {
    *out_topology = NULL;
    BERTH_TRY(check_text(text, length));
    berth_topology *topology = berth_arena_new(arena, berth_topology);
    const question asked = {.devices = true, .xml = text, .xml_bytes = length + 1};
    BERTH_TRY(berth_helper_ask("the machine of this export", ask, &asked, topology,
                               sizeof(*topology), XML_TIME_LIMIT_NS));
    if (!topology->known)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "hwloc does not read it: it is damaged, or of another version");
    *out_topology = topology;
    return BERTH_OK;
}
