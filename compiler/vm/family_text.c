// Families as text.
#include "artifact/family.h"
#include "compiler/vm/families.h"

// A variable or a number by itself, another quantity by its name.
static void add_operand(berth_strbuf *out, const berth_vm_family *family, uint32_t index) {
    const berth_vm_quantity *q = &family->quantities[index];
    if (q->kind == BERTH_QUANTITY_VARIABLE)
        berth_strbuf_addf(out, "v%u", q->a);
    else if (q->kind == BERTH_QUANTITY_NUMBER)
        berth_strbuf_addf(out, "%lld", (long long)q->number);
    else
        berth_strbuf_addf(out, "q%u", index);
}

static void add_quantity(berth_strbuf *out, const berth_vm_family *family, uint32_t index) {
    static const char *const signs[] = {
        [BERTH_QUANTITY_SUM] = " + ", [BERTH_QUANTITY_PRODUCT] = " * "};
    const berth_vm_quantity *q = &family->quantities[index];
    if (q->kind < BERTH_QUANTITY_SUM) return;
    berth_strbuf_addf(out, "    q%u = ", index);
    add_operand(out, family, q->a);
    if (q->kind == BERTH_QUANTITY_QUOTIENT) {
        berth_strbuf_addf(out, " / %lld\n", (long long)q->number);
        return;
    }
    berth_strbuf_add(out, signs[q->kind]);
    add_operand(out, family, q->b);
    berth_strbuf_add(out, "\n");
}

static void add_patch(berth_strbuf *out, const berth_vm_family *family,
                      const berth_vm_patch *patch) {
    static const char *const records[] = {"inputs",  "results", "tensors", "tensors", "tensors",
                                          "kernels", "kernels", "kernels", "steps",   "checks"};
    static const char *const fields[] = {
        "",       "",        "dims",     "size_bytes", "offset_bytes",
        "groups", "scratch", "bindings", "constants",  "extents"};
    berth_strbuf_addf(out, "    %s[%u].", records[patch->kind], patch->record);
    if (patch->kind <= BERTH_PATCH_RESULT) {
        bool is_dim = patch->index < BERTH_FAMILY_ELEMENTS;
        berth_strbuf_addf(out, is_dim ? "dims[%u]" : "element %u",
                          is_dim ? patch->index : patch->index - BERTH_FAMILY_ELEMENTS);
    } else {
        berth_strbuf_add(out, fields[patch->kind]);
        bool is_one = patch->kind == BERTH_PATCH_TENSOR_SIZE ||
                      patch->kind == BERTH_PATCH_TENSOR_OFFSET ||
                      patch->kind == BERTH_PATCH_KERNEL_SCRATCH;
        if (!is_one) berth_strbuf_addf(out, "[%u]", patch->index);
    }
    berth_strbuf_add(out, " = ");
    add_operand(out, family, patch->quantity);
    berth_strbuf_add(out, "\n");
}

void berth_vm_family_print(const berth_vm_family *family, bool with_numbers, berth_strbuf *out) {
    uint64_t values = 1, members = 0;
    for (uint32_t i = 0; i < family->header->variable_count; ++i)
        values *= (uint64_t)(family->variables[i].high - family->variables[i].low) + 1;
    for (uint64_t i = 0; i < values; ++i)
        members += !family->members || (family->members[i / 64] >> i % 64 & 1);
    berth_strbuf_addf(out, "  for %llu shapes in all:", (unsigned long long)members);
    for (uint32_t i = 0; i < family->header->variable_count; ++i) {
        const berth_vm_variable *v = &family->variables[i];
        bool is_dim = v->axis < BERTH_FAMILY_ELEMENTS;
        berth_strbuf_addf(out, "%s v%u = %s %u of input %u, %lld..%lld", i ? "," : "", i,
                          is_dim ? "dimension" : "element",
                          is_dim ? v->axis : v->axis - BERTH_FAMILY_ELEMENTS, v->input,
                          (long long)v->low, (long long)v->high);
    }
    berth_strbuf_add(out, "\n");
    for (uint32_t i = 0; with_numbers && i < family->header->quantity_count; ++i)
        add_quantity(out, family, i);
    for (uint32_t i = 0; with_numbers && i < family->header->patch_count; ++i)
        add_patch(out, family, &family->patches[i]);
}
