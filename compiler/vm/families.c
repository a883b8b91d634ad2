#include "compiler/vm/families.h"

#include <string.h>

#include "base/divisor.h"
#include "base/hash.h"
#include "base/str.h"

// A program as its form, which all members of a family share, and its numbers.
typedef struct scan {
    berth_strbuf form;   // while it is scanned
    berth_hash128 hash;  // of the form
    BERTH_VEC(berth_vm_patch) places;
    BERTH_VEC(int64_t) numbers;
} scan;

typedef struct group {
    berth_hash128 form;
    BERTH_VEC(uint32_t) members;  // variants
} group;

typedef struct finder {
    berth_arena *arena;
    const berth_vm_program *code;
    const berth_vm_variant *variants;
    uint32_t count;
    scan *scans;  // per variant
    BERTH_VEC(group) groups;
    BERTH_VEC(berth_vm_variant) kept;
    BERTH_VEC(berth_vm_family) families;
} finder;

// ---- scanning -----------------------------------------------------------------------------------

#define ADD_FORM(s, value) berth_strbuf_add_n(&(s)->form, (const char *)&(value), sizeof(value))

static void add_text(scan *s, const char *text) {
    berth_strbuf_addf(&s->form, "%s%c", text ? text : "", 0);
    uint32_t length = text ? (uint32_t)strlen(text) : 0;
    ADD_FORM(s, length);
}

static void add_list(scan *s, const void *list, size_t size_bytes) {
    ADD_FORM(s, size_bytes);
    if (size_bytes) berth_strbuf_add_n(&s->form, list, size_bytes);
}

static void add_number(finder *f, scan *s, berth_patch_kind kind, uint32_t record, uint32_t index,
                       int64_t number) {
    const berth_vm_patch place = {kind, record, index, 0};
    berth_vec_push(f->arena, &s->places, place);
    berth_vec_push(f->arena, &s->numbers, number);
}

static void scan_memory(finder *f, scan *s, const berth_program *p) {
    for (uint32_t i = 0; i < p->pool_count; ++i) {
        const berth_program_pool *pool = &p->pools[i];
        uint32_t facts[] = {pool->device, pool->usage, pool->alignment_bytes};
        ADD_FORM(s, facts);
        add_text(s, pool->scope);
        for (uint32_t d = 0; d < p->device_count; ++d)
            if (berth_bits_has(pool->shared_with, d)) ADD_FORM(s, d);
    }
    for (uint32_t i = 0; i < p->tensor_count; ++i) {
        const berth_program_tensor *tensor = &p->tensors[i];
        uint32_t facts[] = {tensor->pool, tensor->dtype, (uint32_t)tensor->rank};
        ADD_FORM(s, facts);
        add_text(s, tensor->name);
        add_text(s, tensor->layout);
        add_number(f, s, BERTH_PATCH_TENSOR_SIZE, i, 0, (int64_t)tensor->size_bytes);
        add_number(f, s, BERTH_PATCH_TENSOR_OFFSET, i, 0, (int64_t)tensor->offset_bytes);
        for (int d = 0; d < tensor->rank; ++d)
            add_number(f, s, BERTH_PATCH_TENSOR_DIM, i, (uint32_t)d, tensor->dims[d]);
    }
    for (uint32_t i = 0; i < p->constant_count; ++i) ADD_FORM(s, p->constants[i].tensor);
}

static void scan_io(scan *s, const berth_program_io *list, uint32_t count) {
    ADD_FORM(s, count);
    for (uint32_t i = 0; i < count; ++i) {
        ADD_FORM(s, list[i].tensor);
        ADD_FORM(s, list[i].continues);
        add_text(s, list[i].name);
    }
}

static void scan_code(finder *f, scan *s, const berth_program *p) {
    for (uint32_t i = 0; i < p->executable_count; ++i) {
        const berth_executable_image *image = &p->executables[i];
        ADD_FORM(s, image->data);
        add_text(s, image->device_kind);
    }
    for (uint32_t i = 0; i < p->kernel_count; ++i) {
        const berth_program_kernel *kernel = &p->kernels[i];
        uint32_t facts[] = {kernel->executable, kernel->binding_count, kernel->constant_count};
        ADD_FORM(s, facts);
        ADD_FORM(s, kernel->group_size);
        add_text(s, kernel->entry);
        add_number(f, s, BERTH_PATCH_KERNEL_SCRATCH, i, 0, kernel->scratch_bytes);
        for (uint32_t g = 0; g < 3; ++g)
            add_number(f, s, BERTH_PATCH_KERNEL_GROUPS, i, g, kernel->groups[g]);
        for (uint32_t b = 0; b < kernel->binding_count; ++b) {
            ADD_FORM(s, kernel->bindings[b].access);
            add_number(f, s, BERTH_PATCH_KERNEL_BINDING, i, b,
                       (int64_t)kernel->bindings[b].size_bytes);
        }
    }
}

