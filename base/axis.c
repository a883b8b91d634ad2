#include "base/axis.h"

#include <math.h>
#include <stddef.h>

enum { ticks = 5 };

// The next of 1, 2, 2.5 and 5 times the unit or ten times it, and so on, that is no less.
static double round_up(double value, double unit) {
    static const double steps[] = {1, 2, 2.5, 5, 10};
    if (!(value > 0)) return unit;
    double scale = unit * pow(10, floor(log10(value / unit)));
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i)
        if (steps[i] * scale >= value * (1 - 1e-9)) return steps[i] * scale;
    return value;
}

double berth_axis_tick(double most, double base) {
    double unit = 1, step = most / ticks;
    while (step / unit >= base) unit *= base;
    return round_up(step, unit);
}
