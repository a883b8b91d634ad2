#include "compiler/vm/workspace.h"

#include <string.h>

#include "base/str.h"

enum { most_parts = 6 };

// The quantities that a tensor's place and size are; UINT32_MAX: the numbers in the program.
typedef struct extent {
    uint32_t offset, size;
    bool is_largest;  // of some member
} extent;

typedef struct finder {
    const berth_program *program;
    const berth_vm_family *family;
    berth_arena *arena;
    extent *extents;   // per tensor
    int64_t *numbers;  // of the quantities, of one member
    uint64_t value_count;
} finder;

// ---- expressions --------------------------------------------------------------------------------

static void add_quantity(const berth_vm_family *family, uint32_t index, bool in_product,
                         berth_strbuf *out) {
    const berth_vm_quantity *q = &family->quantities[index];
    const bool sum = q->kind == BERTH_QUANTITY_SUM;
    if (q->kind == BERTH_QUANTITY_VARIABLE) {
        berth_strbuf_addf(out, "v%u", q->a);
    } else if (q->kind == BERTH_QUANTITY_NUMBER) {
        berth_strbuf_addf(out, "%lld", (long long)q->number);
    } else if (q->kind == BERTH_QUANTITY_QUOTIENT) {
        berth_strbuf_add(out, "floordiv(");
        add_quantity(family, q->a, false, out);
        berth_strbuf_addf(out, ", %lld)", (long long)q->number);
    } else {
        // Factors that are numbers come first.
        const bool turned = !sum && family->quantities[q->b].kind == BERTH_QUANTITY_NUMBER;
        if (sum && in_product) berth_strbuf_add(out, "(");
        add_quantity(family, turned ? q->b : q->a, !sum, out);
        berth_strbuf_add(out, sum ? " + " : "*");
        add_quantity(family, turned ? q->a : q->b, !sum, out);
        if (sum && in_product) berth_strbuf_add(out, ")");
    }
}

// The end of a tensor: its numbers that are fixed come last, as one.
static const char *end_of(const finder *f, uint32_t tensor) {
    const berth_program_tensor *t = &f->program->tensors[tensor];
    const extent *e = &f->extents[tensor];
    berth_strbuf text = berth_strbuf_make(f->arena);
    uint64_t fixed = 0;
    if (e->size == UINT32_MAX)
        fixed += t->size_bytes;
    else
        add_quantity(f->family, e->size, false, &text);
    if (e->offset == UINT32_MAX) {
        fixed += t->offset_bytes;
    } else {
        if (text.length) berth_strbuf_add(&text, " + ");
        add_quantity(f->family, e->offset, false, &text);
    }
    if (fixed || !text.length)
        berth_strbuf_addf(&text, "%s%llu", text.length ? " + " : "", (unsigned long long)fixed);
    return berth_strbuf_text(&text);
}

static bool is_in_pool(const finder *f, uint32_t tensor, uint32_t pool) {
    return f->program->tensors[tensor].pool == pool;
}

static const char *expression_of(const finder *f, uint32_t pool) {
    const char *parts[most_parts];
    uint32_t count = 0;
    for (uint32_t t = 0; t < f->program->tensor_count; ++t) {
        if (!is_in_pool(f, t, pool) || !f->extents[t].is_largest) continue;
        const char *made = end_of(f, t);
        bool known = false;
        for (uint32_t i = 0; i < count; ++i) known |= strcmp(parts[i], made) == 0;
        if (known) continue;
        if (count == most_parts) return NULL;
        parts[count++] = made;
    }
    if (count < 2) return count ? parts[0] : "0";
    berth_strbuf text = berth_strbuf_make(f->arena);
    for (uint32_t i = 0; i < count; ++i)
        berth_strbuf_addf(&text, "%s%s", i ? ", " : "max(", parts[i]);
    berth_strbuf_add(&text, ")");
    return berth_strbuf_text(&text);
}

// ---- members ------------------------------------------------------------------------------------

