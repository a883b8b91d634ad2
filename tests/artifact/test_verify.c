// One broken rule at a time: the verifier must name the record.
#include <criterion/criterion.h>
#include <string.h>

#include "artifact/program.h"
#include "tests/check.h"

// A small valid program, rebuilt for every case so that a case may change anything.
typedef struct sample {
    berth_program program;
    berth_program_device devices[2];
    berth_program_queue queues[3];
    berth_program_pool pools[4];
    berth_program_tensor tensors[7];
    berth_program_constant constants[2];
    berth_program_io inputs[2];
    berth_program_io outputs[1];
    berth_executable_image images[2];
    berth_program_kernel kernels[2];
    berth_program_step steps[4];
    berth_program_placement placements[1];
    berth_program_attachment attachments[1];
    berth_program_check check;
    uint32_t bindings[4][3];
    uint32_t waits[4][2];
    int64_t constant_values[1];
    berth_kernel_binding declared[2][2];  // of the kernels: they read the first, write the second
} sample;

enum { CPU, GPU };
enum { IO, CPU_WORK, CPU_CONSTANTS, GPU_WORK };

static berth_program_tensor tensor_at(uint32_t pool, uint64_t offset_bytes) {
    return (berth_program_tensor){.name = "t",
                                  .pool = pool,
                                  .offset_bytes = offset_bytes,
                                  .size_bytes = 24,
                                  .dtype = BERTH_DTYPE_F32,
                                  .rank = 2,
                                  .dims = {2, 3},
                                  .layout = ""};
}

static void make_memory(sample *s) {
    s->devices[CPU] = (berth_program_device){"cpu:0", "cpu", 0, false, "{}"};
    s->devices[GPU] = (berth_program_device){"opencl:0", "opencl", 0, false, "{}"};
    s->queues[CPU] = (berth_program_queue){CPU, BERTH_QUEUE_COMPUTE};
    s->queues[GPU] = (berth_program_queue){GPU, BERTH_QUEUE_COMPUTE};
    s->queues[2] = (berth_program_queue){GPU, BERTH_QUEUE_TRANSFER};
    static const uint32_t pool_device[4] = {CPU, CPU, CPU, GPU};
    static const berth_pool_usage usage[4] = {BERTH_POOL_IO, BERTH_POOL_WORKSPACE,
                                              BERTH_POOL_CONSTANT, BERTH_POOL_WORKSPACE};
    for (int i = 0; i < 4; ++i)
        s->pools[i] = (berth_program_pool){pool_device[i], "global", usage[i], 384, 128, 0, {0}};
    s->tensors[0] = tensor_at(IO, 0);  // inputs
    s->tensors[1] = tensor_at(IO, 128);
    s->tensors[2] = tensor_at(IO, 256);           // output
    s->tensors[3] = tensor_at(CPU_CONSTANTS, 0);  // constants
    s->tensors[4] = tensor_at(CPU_CONSTANTS, 128);
    s->tensors[5] = tensor_at(GPU_WORK, 0);
    s->tensors[6] = tensor_at(GPU_WORK, 128);
    static const float data[6];
    s->constants[0] = (berth_program_constant){3, data};
    s->constants[1] = (berth_program_constant){4, data};
    s->inputs[0] = (berth_program_io){"a", 0, 0};
    s->inputs[1] = (berth_program_io){"b", 1, 0};
    s->outputs[0] = (berth_program_io){"y", 2, 0};
}

