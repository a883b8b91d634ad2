// Which stages could run in patches, and in how many: all choices that may lower the peak, by an estimate.
#include <stdlib.h>
#include <string.h>

#include "compiler/passes/patches_private.h"

enum {
    most_ends = 64,  // before the operation with the peak, and behind it
    most_candidates = 4096,
    slack_share = 8,
};

// ---- text ---------------------------------------------------------------------------------------

static const char between[] = "..";

// *at: behind the digits. False: there are none, or too many.
static bool parse_count(const char **at, uint32_t *out_count) {
    const char *first = *at;
    *out_count = 0;
    for (; **at >= '0' && **at <= '9'; ++*at)
        if (*at - first < 9) *out_count = *out_count * 10 + (uint32_t)(**at - '0');
    return *at > first && *at - first <= 9;
}

bool berth_patch_choice_parse(berth_arena *arena, const char *text,
                              berth_patch_choice *out_choice) {
    const char *equals = text ? strrchr(text, '=') : NULL, *at = equals;
    berth_patch_choice choice = {.columns = 1};
    if (!equals || equals == text) return false;
    ++at;
    if (!parse_count(&at, &choice.rows)) return false;
    if (*at == 'x') {
        ++at;
        if (!parse_count(&at, &choice.columns)) return false;
    }
    if (*at) return false;
    if (choice.rows * (uint64_t)choice.columns < 2) return false;
    if (!arena) return true;
    choice.node = berth_arena_printf(arena, "%.*s", (int)(equals - text), text);
    *out_choice = choice;
    return true;
}

const char *berth_patch_choice_text(berth_arena *arena, const berth_patch_choice *choice) {
    const char *after = choice->after ? choice->after : "";
    const char *columns =
        choice->columns > 1 ? berth_arena_printf(arena, "x%u", choice->columns) : "";
    return berth_arena_printf(arena, "%s%s%s=%u%s", after, choice->after ? between : "",
                              choice->node, choice->rows, columns);
}

// ---- ends ---------------------------------------------------------------------------------------

static const char *node_of(const berth_patcher *p, berth_value_id value) {
    const berth_op *op = &p->graph->ops.data[p->graph->values.data[value].op];
    const char *name = berth_loc_names(p->module, op->loc, false, p->arena);
    return *name ? name : berth_module_str(p->module, p->graph->values.data[value].name);
}

// A region ends where a kernel does: not before an elementwise operation that is fused.
static bool ends_kernel(const berth_patcher *p, berth_value_id value) {
    if (p->uses[value] != 1 || p->only_user[value] == BERTH_NONE) return true;
    return !berth_op_has(p->graph->ops.data[p->only_user[value]].kind, BERTH_TRAIT_ELEMENTWISE);
}

// A value that a region may end with, or begin after.
typedef struct end {
    berth_value_id value;
    const char *node;
    uint32_t place;  // of its operation in the order
} end;

typedef struct end_list {
    end *items;  // in order
    uint32_t count;
} end_list;

static end_list find_ends(const berth_patcher *p) {
    const berth_region *root = &p->graph->regions.data[0];
    end_list ends = {.items = berth_arena_new_array(p->arena, end, root->ops.count + 1)};
    for (uint32_t i = 0; i < root->ops.count; ++i) {
        const berth_op *op = &p->graph->ops.data[root->ops.data[i]];
        if (op->output_count != 1 || op->kind == BERTH_OP_CONSTANT ||
            !ends_kernel(p, op->outputs[0]) || !berth_patches__is_image(p, op->outputs[0]))
            continue;
        end found = {op->outputs[0], node_of(p, op->outputs[0]), i};
        if (*found.node) ends.items[ends.count++] = found;
    }
    return ends;
}

// Whether a later one has the name.
static bool is_hidden(const end_list *ends, uint32_t index) {
    for (uint32_t i = index + 1; i < ends->count; ++i)
        if (strcmp(ends->items[i].node, ends->items[index].node) == 0) return true;
    return false;
}

// ---- candidates ---------------------------------------------------------------------------------

static int compare_names(const char *a, const char *b) {
    return strcmp(a ? a : "", b ? b : "");
}

static int compare_candidates(const void *left, const void *right) {
    const berth_patch_candidate *a = left, *b = right;
    const berth_patch_choice *c = &a->choice, *d = &b->choice;
    if (a->extra_work != b->extra_work) return a->extra_work < b->extra_work ? -1 : 1;
    if (a->peak_bytes != b->peak_bytes) return a->peak_bytes < b->peak_bytes ? -1 : 1;
    if (c->rows != d->rows) return c->rows < d->rows ? -1 : 1;
    if (c->columns != d->columns) return c->columns < d->columns ? -1 : 1;
    int order = compare_names(c->node, d->node);
    return order ? order : compare_names(c->after, d->after);
}

// More would be more than twice the operations of the whole model, and plans that take long to make.
static const double most_extra_work = 1;