static void scan_steps(finder *f, scan *s, const berth_program *p) {
    for (uint32_t i = 0; i < p->step_count; ++i) {
        const berth_program_step *step = &p->steps[i];
        bool copies = step->kind == BERTH_STEP_COPY;
        const berth_program_kernel *kernel = copies ? NULL : &p->kernels[step->kernel];
        uint32_t facts[] = {step->kind, step->queue, step->device, step->kernel};
        ADD_FORM(s, facts);
        add_list(s, step->bindings, (copies ? 2 : kernel->binding_count) * sizeof(uint32_t));
        add_list(s, step->waits, step->wait_count * sizeof(uint32_t));
        for (uint32_t c = 0; !copies && c < kernel->constant_count; ++c)
            add_number(f, s, BERTH_PATCH_STEP_CONSTANT, i, c, step->constants[c]);
    }
}

static void scan_checks(finder *f, scan *s, const berth_program *p) {
    ADD_FORM(s, p->check_count);
    for (uint32_t i = 0; i < p->check_count; ++i) {
        const berth_program_check *check = &p->checks[i];
        uint32_t facts[] = {check->tensor, check->from_end, check->width};
        ADD_FORM(s, facts);
        add_text(s, check->node);
        for (uint32_t k = 0; k < check->width; ++k)
            add_number(f, s, BERTH_PATCH_CHECK_EXTENT, i, k, check->extents[k]);
    }
}

static bool is_shape(const berth_tensor *tensor) {
    return tensor->data && (tensor->dtype == BERTH_DTYPE_I64 || tensor->dtype == BERTH_DTYPE_I32);
}

// Dimensions; of known integers the values, too.
static void scan_tensors(finder *f, scan *s, berth_patch_kind kind, const berth_tensor *tensors,
                         uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
        const berth_tensor *t = &tensors[i];
        int64_t facts[] = {t->dtype, t->rank, t->data != NULL};
        ADD_FORM(s, facts);
        for (int d = 0; t->dtype && d < t->rank; ++d)
            add_number(f, s, kind, i, (uint32_t)d, t->dims[d]);
        for (int64_t k = 0; is_shape(t) && k < berth_tensor_element_count(t); ++k)
            add_number(f, s, kind, i, BERTH_FAMILY_ELEMENTS + (uint32_t)k,
                       berth_tensor_get_i64(t, k));
        if (t->data && !is_shape(t)) add_list(s, t->data, berth_tensor_size_bytes(t));
        if (t->data) add_list(s, t->dims, (size_t)t->rank * sizeof(*t->dims));
    }
}

static void scan_program(finder *f, scan *s, const berth_program *p) {
    uint32_t counts[] = {p->device_count,   p->queue_count,      p->pool_count,   p->tensor_count,
                         p->constant_count, p->executable_count, p->kernel_count, p->step_count};
    ADD_FORM(s, counts);
    for (uint32_t i = 0; i < p->device_count; ++i) add_text(s, p->devices[i].target_json);
    add_list(s, p->queues, p->queue_count * sizeof(*p->queues));
    scan_memory(f, s, p);
    scan_io(s, p->inputs, p->input_count);
    scan_io(s, p->outputs, p->output_count);
    scan_code(f, s, p);
    scan_steps(f, s, p);
    scan_checks(f, s, p);
}

static void scan_variant(finder *f, uint32_t index) {
    scan *s = &f->scans[index];
    const berth_vm_variant *variant = &f->variants[index];
    const berth_vm_piece *piece = berth_vm_piece_at(f->code, variant->piece);
    uint32_t facts[] = {variant->piece, variant->program != NULL};
    berth_arena *scratch = berth_arena_create_child(f->arena);
    s->form = berth_strbuf_make(scratch);
    ADD_FORM(s, facts);
    scan_tensors(f, s, BERTH_PATCH_INPUT, variant->inputs, piece->input_count);
    if (variant->program)
        scan_program(f, s, variant->program);
    else
        scan_tensors(f, s, BERTH_PATCH_RESULT, variant->results, piece->output_count);
    s->hash = berth_hash128_of(s->form.data, s->form.length);
    berth_arena_destroy(scratch);
}

