// Runs a model on random input from C: load, plan, open, bind inputs, run, read outputs.
//   run_model model.onnx "opencl -host=cpu"
#include <berth/berth.h>
#include <stdio.h>

static berth_status run(const char *path, const char *target) {
    // Load, plan and compile. The model holds the compiled program.
    berth_model_options options = {.target = target};
    berth_model *model = NULL;
    berth_session *session = NULL;
    BERTH_TRY(berth_model_load(path, &options, &model));
    const berth_program *program = berth_model_program(model);
    for (uint32_t i = 0; i < program->placement_count; ++i)
        printf("%s runs on %s\n", program->placements[i].node,
               program->devices[program->placements[i].device].name);

    // Open it on this machine's devices: memory is allocated and constants are uploaded here.
    berth_status status = berth_session_open(berth_allocator_system(), program, NULL, &session);
    if (status) goto done;

    // Bind inputs: write into the session's own memory.
    for (uint32_t i = 0; i < program->input_count; ++i) {
        berth_tensor input = *berth_session_input(session, i);
        berth_tensor_fill_random(&input, 1 + i);
    }

    // Run, as often as wanted; nothing is allocated here.
    status = berth_session_run(session, -1);
    if (status) goto done;

    // Read outputs.
    for (uint32_t i = 0; i < program->output_count; ++i) {
        const berth_tensor *output = berth_session_output(session, i);
        printf("%s[0] = %g\n", berth_session_output_name(session, i),
               berth_tensor_get_f64(output, 0));
    }
done:
    berth_session_close(session);
    berth_model_destroy(model);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: run_model MODEL [TARGET]\n");
        return 2;
    }
    berth_status status = run(argv[1], argc > 2 ? argv[2] : "cpu");
    if (!status) return 0;
    fprintf(stderr, "run_model: %s\n", berth_status_message(status));
    berth_status_free(status);
    return 1;
}