// Those that lower the peak of all with less work; nearly as low ones stay, for it is an estimate.
static uint32_t keep_best(berth_patch_candidate *list, uint32_t count, uint64_t whole_bytes) {
    uint64_t least[BERTH_PATCH_FORMS];
    uint32_t kept = 0;
    for (int i = 0; i < BERTH_PATCH_FORMS; ++i) least[i] = whole_bytes;
    if (count) qsort(list, count, sizeof(*list), compare_candidates);
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t *lowest = &least[berth_patch_form(&list[i].choice)];
        if (list[i].peak_bytes >= whole_bytes || list[i].extra_work > most_extra_work ||
            list[i].peak_bytes > *lowest + *lowest / slack_share)
            continue;
        if (list[i].peak_bytes < *lowest) *lowest = list[i].peak_bytes;
        list[i].whole_bytes = whole_bytes;
        list[kept++] = list[i];
    }
    return kept;
}

typedef struct pair {
    uint32_t after, cut;  // ends; after BERTH_NONE = as early as it can
    uint32_t op_count;
} pair;

static int compare_pairs(const void *left, const void *right) {
    const pair *a = left, *b = right;
    if (a->op_count != b->op_count) return a->op_count < b->op_count ? -1 : 1;
    if (a->cut != b->cut) return a->cut < b->cut ? -1 : 1;
    return a->after < b->after ? -1 : a->after > b->after;
}

typedef struct pair_list {
    BERTH_VEC(pair) items;
} pair_list;

static berth_value_id value_of(const end_list *ends, uint32_t index) {
    return index == BERTH_NONE ? BERTH_NONE : ends->items[index].value;
}

static void add_pair(berth_patcher *p, const end_list *ends, uint32_t after, uint32_t cut,
                     berth_op_id peak, pair_list *pairs) {
    static const berth_patch_grid any = {{2, 1}};
    if (berth_patches__find_region(p, value_of(ends, after), value_of(ends, cut), any) &&
        p->inside[peak])
        berth_vec_push(p->arena, &pairs->items, (pair){after, cut, p->op_count});
}

static uint32_t place_of(const berth_patcher *p, berth_op_id id) {
    const berth_region *root = &p->graph->regions.data[0];
    uint32_t place = 0;
    while (place < root->ops.count && root->ops.data[place] != id) ++place;
    return place;
}

// Regions with the operation that has the peak, the shortest first.
static pair_list find_pairs(berth_patcher *p, const end_list *ends, berth_op_id peak) {
    pair_list pairs = {0};
    bool *early = berth_arena_new_array(p->arena, bool, p->graph->ops.count + 1);
    uint32_t split = 0, peak_place = place_of(p, peak);  // ends before the peak
    while (split < ends->count && ends->items[split].place < peak_place) ++split;
    for (uint32_t cut = split; cut < ends->count && cut < split + most_ends; ++cut) {
        if (is_hidden(ends, cut)) continue;
        add_pair(p, ends, BERTH_NONE, cut, peak, &pairs);
        memcpy(early, p->inside, p->graph->ops.count * sizeof(*early));
        for (uint32_t after = split; after-- > 0 && after + most_ends >= split;)
            if (early[p->graph->values.data[ends->items[after].value].op] &&
                !is_hidden(ends, after))
                add_pair(p, ends, after, cut, peak, &pairs);
    }
    if (pairs.items.count) qsort(pairs.items.data, pairs.items.count, sizeof(pair), compare_pairs);
    return pairs;
}

// Bands, and tiles for values whose bands are still large.
static const berth_patch_grid grids[] = {
    {{2, 1}},  {{3, 1}},  {{4, 1}},  {{5, 1}},  {{6, 1}},  {{7, 1}},  {{8, 1}},  {{9, 1}},
    {{10, 1}}, {{12, 1}}, {{14, 1}}, {{16, 1}}, {{20, 1}}, {{24, 1}}, {{28, 1}}, {{32, 1}},
    {{1, 2}},  {{1, 4}},  {{2, 2}},  {{3, 2}},  {{3, 3}},  {{4, 2}},  {{4, 3}},  {{4, 4}}};

static bool divides(const berth_patcher *p, berth_value_id cut, berth_patch_grid grid) {
    berth_patch_area whole = berth_patches__whole(p, cut);
    for (int i = 0; i < berth_patch_axes; ++i)
        if (grid.counts[i] > whole.axes[i].end) return false;
    berth_patch_grid trimmed = berth_patches__trim(p, cut, grid);
    return memcmp(&trimmed, &grid, sizeof(grid)) == 0;
}

static void estimate_pair(berth_patcher *p, const end_list *ends, const pair *at,
                          berth_patch_memory memory, berth_patch_candidate *list, uint32_t *count) {
    const end *cut = &ends->items[at->cut];
    berth_value_id after = value_of(ends, at->after);
    for (size_t k = 0; k < sizeof(grids) / sizeof(grids[0]) && *count < most_candidates; ++k) {
        berth_patch_candidate *next = &list[*count];
        if (!divides(p, cut->value, grids[k]) ||
            !berth_patches__find_region(p, after, cut->value, grids[k]))
            continue;
        *next = (berth_patch_candidate){
            .choice = {.after = at->after == BERTH_NONE ? NULL : ends->items[at->after].node,
                       .node = cut->node,
                       .rows = grids[k].counts[0],
                       .columns = grids[k].counts[1]}};
        if (berth_patches__estimate(p, cut->value, grids[k], memory, next, NULL)) ++*count;
    }
}

