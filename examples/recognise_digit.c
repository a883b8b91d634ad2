// Opens a compiled digits model and has it recognise a digit drawn here. Needs libberth only: no
// compiler.
//   berth build examples/digits/digits.onnx --dim batch=1 -o digits.berth
//   recognise_digit digits.berth
#include <berth/berth.h>
#include <stdio.h>

// Grey levels from 0 to 16: image 0 of test_images.npy, a two.
static const unsigned char drawing[64] = {0, 4,  16, 15, 2,  0,  0,  0,  //
                                          0, 11, 15, 15, 7,  0,  0,  0,  //
                                          0, 9,  10, 6,  14, 0,  0,  0,  //
                                          0, 0,  0,  7,  15, 0,  0,  0,  //
                                          0, 0,  0,  13, 10, 0,  0,  0,  //
                                          0, 0,  1,  16, 7,  2,  2,  0,  //
                                          0, 1,  12, 16, 15, 16, 15, 0,  //
                                          0, 4,  16, 16, 16, 12, 11, 0};

static int report(berth_status status) {
    fprintf(stderr, "recognise_digit: %s\n", berth_status_message(status));
    berth_status_free(status);
    return 1;
}

int main(int argc, char **argv) {
    float pixels[64], scores[10];
    const berth_tensor image = {BERTH_DTYPE_F32, 4, {1, 1, 8, 8}, pixels};
    const berth_tensor result = {BERTH_DTYPE_F32, 2, {1, 10}, scores};
    berth_program *program = NULL;
    berth_session *session = NULL;
    int best = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: recognise_digit PROGRAM\n");
        return 2;
    }
    for (int i = 0; i < 64; ++i) pixels[i] = (float)drawing[i] / 16.0f;
    berth_status status = berth_program_open(argv[1], &program);
    if (!status) status = berth_session_create(program, NULL, &session);
    if (!status) status = berth_session_run_with(session, &image, 1, &result, 1, -1);
    berth_session_destroy(session);
    berth_program_release(program);
    if (status) return report(status);
    for (int i = 1; i < 10; ++i)
        if (scores[i] > scores[best]) best = i;
    printf("a %d (%.1f %%)\n", best, 100.0 * (double)scores[best]);
    return 0;
}
