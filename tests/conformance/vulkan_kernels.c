// The kernels of the suite for Vulkan: SPIR-V assembly, put together by spirv-as (spirv-tools).
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "tests/conformance/conformance.h"

// %1 names the kernel; %buffers and %constants of the push constants are its own.
static const char head[] =
    "OpCapability Shader\nOpCapability Int64\nOpCapability PhysicalStorageBufferAddresses\n"
    "OpMemoryModel PhysicalStorageBuffer64 GLSL450\n"
    "OpEntryPoint GLCompute %%main \"%s\" %%group %%local %%pushed\n"
    "OpExecutionMode %%main LocalSize 4 1 1\n"
    "OpDecorate %%group BuiltIn WorkgroupId\nOpDecorate %%local BuiltIn LocalInvocationId\n"
    "OpDecorate %%data ArrayStride 4\nOpDecorate %%buffer Block\n"
    "OpMemberDecorate %%buffer 0 Offset 0\nOpDecorate %%block Block\n"
    "OpMemberDecorate %%block 0 Offset 0\nOpMemberDecorate %%block 1 Offset 8\n"
    "OpMemberDecorate %%block 2 Offset 16\nOpMemberDecorate %%block 3 Offset 24\n"
    "%%void = OpTypeVoid\n%%code = OpTypeFunction %%void\n%%bool = OpTypeBool\n"
    "%%u32 = OpTypeInt 32 0\n%%u64 = OpTypeInt 64 0\n%%u32x3 = OpTypeVector %%u32 3\n"
    "%%data = OpTypeRuntimeArray %%u32\n%%buffer = OpTypeStruct %%data\n"
    "%%address = OpTypePointer PhysicalStorageBuffer %%buffer\n"
    "%%element = OpTypePointer PhysicalStorageBuffer %%u32\n"
    "%%block = OpTypeStruct %%u64 %%u64 %%u64 %%u64\n"
    "%%blocks = OpTypePointer PushConstant %%block\n%%value = OpTypePointer PushConstant %%u64\n"
    "%%inputs = OpTypePointer Input %%u32x3\n%%input = OpTypePointer Input %%u32\n"
    "%%0 = OpConstant %%u32 0\n%%1 = OpConstant %%u32 1\n%%2 = OpConstant %%u32 2\n"
    "%%3 = OpConstant %%u32 3\n%%4 = OpConstant %%u32 4\n%%8 = OpConstant %%u32 8\n"
    "%%group = OpVariable %%inputs Input\n%%local = OpVariable %%inputs Input\n"
    "%%pushed = OpVariable %%blocks PushConstant\n"
    "%%main = OpFunction %%void None %%code\n%%entry = OpLabel\n"
    "%%g_at = OpAccessChain %%input %%group %%0\n%%g = OpLoad %%u32 %%g_at\n"
    "%%l_at = OpAccessChain %%input %%local %%0\n%%l = OpLoad %%u32 %%l_at\n"
    "%%g4 = OpIMul %%u32 %%g %%4\n%%i = OpIAdd %%u32 %%g4 %%l\n"
    "%%v0_at = OpAccessChain %%value %%pushed %%0\n%%v0 = OpLoad %%u64 %%v0_at\n"
    "%%v1_at = OpAccessChain %%value %%pushed %%1\n%%v1 = OpLoad %%u64 %%v1_at\n";
static const char inside[] =  // %%s: the count's value
    "%%count = OpUConvert %%u32 %s\n%%less = OpSLessThan %%bool %%i %%count\n"
    "OpSelectionMerge %%end None\nOpBranchConditional %%less %%work %%end\n%%work = OpLabel\n"
    "%%b0 = OpConvertUToPtr %%address %%v0\n"
    "%%at0 = OpAccessChain %%element %%b0 %%0 %%i\n%%x = OpLoad %%u32 %%at0 Aligned 4\n";
static const char tail[] = "OpBranch %end\n%end = OpLabel\nOpReturn\nOpFunctionEnd\n";

static const char scale[] =
    "%factor = OpUConvert %u32 %v2\n%fx = OpIMul %u32 %factor %x\n%y = OpIAdd %u32 %fx %i\n"
    "%b1 = OpConvertUToPtr %address %v1\n%at1 = OpAccessChain %element %b1 %0 %i\n"
    "OpStore %at1 %y Aligned 4\n";
