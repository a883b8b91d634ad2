#include "compiler/cost/fit.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { unknowns = 3 };

// Normal equations of the weighted problem: matrix * x = right side. Columns are in units of their
// largest value, so that flops and launches are of like size.
typedef struct normal {
    double matrix[unknowns][unknowns];
    double right[unknowns];
} normal;

static void row_of(const berth_cost_point *p, const double *unit, double out[unknowns]) {
    out[0] = 1 / p->ns;  // relative: divided by the time
    out[1] = p->flops / unit[1] / p->ns;
    out[2] = p->bytes / unit[2] / p->ns;
}

// Solves for the unknowns in `set` (bits) by elimination with pivots; the others are 0. False where
// they are not determined.
static bool solve_set(const normal *n, unsigned set, double x[unknowns]) {
    double a[unknowns][unknowns + 1];
    int index[unknowns], count = 0;
    for (int i = 0; i < unknowns; ++i) {
        x[i] = 0;
        if (set >> i & 1) index[count++] = i;
    }
    for (int i = 0; i < count; ++i) {
        for (int j = 0; j < count; ++j) a[i][j] = n->matrix[index[i]][index[j]];
        a[i][count] = n->right[index[i]];
    }
    for (int k = 0; k < count; ++k) {
        int pivot = k;
        for (int i = k + 1; i < count; ++i)
            if (fabs(a[i][k]) > fabs(a[pivot][k])) pivot = i;
        if (fabs(a[pivot][k]) <= 1e-12 * n->matrix[index[k]][index[k]]) return false;
        for (int j = 0; j <= count; ++j) {
            double held = a[k][j];
            a[k][j] = a[pivot][j];
            a[pivot][j] = held;
        }
        for (int i = 0; i < count; ++i) {
            double factor = i == k ? 0 : a[i][k] / a[k][k];
            for (int j = k; j <= count; ++j) a[i][j] -= factor * a[k][j];
        }
    }
    for (int k = 0; k < count; ++k) x[index[k]] = a[k][count] / a[k][k];
    return true;
}

// pred / measured - 1.
static double relative_error(const berth_cost_point *point, const double *unit,
                             const double x[unknowns]) {
    double row[unknowns], error = -1;
    row_of(point, unit, row);
    for (int i = 0; i < unknowns; ++i) error += row[i] * x[i];
    return error;
}

// The weight of a point whose error was `error`: squares of errors become their absolute values.
static double weight_of(double error) {
    static const double least = 0.02;  // below that an error is noise
    return 1 / fmax(fabs(error), least);
}

// Weighted by the errors of `before` (NULL = all alike).
static normal equations_of(const berth_cost_point *points, uint32_t count, const double *unit,
                           const double *before) {
    normal n = {0};
    for (uint32_t p = 0; p < count; ++p) {
        double row[unknowns];
        double weight = before ? weight_of(relative_error(&points[p], unit, before)) : 1;
        row_of(&points[p], unit, row);
        for (int i = 0; i < unknowns; ++i) {
            for (int j = 0; j < unknowns; ++j) n.matrix[i][j] += weight * row[i] * row[j];
            n.right[i] += weight * row[i];
        }
    }
    return n;
}

// What the squares of the errors exceed that of x = 0 by: x'Ax - 2x'b.
static double excess(const normal *n, const double x[unknowns]) {
    double sum = 0;
    for (int i = 0; i < unknowns; ++i) {
        sum -= 2 * x[i] * n->right[i];
        for (int j = 0; j < unknowns; ++j) sum += x[i] * n->matrix[i][j] * x[j];
    }
    return sum;
}

static void solve(const normal *n, double best[unknowns]) {
    double least = 0;
    for (int i = 0; i < unknowns; ++i) best[i] = 0;
    for (unsigned set = 1; set < 1u << unknowns; ++set) {
        double x[unknowns];
        if (!solve_set(n, set, x)) continue;
        bool negative = false;
        for (int i = 0; i < unknowns; ++i) negative |= x[i] < 0;
        if (negative || excess(n, x) >= least) continue;
        least = excess(n, x);
        for (int i = 0; i < unknowns; ++i) best[i] = x[i];
    }
}

berth_cost_line berth_cost_fit(const berth_cost_point *points, uint32_t count) {
    enum { rounds = 8 };
    double unit[unknowns] = {1, 1, 1}, x[unknowns] = {0};
    if (count == 0) return (berth_cost_line){0};
    for (uint32_t p = 0; p < count; ++p) {
        unit[1] = fmax(unit[1], points[p].flops);
        unit[2] = fmax(unit[2], points[p].bytes);
    }
    for (int round = 0; round < rounds; ++round) {
        normal n = equations_of(points, count, unit, round ? x : NULL);
        solve(&n, x);
    }
    return (berth_cost_line){
        .ns = x[0], .ns_per_flop = x[1] / unit[1], .ns_per_byte = x[2] / unit[2], .points = count};
}

double berth_cost_line_ns(const berth_cost_line *line, double flops, double bytes) {
    return line->ns + flops * line->ns_per_flop + bytes * line->ns_per_byte;
}
