// Fuzzes what targets are turned into: pictures, which must be well-formed XML, and changed machines,
// which must be targets again or be refused with a message.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/change.h"
#include "toolkit/machine_picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool fine, const char *what) {
    if (fine) return;
    fprintf(stderr, "target_export: %s\n", what);
    abort();
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == ':' ||
           (c >= '0' && c <= '9');
}

// Tags nest, attributes are quoted, text has no bare '&' or '<' and no control characters.
static void check_xml(const char *text) {
    enum { deepest = 64 };
    const char *open[deepest];
    int depth = 0;
    for (const char *at = text; *at; ++at) {
        check((unsigned char)*at >= 32 || *at == '\n', "a control character");
        if (*at == '&') {
            size_t length = strcspn(at, ";< \n");
            check(at[length] == ';' && length > 1 && length < 8, "a bare &");
        }
        if (*at != '<') continue;
        bool closes = at[1] == '/';
        const char *name = at + 1 + closes, *end = name;
        while (is_name(*end)) ++end;
        check(end > name, "a bare <");
        char quote = 0;
        for (; *end && (quote || *end != '>'); ++end) {
            if (quote) {
                check(*end != '<', "a < in an attribute");
                if (*end == quote) quote = 0;
            } else if (*end == '"' || *end == '\'') {
                quote = *end;
            }
        }
        check(*end == '>', "a tag without end");
        if (closes) {
            check(depth > 0, "a tag that nothing opened");
            const char *opened = open[--depth];
            size_t length = 0;
            while (is_name(name[length])) ++length;
            check(strncmp(opened, name, length) == 0 && !is_name(opened[length]),
                  "tags that cross");
        } else if (end[-1] != '/') {
            check(depth < deepest, "tags as deep as that");
            open[depth++] = name;
        }
        at = end;
    }
    check(depth == 0, "a tag that is not closed");
}

static void check_same(berth_arena *arena, const berth_multi_target *target) {
    berth_target_options plain = {.no_files = true};
    berth_multi_target *again = NULL;
    berth_status status = berth_target_parse(arena, target->canonical, &plain, &again);
    if (status) fprintf(stderr, "%s\n%s\n", target->canonical, berth_status_message(status));
    check(!status, "a changed target does not parse");
    check(berth_multi_target_equal(target, again), "a changed target is not a fixed point");
}

static void change(berth_arena *arena, const berth_multi_target *target) {
    static const berth_target_change_kind kinds[] = {
        BERTH_CHANGE_WITHOUT_PIN, BERTH_CHANGE_WITHOUT_DEVICE, BERTH_CHANGE_TWIN,
        BERTH_CHANGE_LINKS,       BERTH_CHANGE_BANDWIDTH,      BERTH_CHANGE_CAPACITY};
    static const double factors[] = {2, 0.5};
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); ++k)
        for (uint32_t index = 0; index < 4; ++index) {
            berth_target_change one = {kinds[k], index, factors[index & 1]};
            berth_multi_target *changed = NULL;
            berth_status status = berth_multi_target_change(arena, target, &one, &changed);
            check(!status == (changed != NULL), "a status and a target, or neither");
            if (changed) check_same(arena, changed);
            berth_status_free(status);
        }
}

typedef struct job {
    berth_arena *arena;
    const berth_multi_target *target;
} job;

static berth_status draw(void *user) {
    const job *j = user;
    berth_strbuf out = berth_strbuf_make(j->arena);
    berth_machine_picture_svg(j->target, &out);
    check_xml(berth_strbuf_text(&out));
    return BERTH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size > 16384) return 0;
    char *text = malloc(size + 1);
    if (!text) return 0;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    berth_arena *arena = NULL;
    check(!berth_arena_create(berth_allocator_system(), &arena), "out of memory");
    static const berth_machine_facts machine = {
        .cpu_model = "", .arch = "x86_64", .cpu = "", .cores = 2};
    berth_target_options options = {.machine = &machine, .no_files = true};
    berth_multi_target *target = NULL;
    berth_status status = berth_target_parse(arena, text, &options, &target);
    if (!status && target->device_count <= 16) {
        job j = {arena, target};
        status = berth_arena_try(arena, draw, &j);
        change(arena, target);
    }
    berth_status_free(status);
    berth_arena_destroy(arena);
    free(text);
    return 0;
}
