// Private to devices/vulkan: the vendor's functions and the driver's objects.
#ifndef BERTH_DEVICES_VULKAN_VULKAN_H_
#define BERTH_DEVICES_VULKAN_VULKAN_H_

#define VK_NO_PROTOTYPES
#include <pthread.h>
#include <vulkan/vulkan_core.h>

#include "devices/vulkan/matrix_types.h"

#include <berth/vulkan_queue.h>

#include "base/dynlib.h"
#include "devices/host_queue.h"
#include "devices/internal.h"

enum {
    VULKAN_MAX_DEVICES = 16,
    VULKAN_MAX_FAMILIES = 16,
    VULKAN_MAX_QUEUES = 4,        // of one family that the driver uses
    VULKAN_MATRIX_SUBGROUP = 32,  // invocations that have a cooperative matrix together
};

// libvulkan, loaded at run time, and the functions of an instance.
typedef struct vulkan_api {
    berth_dynlib *library;
    PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
    VkInstance instance;
#define GLOBAL(name) PFN_##name name;
#define INSTANCE(name) PFN_##name name;
#include "devices/vulkan/vulkan_symbols.def"
} vulkan_api;

typedef struct vulkan_functions {  // of a device
#define DEVICE(name) PFN_##name name;
#define OPTIONAL(name) PFN_##name name;
#include "devices/vulkan/vulkan_symbols.def"
} vulkan_functions;

#pragma GCC visibility push(hidden)  // of no library that links this one

// What kernels may use and a device may lack: the capability of SPIR-V and the feature of Vulkan.
typedef struct vulkan_feature {
    uint16_t capability;
    uint16_t mode;  // > 0: the capability is for this execution mode of floats of `bits`
    uint8_t bits;
} vulkan_feature;
enum { VULKAN_FEATURE_COUNT = 14, VULKAN_FEATURE_MATRICES = 13 };
extern const vulkan_feature berth_vulkan__features[VULKAN_FEATURE_COUNT];
const char *berth_vulkan__feature_name(int feature);  // as Vulkan says it

// What is known of a physical device without opening it.
typedef struct vulkan_facts {
    VkPhysicalDevice physical;
    char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    char driver[128];
    uint32_t api_version;
    uint32_t vendor_id;
    VkPhysicalDeviceType type;
    VkPhysicalDeviceLimits limits;
    VkPhysicalDeviceFeatures features;
    VkPhysicalDeviceVulkan11Features features_1_1;
    VkPhysicalDeviceVulkan12Features features_1_2;
    VkPhysicalDeviceMemoryProperties memories;
    VkQueueFamilyProperties families[VULKAN_MAX_FAMILIES];
    uint32_t family_count;
    uint32_t subgroup_size;
    uint32_t compute_units;  // 0 = it does not say
    uint64_t max_allocation_bytes;
    uint64_t pointer_alignment_bytes;  // of imported host memory; 0 = it cannot be imported
    uint8_t cache_id[VK_UUID_SIZE];
    uint8_t device_uuid[VK_UUID_SIZE];
    uint32_t device_id;
    bool has[VULKAN_FEATURE_COUNT];  // berth_vulkan__features
    uint32_t compute_family;
    uint32_t transfer_family;  // with an engine of its own, or compute_family
    uint32_t device_memory;    // type of memory 0
    uint32_t host_memory;      // type that the host sees
    bool shared;               // memory 0 is host memory
    uint32_t matrix_shapes;    // matrices.h; 0 = kernels with matrices do not run
    bool takes_subgroups;      // of VULKAN_MATRIX_SUBGROUP, where a pipeline asks for them
    uint32_t max_rounds;       // of the loops of a work-item; 0 = any number
} vulkan_facts;

typedef struct vulkan_driver {
    berth_driver base;
    vulkan_api api;
    VkInstance instance;
    vulkan_facts *facts;
    uint32_t count;
    char left_out[512];  // devices that do not serve, and why; "" = none
} vulkan_driver;

// A queue of Vulkan's, which several of ours may use in turns.
typedef struct vulkan_engine {
    VkQueue handle;
    uint32_t family;
    pthread_mutex_t lock;
    berth_vulkan_queue callers;  // of the application's: its lock
} vulkan_engine;

// A buffer of the driver's own, which the host sees: staging, tables of addresses.
typedef struct vulkan_block {
    VkBuffer handle;
    VkDeviceMemory memory;
    VkDeviceAddress address;
    unsigned char *host;
    uint64_t size_bytes;
} vulkan_block;

// Staging memory that the host works in until unmap.
typedef struct vulkan_map {
    struct vulkan_map *next;
    vulkan_block block;
    uint64_t offset_bytes;  // in the VkBuffer
    uint64_t size_bytes;
} vulkan_map;

// A queue's semaphore. It goes on in another queue when its own is closed: work of others may still wait for
// values that it has reached.
typedef struct vulkan_timeline {
    struct vulkan_timeline *next;
    VkSemaphore semaphore;
    uint64_t value;  // that the last submission signals; of the queue's lock
} vulkan_timeline;

typedef struct vulkan_device {
    berth_device base;
    vulkan_facts own_facts;
    const vulkan_facts *facts;  // these
    vulkan_functions vk;
    VkDevice handle;
    bool is_callers;     // the application's: not destroyed
    int64_t timeout_ns;  // of waits, before the device is given up
    // It did not answer in time: nothing more is handed to it, and what its work may use is not freed.
    atomic_bool is_lost;
    VkPipelineCache cache;
    int cache_folder;     // an open folder, -1 = the cache is not kept
    uint64_t cache_hash;  // of what was read from it
    vulkan_engine compute[VULKAN_MAX_QUEUES], transfer[VULKAN_MAX_QUEUES];
    uint32_t compute_count, transfer_count;
    atomic_uint next_compute, next_transfer;
    atomic_uint allocation_count;
    pthread_mutex_t lock;  // of what follows
    vulkan_map *maps;
    vulkan_timeline *unused;  // of queues that are gone
} vulkan_device;

