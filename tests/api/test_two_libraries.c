// libberth and libberth-compiler have copies of base and target each: what one makes the other frees, and what a process has
// once is there once.
#define _GNU_SOURCE  // dladdr
#include <berth/berth.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#define COMPILER_LIBRARY "libberth-compiler.so.0.1"

// A function of libberth-compiler's own, which programs do not see otherwise.
static void find_in_compiler(const char *name, void *out_function) {
    void *library = dlopen(COMPILER_LIBRARY, RTLD_NOW | RTLD_NOLOAD), *found = NULL;
    Dl_info place = {0};
    cr_assert_not_null(library, "%s", dlerror());
    found = dlsym(library, name);
    cr_assert_not_null(found, "%s", dlerror());
    cr_assert(dladdr(found, &place) && strstr(place.dli_fname, "berth-compiler"),
              "%s is not libberth-compiler's own: this test shows nothing", name);
    memcpy(out_function, &found, sizeof(found));
    dlclose(library);
}

// The record of it is static, one in each library: neither is freed.
Test(two_libraries, out_of_memory_of_one_is_freed_by_the_other) {
    berth_status (*make_oom)(void) = NULL;
    find_in_compiler("berth_status_oom", &make_oom);
    berth_status status = make_oom();
    berth_status_free(status);
    berth_status_free(status);
    cr_expect_eq(berth_status_code(status), BERTH_OUT_OF_MEMORY);
    cr_expect_str_eq(berth_status_message(status), "out of memory");
}

Test(two_libraries, errors_of_one_are_freed_by_the_other) {
    berth_compiler *compiler = NULL;
    berth_program *program = NULL;
    cr_assert_null(berth_compiler_create(&compiler));
    berth_status status = berth_compiler_compile_file(compiler, "/nonexistent.onnx", &program);
    cr_assert_not_null(status);
    cr_expect_not_null(strstr(berth_status_message(status), "/nonexistent.onnx"));
    berth_status_free(status);
    berth_compiler_destroy(compiler);
}

// There is one registry of devices and one kind of error for who uses both.
Test(two_libraries, programs_find_public_functions_in_one_library) {
    void *library = dlopen(COMPILER_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    static const char *const names[] = {"berth_status_free", "berth_dtype_name",
                                        "berth_program_release", "berth_driver_load"};
    cr_assert_not_null(library);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        Dl_info place = {0};
        void *found =
            dlsym(library, names[i]);  // its own, then those of the libraries that it needs
        cr_assert(found && dladdr(found, &place), "%s", names[i]);
        cr_expect_null(strstr(place.dli_fname, "berth-compiler"), "%s is in both libraries",
                       names[i]);
    }
    dlclose(library);
}
