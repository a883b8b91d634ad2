#include "compiler/cost/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "compiler/libraries/use.h"

// Points and line of one class of work, or of copies from one kind of device.
typedef struct family {
    const char *name;
    BERTH_VEC(berth_cost_point) points;
    berth_cost_line line;
} family;

struct berth_cost_device {
    berth_cost_table *table;
    const char *target;
    BERTH_VEC(family) families;  // by class
    family all;
};

struct berth_cost_table {
    berth_arena *arena;
    berth_interner *keys;  // of records; a record's number is its key's less 1
    BERTH_VEC(berth_cost_record) records;
    BERTH_VEC(berth_cost_device *) devices;
    BERTH_VEC(family) copies;  // named "FROM\x1fTO"
};

berth_cost_table *berth_cost_table_create(berth_arena *arena) {
    berth_cost_table *table = berth_arena_new(arena, berth_cost_table);
    table->arena = arena;
    table->keys = berth_interner_create(arena);
    return table;
}

static const char *key_of(berth_arena *arena, const berth_cost_record *r) {
    if (r->from) return berth_arena_printf(arena, "%s\x1f%s\x1f%.0f", r->target, r->from, r->bytes);
    return berth_arena_printf(arena, "%s\x1f%s", r->target, r->work);
}

void berth_cost_table_add(berth_cost_table *table, const berth_cost_record *record) {
    uint32_t id = berth_intern(table->keys, key_of(table->arena, record));
    if (id <= table->records.count) {
        berth_cost_record *held = &table->records.data[id - 1];
        if (held->modelled) {  // its texts are equal to those of `record`
            held->ns = record->ns;
            held->runs = record->runs;
            held->modelled = record->modelled;
        }
        if (held->modelled || record->modelled) return;
        if (held->ns == record->ns && held->runs == record->runs) return;
        double runs = (double)held->runs + (double)record->runs;
        held->ns = (held->ns * (double)held->runs + record->ns * (double)record->runs) / runs;
        held->runs += record->runs;
        return;
    }
    berth_cost_record copy = *record;
    copy.target = berth_arena_strdup(table->arena, record->target);
    copy.from = record->from ? berth_arena_strdup(table->arena, record->from) : NULL;
    copy.kind = berth_arena_strdup(table->arena, record->kind);
    copy.work = berth_arena_strdup(table->arena, record->work);
    berth_vec_push(table->arena, &table->records, copy);
}

void berth_cost_table_add_missing(berth_cost_table *table, const berth_cost_table *other) {
    uint32_t id = 0;
    for (uint32_t i = 0; i < other->records.count; ++i) {
        const berth_cost_record *record = &other->records.data[i];
        bool held = berth_intern_find(table->keys, key_of(table->arena, record), &id) && id > 0;
        if (!held || (table->records.data[id - 1].modelled && !record->modelled))
            berth_cost_table_add(table, record);
    }
}

berth_arena *berth_cost_table_arena(const berth_cost_table *table) {
    return table->arena;
}

uint32_t berth_cost_table_count(const berth_cost_table *table) {
    return table->records.count;
}

const berth_cost_record *berth_cost_table_at(const berth_cost_table *table, uint32_t index) {
    return &table->records.data[index];
}

// ---- lines --------------------------------------------------------------------------------------

static berth_cost_point point_of(const berth_cost_record *r) {
    return (berth_cost_point){.flops = r->flops, .bytes = r->bytes, .ns = r->ns};
}

static family *family_of(berth_cost_device *device, const char *name) {
    for (uint32_t i = 0; i < device->families.count; ++i)
        if (strcmp(device->families.data[i].name, name) == 0) return &device->families.data[i];
    family fresh = {.name = name};
    berth_vec_push(device->table->arena, &device->families, fresh);
    return &device->families.data[device->families.count - 1];
}

// A launch with nothing to do takes no longer than the quickest of the device's kernels: a point (one
// in four) without which a class of measurements alike has its fixed cost from chance.
static void fit(berth_arena *arena, family *f, double quickest_ns) {
    BERTH_VEC(berth_cost_point) points = {0};
    for (uint32_t i = 0; i < f->points.count; ++i) {
        berth_vec_push(arena, &points, f->points.data[i]);
        if (i % 4 == 0) berth_vec_push(arena, &points, (berth_cost_point){.ns = quickest_ns});
    }
    f->line = berth_cost_fit(points.data, points.count);
}

static double quickest(const family *f) {
    double least = INFINITY;
    for (uint32_t i = 0; i < f->points.count; ++i) least = fmin(least, f->points.data[i].ns);
    return least;
}

