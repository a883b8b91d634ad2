// Program files whose records were changed, and whose checksums do not tell: each is refused, or runs
// to an end. Only what the code and the constants hold stays as it was built; that is native code's
// and the model's own matter.
// Usage: program_mutants [COUNT [SEED]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "artifact/file_form.h"
#include "compiler/compile.h"
#include "executor/session.h"
#include "ir/text.h"

static const char text[] = "module \"m\"\ngraph @main(%x: f32[4,16]) {\n"
                           "  %a = softmax(%x) {axis = 1}\n"
                           "  %t = transpose(%a) {perm = [1, 0]}\n"
                           "  %b = matmul(%a, %t)\n"
                           "  %c = relu(%b)\n"
                           "  %d = add(%b, %c)\n"
                           "  return %d, %t\n}\n";

enum { time_limit_s = 20 };

static void must(berth_status status) {
    if (!status) return;
    fprintf(stderr, "%s\n", berth_status_message(status));
    exit(1);
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

// The program as the bytes of its file.
static uint8_t *build(berth_arena *arena, size_t *out_size_bytes) {
    berth_module *module = NULL;
    berth_multi_target *target = NULL;
    berth_compile_result result;
    must(berth_module_parse(arena, text, strlen(text), "text", &module));
    must(berth_target_parse(arena, "cpu", NULL, &target));
    berth_compile_options options = {.target = target};
    must(berth_compile(module, &options, &result));
    char path[] = "/tmp/berth-mutants-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0) exit(1);
    must(berth_program_write(result.program, path));
    char *data = NULL;
    must(berth_file_read(arena, path, 1 << 24, &data, out_size_bytes));
    close(fd);
    unlink(path);
    return (uint8_t *)data;
}

// Changes one to three places outside of code and constants.
static void mutate(uint8_t *data, size_t size_bytes, uint64_t *state) {
    berth_file_header header;
    berth_file_section sections[BERTH_SECTION_KINDS];
    memcpy(&header, data, sizeof(header));
    memcpy(sections, data + sizeof(header), header.section_count * sizeof(*sections));
    for (uint64_t n = next_random(state) % 3 + 1; n > 0;) {
        size_t at = next_random(state) % size_bytes;
        bool code = false;
        for (uint32_t s = 0; s < header.section_count; ++s)
            code |= (sections[s].kind == BERTH_SECTION_IMAGES ||
                     sections[s].kind == BERTH_SECTION_CONSTANT_DATA) &&
                    at >= sections[s].offset_bytes &&
                    at < sections[s].offset_bytes + sections[s].size_bytes;
        if (code) continue;
        --n;
        uint32_t word = 0;
        size_t aligned = at & ~(size_t)3;
        switch (next_random(state) % 6) {
        case 0: data[at] ^= (uint8_t)(1u << next_random(state) % 8); break;
        case 1: data[at] = (uint8_t)next_random(state); break;
        case 2: data[at]++; break;
        case 3: data[at]--; break;
        default:
            if (aligned + 4 > size_bytes) break;
            word = next_random(state) % 2 ? (uint32_t)next_random(state) % 256 : UINT32_MAX;
            memcpy(data + aligned, &word, sizeof(word));
        }
    }
}

// 0 refused, 1 ran; anything else is a crash or a hang. In a process of its own.
static int try_one(const uint8_t *data, size_t size_bytes) {
    const struct rlimit time_limit = {time_limit_s, time_limit_s};
    setrlimit(RLIMIT_CPU, &time_limit);
    berth_arena *arena = NULL;
    const berth_program *program = NULL;
    berth_session *session = NULL;
    must(berth_arena_create(berth_allocator_system(), &arena));
    const berth_session_options options = {.thread_count = 1};
    berth_status status = berth_artifact__parse(arena, data, size_bytes, false, &program);
    if (!status) status = berth_session_open(berth_allocator_system(), program, &options, &session);
    if (!status) {
        for (uint32_t i = 0; i < program->input_count; ++i) {
            berth_tensor input = *berth_session_input(session, i);
            berth_tensor_fill_random(&input, i);
        }
        status = berth_session_run(session, INT64_C(1000000000) * time_limit_s);
    }
    bool slow = berth_status_code(status) == BERTH_DEADLINE_EXCEEDED;
    int result = slow ? 9 : !status;
    berth_status_free(status);
    berth_session_close(session);
    berth_arena_destroy(arena);
    return result;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 400;
    uint64_t state = (argc > 2 ? (uint64_t)atol(argv[2]) : 1) * 0x9e3779b97f4a7c15u + 1;
    berth_arena *arena = NULL;
    size_t size_bytes = 0;
    must(berth_arena_create(berth_allocator_system(), &arena));
    uint8_t *good = build(arena, &size_bytes);
    uint8_t *mutant = berth_arena_alloc_aligned(arena, size_bytes, BERTH_PROGRAM_FILE_ALIGNMENT);
    long refused = 0, ran = 0, bad = 0;
    for (long i = 0; i < count; ++i) {
        memcpy(mutant, good, size_bytes);
        uint64_t seed = state;
        if (i > 0) mutate(mutant, size_bytes, &state);
        fflush(stdout);
        pid_t pid = fork();
        if (pid < 0) return 1;
        if (pid == 0) _exit(try_one(mutant, size_bytes));
        int status = 0;
        if (waitpid(pid, &status, 0) != pid) return 1;
        int result = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (result == 0 && i > 0)  // the first is the program as it was built
            refused++;
        else if (result == 1)
            ran++;
        else {
            printf("mutant %ld (state %#llx): %s %d\n", i, (unsigned long long)seed,
                   WIFSIGNALED(status) ? "signal" : "exit status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            bad++;
        }
    }
    printf("%ld program files: %ld refused, %ld ran, %ld crashed or hung\n", count, refused, ran,
           bad);
    berth_arena_destroy(arena);
    return bad != 0;
}
