#include "toolkit/operator_colours.h"

#include <stdlib.h>
#include <string.h>

static const char *const palette[] = {"#56b4e9", "#e69f00", "#009e73", "#cc79a7",
                                      "#f0e442", "#0072b2", "#d55e00"};
enum { palette_size = sizeof(palette) / sizeof(palette[0]) };
_Static_assert(palette_size + 2 == BERTH_OPERATOR_KEYS,
               "others and copies come beside the colours");
static const char other_colour[] = "#b8c2cc";

const char *berth_colour_at(uint32_t index) {
    return palette[index % palette_size];
}

void berth_operator_colours_add(berth_operator_colours *colours, berth_arena *arena, const char *op,
                                double time_ns) {
    uint32_t at = 0;
    while (at < colours->operators.count && strcmp(colours->operators.data[at].op, op) != 0) ++at;
    if (at == colours->operators.count)
        berth_vec_push(arena, &colours->operators, (berth_operator_time){.op = op});
    colours->operators.data[at].time_ns += time_ns;
}

static int by_time(const void *a, const void *b) {
    const berth_operator_time *x = a;
    const berth_operator_time *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? 1 : -1;
    return strcmp(x->op, y->op);
}

void berth_operator_colours_rank(berth_operator_colours *colours) {
    if (colours->operators.count)
        qsort(colours->operators.data, colours->operators.count, sizeof(berth_operator_time),
              by_time);
}

const char *berth_operator_colours_of(const berth_operator_colours *colours, const char *op) {
    for (uint32_t i = 0; i < colours->operators.count && i < palette_size; ++i)
        if (strcmp(colours->operators.data[i].op, op) == 0) return palette[i];
    return other_colour;
}

uint32_t berth_operator_colours_keys(const berth_operator_colours *colours, bool copies,
                                     berth_timeline_key keys[BERTH_OPERATOR_KEYS]) {
    uint32_t count = 0;
    for (; count < colours->operators.count && count < palette_size; ++count)
        keys[count] = (berth_timeline_key){palette[count], colours->operators.data[count].op};
    if (colours->operators.count > palette_size)
        keys[count++] = (berth_timeline_key){other_colour, "others"};
    if (copies) keys[count++] = (berth_timeline_key){BERTH_COPY_COLOUR, "copies"};
    return count;
}
