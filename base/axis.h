// Axes of pictures: where their ticks are.
#ifndef BERTH_BASE_AXIS_H_
#define BERTH_BASE_AXIS_H_

// A round step (1, 2, 2.5 or 5 times a power of ten) of an axis from 0 to `most` with about five ticks, in
// the unit that fits of powers of `base`: 1024 for bytes, 1000 for times.
double berth_axis_tick(double most, double base);

#endif  // BERTH_BASE_AXIS_H_
