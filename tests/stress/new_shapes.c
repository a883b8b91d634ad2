// Races between runs of a session that compiles and what it compiles beside them: several sessions, each closed while
// kernels for other shapes, or a program for many, are made, results checked. A plain program, meant to run under the thread sanitizer.
// BERTH_STRESS_ROUNDS=N: so many sessions (3).
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "toolkit/vm_session.h"

static const char model[] =
    "module \"m\"\n"
    "graph @main(%x: f32[A,3]) {\n"
    "  %w = constant() {value = f32[3,4] (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)}\n"
    "  %p = matmul(%x, %w)\n  %t = transpose(%p) {perm = [1, 0]}\n  %e = neg(%t)\n"
    "  return %e\n}\n";

static void check_ok(berth_status status) {
    if (!status) return;
    fprintf(stderr, "stress_new_shapes: %s\n", berth_status_message(status));
    exit(1);
}

static void run(berth_vm_session *session, int64_t rows) {
    float *x = malloc((size_t)rows * 3 * sizeof(*x));
    if (!x) exit(1);
    for (int64_t i = 0; i < 3 * rows; ++i) x[i] = (float)(i % 7 - 3);
    const berth_tensor input = {BERTH_DTYPE_F32, 2, {rows, 3}, x};
    berth_vm_value *given = NULL, *got = NULL;
    check_ok(berth_vm_value_borrow(berth_allocator_system(), &input, &given));
    check_ok(berth_vm_session_run(session, &given, &got));
    const float *e = got->tensor.data;
    for (int64_t r = 0; r < rows; ++r)
        for (int c = 0; c < 4; ++c) {
            float sum = 0;  // of small integers: exact in any order
            for (int k = 0; k < 3; ++k) sum += x[3 * r + k] * (float)(4 * k + c + 1);
            if (e[(int64_t)c * rows + r] == -sum) continue;
            fprintf(stderr, "stress_new_shapes: %lld rows: element %lld,%d is wrong\n",
                    (long long)rows, (long long)r, c);
            exit(1);
        }
    berth_vm_value_release(got);
    berth_vm_value_release(given);
    free(x);
}

// A program for many shapes is made beside the runs: runs go on, the session is closed meanwhile or it serves.
static void run_general(const char *path, berth_model_options options, int round) {
    static const int64_t rows[] = {504, 328, 160, 72, 328, 504};
    berth_vm_session *session = NULL;
    options.general_program = BERTH_GENERAL_MADE;
    check_ok(berth_vm_session_open(path, &options, 2, &session));
    for (int i = 0; i < 6; ++i) run(session, rows[i]);
    if (round % 2) {
        berth_vm_report report;
        berth_vm_session_wait(session);
        for (int64_t i = 0; i < 12; ++i) run(session, 496 - 16 * i);
        berth_vm_session_get_report(session, &report);
        if (report.general.run_count == 0) {
            fprintf(stderr, "stress_new_shapes: no program for many shapes served: %s\n",
                    report.general.refusal ? report.general.refusal : "it is not there");
            exit(1);
        }
    }
    berth_vm_session_close(session);
}

int main(void) {
    static const int64_t rows[] = {504, 328, 160, 72, 640, 321, 999, 100, 504, 77};
    const char *asked = getenv("BERTH_STRESS_ROUNDS");
    const int rounds = asked ? atoi(asked) : 3;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/berth-new-shapes-%d.txt", (int)getpid());
    check_ok(berth_file_write(path, model, strlen(model)));
    const berth_model_options options = {
        .target = "cpu",
        .compile = {.cache_folder = getenv("BERTH_CACHE_DIR"), .search_path = getenv("PATH")}};
    for (int round = 0; round < rounds; ++round) {
        berth_vm_session *session = NULL;
        check_ok(berth_vm_session_open(path, &options, 2, &session));
        const int count = 3 + round * 3 % 8;  // the third shape begins what is compiled beside
        for (int i = 0; i < count; ++i) run(session, rows[i]);
        if (round == 1) berth_vm_session_wait(session);
        if (round == 1) run(session, 50);
        berth_vm_session_close(session);
        run_general(path, options, round);
    }
    unlink(path);
    return 0;
}