// ---- groups -------------------------------------------------------------------------------------

// Constants of a member are the first bytes of those that the family has.
static bool share_constants(const berth_program *held, const berth_program *other) {
    for (uint32_t i = 0; held && i < held->constant_count; ++i) {
        uint32_t t = held->constants[i].tensor;
        uint64_t size_bytes = other->tensors[t].size_bytes;
        if (size_bytes > held->tensors[t].size_bytes) return false;
        if (held->constants[i].data != other->constants[i].data &&
            memcmp(held->constants[i].data, other->constants[i].data, size_bytes) != 0)
            return false;
    }
    return true;
}

static void add_to_group(finder *f, uint32_t variant) {
    scan_variant(f, variant);
    berth_hash128 form = f->scans[variant].hash;
    for (uint32_t g = 0; g < f->groups.count; ++g) {
        group *held = &f->groups.data[g];
        if (berth_hash128_equal(held->form, form) &&
            share_constants(f->variants[held->members.data[0]].program,
                            f->variants[variant].program)) {
            berth_vec_push(f->arena, &held->members, variant);
            return;
        }
    }
    group made = {.form = form};
    berth_vec_push(f->arena, &made.members, variant);
    berth_vec_push(f->arena, &f->groups, made);
}

// ---- variables ----------------------------------------------------------------------------------

static int64_t number_at(const finder *f, const group *g, uint32_t member, uint32_t place) {
    return f->scans[g->members.data[member]].numbers.data[place];
}

// How many members differ in these numbers.
static uint32_t count_distinct(const finder *f, const group *g, const uint32_t *places,
                               uint32_t place_count) {
    berth_interner *keys = berth_interner_create(f->arena);
    uint32_t count = 0;
    for (uint32_t m = 0; m < g->members.count; ++m) {
        int64_t key[BERTH_FAMILY_VARIABLES] = {0};
        char hex[33];
        for (uint32_t i = 0; i < place_count; ++i) key[i] = number_at(f, g, m, places[i]);
        berth_hash128_hex(berth_hash128_of(key, sizeof(key)), hex);
        uint32_t id = berth_intern(keys, hex);
        if (id > count) count = id;  // from 1 on
    }
    return count;
}

// Dimensions and values of inputs that tell all members apart, as few as a greedy choice finds. 0: there are none.
static uint32_t choose_variables(const finder *f, const group *g, uint32_t *out_places) {
    const scan *s = &f->scans[g->members.data[0]];
    uint32_t count = 0, distinct = 1;
    while (distinct < g->members.count && count < BERTH_FAMILY_VARIABLES) {
        uint32_t best = UINT32_MAX;
        for (uint32_t p = 0; p < s->places.count; ++p) {
            if (s->places.data[p].kind != BERTH_PATCH_INPUT) break;
            out_places[count] = p;
            uint32_t made = count_distinct(f, g, out_places, count + 1);
            if (made > distinct) best = p;
            if (made > distinct) distinct = made;
        }
        if (best == UINT32_MAX) return 0;
        out_places[count++] = best;
    }
    return distinct == g->members.count ? count : 0;
}

// ---- families -----------------------------------------------------------------------------------

static void set_bounds(const finder *f, const group *g, const uint32_t *places, uint32_t count,
                       berth_vm_variable *variables, uint64_t *out_values) {
    *out_values = 1;
    for (uint32_t i = 0; i < count; ++i) {
        const berth_vm_patch *place = &f->scans[g->members.data[0]].places.data[places[i]];
        berth_vm_variable *v = &variables[i];
        *v = (berth_vm_variable){place->record, place->index, INT64_MAX, 0};
        for (uint32_t m = 0; m < g->members.count; ++m) {
            int64_t value = number_at(f, g, m, places[i]);
            if (value < v->low) v->low = value;
            if (value > v->high || m == 0) v->high = value;
        }
        uint64_t range = (uint64_t)(v->high - v->low) + 1;
        *out_values = range > BERTH_FAMILY_MOST_VALUES ? UINT64_MAX / range : *out_values * range;
    }
}