typedef struct vulkan_buffer {
    berth_buffer base;
    VkBuffer handle;
    VkDeviceMemory memory;  // of a root buffer
    VkDeviceAddress address;
    uint64_t offset_bytes;  // in the root's VkBuffer
} vulkan_buffer;

typedef struct vulkan_kernel {
    const char *entry;        // in `words`
    const char *declaration;  // in `words`, may be NULL
    uint32_t *words;          // the module
    uint32_t word_count;
    uint32_t local_size[3];
    double rounds;  // of its loops, 0 = not said
    bool has_matrices;
} vulkan_kernel;

typedef struct vulkan_executable {
    berth_executable base;
    vulkan_kernel *modules;
    uint32_t module_count;
    struct vulkan_pipeline {
        VkPipeline handle;
        VkPipelineLayout layout;
        uint32_t value_count;  // buffers and constants
    } * pipelines;
    uint32_t pipeline_count, pipeline_capacity;
} vulkan_executable;

static inline const vulkan_buffer *berth_vulkan__buffer(const berth_buffer *buffer) {
    return (const vulkan_buffer *)buffer;
}

// api.c
BERTH_MUST_USE berth_status berth_vulkan__api_load(vulkan_api *out_api);
BERTH_MUST_USE berth_status berth_vulkan__load_instance(vulkan_api *api, VkInstance instance);
BERTH_MUST_USE berth_status berth_vulkan__load_device(const vulkan_api *api, VkDevice device,
                                                      vulkan_functions *out_functions);
// A status for a result of Vulkan's; NULL for VK_SUCCESS. `what` is what was tried.
BERTH_MUST_USE berth_status berth_vulkan__check(VkResult result, const char *what);
// The same of a device, which the error names.
BERTH_MUST_USE berth_status berth_vulkan__check_on(const vulkan_device *device, VkResult result,
                                                   const char *what);

// facts.c: NULL in *out_reason where the device serves, else why it does not.
void berth_vulkan__read_facts(const vulkan_api *api, VkPhysicalDevice physical,
                              vulkan_facts *out_facts, const char **out_reason);
// Fills in `has`.
void berth_vulkan__list_features(vulkan_facts *facts);
void berth_vulkan__fill_info(const vulkan_facts *facts, uint32_t ordinal,
                             berth_device_info *out_info);

// cache.c: the cache of pipelines, from a file and back. `folder` may be NULL.
BERTH_MUST_USE berth_status berth_vulkan__cache_open(vulkan_device *device, const char *folder);
void berth_vulkan__cache_close(vulkan_device *device);

// memory.c
BERTH_MUST_USE berth_status berth_vulkan__block_create(vulkan_device *device, uint64_t size_bytes,
                                                       uint32_t type, vulkan_block *out_block);
void berth_vulkan__block_destroy(vulkan_device *device, vulkan_block *block);
BERTH_MUST_USE berth_status berth_vulkan__buffer_allocate(berth_device *device, uint32_t memory,
                                                          uint64_t size_bytes,
                                                          berth_buffer **out_buffer);
BERTH_MUST_USE berth_status berth_vulkan__buffer_view(berth_buffer *root, uint64_t offset_bytes,
                                                      uint64_t size_bytes, berth_buffer **out_view);
BERTH_MUST_USE berth_status berth_vulkan__buffer_import(berth_device *device, void *data,
                                                        uint64_t size_bytes,
                                                        berth_buffer **out_buffer);
void berth_vulkan__buffer_free(berth_buffer *buffer);
// map.c
BERTH_MUST_USE berth_status berth_vulkan__buffer_map(berth_buffer *buffer, uint64_t offset_bytes,
                                                     uint64_t size_bytes, bool write_only,
                                                     void **out_data);
BERTH_MUST_USE berth_status berth_vulkan__buffer_unmap(berth_buffer *buffer, void *data);

// executable.c
BERTH_MUST_USE berth_status berth_vulkan__executable_load(berth_device *device,
                                                          const berth_executable_image *image,
                                                          berth_executable **out_executable);
void berth_vulkan__executable_destroy(berth_executable *executable);
BERTH_MUST_USE berth_status berth_vulkan__executable_find(berth_executable *executable,
                                                          const berth_program_kernel *kernel,
                                                          uint32_t *out_kernel);

// callers.c: makes `device`, which is to be destroyed either way, that of the application's queue.
BERTH_MUST_USE berth_status berth_vulkan__use_callers(const vulkan_driver *driver,
                                                      const berth_vulkan_queue *callers,
                                                      bool profile, vulkan_device *device,
                                                      uint32_t *out_ordinal);

// queue.c
// VK_NOT_READY where the device was given up.
VkResult berth_vulkan__submit(const vulkan_device *device, vulkan_engine *engine,
                              const VkSubmitInfo *info);
// Waits for a value that work of the engine's signals. When this returns, nothing of that work runs any more, or the
// device is given up.
BERTH_MUST_USE berth_status berth_vulkan__wait(vulkan_device *device, vulkan_engine *engine,
                                               VkSemaphore semaphore, uint64_t value,
                                               const char *what);
BERTH_MUST_USE berth_status berth_vulkan__queue_open(berth_device *device, berth_queue_kind kind,
                                                     berth_queue **out_queue);
void berth_vulkan__queue_destroy(berth_queue *queue);
void berth_vulkan__free_timelines(vulkan_device *device);

#pragma GCC visibility pop

#endif  // BERTH_DEVICES_VULKAN_VULKAN_H_
