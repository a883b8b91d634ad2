// Kernels as they are before they run: addresses filled in, and a run without data.
#include <string.h>

#include "drivers/vta/image.h"

static const uint64_t most_micro_ops = (uint64_t)1 << 28;

static bool moves_data(const berth_vta_instruction *i) {
    return i->opcode <= BERTH_VTA_STORE && i->x_size > 0;
}

static uint32_t element_bytes_of(const berth_vta_isa *isa, const berth_vta_instruction *i) {
    return i->memory_type < BERTH_VTA_MEMORY_COUNT ? isa->element_bytes[i->memory_type] : 1;
}

static berth_vta_instruction instruction_at(const berth_vta_isa *isa, const berth_vta_kernel *k,
                                            uint32_t index) {
    return berth_vta_decode(isa, k->stream + (size_t)index * BERTH_VTA_INSTRUCTION_BYTES);
}

berth_status berth_vta_relocate(const berth_vta_isa *isa, const berth_vta_kernel *k,
                                const berth_vta_addresses *addresses, uint8_t *out) {
    memcpy(out, k->stream, (size_t)k->instruction_count * BERTH_VTA_INSTRUCTION_BYTES);
    for (uint32_t r = 0; r < k->relocation_count; ++r) {
        const berth_vta_relocation *relocation = &k->relocations[r];
        berth_vta_instruction i = instruction_at(isa, k, relocation->instruction);
        uint32_t bytes = element_bytes_of(isa, &i);
        uint64_t address =
            relocation->added_bytes + (relocation->buffer == BERTH_VTA_CONSTANTS
                                           ? addresses->constants
                                           : addresses->bindings[relocation->buffer]);
        if (address % bytes != 0)
            return berth_status_make(BERTH_INVALID_ARGUMENT,
                                     "kernel %s, instruction %u (%s): the address 0x%llx is no "
                                     "multiple of an element's %u bytes",
                                     k->name, relocation->instruction,
                                     berth_vta_opcode_name(i.opcode), (unsigned long long)address,
                                     bytes);
        i.dram_base = (uint32_t)(address / bytes);
        BERTH_TRY(berth_vta_encode(
            isa, &i, out + (size_t)relocation->instruction * BERTH_VTA_INSTRUCTION_BYTES));
    }
    return BERTH_OK;
}

// ---- portability ----

static const char *loop_not_portable(const berth_vta_instruction *i) {
    if (i->iter_out == 0 || i->iter_in == 0 || i->uop_end <= i->uop_begin)
        return "a loop of nothing, which boards run";
    if (i->opcode != BERTH_VTA_ALU) return NULL;
    if (i->alu_opcode == BERTH_VTA_MUL) return "MUL, which boards lack";
    int32_t imm = berth_vta_imm(i);
    if (i->alu_opcode == BERTH_VTA_SHR && i->use_imm && (imm < 0 || imm > 15))
        return "a shift by more than 15 bits, or to the left";
    return NULL;
}

const char *berth_vta_not_portable(const berth_vta_instruction *i) {
    if (i->opcode == BERTH_VTA_GEMM || i->opcode == BERTH_VTA_ALU) return loop_not_portable(i);
    if (i->opcode > BERTH_VTA_STORE) return NULL;
    bool pads = i->y_pad_before || i->y_pad_after || i->x_pad_before || i->x_pad_after;
    if (i->x_size == 0) return pads ? "padding of nothing, which boards clear" : NULL;
    if (i->y_size == 0) return "a transfer of no rows";
    if (i->opcode == BERTH_VTA_STORE) return NULL;
    if (i->memory_type == BERTH_VTA_ACC8) return "an 8-bit load of accumulators, which boards lack";
    if (i->memory_type == BERTH_VTA_UOP && (i->y_size > 1 || pads))
        return "micro-ops in rows or with padding, which boards ignore";
    if (i->memory_type == BERTH_VTA_WGT && pads) return "padding of weights, which boards ignore";
    return NULL;
}

// ---- a kernel alone ----

static berth_status bad(const berth_vta_kernel *k, uint32_t index, const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "kernel %s, instruction %u: %s", k->name,
                             index, what);
}

// A transfer stays in its buffer, and does to it what the kernel says.
static berth_status check_transfer(const berth_vta_isa *isa, const berth_vta_kernel *k,
                                   const berth_vta_relocation *r, const berth_vta_instruction *i) {
    bool constants = r->buffer == BERTH_VTA_CONSTANTS;
    uint64_t bytes = element_bytes_of(isa, i);
    uint64_t size_bytes = constants ? k->constant_bytes : k->bindings[r->buffer].size_bytes;
    uint64_t end = r->added_bytes;
    if (i->y_size) end += ((uint64_t)(i->y_size - 1) * i->x_stride + i->x_size) * bytes;
    if (end > size_bytes)
        return berth_status_make(BERTH_OUT_OF_RANGE,
                                 "kernel %s, instruction %u (%s %s): dram-range: bytes up to %llu "
                                 "of a buffer of %llu",
                                 k->name, r->instruction, berth_vta_opcode_name(i->opcode),
                                 berth_vta_memory_name(i->memory_type), (unsigned long long)end,
                                 (unsigned long long)size_bytes);
    if (constants)
        return i->opcode == BERTH_VTA_STORE ? bad(k, r->instruction, "writes its own constants")
                                            : BERTH_OK;
    if (i->memory_type == BERTH_VTA_UOP)
        return bad(k, r->instruction, "micro-ops that are not constants of the kernel");
    uint32_t wanted = i->opcode == BERTH_VTA_STORE ? BERTH_ACCESS_WRITE : BERTH_ACCESS_READ;
    if (!(k->bindings[r->buffer].access & wanted))
        return bad(k, r->instruction,
                   "uses a buffer otherwise than the kernel's bindings say (read, write)");
    return BERTH_OK;
}