static void add_members(const finder *f, const group *g, const uint32_t *places, uint32_t count,
                        const berth_vm_variable *variables, uint64_t *bits) {
    for (uint32_t m = 0; m < g->members.count; ++m) {
        uint64_t at = 0;
        for (uint32_t i = 0; i < count; ++i)
            at = at * (uint64_t)(variables[i].high - variables[i].low + 1) +
                 (uint64_t)(number_at(f, g, m, places[i]) - variables[i].low);
        bits[at / 64] |= (uint64_t)1 << at % 64;
    }
}

static int64_t *values_of(const finder *f, const group *g, const uint32_t *places, uint32_t count) {
    int64_t *values =
        berth_arena_new_array(f->arena, int64_t, (size_t)g->members.count * BERTH_FAMILY_VARIABLES);
    for (uint32_t m = 0; m < g->members.count; ++m)
        for (uint32_t i = 0; i < count; ++i)
            values[(size_t)m * BERTH_FAMILY_VARIABLES + i] = number_at(f, g, m, places[i]);
    return values;
}

typedef struct fitting {
    berth_fitter fitter;
    berth_interner *known;  // numbers of all members, which have the quantity at their index
    BERTH_VEC(uint32_t) quantity_of;
    BERTH_VEC(berth_vm_patch) patches;
    int64_t *numbers;  // of one place
    bool again;        // what was no expression before is tried
} fitting;

// False: a number is no expression of what was fitted so far.
static bool fit_place(const finder *f, const group *g, uint32_t place, fitting *fit) {
    const scan *s = &f->scans[g->members.data[0]];
    bool same = true;
    for (uint32_t m = 0; m < g->members.count; ++m) {
        fit->numbers[m] = number_at(f, g, m, place);
        same &= fit->numbers[m] == fit->numbers[0];
    }
    if (same) return true;
    char hex[33];
    berth_hash128_hex(berth_hash128_of(fit->numbers, g->members.count * sizeof(int64_t)), hex);
    uint32_t id = berth_intern(fit->known, hex);
    while (id >= fit->quantity_of.count) {
        uint32_t quantity = UINT32_MAX;
        if (id == fit->quantity_of.count) quantity = berth_fitter_fit(&fit->fitter, fit->numbers);
        berth_vec_push(f->arena, &fit->quantity_of, quantity);
    }
    if (fit->again && fit->quantity_of.data[id] == UINT32_MAX)
        fit->quantity_of.data[id] = berth_fitter_fit(&fit->fitter, fit->numbers);
    berth_vm_patch patch = s->places.data[place];
    patch.quantity = fit->quantity_of.data[id];
    if (patch.quantity == UINT32_MAX) return false;
    berth_vec_push(f->arena, &fit->patches, patch);
    return true;
}

// What is an expression of numbers that come later is tried again after them. False: *out_place is no expression.
static bool fit_places(const finder *f, const group *g, fitting *fit, uint32_t *out_place) {
    enum { most_later = 4 };
    uint32_t later[most_later], count = 0;
    for (uint32_t p = 0; p < f->scans[g->members.data[0]].places.count; ++p) {
        if (fit_place(f, g, p, fit)) continue;
        if (count == most_later) {
            *out_place = later[0];
            return false;
        }
        later[count++] = p;
    }
    fit->again = true;
    for (uint32_t i = 0; i < count; ++i) {
        *out_place = later[i];
        if (!fit_place(f, g, later[i], fit)) return false;
    }
    return true;
}

typedef BERTH_VEC(int64_t) word_list;

static void add_words(const finder *f, word_list *words, const void *data, size_t size_bytes) {
    for (size_t at = 0; at < size_bytes; at += sizeof(int64_t)) {
        int64_t word;
        memcpy(&word, (const char *)data + at, sizeof(word));
        berth_vec_push(f->arena, words, word);
    }
}

