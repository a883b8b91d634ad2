#include "ir/extend.h"

#include <string.h>

#include "ir/pass.h"
#include "ir/tensor/type.h"
#include "ir/text.h"

static struct {
    const berth_op_definition *ops[BERTH_EXTEND_MAX];
    const berth_dialect *dialects[BERTH_EXTEND_MAX];
    const berth_opaque_ops *opaque[BERTH_EXTEND_MAX];
    const berth_intrinsic_facts *intrinsics[BERTH_INTRINSIC_MOST_REGISTERED];
    uint32_t op_count, dialect_count, opaque_count, intrinsic_count;
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

// ---- intrinsics ---------------------------------------------------------------------------------

static berth_status check_name(const char *name) {
    berth_intrinsic intrinsic;
    berth_unary unary;
    berth_binary binary;
    berth_tfn_type type;
    if (!name || *name < 'a' || *name > 'z' ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "an intrinsic to register has no name of a-z, 0-9 and '_'");
    size_t length = strlen(name);
    if (berth_intrinsic_from_name(name, length, &intrinsic) ||
        berth_unary_from_name(name, length, &unary) ||
        berth_binary_from_name(name, length, &binary) ||
        berth_tfn_type_from_name(name, length, &type))
        return berth_status_make(BERTH_ALREADY_EXISTS, "expressions know a %s already", name);
    return BERTH_OK;
}

static berth_status check_operand(const berth_intrinsic_facts *facts, const berth_tfn *fn,
                                  int which) {
    const berth_intrinsic_operand *operand = &facts->operands[which];
    const berth_buf_info *info = &fn->bufs.data[which];
    int64_t lanes = 1;
    for (int d = 0; d < info->rank; ++d)
        if (info->dims[d] < 1 || (lanes *= info->dims[d]) > UINT16_MAX) lanes = 0;
    if (info->dtype != operand->dtype || lanes != operand->lanes)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "operand %d is %s of %d lanes, its reference has %s of %lld",
                                 which, berth_dtype_name(operand->dtype), operand->lanes,
                                 berth_dtype_name(info->dtype), (long long)lanes);
    if (info->role != (which ? BERTH_ROLE_IN : BERTH_ROLE_INOUT))
        return berth_status_make(
            BERTH_INVALID_ARGUMENT,
            "the reference must update its first parameter and read the others");
    return BERTH_OK;
}

static berth_status check_reference(berth_arena *arena, const berth_intrinsic_facts *facts) {
    berth_module *module = NULL;
    BERTH_TRY(berth_module_parse(arena, facts->reference, strlen(facts->reference), facts->name,
                                 &module));
    BERTH_TRY(berth_module_verify(module));
    const berth_tfn *fn =
        berth_module_find_function(module, facts->name) == 0 ? berth_tfn_get(module, 0) : NULL;
    int count = berth_intrinsic_operand_count(facts);
    if (!fn || fn->param_count != (uint32_t)count)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "the reference must be a tensor function @%s of %d parameters",
                                 facts->name, count);
    for (int i = 0; i < count; ++i) BERTH_TRY(check_operand(facts, fn, i));
    return BERTH_OK;
}

berth_status berth_intrinsic_register(const berth_intrinsic_facts *facts, berth_intrinsic *out_id) {
    BERTH_TRY(check_name(facts->name));
    if (!facts->reference || !facts->needs)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "intrinsic %s lacks its reference or needs", facts->name);
    if (registered.intrinsic_count == BERTH_INTRINSIC_MOST_REGISTERED)
        return too_many("intrinsics");
    berth_arena *arena = NULL;
    BERTH_TRY(berth_arena_create(berth_allocator_system(), &arena));
    berth_status status =
        berth_status_prefix(check_reference(arena, facts), "intrinsic %s", facts->name);
    berth_arena_destroy(arena);
    BERTH_TRY(status);
    *out_id = (berth_intrinsic)(BERTH_INTRINSIC_FIRST_REGISTERED + registered.intrinsic_count);
    registered.intrinsics[registered.intrinsic_count++] = facts;
    return BERTH_OK;
}

const berth_intrinsic_facts *berth_intrinsic_registered(berth_intrinsic id) {
    uint32_t index = (uint32_t)id - BERTH_INTRINSIC_FIRST_REGISTERED;
    return id > BERTH_INTRINSIC_COUNT && index < registered.intrinsic_count
               ? registered.intrinsics[index]
               : NULL;
}

// ---- dialects and opaque values -----------------------------------------------------------------

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
