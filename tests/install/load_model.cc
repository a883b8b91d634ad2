// The public headers in a C++ program: compiles a model and says how many operations the plan has.
#include <berth/berth.h>

#include <iostream>

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    berth_compiler *compiler = nullptr;
    berth_program *program = nullptr;
    berth_status status = berth_compiler_create(&compiler);
    if (!status) status = berth_compiler_compile_file(compiler, argv[1], &program);
    berth_compiler_destroy(compiler);
    if (status) {
        std::cerr << berth_status_message(status) << '\n';
        berth_status_free(status);
        return 1;
    }
    std::cout << berth_program_placement_count(program) << '\n';
    berth_program_release(program);
}