// The family of a group; false: there is none, and *out_place is the number that is no expression (UINT32_MAX: it is
// not that).
static bool make_family(const finder *f, const group *g, berth_vm_family *out,
                        uint32_t *out_place) {
    uint32_t places[BERTH_FAMILY_VARIABLES];
    *out_place = UINT32_MAX;
    berth_vm_variable variables[BERTH_FAMILY_VARIABLES];
    uint64_t value_count = 0;
    uint32_t count = choose_variables(f, g, places);
    if (count == 0) return false;
    set_bounds(f, g, places, count, variables, &value_count);
    if (value_count > BERTH_FAMILY_MOST_VALUES) return false;
    fitting fit = {.fitter = {.arena = f->arena,
                              .variable_count = count,
                              .member_count = g->members.count,
                              .values = values_of(f, g, places, count)},
                   .known = berth_interner_create(f->arena),
                   .numbers = berth_arena_new_array(f->arena, int64_t, g->members.count)};
    if (!fit_places(f, g, &fit, out_place)) return false;
    bool all = value_count == g->members.count;
    const berth_vm_family_header header = {count, fit.fitter.quantities.count, fit.patches.count,
                                           !all};
    word_list words = {0};
    add_words(f, &words, &header, sizeof(header));
    add_words(f, &words, variables, count * sizeof(*variables));
    add_words(f, &words, fit.fitter.quantities.data,
              header.quantity_count * sizeof(berth_vm_quantity));
    add_words(f, &words, fit.patches.data, header.patch_count * sizeof(berth_vm_patch));
    if (!all) {
        uint64_t *bits = berth_arena_new_array(f->arena, uint64_t, (value_count + 63) / 64);
        add_members(f, g, places, count, variables, bits);
        add_words(f, &words, bits, (value_count + 63) / 64 * sizeof(*bits));
    }
    *out =
        (berth_vm_family){.variant = f->kept.count, .words = words.data, .word_count = words.count};
    return true;
}

// ---- proof --------------------------------------------------------------------------------------

static berth_status say_differs(const finder *f, uint32_t variant) {
    const berth_vm_piece *piece = berth_vm_piece_at(f->code, f->variants[variant].piece);
    return berth_status_make(BERTH_INTERNAL,
                             "%s (%s): a program for many shapes is not what was compiled for one",
                             piece->name, piece->op);
}

// Whether what the family makes for a member is what was compiled for it.
static berth_status check_member(const finder *f, const berth_vm_family *family, uint32_t variant) {
    finder again = {.arena = berth_arena_create_child(f->arena), .code = f->code, .count = 1};
    const berth_vm_body body = {
        .code = f->code, .variants = f->kept.data, .variant_count = f->kept.count};
    int64_t values[BERTH_FAMILY_VARIABLES];
    berth_vm_variant made = {0};
    berth_status status = BERTH_OK;
    if (!berth_vm_family_holds(family, f->variants[variant].inputs, values))
        status = say_differs(f, variant);
    if (!status) status = berth_vm_family_member(&body, family, values, again.arena, &made);
    if (!status) {
        const scan *s = &f->scans[variant];
        again.variants = &made;
        again.scans = berth_arena_new_array(again.arena, scan, 1);
        scan_variant(&again, 0);
        const scan *t = again.scans;
        if (t->numbers.count != s->numbers.count || !berth_hash128_equal(t->hash, s->hash) ||
            memcmp(t->numbers.data, s->numbers.data, s->numbers.count * sizeof(int64_t)) != 0)
            status = say_differs(f, variant);
    }
    berth_arena_destroy(again.arena);
    return status;
}

static berth_status keep_family(finder *f, const group *g, berth_vm_family *family) {
    berth_vec_push(f->arena, &f->kept, f->variants[g->members.data[0]]);
    BERTH_TRY(berth_vm_family_read(family));
    for (uint32_t m = 0; m < g->members.count; ++m)
        BERTH_TRY(check_member(f, family, g->members.data[m]));
    berth_vec_push(f->arena, &f->families, *family);
    return BERTH_OK;
}

// ---- parts --------------------------------------------------------------------------------------

// Parts of a group, by one of its variables: `parts` of them by what its steps leave over, or 0: below and above the
// middle.
typedef struct division {
    uint32_t place, parts;
} division;