static void make_code(sample *s) {
    static const char code[] = "code";
    s->images[0] = (berth_executable_image){"cpu", BERTH_FORMAT_CPU_ELF, "", code, 4, ""};
    s->images[1] = (berth_executable_image){"opencl", BERTH_FORMAT_OPENCL_C, "", code, 4, ""};
    for (uint32_t i = 0; i < 2; ++i) {
        s->declared[i][0] = (berth_kernel_binding){24, BERTH_ACCESS_READ};
        s->declared[i][1] = (berth_kernel_binding){24, BERTH_ACCESS_WRITE};
        s->kernels[i] = (berth_program_kernel){.executable = i,
                                               .entry = "k",
                                               .binding_count = 2,
                                               .bindings = s->declared[i],
                                               .constant_count = 1,
                                               .groups = {4, 1, 1},
                                               .group_size = {1, 1, 1}};
    }
    static const uint32_t bindings[4][3] = {{0, 2}, {0, 5}, {5, 6}, {6, 2}};
    memcpy(s->bindings, bindings, sizeof(bindings));
    static const uint32_t device[4] = {CPU, GPU, GPU, GPU};
    for (int i = 0; i < 4; ++i)
        s->steps[i] = (berth_program_step){.kind = i % 2 ? BERTH_STEP_COPY : BERTH_STEP_DISPATCH,
                                           .queue = device[i],
                                           .device = device[i],
                                           .kernel = device[i],
                                           .bindings = s->bindings[i],
                                           .constants = s->constant_values,
                                           .waits = s->waits[i],
                                           .name = "s",
                                           .op = "op"};
    s->steps[3].wait_count = 1;  // of step 0, on the cpu
    s->attachments[0] = (berth_program_attachment){"source/0/u0.c", "int x;", 6};
    s->placements[0] = (berth_program_placement){"n", "Op", GPU, "default device", false};
}

static void make_sample(sample *s) {
    memset(s, 0, sizeof(*s));
    make_memory(s);
    make_code(s);
    s->program = (berth_program){.name = "m",
                                 .target_json = "{}",
                                 .executor = "graph",
                                 .devices = s->devices,
                                 .device_count = 2,
                                 .queues = s->queues,
                                 .queue_count = 3,
                                 .pools = s->pools,
                                 .pool_count = 4,
                                 .tensors = s->tensors,
                                 .tensor_count = 7,
                                 .constants = s->constants,
                                 .constant_count = 2,
                                 .inputs = s->inputs,
                                 .input_count = 2,
                                 .outputs = s->outputs,
                                 .output_count = 1,
                                 .executables = s->images,
                                 .executable_count = 2,
                                 .kernels = s->kernels,
                                 .kernel_count = 2,
                                 .steps = s->steps,
                                 .step_count = 4,
                                 .placements = s->placements,
                                 .placement_count = 1,
                                 .attachments = s->attachments,
                                 .attachment_count = 1,
                                 .checks = &s->check,
                                 .check_count = 1};
    s->tensors[1].dtype = BERTH_DTYPE_I32;
    s->check = (berth_program_check){"pick", 1, true, 2, {3, 4}};
}

Test(artifact_verify, the_sample_is_valid) {
    sample s;
    make_sample(&s);
    berth_status status = berth_program_verify(&s.program);
    cr_assert_null(status, "%s", berth_status_message(status));
    s.outputs[0].tensor = 0;  // the same bytes as an input: passed through
    cr_assert_null(berth_program_verify(&s.program));
}