// The next member's values, and its numbers; false: there is none.
static bool next_member(const finder *f, uint64_t *at, int64_t *values) {
    const berth_vm_family *family = f->family;
    for (; *at < f->value_count; ++*at) {
        if (family->members && !(family->members[*at / 64] >> *at % 64 & 1)) continue;
        uint64_t rest = *at;
        for (uint32_t i = family->header->variable_count; i-- > 0;) {
            const berth_vm_variable *v = &family->variables[i];
            uint64_t range = (uint64_t)(v->high - v->low) + 1;
            values[i] = v->low + (int64_t)(rest % range);
            rest /= range;
        }
        ++*at;
        if (berth_vm_family_evaluate(family, values, f->numbers)) return true;
    }
    return false;
}

static uint64_t number_of(const finder *f, uint32_t quantity, uint64_t fixed) {
    return quantity == UINT32_MAX ? fixed : (uint64_t)f->numbers[quantity];
}

// The largest end in a pool, for the member whose numbers are at hand.
static uint64_t need_of(finder *f, uint32_t pool) {
    uint32_t largest = UINT32_MAX;
    uint64_t need = 0;
    for (uint32_t t = 0; t < f->program->tensor_count; ++t) {
        if (!is_in_pool(f, t, pool)) continue;
        const berth_program_tensor *tensor = &f->program->tensors[t];
        const extent *e = &f->extents[t];
        uint64_t end = number_of(f, e->offset, tensor->offset_bytes) +
                       number_of(f, e->size, tensor->size_bytes);
        if (end <= need) continue;
        need = end;
        largest = t;
    }
    if (largest != UINT32_MAX) f->extents[largest].is_largest = true;
    return need;
}

static void find_extents(finder *f) {
    for (uint32_t t = 0; t < f->program->tensor_count; ++t)
        f->extents[t] = (extent){UINT32_MAX, UINT32_MAX, false};
    for (uint32_t i = 0; i < f->family->header->patch_count; ++i) {
        const berth_vm_patch *patch = &f->family->patches[i];
        if (patch->kind == BERTH_PATCH_TENSOR_OFFSET)
            f->extents[patch->record].offset = patch->quantity;
        if (patch->kind == BERTH_PATCH_TENSOR_SIZE)
            f->extents[patch->record].size = patch->quantity;
    }
}

static berth_vm_workspace workspace_of(finder *f, uint32_t pool) {
    int64_t values[BERTH_FAMILY_VARIABLES];
    berth_vm_workspace made = {.device = f->program->devices[f->program->pools[pool].device].name,
                               .least_bytes = UINT64_MAX};
    find_extents(f);
    for (uint64_t at = 0; next_member(f, &at, values);) {
        uint64_t need = need_of(f, pool);
        if (need < made.least_bytes) made.least_bytes = need;
        if (need > made.most_bytes) made.most_bytes = need;
    }
    if (made.least_bytes > made.most_bytes) made.least_bytes = made.most_bytes;
    made.expression = expression_of(f, pool);
    return made;
}

berth_vm_workspace *berth_vm_family_workspaces(const berth_vm_body *body,
                                               const berth_vm_family *family, berth_arena *arena,
                                               uint32_t *out_count) {
    const berth_program *program = body->variants[family->variant].program;
    *out_count = 0;
    if (!program) return NULL;
    finder f = {.program = program,
                .family = family,
                .arena = arena,
                .extents = berth_arena_new_array(arena, extent, program->tensor_count + 1),
                .numbers =
                    berth_arena_new_array(arena, int64_t, family->header->quantity_count + 1),
                .value_count = 1};
    for (uint32_t i = 0; i < family->header->variable_count; ++i)
        f.value_count *= (uint64_t)(family->variables[i].high - family->variables[i].low) + 1;
    berth_vm_workspace *all =
        berth_arena_new_array(arena, berth_vm_workspace, program->pool_count + 1);
    for (uint32_t p = 0; p < program->pool_count; ++p)
        if (program->pools[p].usage == BERTH_POOL_WORKSPACE)
            all[(*out_count)++] = workspace_of(&f, p);
    return all;
}

void berth_vm_workspace_print(const berth_vm_workspace *workspace, berth_strbuf *out) {
    char least[32], most[32];
    berth_format_bytes(workspace->least_bytes, least);
    berth_format_bytes(workspace->most_bytes, most);
    berth_strbuf_addf(out, "workspace of %s: ", workspace->device);
    if (workspace->expression) berth_strbuf_addf(out, "%s bytes, ", workspace->expression);
    berth_strbuf_addf(out, "%s .. %s", least, most);
}