void berth_patch_candidates(const berth_module *module, berth_func_id main,
                            berth_patch_memory memory, berth_arena *arena,
                            const berth_patch_candidate **out_candidates, uint32_t *out_count) {
    static const berth_patch_grid whole_grid = {{1, 1}};
    berth_patcher p = berth_patches__begin(module, main, arena);
    berth_patch_candidate whole = {0};
    berth_op_id peak = BERTH_NONE;
    end_list ends = find_ends(&p);
    uint32_t count = 0;
    berth_patch_candidate *list =
        berth_arena_new_array(arena, berth_patch_candidate, most_candidates);
    *out_count = 0;
    *out_candidates = list;
    if (ends.count == 0 ||
        !berth_patches__estimate(&p, BERTH_NONE, whole_grid, memory, &whole, &peak) ||
        peak == BERTH_NONE)
        return;
    pair_list pairs = find_pairs(&p, &ends, peak);
    for (uint32_t i = 0; i < pairs.items.count; ++i)
        estimate_pair(&p, &ends, &pairs.items.data[i], memory, list, &count);
    *out_count = keep_best(list, count, whole.peak_bytes);
}

// ---- a choice -----------------------------------------------------------------------------------

// Names that a region can end with, for a message.
static const char *list_nodes(berth_patcher *p, const end_list *ends) {
    enum { most = 12 };
    static const berth_patch_grid any = {{2, 1}};
    berth_strbuf text = berth_strbuf_make(p->arena);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ends->count && count <= most; ++i) {
        if (!berth_patches__find_region(p, BERTH_NONE, ends->items[i].value, any)) continue;
        if (count++ < most)
            berth_strbuf_addf(&text, "%s\"%s\"", count > 1 ? ", " : "", ends->items[i].node);
    }
    if (count > most) berth_strbuf_add(&text, ", ...");
    return berth_strbuf_text(&text);
}

// The last value of this name that ends a region after the other one.
static bool find_cut(berth_patcher *p, const end_list *ends, berth_value_id after, const char *node,
                     berth_patch_grid grid, berth_value_id *out_cut) {
    for (uint32_t i = ends->count; i-- > 0;) {
        if (strcmp(ends->items[i].node, node) != 0 ||
            !berth_patches__find_region(p, after, ends->items[i].value, grid))
            continue;
        *out_cut = ends->items[i].value;
        return true;
    }
    return false;
}

// "NODE", or "AFTER..NODE" at any of its dots.
static bool find_named(berth_patcher *p, const end_list *ends, const char *node,
                       berth_patch_grid grid, berth_value_id *out_after, berth_value_id *out_cut) {
    *out_after = BERTH_NONE;
    if (find_cut(p, ends, BERTH_NONE, node, grid, out_cut)) return true;
    for (const char *at = strstr(node, between); at; at = strstr(at + 1, between)) {
        const char *cut = at + strlen(between);
        for (uint32_t i = ends->count; i-- > 0;) {
            const char *name = ends->items[i].node;
            if (strlen(name) != (size_t)(at - node) || memcmp(name, node, strlen(name)) != 0)
                continue;
            *out_after = ends->items[i].value;
            if (find_cut(p, ends, *out_after, cut, grid, out_cut)) return true;
        }
    }
    return false;
}

berth_status berth_patches__find_choice(berth_patcher *p, const berth_patch_choice *choice,
                                        berth_value_id *out_after, berth_value_id *out_cut,
                                        berth_patch_grid *out_grid) {
    end_list ends = find_ends(p);
    berth_patch_grid grid = {{choice->rows, choice->columns}}, any = {{2, choice->columns}};
    const char *node =
        choice->after ? berth_arena_printf(p->arena, "%s%s%s", choice->after, between, choice->node)
                      : choice->node;
    if (!find_named(p, &ends, node, choice->rows == 1 && choice->columns > 1 ? grid : any,
                    out_after, out_cut)) {
        const char *possible = list_nodes(p, &ends);
        return berth_status_make(
            BERTH_NOT_FOUND,
            "no stages of @main end at node \"%s\", so that they could run in patches%s%s", node,
            *possible ? "; from the first stage on they can end at " : ": nothing here can",
            possible);
    }
    berth_patch_area whole = berth_patches__whole(p, *out_cut);
    long long height = whole.axes[0].end, width = whole.axes[1].end;
    if (choice->rows < 1 || choice->columns < 1 || choice->rows > height ||
        choice->columns > width || (choice->rows == 1 && choice->columns == 1))
        return berth_status_make(
            BERTH_OUT_OF_RANGE,
            "%u by %u patches of \"%s\", which has %lld rows and %lld columns: "
            "2 patches or more are possible, up to one for each row and "
            "column",
            choice->rows, choice->columns, node, height, width);
    *out_grid = berth_patches__trim(p, *out_cut, grid);
    return BERTH_OK;
}