// What kernels declare: which bindings may be the same bytes.
Test(artifact_verify, kernels_write_over_what_they_declare) {
    enum { apart, same, partly };
    enum { alias = BERTH_ACCESS_ALIAS };
    static const struct {
        uint32_t access[2];
        int place;
        bool valid;
    } cases[] = {
        {{BERTH_ACCESS_READ, BERTH_ACCESS_WRITE}, apart, true},
        {{BERTH_ACCESS_READ, BERTH_ACCESS_WRITE}, same, false},
        {{BERTH_ACCESS_READ | alias, BERTH_ACCESS_WRITE}, same, false},
        {{BERTH_ACCESS_READ, BERTH_ACCESS_WRITE | alias}, same, false},
        {{BERTH_ACCESS_READ | alias, BERTH_ACCESS_WRITE | alias}, same, true},
        {{BERTH_ACCESS_READ | alias, BERTH_ACCESS_WRITE | alias}, partly, false},
        {{BERTH_ACCESS_READ, BERTH_ACCESS_READ}, same, true},
        {{BERTH_ACCESS_READ, BERTH_ACCESS_READ}, partly, true},
        {{BERTH_ACCESS_WRITE, BERTH_ACCESS_WRITE}, partly, false},
        {{BERTH_ACCESS_WRITE, BERTH_ACCESS_READ}, partly, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        sample s;
        make_sample(&s);
        for (int b = 0; b < 2; ++b) s.declared[GPU][b].access = cases[i].access[b];
        s.pools[GPU_WORK].alignment_bytes = 4;
        s.tensors[6].offset_bytes = cases[i].place == same ? 0 : cases[i].place == partly ? 8 : 128;
        berth_status status = berth_program_verify(&s.program);
        cr_expect_eq(status == NULL, cases[i].valid, "case %zu: %s", i,
                     berth_status_message(status));
        if (status) cr_expect(strstr(berth_status_message(status), "steps[2].bindings"));
        berth_status_free(status);
    }
}

// A dispatch and a copy between devices that share a pool; each is wrong without the sharing.
Test(artifact_verify, devices_reach_shared_pools) {
    for (int shared = 0; shared < 2; ++shared) {
        sample s;
        make_sample(&s);
        s.pools[IO].shared_with.word = shared ? 1u << GPU : 0;
        s.bindings[2][1] = 2;  // a kernel of the GPU writes the output
        s.bindings[3][0] = 1;  // a copy on the GPU within the pool of inputs and outputs
        berth_status status = berth_program_verify(&s.program);
        cr_assert_eq(status == NULL, shared, "%s", berth_status_message(status));
        berth_status_free(status);
        s.bindings[2][1] = 6;
        status = berth_program_verify(&s.program);
        cr_assert_eq(status == NULL, shared, "%s", berth_status_message(status));
        berth_status_free(status);
    }
}

// A copy to another device of the same kind; none to one of another kind, or into bytes that are shared.
Test(artifact_verify, copies_reach_devices_of_their_kind) {
    sample s;
    make_sample(&s);
    const berth_program_device sample_devices[2] = {s.devices[0], s.devices[1]};
    berth_program_device devices[3] = {sample_devices[0], sample_devices[1], sample_devices[1]};
    devices[2].name = "opencl:1";
    devices[2].virtual_id = 1;
    berth_program_pool pools[5];
    berth_program_tensor tensors[8];
    memcpy(pools, s.pools, sizeof(s.pools));
    memcpy(tensors, s.tensors, sizeof(s.tensors));
    pools[4] = pools[GPU_WORK];
    pools[4].device = 2;
    tensors[7] = tensors[6];
    tensors[7].pool = 4;
    s.program.devices = devices;
    s.program.device_count = 3;
    s.program.pools = pools;
    s.program.pool_count = 5;
    s.program.tensors = tensors;
    s.program.tensor_count = 8;
    s.bindings[3][1] = 7;
    assert_ok(berth_program_verify(&s.program));
    cr_assert_eq(berth_program_copy_peer(&s.program, &s.steps[3]), 2);
    cr_assert_eq(berth_program_copy_peer(&s.program, &s.steps[1]), BERTH_NO_INDEX);
    pools[4].shared_with.word = 1u << CPU;
    berth_status status = berth_program_verify(&s.program);
    cr_assert(status && strstr(berth_status_message(status), "does not reach"));
    berth_status_free(status);
    pools[4].shared_with.word = 0;
    devices[2].kind = "vulkan";
    devices[2].name = "vulkan:1";
    status = berth_program_verify(&s.program);
    cr_assert(status && strstr(berth_status_message(status), "does not reach"));
    berth_status_free(status);
}

// A copy brings a constant out of the store to where a kernel reads it.
Test(artifact_verify, copies_read_stores) {
    sample s;
    make_sample(&s);
    s.pools[CPU_CONSTANTS].usage = BERTH_POOL_STORE;
    s.bindings[1][0] = 3;
    berth_status status = berth_program_verify(&s.program);
    cr_assert_null(status, "%s", berth_status_message(status));
}

// Each case breaks the sample with one statement and expects this text in the message.
#define CASES(X)                                                                                   \
    X(s.inputs[0].continues = 1, "inputs[0]: layout")                                              \
    X(s.outputs[0].continues = 1, "outputs[0]: layout")                                            \
    X(s.tensors[2].layout = "AB8a6b", "inputs and outputs are row-major")                          \
    X(s.program.devices = NULL, "devices: missing")                                                \
    X(s.program.executor = "other", "executor \"other\"")                                          \
    X(s.program.name = NULL, "name")                                                               \
    X(s.devices[1].name = "cpu:0", "devices[1].name")                                              \
    X(s.devices[1].kind = "cpu", "devices[1]: cpu:0 is also")                                      \
    X(s.devices[0].kind = "", "devices[0].kind")                                                   \
    X(s.pools[3].device = 2, "pools[3].device")                                                    \
    X(s.pools[3].usage = (berth_pool_usage)9, "pools[3].usage")                                    \
    X(s.pools[3].usage = BERTH_POOL_STORE, "pools[3]: a store must be on a cpu device")            \
    X((s.pools[2].usage = BERTH_POOL_STORE, s.pools[2].shared_with.word = 2),                      \
      "a store is nobody's")                                                                       \
    X(s.pools[3].shared_with.word = 4, "pools[3].shared_with: device 2 is beyond")                 \
    X(s.pools[3].shared_with.word = 2, "pools[3].shared_with: names the pool's own device")        \
    X(s.pools[1].alignment_bytes = 96, "pools[1].alignment_bytes")                                 \
    X(s.pools[1].alignment_bytes = 0, "pools[1].alignment_bytes")                                  \
    X(s.pools[1].size_bytes = UINT64_MAX, "pools[1].size_bytes")                                   \
    X(s.pools[1].scope = NULL, "pools[1].scope")                                                   \
    X(s.tensors[5].pool = 4, "tensors[5].pool")                                                    \
    X(s.tensors[5].dtype = (berth_dtype)99, "tensors[5].dtype")                                    \
    X(s.tensors[5].dtype = BERTH_DTYPE_NONE, "tensors[5].dtype")                                   \
    X(s.tensors[5].rank = 9, "tensors[5].dims")                                                    \
    X(s.tensors[5].rank = -1, "tensors[5].dims")                                                   \
    X(s.tensors[5].dims[1] = -3, "tensors[5].dims")                                                \
    X(s.tensors[5].dims[1] = INT64_MAX, "tensors[5].dims")                                         \
    X(s.tensors[5].dims[1] = 4, "tensors[5].size_bytes")                                           \
    X(s.tensors[5].size_bytes = 20, "tensors[5].size_bytes")                                       \
    X(s.tensors[5].size_bytes = 28, "tensors[5].size_bytes")                                       \
    X((s.tensors[5].layout = "packed", s.tensors[5].size_bytes = 400), "leave pools[3]")           \
    X(s.tensors[5].layout = NULL, "tensors[5].layout")                                             \
    X(s.tensors[5].offset_bytes = 64, "tensors[5].offset_bytes")                                   \
    X(s.tensors[5].offset_bytes = 384, "leave pools[3]")                                           \
    X(s.tensors[5].offset_bytes = UINT64_MAX - 127, "leave pools[3]")                              \
    X(s.constants[1].tensor = 7, "constants[1].tensor")                                            \
    X(s.constants[1].tensor = 5, "constants[1]: tensors[5] is not in a constant pool")             \
    X(s.constants[1].tensor = 3, "constants: the bytes")                                           \
    X(s.constants[1].data = NULL, "constants[1].data")                                             \
    X(s.tensors[4].offset_bytes = 0, "constants: the bytes of tensors")                            \
    X(s.inputs[1].name = "a", "inputs[1].name")                                                    \
    X(s.inputs[1].tensor = 77, "inputs[1].tensor")                                                 \
    X(s.inputs[1].tensor = 0, "inputs and outputs: the bytes")                                     \
    X(s.outputs[0].tensor = 5, "outputs[0]: tensors[5] is not in an input/output pool")            \
    X(s.tensors[2].layout = "x", "outputs[0]: layout")                                             \
    X((s.tensors[2].offset_bytes = 0, s.tensors[2].dims[0] = 1, s.tensors[2].size_bytes = 12),     \
      "inputs and outputs: the bytes")                                                             \
    X(s.check.node = NULL, "checks[0].node: missing")                                              \
    X(s.check.tensor = 7, "checks[0].tensor: 7 of 7 tensors")                                      \
    X(s.check.tensor = 5, "checks[0]: tensors[5] holds no row-major integers")                     \
    X(s.tensors[1].dtype = BERTH_DTYPE_F32, "checks[0]: tensors[1] holds no row-major integers")   \
    X(s.check.width = 0, "checks[0].width: 0")                                                     \
    X(s.check.width = BERTH_MAX_RANK + 1, "checks[0].width")                                       \
    X(s.check.extents[1] = -1, "checks[0].extents[1]: -1")                                         \
    X(s.program.checks = NULL, "checks: missing")                                                  \
    X(s.images[0].format = "", "executables[0].format")                                            \
    X(s.images[1].data = NULL, "executables[1].data")                                              \
    X(s.kernels[1].executable = 2, "kernels[1].executable")                                        \
    X(s.kernels[1].entry = "", "kernels[1].entry")                                                 \
    X(s.kernels[1].groups[2] = 0, "kernels[1].groups[2]")                                          \
    X(s.kernels[1].group_size[0] = 0, "kernels[1].group_size[0]")                                  \
    X((s.kernels[1].groups[0] = UINT32_MAX, s.kernels[1].groups[1] = UINT32_MAX,                   \
       s.kernels[1].groups[2] = 3),                                                                \
      "kernels[1]: the grid")                                                                      \
    X(s.kernels[0].groups[1] = 2, "kernels[0]: a cpu kernel")                                      \
    X(s.kernels[0].group_size[0] = 2, "kernels[0]: a cpu kernel")                                  \
    X(s.kernels[1].bindings = NULL, "kernels[1].bindings: missing")                                \
    X(s.declared[1][0].access = 0, "kernels[1].bindings[0].access: 0")                             \
    X(s.declared[1][0].access = BERTH_ACCESS_ALIAS, "kernels[1].bindings[0].access: 4")            \
    X(s.declared[1][0].access = 9, "kernels[1].bindings[0].access: 9")                             \
    X(s.declared[1][0].size_bytes = 25,                                                            \
      "steps[2].bindings[0]: kernels[1] touches 25 bytes, tensors[5] has 24")                      \
    X(s.declared[0][1].size_bytes = UINT64_MAX, "steps[0].bindings[1]: kernels[0] touches")        \
    X(s.bindings[0][1] = 3, "steps[0].bindings[1]: kernels[0] writes a constant")                  \
    X(s.bindings[0][1] = 0, "steps[0].bindings[0]: shares bytes")                                  \
    X((s.pools[3].alignment_bytes = 2, s.tensors[5].offset_bytes = 2),                             \
      "tensors[5].dtype: elements of 4 bytes")                                                     \
    X(s.steps[2].kind = (berth_step_kind)5, "steps[2].kind")                                       \
    X(s.attachments[0].name = "", "attachments[0].name")                                           \
    X(s.attachments[0].name = "/etc/passwd", "attachments[0].name")                                \
    X(s.attachments[0].name = "a/../../b", "attachments[0].name")                                  \
    X(s.attachments[0].name = "a//b", "attachments[0].name")                                       \
    X(s.attachments[0].name = "a/", "attachments[0].name")                                         \
    X(s.attachments[0].name = "a\nb", "attachments[0].name")                                       \
    X(s.attachments[0].data = NULL, "attachments[0].data")                                         \
    X(s.program.queues = NULL, "queues: missing")                                                  \
    X(s.program.queue_count = 10000, "queues: 10000; at most")                                     \
    X(s.queues[1].device = 2, "queues[1].device: 2 of 2 devices")                                  \
    X(s.queues[2].kind = (berth_queue_kind)2, "queues[2].kind")                                    \
    X(s.steps[2].queue = 3, "steps[2].queue: 3 of 3")                                              \
    X(s.steps[2].device = CPU, "steps[2].device: 0, but queues[1] is of device 1")                 \
    X(s.steps[2].queue = 2, "steps[2]: a dispatch on queues[2], which is for copies only")         \
    X((s.pools[3].shared_with.word = 1, s.steps[1].queue = 2),                                     \
      "steps[1].bindings[1]: tensors[5] is in a shared pool, which only the first")                \
    X(s.steps[2].kernel = 2, "steps[2].kernel: 2 of 2")                                            \
    X(s.steps[2].kernel = 0, "steps[2].kernel: code for cpu on device \"opencl:0\"")               \
    X(s.steps[2].bindings = NULL, "steps[2].bindings: missing")                                    \
    X(s.steps[2].constants = NULL, "steps[2].constants: missing")                                  \
    X(s.bindings[2][1] = 7, "steps[2].bindings[1]: 7 of 7")                                        \
    X(s.bindings[2][1] = 2, "steps[2].bindings[1]: tensors[2] is on \"cpu:0\"")                    \
    X(s.bindings[0][0] = 5, "steps[0].bindings[0]: tensors[5] is on \"opencl:0\"")                 \
    X(s.bindings[1][1] = 2, "steps[1]: neither end")                                               \
    X(s.bindings[1][0] = 5, "steps[1]: source and destination")                                    \
    X(s.bindings[3][1] = 3, "steps[3]: copies into a constant pool")                               \
    X((s.pools[2].usage = BERTH_POOL_STORE, s.bindings[3][1] = 3),                                 \
      "steps[3]: copies into a const")                                                             \
    X((s.pools[2].usage = BERTH_POOL_STORE, s.bindings[3][0] = 3,                                  \
       s.pools[IO].shared_with.word = 2),                                                          \
      "steps[3]: copies from a store go into workspace")                                           \
    X((s.pools[2].usage = BERTH_POOL_STORE, s.bindings[0][0] = 3),                                 \
      "steps[0].bindings[0]: tensors[3] is in a store, which only copies read")                    \
    X((s.tensors[5].dims[0] = 1, s.tensors[5].size_bytes = 12), "steps[1]: copies 24 bytes")       \
    X(s.waits[3][0] = 3, "steps[3].waits[0]: step 3 is not an earlier one")                        \
    X(s.waits[3][0] = 1, "steps[3].waits[0]: step 1 is on the same queue")                         \
    X(s.steps[3].waits = NULL, "steps[3].waits: missing")                                          \
    X(s.steps[3].name = NULL, "steps[3].name")                                                     \
    X(s.placements[0].device = 2, "placements[0].device")                                          \
    X(s.placements[0].reason = NULL, "placements[0]")

static berth_status broken(int wanted, const char **out_expected) {
    sample s;
    make_sample(&s);
    int index = 0;
#define CASE(statement, expected)                                                                  \
    if (index++ == wanted) {                                                                       \
        statement;                                                                                 \
        *out_expected = expected;                                                                  \
        return berth_program_verify(&s.program);                                                   \
    }
    CASES(CASE)
#undef CASE
    return BERTH_OK;
}

// Constants beside each other in any order of their places, a few and many; then one of them over another.
static void expect_overlap_found(uint32_t count, uint32_t stride) {
    enum { most = 40, others = 7 };
    static const float data[6];
    sample s;
    berth_program_tensor tensors[others + most];
    berth_program_constant constants[most];
    make_sample(&s);
    memcpy(tensors, s.tensors, sizeof(s.tensors));
    for (uint32_t i = 0; i < count; ++i) {
        tensors[others + i] = tensor_at(CPU_CONSTANTS, (uint64_t)(i * stride % count) * 128);
        constants[i] = (berth_program_constant){others + i, data};
    }
    s.pools[CPU_CONSTANTS].size_bytes = (uint64_t)count * 128;
    s.program.tensors = tensors;
    s.program.tensor_count = others + count;
    s.program.constants = constants;
    s.program.constant_count = count;
    assert_ok(berth_program_verify(&s.program));
    for (uint32_t i = 1; i < count; ++i) {
        const uint64_t own = tensors[others + i].offset_bytes;
        tensors[others + i].offset_bytes = tensors[others].offset_bytes;
        assert_fails(berth_program_verify(&s.program), BERTH_INVALID_ARGUMENT, "overlap");
        tensors[others + i].offset_bytes = own;
    }
}

Test(artifact_verify, overlaps_are_found_in_any_order) {
    static const uint32_t counts[] = {2, 3, 7, 16, 17, 40};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i)
        for (uint32_t stride = 1; stride < counts[i]; ++stride) {
            uint32_t a = counts[i], b = stride;  // a permutation where they have no common divisor
            while (b) {
                const uint32_t rest = a % b;
                a = b;
                b = rest;
            }
            if (a == 1) expect_overlap_found(counts[i], stride);
        }
}

Test(artifact_verify, every_broken_rule_is_named) {
#define COUNT(statement, expected) +1
    int count = 0 CASES(COUNT);
    for (int i = 0; i < count; ++i) {
        const char *expected = NULL;
        berth_status status = broken(i, &expected);
        cr_assert_not_null(status, "case %d (%s) passed", i, expected);
        cr_assert_not_null(strstr(berth_status_message(status), expected),
                           "case %d: expected \"%s\" in \"%s\"", i, expected,
                           berth_status_message(status));
        berth_status_free(status);
    }
}
