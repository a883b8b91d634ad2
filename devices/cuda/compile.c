// CUDA C to machine code for the very device, by NVRTC. What it made is kept by the hash of all that
// it depends on: the text, the architecture, the versions of NVRTC and of the driver.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "devices/cuda/cuda.h"
#include "devices/kept_file.h"

typedef struct compile_job {
    cuda_device *device;
    const nvrtc_api *nvrtc;
    const char *source;
    char architecture[48];  // the option: "--gpu-architecture=sm_90"
    bool ptx;               // for a virtual architecture: the driver makes machine code of it
} compile_job;

// What NVRTC calls a result, and what that is for a caller.
static const char *name_of(nvrtc_result result, berth_code *out_code) {
    static const struct {
        nvrtc_result result;
        berth_code code;
        const char *name;
    } known[] = {
#define KNOWN(name, value, code) {value, BERTH_##code, #name},
        NVRTC_RESULTS(KNOWN)
#undef KNOWN
    };
    *out_code = BERTH_INTERNAL;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        if (known[i].result != result) continue;
        *out_code = known[i].code;
        return known[i].name;
    }
    return "an error without a name";
}

static berth_status check(const compile_job *job, nvrtc_result result, const char *what) {
    berth_code code = BERTH_INTERNAL;
    if (result == 0) return BERTH_OK;
    const char *name = name_of(result, &code);
    return berth_status_make(code, "cuda device %u (%s): %s: NVRTC says %s (%u)",
                             job->device->base.info.ordinal, job->device->base.info.name, what,
                             name, result);
}

// Of compute capability 9.0 alone with all that it has (wgmma): "sm_90a", which NVRTC 12.0 and newer know.
static const char *with_all_features(const compile_job *job) {
    int major = 0, minor = 0;
    bool knows = job->nvrtc->nvrtcVersion(&major, &minor) == 0 && major >= 12;
    return !job->ptx && job->device->capability == 90 && knows ? "a" : "";
}

// The device's own architecture where NVRTC knows it, else the newest that it knows below, as PTX.
static berth_status choose_architecture(compile_job *job) {
    const nvrtc_api *nvrtc = job->nvrtc;
    int known[128], count = 0, best = 0;
    BERTH_TRY(check(job, nvrtc->nvrtcGetNumSupportedArchs(&count), "list architectures"));
    if (count < 1 || count > 128)
        return berth_status_make(BERTH_INTERNAL, "NVRTC lists %d architectures", count);
    BERTH_TRY(check(job, nvrtc->nvrtcGetSupportedArchs(known), "list architectures"));
    for (int i = 0; i < count; ++i)
        if (known[i] <= job->device->capability && known[i] > best) best = known[i];
    if (!best)
        return berth_status_make(BERTH_INCOMPATIBLE,
                                 "%s has compute capability %d.%d, and this NVRTC compiles for "
                                 "%d.%d and newer: install an older one",
                                 job->device->base.info.name, job->device->capability / 10,
                                 job->device->capability % 10, known[0] / 10, known[0] % 10);
    job->ptx = best != job->device->capability;
    snprintf(job->architecture, sizeof(job->architecture), "--gpu-architecture=%s_%d%s",
             job->ptx ? "compute" : "sm", best, with_all_features(job));
    return BERTH_OK;
}

// Only the failure of a build comes here: malloc is for the message alone.
static berth_status build_failure(const compile_job *job, nvrtc_program program,
                                  nvrtc_result result) {
    const nvrtc_api *nvrtc = job->nvrtc;
    size_t size_bytes = 0;
    char *log = NULL;
    if (nvrtc->nvrtcGetProgramLogSize(program, &size_bytes) == 0) log = calloc(1, size_bytes + 1);
    if (log && nvrtc->nvrtcGetProgramLog(program, log) != 0) log[0] = '\0';
    berth_code code = BERTH_INTERNAL;
    const char *name = name_of(result, &code);
    berth_status status = berth_status_make(
        code, "CUDA kernels do not build for %s (NVRTC says %s (%u)); the log:\n%s",
        job->device->base.info.name, name, result, log && *log ? log : "(empty)");
    free(log);
    return status;
}

static berth_status get_code(const compile_job *job, nvrtc_program program, void **out_data,
                             size_t *out_bytes) {
    const nvrtc_api *nvrtc = job->nvrtc;
    nvrtc_result result = job->ptx ? nvrtc->nvrtcGetPTXSize(program, out_bytes)
                                   : nvrtc->nvrtcGetCUBINSize(program, out_bytes);
    BERTH_TRY(check(job, result, "take the code"));
    char *data = berth_alloc(job->device->base.allocator, *out_bytes);
    if (!data) return berth_status_oom();
    result = job->ptx ? nvrtc->nvrtcGetPTX(program, data) : nvrtc->nvrtcGetCUBIN(program, data);
    berth_status status = check(job, result, "take the code");
    if (status)
        berth_free(job->device->base.allocator, data, *out_bytes);
    else
        *out_data = data;
    return status;
}

static berth_status build(const compile_job *job, void **out_data, size_t *out_bytes) {
    const nvrtc_api *nvrtc = job->nvrtc;
    const char *const options[] = {job->architecture, "--std=c++17", "--disable-warnings"};
    nvrtc_program program = NULL;
    BERTH_TRY(check(job,
                    nvrtc->nvrtcCreateProgram(&program, job->source, "kernels.cu", 0, NULL, NULL),
                    "create a program"));
    nvrtc_result result = nvrtc->nvrtcCompileProgram(program, 3, options);
    berth_status status = result == 0 ? get_code(job, program, out_data, out_bytes)
                                      : build_failure(job, program, result);
    (void)nvrtc->nvrtcDestroyProgram(&program);
    return status;
}

static berth_hash128 identity_of(const compile_job *job) {
    int major = 0, minor = 0;
    (void)job->nvrtc->nvrtcVersion(&major, &minor);
    struct {
        berth_hash128 source, architecture;
        int32_t versions[4];
    } identity = {berth_hash128_of(job->source, strlen(job->source)),
                  berth_hash128_of(job->architecture, strlen(job->architecture)),
                  {major, minor, job->device->driver_version, job->ptx}};
    return berth_hash128_of(&identity, sizeof(identity));
}

berth_status berth_cuda__compile(cuda_device *device, const char *source, void **out_data,
                                 size_t *out_bytes) {
    const cuda_driver *driver = (const cuda_driver *)device->base.driver;
    compile_job job = {.device = device, .nvrtc = &driver->nvrtc, .source = source};
    if (driver->no_nvrtc)
        return berth_status_make(berth_status_code(driver->no_nvrtc), "%s", driver->base.lacking);
    BERTH_TRY(choose_architecture(&job));
    berth_hash128 identity = identity_of(&job);
    char name[33];
    berth_hash128_hex(identity, name);
    *out_data = berth_kept_file_read(device->cache_folder, name, identity, device->base.allocator,
                                     out_bytes);
    if (*out_data) return BERTH_OK;
    BERTH_TRY(build(&job, out_data, out_bytes));
    berth_kept_file_write(device->cache_folder, name, identity, *out_data, *out_bytes);
    return BERTH_OK;
}
