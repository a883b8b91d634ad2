#include "toolkit/step_times.h"

#include <stdlib.h>

void berth_step_times(const berth_program *program, berth_session *session, berth_arena *arena,
                      double *out_ns) {
    berth_session_report report;
    berth_session_get_report(session, &report);
    int64_t *queue_end = berth_arena_new_array(arena, int64_t, program->queue_count + 1);
    for (uint32_t i = 0; i < program->step_count; ++i) {
        const berth_program_step *step = &program->steps[i];
        int64_t ready = report.run_start_ns, end = report.steps[i].end_ns;
        if (queue_end[step->queue] > ready) ready = queue_end[step->queue];
        for (uint32_t w = 0; w < step->wait_count; ++w)
            if (report.steps[step->waits[w]].end_ns > ready)
                ready = report.steps[step->waits[w]].end_ns;
        queue_end[step->queue] = end;
        out_ns[i] = end > ready ? (double)(end - ready) : 0;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double berth_median(double *values, uint32_t count) {
    if (count == 0) return 0;
    qsort(values, count, sizeof(*values), compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
