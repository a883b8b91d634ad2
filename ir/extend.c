#include "ir/extend.h"

#include <string.h>

static struct {
    const berth_op_definition *ops[BERTH_EXTEND_MAX];
    const berth_dialect *dialects[BERTH_EXTEND_MAX];
    const berth_opaque_ops *opaque[BERTH_EXTEND_MAX];
    uint32_t op_count, dialect_count, opaque_count;
} registered;

static berth_status too_many(const char *what) {
    return berth_status_make(BERTH_OUT_OF_RANGE, "more than %d %s are registered", BERTH_EXTEND_MAX,
                             what);
}

static berth_status check_op(const berth_op_definition *definition) {
    const char *name = definition->facts.name;
    berth_op_kind other;
    if (!name || !*name || *name < 'a' || *name > 'z' ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.")])
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "an operation to register has no name of a-z, 0-9, '_' and '.'");
    if (!definition->infer || !definition->facts.onnx || !definition->onnx_domain ||
        !definition->onnx_attrs)
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "operation %s lacks infer, or its ONNX operator, domain or attributes (\"\" for none)",
            name);
    if (berth_op_kind_from_name(name, &other))
        return berth_status_make(BERTH_ALREADY_EXISTS, "there is an operation %s already", name);
    if (*definition->facts.onnx &&
        berth_op_for_onnx(definition->onnx_domain, definition->facts.onnx) != BERTH_OP_COUNT)
        return berth_status_make(BERTH_ALREADY_EXISTS, "ONNX operator %s.%s is registered already",
                                 definition->onnx_domain, definition->facts.onnx);
    return BERTH_OK;
}

berth_status berth_op_register(const berth_op_definition *definition, berth_op_kind *out_kind) {
    BERTH_TRY(check_op(definition));
    if (registered.op_count == BERTH_EXTEND_MAX) return too_many("operations");
    *out_kind = (berth_op_kind)(BERTH_OP_FIRST_REGISTERED + registered.op_count);
    registered.ops[registered.op_count++] = definition;
    return BERTH_OK;
}

const berth_op_definition *berth_op_definition_get(berth_op_kind kind) {
    uint32_t index = (uint32_t)kind - BERTH_OP_FIRST_REGISTERED;
    return kind > BERTH_OP_COUNT && index < registered.op_count ? registered.ops[index] : NULL;
}

berth_op_kind berth_op_for_onnx(const char *domain, const char *op_type) {
    for (uint32_t i = 0; i < registered.op_count; ++i)
        if (strcmp(registered.ops[i]->facts.onnx, op_type) == 0 &&
            strcmp(registered.ops[i]->onnx_domain, domain) == 0)
            return (berth_op_kind)(BERTH_OP_FIRST_REGISTERED + i);
    return BERTH_OP_COUNT;
}

berth_status berth_dialect_register(const berth_dialect *dialect) {
    if (berth_dialect_find(NULL, dialect->name))
        return berth_status_make(BERTH_ALREADY_EXISTS, "there is a dialect %s already",
                                 dialect->name);
    if (registered.dialect_count == BERTH_EXTEND_MAX) return too_many("dialects");
    registered.dialects[registered.dialect_count++] = dialect;
    return BERTH_OK;
}

berth_status berth_opaque_register(const berth_opaque_ops *ops) {
    if (berth_opaque_registered(ops->kind))
        return berth_status_make(BERTH_ALREADY_EXISTS, "values of kind %s are registered already",
                                 ops->kind);
    if (registered.opaque_count == BERTH_EXTEND_MAX) return too_many("kinds of opaque values");
    registered.opaque[registered.opaque_count++] = ops;
    return BERTH_OK;
}

const berth_dialect *berth_dialect_registered(const char *name) {
    for (uint32_t i = 0; i < registered.dialect_count; ++i)
        if (strcmp(registered.dialects[i]->name, name) == 0) return registered.dialects[i];
    return NULL;
}

const berth_opaque_ops *berth_opaque_registered(const char *kind) {
    for (uint32_t i = 0; i < registered.opaque_count; ++i)
        if (strcmp(registered.opaque[i]->kind, kind) == 0) return registered.opaque[i];
    return NULL;
}