static berth_status check_transfers(const berth_vta_model *model, const berth_vta_kernel *k,
                                    bool boards) {
    uint32_t r = 0;
    for (uint32_t n = 0; n < k->instruction_count; ++n) {
        berth_vta_instruction i = instruction_at(&model->isa, k, n);
        const char *reason = boards ? berth_vta_not_portable(&i) : NULL;
        if (reason) return bad(k, n, reason);
        bool relocated = r < k->relocation_count && k->relocations[r].instruction == n;
        if (relocated != moves_data(&i))
            return bad(k, n,
                       relocated ? "a relocation of what moves no data"
                                 : "an address that no relocation gives");
        if (!relocated) continue;
        BERTH_TRY(check_transfer(&model->isa, k, &k->relocations[r], &i));
        r++;
    }
    return BERTH_OK;
}

// Addresses for a run without data: the constants, then each buffer on pages of its own.
static berth_status place(const berth_vta_kernel *k, berth_vta_addresses *out, uint64_t *out_end) {
    uint64_t at = BERTH_VTA_ALIGNMENT;
    const uint64_t page = BERTH_VTA_ALIGNMENT - 1;
    out->constants = at;
    at += (k->constant_bytes + page) & ~page;
    for (uint32_t b = 0; b < k->binding_count; ++b) {
        out->bindings[b] = at;
        if (k->bindings[b].size_bytes > UINT32_MAX)
            at = UINT64_MAX / 2;
        else
            at += (k->bindings[b].size_bytes + page) & ~page;
        if (at > UINT32_MAX)
            return berth_status_make(BERTH_OUT_OF_RANGE,
                                     "kernel %s: its buffers are more than 32 bits can address",
                                     k->name);
    }
    *out_end = at;
    return BERTH_OK;
}

// Runs a kernel without data. DRAM is there as far as the constants go: nothing else of it is looked
// at.
static berth_status follow(berth_vta_model *model, const berth_vta_kernel *k,
                           berth_vta_run_options *options, berth_vta_report *out_report) {
    berth_vta_addresses addresses;
    uint64_t end = 0;
    BERTH_TRY(place(k, &addresses, &end));
    size_t stream_bytes = (size_t)k->instruction_count * BERTH_VTA_INSTRUCTION_BYTES;
    size_t constant_bytes = (k->constant_bytes + (size_t)15) & ~(size_t)15;
    uint8_t *data = berth_alloc(model->allocator, constant_bytes + stream_bytes + 1);
    if (!data) return berth_status_oom();
    if (k->constant_bytes) memcpy(data, k->constants, k->constant_bytes);
    berth_status status = berth_vta_relocate(&model->isa, k, &addresses, data + constant_bytes);
    if (!status) {
        berth_vta_dram dram = {data, addresses.constants, end - addresses.constants};
        options->stream = data + constant_bytes;
        options->most_micro_ops = most_micro_ops;
        model->without_data = true;
        memset(model->stale, 1, model->shape.memory[BERTH_VTA_ACC].depth);
        status = berth_status_prefix(
            berth_vta_run(model, &dram, 0, k->instruction_count, options, out_report), "kernel %s",
            k->name);
    }
    berth_free(model->allocator, data, constant_bytes + stream_bytes + 1);
    return status;
}

static berth_status check(berth_vta_model *model, const berth_vta_kernel *k, bool boards) {
    BERTH_TRY(check_transfers(model, k, boards));
    berth_vta_run_options options = {.refuse_unordered = true};
    berth_vta_report report;
    BERTH_TRY(berth_vta_hazards_create(model->allocator, &model->shape, &options.hazards));
    berth_status status = follow(model, k, &options, &report);
    berth_vta_hazards_destroy(options.hazards);
    if (!status && boards && model->counters.stale_stores)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "kernel %s stores elements that no GEMM or ALU operation wrote "
                                 "last, which boards do not keep for STORE",
                                 k->name);
    return status;
}

berth_status berth_vta_kernel_check(berth_allocator allocator, const berth_vta_config *config,
                                    const berth_vta_kernel *kernel, bool boards) {
    berth_vta_model *model = NULL;
    BERTH_TRY(berth_vta_model_create(allocator, config, &model));
    berth_status status = check(model, kernel, boards);
    berth_vta_model_destroy(model);
    return status;
}

static berth_status time_checked(berth_vta_model *model, const berth_vta_kernel *k,
                                 const berth_vta_run_options *given, berth_vta_report *out_report) {
    BERTH_TRY(check_transfers(model, k, false));
    berth_vta_run_options options = {.order = BERTH_VTA_ORDER_TIME,
                                     .timing = given->timing,
                                     .observe = given->observe,
                                     .user = given->user};
    return follow(model, k, &options, out_report);
}

berth_status berth_vta_kernel_time(berth_allocator allocator, const berth_vta_config *config,
                                   const berth_vta_kernel *kernel,
                                   const berth_vta_run_options *options,
                                   berth_vta_report *out_report) {
    berth_vta_model *model = NULL;
    memset(out_report, 0, sizeof(*out_report));
    BERTH_TRY(berth_vta_model_create(allocator, config, &model));
    berth_status status = time_checked(model, kernel, options, out_report);
    berth_vta_model_destroy(model);
    return status;
}