static void divide(const finder *f, const group *g, const division *by, group *out) {
    int64_t step = 0, least = INT64_MAX, most = INT64_MIN;
    for (uint32_t m = 0; m < g->members.count; ++m) {
        const int64_t value = number_at(f, g, m, by->place);
        step = berth_greatest_divisor(step, value - number_at(f, g, 0, by->place));
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    for (uint32_t m = 0; m < g->members.count; ++m) {
        const int64_t value = number_at(f, g, m, by->place);
        const int64_t steps = step ? (value - least) / step : 0;
        const int64_t part = by->parts ? steps % by->parts : value - least > (most - least) / 2;
        berth_vec_push(f->arena, &out[part].members, g->members.data[m]);
    }
}

// Of how many parts a number is an expression.
static uint32_t count_fitted(const finder *f, const group *parts, uint32_t count, uint32_t place) {
    uint32_t fitted = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t places[BERTH_FAMILY_VARIABLES];
        const group *g = &parts[i];
        const uint32_t variables = g->members.count > 1 ? choose_variables(f, g, places) : 0;
        if (variables == 0) continue;
        fitting fit = {.fitter = {.arena = f->arena,
                                  .variable_count = variables,
                                  .member_count = g->members.count,
                                  .values = values_of(f, g, places, variables)},
                       .known = berth_interner_create(f->arena),
                       .numbers = berth_arena_new_array(f->arena, int64_t, g->members.count)};
        fitted += fit_place(f, g, place, &fit);
    }
    return fitted;
}

enum { most_parts = 8 };

// The parts of which the number at `place` is an expression; else of two that have members. 0: there are none.
static uint32_t choose_parts(const finder *f, const group *g, uint32_t place, group *out) {
    static const uint32_t kinds[] = {2, 0, 4, most_parts};
    uint32_t places[BERTH_FAMILY_VARIABLES], found = 0;
    const uint32_t variables = choose_variables(f, g, places);
    for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); ++k)
        for (uint32_t v = 0; v < variables; ++v) {
            const division by = {places[v], kinds[k]};
            const uint32_t count = kinds[k] ? kinds[k] : 2;
            group parts[most_parts] = {0};
            divide(f, g, &by, parts);
            if (parts[0].members.count == g->members.count) continue;
            const bool fits = count_fitted(f, parts, count, place) == count;
            if (fits || found == 0) memcpy(out, parts, sizeof(parts));
            if (fits || found == 0) found = count;
            if (fits) return found;
        }
    return found;
}

static berth_status keep_group(finder *f, const group *g) {
    berth_vm_family family = {0};
    uint32_t place = UINT32_MAX;
    group parts[most_parts];
    if (g->members.count > 1 && make_family(f, g, &family, &place))
        return keep_family(f, g, &family);
    const uint32_t count =
        place != UINT32_MAX && g->members.count > 2 ? choose_parts(f, g, place, parts) : 0;
    for (uint32_t i = 0; i < count; ++i)
        if (parts[i].members.count) BERTH_TRY(keep_group(f, &parts[i]));
    for (uint32_t m = 0; count == 0 && m < g->members.count; ++m)
        berth_vec_push(f->arena, &f->kept, f->variants[g->members.data[m]]);
    return BERTH_OK;
}

// In a scratch arena of its own: what is found is copied.
static berth_status find(finder *f, berth_arena *arena, berth_vm_families *out) {
    f->scans = berth_arena_new_array(f->arena, scan, f->count + 1);
    for (uint32_t i = 0; i < f->count; ++i) add_to_group(f, i);
    for (uint32_t g = 0; g < f->groups.count; ++g) BERTH_TRY(keep_group(f, &f->groups.data[g]));
    berth_vm_family *families =
        berth_arena_copy(arena, f->families.data, f->families.count * sizeof(berth_vm_family));
    for (uint32_t i = 0; i < f->families.count; ++i) {
        families[i].words =
            berth_arena_copy(arena, families[i].words, families[i].word_count * sizeof(int64_t));
        BERTH_TRY(berth_vm_family_read(&families[i]));
    }
    *out = (berth_vm_families){
        berth_arena_copy(arena, f->kept.data, f->kept.count * sizeof(berth_vm_variant)),
        f->kept.count, families, f->families.count};
    return BERTH_OK;
}

berth_status berth_vm_families_find(berth_arena *arena, const berth_vm_program *code,
                                    const berth_vm_variant *variants, uint32_t count,
                                    berth_vm_families *out) {
    finder f = {.arena = berth_arena_create_child(arena),
                .code = code,
                .variants = variants,
                .count = count};
    berth_status status = find(&f, arena, out);
    berth_arena_destroy(f.arena);
    return status;
}
