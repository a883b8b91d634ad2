#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "devices/cuda/cuda.h"

static const char cuda_symbols[] =
#define CUDA(name, parameters) #name "\0"
#include "devices/cuda/cuda_symbols.def"
    ;
static const char newer_symbols[] =
#define CUDA_NEWER(name, parameters) #name "\0"
#include "devices/cuda/cuda_symbols.def"
    ;
static const char nvrtc_symbols[] =
#define NVRTC(name, parameters) #name "\0"
#include "devices/cuda/cuda_symbols.def"
    ;
#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static const char *load_symbols(berth_dynlib *library, const char *names, void *table) {
    return berth_dynlib_find_functions(berth_dynlib_find_in, library, names, table);
}

berth_status berth_cuda__api_load(cuda_api *out_api) {
    static const char *const names[] = {"libcuda.so.1", NULL};
    memset(out_api, 0, sizeof(*out_api));
    berth_status status = berth_dynlib_open(names, &out_api->library);
    if (status)
        return berth_status_prefix(status, "there is no libcuda.so.1, which comes with NVIDIA's "
                                           "driver (Debian: libcuda1)");
    const char *missing = load_symbols(out_api->library, cuda_symbols, &out_api->cuInit);
    if (!missing)
        (void)load_symbols(out_api->library, newer_symbols, &out_api->cuGraphInstantiateWithFlags);
    if (!missing) return BERTH_OK;
    berth_dynlib_close(out_api->library);
    out_api->library = NULL;
    return berth_status_make(BERTH_UNAVAILABLE,
                             "libcuda.so.1 has no %s: NVIDIA's driver is too old (CUDA 11.2 is "
                             "needed)",
                             missing);
}

berth_status berth_cuda__nvrtc_load(nvrtc_api *out_api) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                        "libnvrtc.so", NULL};
    memset(out_api, 0, sizeof(*out_api));
    berth_status status = berth_dynlib_open(names, &out_api->library);
    if (status)
        return berth_status_prefix(status, "kernels are CUDA C, and there is no NVRTC to "
                                           "compile them (libnvrtc.so of the CUDA toolkit; pip: "
                                           "nvidia-cuda-nvrtc; Debian: libnvrtc11.2)");
    const char *missing = load_symbols(out_api->library, nvrtc_symbols, &out_api->nvrtcVersion);
    if (!missing) return BERTH_OK;
    berth_dynlib_close(out_api->library);
    out_api->library = NULL;
    return berth_status_make(BERTH_UNAVAILABLE, "NVRTC has no %s: CUDA 11.2 is needed", missing);
}

berth_status berth_cuda__check_driver(const cuda_api *api, cuda_result result, const char *where,
                                      const char *what) {
    static const struct {
        cuda_result result;
        berth_code code;
    } codes[] = {
#define CODE(name, value, code) {value, BERTH_##code},
        CUDA_RESULTS(CODE)
#undef CODE
    };
    if (result == CUDA_OK) return BERTH_OK;
    berth_code code = BERTH_UNAVAILABLE;
    for (size_t i = 0; i < COUNT(codes); ++i)
        if (codes[i].result == result) code = codes[i].code;
    const char *name = NULL;
    if (api->cuGetErrorName(result, &name) != CUDA_OK || !name) name = "an unknown error";
    return berth_status_make(code, "%s: %s: CUDA says %s (%u)", where, what, name, result);
}

berth_status berth_cuda__check(const cuda_device *device, cuda_result result, const char *what) {
    if (result == CUDA_OK) return BERTH_OK;
    char where[sizeof(device->base.info.name) + 32];
    snprintf(where, sizeof(where), "cuda device %u (%s)", device->base.info.ordinal,
             device->base.info.name);
    return berth_cuda__check_driver(device->api, result, where, what);
}

berth_status berth_cuda__enter(const cuda_device *device, const char *what) {
    if (atomic_load(&device->is_lost)) return berth_devices__given_up(&device->base, what);
    return berth_cuda__check(device, device->api->cuCtxPushCurrent_v2(device->context), what);
}

bool berth_cuda__enter_to_free(const cuda_device *device) {
    if (atomic_load(&device->is_lost)) return false;
    (void)device->api->cuCtxPushCurrent_v2(device->context);
    return true;
}

void berth_cuda__leave(const cuda_device *device) {
    cuda_context former = NULL;
    (void)device->api->cuCtxPopCurrent_v2(
        &former);  // fails where the device is lost: nothing to do
}

// CUDA's own waits have no limit. Short work is waited for at full speed, longer work in steps of
// 20 microseconds and then of half a millisecond.
berth_status berth_cuda__wait(cuda_device *device, cuda_event event, const char *what) {
    int64_t start_ns = berth_clock_ns(), now_ns = start_ns;
    int64_t deadline_ns = berth_clock_deadline_ns(start_ns, device->timeout_ns);
    for (;;) {
        cuda_result result = device->api->cuEventQuery(event);
        if (result != BERTH_CUDA_ERROR_NOT_READY) return berth_cuda__check(device, result, what);
        now_ns = berth_clock_ns();
        if (now_ns >= deadline_ns) {
            atomic_store(&device->is_lost, true);
            return berth_devices__no_answer(&device->base, what, device->timeout_ns);
        }
        if (now_ns - start_ns < 200000) continue;
        long pause_ns = now_ns - start_ns < 20000000 ? 20000 : 500000;
        nanosleep(&(struct timespec){0, pause_ns}, NULL);
    }
}