static const char add_one[] = "%y = OpIAdd %u32 %x %1\nOpStore %at0 %y Aligned 4\n";
// Eight steps a round: llvmpipe ends loops after 65,536 rounds.
static const char spin_loop[] =
    "%rounds = OpUConvert %u32 %v2\n%many = OpUDiv %u32 %rounds %8\n"
    "%few = OpUMod %u32 %rounds %8\nOpBranch %h\n"
    "%h = OpLabel\n%k = OpPhi %u32 %0 %work %kn %c\n%a = OpPhi %u32 %x %work %a8 %c\n"
    "OpLoopMerge %m %c None\nOpBranch %t\n%t = OpLabel\n%more = OpULessThan %bool %k %many\n"
    "OpBranchConditional %more %body %m\n%body = OpLabel\n";
static const char spin_rest[] =
    "OpBranch %c\n%c = OpLabel\n%kn = OpIAdd %u32 %k %1\nOpBranch %h\n%m = OpLabel\nOpBranch %h2\n"
    "%h2 = OpLabel\n%k2 = OpPhi %u32 %0 %m %kn2 %c2\n%z = OpPhi %u32 %a %m %z1 %c2\n"
    "OpLoopMerge %m2 %c2 None\nOpBranch %t2\n%t2 = OpLabel\n%more2 = OpULessThan %bool %k2 %few\n"
    "OpBranchConditional %more2 %body2 %m2\n%body2 = OpLabel\n"
    "%z3 = OpIMul %u32 %z %3\n%z1 = OpIAdd %u32 %z3 %1\nOpBranch %c2\n%c2 = OpLabel\n"
    "%kn2 = OpIAdd %u32 %k2 %1\nOpBranch %h2\n%m2 = OpLabel\nOpStore %at0 %z Aligned 4\n";

static void add_kernel(berth_arena *arena, int which, berth_strbuf *out) {
    static const char *const names[] = {"scale", "add_one", "spin"};
    static const char *const counts[] = {"%v3", "%v1", "%v1"};
    berth_strbuf_addf(out, head, names[which]);
    for (int v = 2; v < 4; ++v)
        if (which == 0 || (which == 2 && v == 2))
            berth_strbuf_addf(out,
                              "%%v%d_at = OpAccessChain %%value %%pushed %%%d\n"
                              "%%v%d = OpLoad %%u64 %%v%d_at\n",
                              v, v, v, v);
    berth_strbuf_addf(out, inside, counts[which]);
    if (which < 2) berth_strbuf_add(out, which == 0 ? scale : add_one);
    if (which == 2) {
        berth_strbuf_add(out, spin_loop);
        for (int i = 0; i < 8; ++i) {
            const char *from = i ? berth_arena_printf(arena, "%%a%d", i) : "%a";
            berth_strbuf_addf(out, "%%b%d = OpIMul %%u32 %s %%3\n", i + 10, from);
            berth_strbuf_addf(out, "%%a%d = OpIAdd %%u32 %%b%d %%1\n", i + 1, i + 10);
        }
        berth_strbuf_add(out, spin_rest);
    }
    berth_strbuf_add(out, tail);
}

// One module, after its length in words.
static void add_module(berth_arena *arena, int which, berth_strbuf *image) {
    char folder[] = "/tmp/berth-conformance-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    char source[64], module[64], command[320];
    snprintf(source, sizeof(source), "%s/k.spvasm", folder);
    snprintf(module, sizeof(module), "%s/k.spv", folder);
    berth_strbuf text = berth_strbuf_make(arena);
    add_kernel(arena, which, &text);
    check_ok(berth_file_write(source, berth_strbuf_text(&text), text.length));
    snprintf(command, sizeof(command),
             "spirv-as --target-env spv1.5 -o %s %s && spirv-val --target-env vulkan1.2 %s", module,
             source, module);
    cr_assert_eq(system(command), 0, "%s failed", command);
    char *data = NULL;
    size_t size_bytes = 0;
    check_ok(berth_file_read(arena, module, (size_t)1 << 20, &data, &size_bytes));
    uint32_t words = (uint32_t)(size_bytes / 4);
    berth_strbuf_add_n(image, (const char *)&words, sizeof(words));
    berth_strbuf_add_n(image, data, size_bytes);
    unlink(source);
    unlink(module);
    rmdir(folder);
}

void conformance_vulkan_image(berth_arena *arena, berth_executable_image *out_image) {
    berth_strbuf image = berth_strbuf_make(arena);
    for (int i = 0; i < 3; ++i) add_module(arena, i, &image);
    out_image->data = berth_strbuf_text(&image);
    out_image->size_bytes = image.length;
}
