// What `berth devices` says of drivers and devices.
#include <stdlib.h>
#include <string.h>

#include "support.h"

// Each extension that people ask about is used, there and not used, or lacking.
Test(devices_command, what_opencl_uses_and_lacks) {
    static const char *const names[] = {"cl_khr_fp64", "cl_khr_fp16", "cl_khr_subgroups",
                                        "cl_khr_integer_dot_product"};
    const char *text = berth_run("devices")->out;
    const char *device = strstr(text, "  opencl:0 ");
    if (!device) cr_skip("skipped: this needs OpenCL");
    const char *memory = strstr(device, "memory global");
    cr_assert(memory, "%s", text);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        const char *first = strstr(device, names[i]);
        cr_assert(first && first < memory, "%s is missing: %s", names[i], text);
        const char *again = strstr(first + 1, names[i]);
        cr_assert(!again || again > memory, "%s twice: %s", names[i], text);
    }
}

// A CUDA driver whose compiler is not there: files by its names that are no libraries come first.
Test(devices_command, a_driver_without_its_compiler, .timeout = 60) {
    static const char make[] = "for f in .13 .12 .11.2 ''; do : > $F/libnvrtc.so$f; done; "
                               "cp " CUDA_EMULATION "/libcuda.so.1 $F";
    char folder[] = "/tmp/berth-devices-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    setenv("F", folder, 1);
    cr_assert_eq(system(make), 0);
    const char *before = getenv("LD_LIBRARY_PATH");
    setenv("LD_LIBRARY_PATH", folder, 1);
    const char *text = berth_run("devices")->out;
    const char *cuda = strstr(text, "\ncuda: ");
    const char *said =
        cuda ? strstr(cuda, "\n  lacking: kernels are CUDA C, and there is no NVRTC") : NULL;
    const char *device = cuda ? strstr(cuda, "\n  cuda:0  ") : NULL;
    cr_expect(said && device && said < device, "%s", text);
    const char *features = device ? strstr(device, "; lacks NVRTC\n") : NULL;
    cr_expect(features && features < strstr(device, "memory global"), "%s", text);
    json_t *json = berth_run_json("devices --format=json"), *driver = NULL;
    size_t i = 0;
    json_array_foreach(json_object_get(json, "drivers"), i, driver) {
        bool is_cuda = strcmp(json_string_value(json_object_get(driver, "kind")), "cuda") == 0;
        const char *lacking = json_string_value(json_object_get(driver, "lacking"));
        cr_expect_eq(strstr(lacking, "there is no NVRTC") != NULL, is_cuda, "%s", lacking);
    }
    json_decref(json);
    before ? setenv("LD_LIBRARY_PATH", before, 1) : unsetenv("LD_LIBRARY_PATH");
    cr_expect_eq(system("rm -r $F"), 0);
}