berth_cost_device *berth_cost_table_device(berth_cost_table *table, const berth_target *target) {
    const char *culled = berth_target_culled(table->arena, target);
    for (uint32_t i = 0; i < table->devices.count; ++i)
        if (strcmp(table->devices.data[i]->target, culled) == 0) return table->devices.data[i];
    berth_cost_device *device = berth_arena_new(table->arena, berth_cost_device);
    device->table = table;
    device->target = culled;
    berth_vec_push(table->arena, &table->devices, device);
    for (uint32_t i = 0; i < table->records.count; ++i) {
        const berth_cost_record *r = &table->records.data[i];
        bool whole =
            strcmp(r->kind, BERTH_LIBRARY_COST_KIND) == 0;  // uses of libraries: no kernels
        if (r->from || r->modelled || whole || strcmp(r->target, culled) != 0) continue;
        family *f = family_of(device, r->kind);
        berth_vec_push(table->arena, &f->points, point_of(r));
        berth_vec_push(table->arena, &device->all.points, point_of(r));
    }
    double least_ns = quickest(&device->all);
    for (uint32_t i = 0; i < device->families.count; ++i)
        fit(table->arena, &device->families.data[i], least_ns);
    fit(table->arena, &device->all, least_ns);
    return device;
}

bool berth_cost_device_is_measured(const berth_cost_device *device) {
    return device->all.points.count > 0;
}

// How much longer neighbours take than the line says: the mean of the logarithms, near points
// counting more, and the line itself as much as half a point at no distance.
static double correction(const family *f, double flops, double bytes) {
    static const double width = 0.5;  // of a factor of 1.6 in flops and bytes
    double weights = 0.5, sum = 0;
    for (uint32_t i = 0; i < f->points.count; ++i) {
        const berth_cost_point *p = &f->points.data[i];
        double line = berth_cost_line_ns(&f->line, p->flops, p->bytes);
        double x = log((p->flops + 1) / (flops + 1)), y = log((p->bytes + 1) / (bytes + 1));
        double weight = exp(-(x * x + y * y) / (2 * width * width));
        if (line <= 0) continue;
        sum += weight * log(p->ns / line);
        weights += weight;
    }
    return exp(sum / weights);
}

double berth_cost_device_known_ns(berth_cost_device *device, const berth_work *work,
                                  berth_cost_figure *out_figure) {
    berth_cost_table *table = device->table;
    uint32_t id = 0;
    berth_cost_record wanted = {.target = device->target, .work = work->key};
    *out_figure = BERTH_COST_ANALYTIC;
    if (!berth_intern_find(table->keys, key_of(table->arena, &wanted), &id) || id == 0) return -1;
    const berth_cost_record *record = &table->records.data[id - 1];
    *out_figure = record->modelled ? BERTH_COST_MODELLED : BERTH_COST_MEASURED;
    return record->ns;
}

double berth_cost_device_ns(berth_cost_device *device, const berth_work *work,
                            berth_cost_figure *out_figure) {
    enum { fewest = 3 };  // points that tell a line from chance
    double known_ns = berth_cost_device_known_ns(device, work, out_figure);
    if (known_ns >= 0) return known_ns;
    if (!berth_cost_device_is_measured(device)) return -1;
    *out_figure = BERTH_COST_INTERPOLATED;
    const family *f = family_of(device, work->kind);
    if (f->points.count < fewest) f = &device->all;
    return berth_cost_line_ns(&f->line, work->flops, work->bytes) *
           correction(f, work->flops, work->bytes);
}

// ---- copies -------------------------------------------------------------------------------------

static const family *copies_of(berth_cost_table *table, const char *from, const char *to) {
    const char *name = berth_arena_printf(table->arena, "%s\x1f%s", from, to);
    for (uint32_t i = 0; i < table->copies.count; ++i)
        if (strcmp(table->copies.data[i].name, name) == 0) return &table->copies.data[i];
    family fresh = {.name = name};
    for (uint32_t i = 0; i < table->records.count; ++i) {
        const berth_cost_record *r = &table->records.data[i];
        if (!r->from || strcmp(r->target, to) != 0 || strcmp(r->from, from) != 0) continue;
        berth_vec_push(table->arena, &fresh.points, point_of(r));
    }
    fit(table->arena, &fresh, quickest(&fresh));
    berth_vec_push(table->arena, &table->copies, fresh);
    return &table->copies.data[table->copies.count - 1];
}

bool berth_cost_table_copy(berth_cost_table *table, const berth_target *from,
                           const berth_target *to, double bytes, double *out_ns) {
    const family *f = copies_of(table, berth_target_culled(table->arena, from),
                                berth_target_culled(table->arena, to));
    if (f->points.count == 0) return false;
    *out_ns = berth_cost_line_ns(&f->line, 0, bytes);
    return true;
}
