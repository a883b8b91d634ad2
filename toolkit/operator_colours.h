// Colours of operators in pictures: the seven that take the most time have one of their own. Who draws:
// plan_picture.c, simulate_picture.c.
#ifndef BERTH_TOOLKIT_OPERATOR_COLOURS_H_
#define BERTH_TOOLKIT_OPERATOR_COLOURS_H_

#include "base/arena.h"
#include "base/timeline.h"

#define BERTH_COPY_COLOUR "#52606d"
#define BERTH_OPERATOR_KEYS 9u  // at most: colours, others, copies

typedef struct berth_operator_time {
    const char *op;  // borrowed
    double time_ns;
} berth_operator_time;

// Zeroed before the first addition.
typedef struct berth_operator_colours {
    BERTH_VEC(berth_operator_time) operators;
} berth_operator_colours;

// The colours in their order, again from the first after the last; they differ for the common kinds of
// colour blindness (Okabe and Ito 2008).
const char *berth_colour_at(uint32_t index);

// Inside berth_arena_try of the arena. O(operators).
void berth_operator_colours_add(berth_operator_colours *colours, berth_arena *arena, const char *op,
                                double time_ns);
// After the last addition: who takes longest comes first.
void berth_operator_colours_rank(berth_operator_colours *colours);
const char *berth_operator_colours_of(const berth_operator_colours *colours, const char *op);
// Entries of the legend; their number.
uint32_t berth_operator_colours_keys(const berth_operator_colours *colours, bool copies,
                                     berth_timeline_key keys[BERTH_OPERATOR_KEYS]);

#endif  // BERTH_TOOLKIT_OPERATOR_COLOURS_H_
