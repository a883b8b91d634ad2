// Compiles a model from C and runs it on inputs of zeros: what it takes, where it runs and why, what
// it gives. Needs libberth-compiler.
//   run_model MODEL [TARGET [PROGRAM]]      run_model digits.onnx cpu,opencl digits.berth
// PROGRAM: the compiled model is kept in this file, for recognise_digit.c.
#include <berth/berth.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        berth_status try_status = (call);                                                          \
        if (try_status) return try_status;                                                         \
    } while (0)

// Dimensions that the model leaves open ("batch") are taken as 1.
static berth_status close_dimensions(berth_compiler *compiler, const berth_model_info *info) {
    for (uint32_t i = 0; i < berth_model_info_input_count(info); ++i) {
        const berth_value_info *input = berth_model_info_input(info, i);
        for (int d = 0; d < input->rank; ++d)
            if (input->dims[d].name) TRY(berth_compiler_set_dim(compiler, input->dims[d].name, 1));
    }
    return BERTH_OK;
}

static berth_status compile(const char *path, const char *target, berth_program **out_program) {
    berth_compiler *compiler = NULL;
    berth_model_info *info = NULL;
    TRY(berth_model_info_read(path, &info));
    berth_status status = berth_compiler_create(&compiler);
    if (!status) status = berth_compiler_set(compiler, "target", target);
    if (!status) status = berth_compiler_set(compiler, "search_path", getenv("PATH"));
    if (!status) status = close_dimensions(compiler, info);
    if (!status) status = berth_compiler_compile_file(compiler, path, out_program);
    berth_compiler_destroy(compiler);
    berth_model_info_free(info);
    return status;
}

static void print_tensor(const char *what, const char *name, const berth_tensor *tensor) {
    printf("%s %s %s[", what, name, berth_dtype_name(tensor->dtype));
    for (int d = 0; d < tensor->rank; ++d) printf("%s%" PRId64, d ? "," : "", tensor->dims[d]);
    printf("]\n");
}

static berth_status run(berth_program *program) {
    berth_session *session = NULL;
    for (uint32_t i = 0; i < berth_program_placement_count(program); ++i) {
        const berth_placement *placement = berth_program_placement_at(program, i);
        printf("%s (%s) runs on %s: %s\n", placement->node, placement->op, placement->device,
               placement->reason);
    }
    // Memory is allocated and constants are uploaded here.
    TRY(berth_session_create(program, NULL, &session));
    for (uint32_t i = 0; i < berth_program_input_count(program); ++i) {
        const berth_tensor *input = berth_session_input(session, i);  // written in place
        unsigned char *bytes = input->data;
        for (size_t b = 0; b < berth_tensor_size_bytes(input); ++b) bytes[b] = 0;
        print_tensor("input", berth_session_input_name(session, i), input);
    }
    berth_status status = berth_session_run(session, -1);  // as often as wanted
    for (uint32_t i = 0; !status && i < berth_program_output_count(program); ++i)
        print_tensor("output", berth_session_output_name(session, i),
                     berth_session_output(session, i));
    berth_session_destroy(session);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: run_model MODEL [TARGET [PROGRAM]]\n");
        return 2;
    }
    berth_program *program = NULL;
    berth_status status = compile(argv[1], argc > 2 ? argv[2] : "cpu", &program);
    if (!status) status = run(program);
    if (!status && argc > 3) status = berth_program_save(program, argv[3]);
    berth_program_release(program);
    if (!status) return 0;
    fprintf(stderr, "run_model: %s: %s\n", berth_code_name(berth_status_code(status)),
            berth_status_message(status));
    berth_status_free(status);
    return 1;
}
