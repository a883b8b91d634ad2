// The examples of docs/planner.md: blocks that begin with "$ berth ..." show what the command
// prints. Those of docs/compiler.md that begin with "after PASS" show parts of what is printed then.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_bytes = 1 << 17 };

static char *read_all(FILE *file) {
    char *text = calloc(1, most_bytes);
    cr_assert_not_null(text);
    cr_assert_lt(fread(text, 1, most_bytes - 1, file), most_bytes - 1);
    return text;
}

// Output and messages of "berth ARGUMENTS", from the project's root.
static char *run(const char *arguments) {
    char command[1024];
    snprintf(command, sizeof(command), "%s %s 2>&1 </dev/null", BERTH_COMMAND, arguments);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe);
    char *text = read_all(pipe);
    (void)pclose(pipe);
    return text;
}

static void check_example(const char *block, const char *end) {
    static const char start[] = "$ berth ";
    const char *line_end = strchr(block, '\n');
    char arguments[512];
    size_t length = (size_t)(line_end - block) - strlen(start);
    cr_assert_lt(length, sizeof(arguments));
    memcpy(arguments, block + strlen(start), length);
    arguments[length] = 0;
    char *shown = run(arguments);
    size_t expected = (size_t)(end - line_end - 1);
    cr_expect(strlen(shown) == expected && memcmp(shown, line_end + 1, expected) == 0,
              "berth %s prints\n%s\nand docs/planner.md shows\n%.*s", arguments, shown,
              (int)expected, line_end + 1);
    free(shown);
}

Test(command, examples_of_planner_docs) {
    FILE *file = fopen("docs/planner.md", "rb");
    cr_assert_not_null(file);
    char *text = read_all(file);
    fclose(file);
    int examples = 0;
    for (char *at = text; (at = strstr(at, "```\n$ berth ")) != NULL; ++examples) {
        at += strlen("```\n");
        char *end = strstr(at, "```\n");
        cr_assert_not_null(end);
        check_example(at, end);
        at = end;
    }
    cr_assert_geq(examples, 6, "%d examples", examples);
    free(text);
}

// ---- docs/compiler.md -----------------------------------------------------------------------------

// Drops devices (" on cpu:0#HASH") and locations (" #3"), and makes white space one blank.
static void normalise(char *text) {
    char *out = text;
    for (const char *at = text; *at;) {
        size_t blanks = strspn(at, " \n");
        const char *word = at + blanks;
        size_t length = strcspn(word, " \n");
        if (length >= 2 && word[0] == '#' && strspn(word + 1, "0123456789") >= length - 1) {
            at = word + length;
            continue;
        }
        if (strncmp(word, "on cpu:0#", 9) == 0) {
            at = word + 9 + strspn(word + 9, "0123456789abcdef");
            continue;
        }
        if (blanks > 0 && *word) *out++ = ' ';
        memmove(out, word, length);
        out += length;
        at = word + length;
    }
    *out = 0;
}

// The text between "// after PASS" and the next one.
static char *printed_after(const char *all, const char *pass) {
    char heading[64];
    snprintf(heading, sizeof(heading), "// after %s\n", pass);
    const char *start = strstr(all, heading);
    cr_assert_not_null(start, "nothing is printed after %s", pass);
    start += strlen(heading);
    const char *end = strstr(start, "\n// after ");
    char *text = strndup(start, end ? (size_t)(end - start) : strlen(start));
    normalise(text);
    return text;
}

// Pieces between "..." come in this order.
static void check_pieces(const char *pass, char *block, const char *printed) {
    normalise(block);
    for (char *piece = block; piece;) {
        char *next = strstr(piece, "...");
        if (next) *next = 0;
        while (*piece == ' ') ++piece;
        size_t length = strlen(piece);
        while (length > 0 && piece[length - 1] == ' ') piece[--length] = 0;
        const char *found = strstr(printed, piece);
        cr_expect_not_null(found, "after %s there is no\n%s\nin\n%s", pass, piece, printed);
        if (found) printed = found + length;
        piece = next ? next + 3 : NULL;
    }
}

Test(command, passes_of_compiler_docs) {
    FILE *file = fopen("docs/compiler.md", "rb");
    cr_assert_not_null(file);
    char *text = read_all(file);
    fclose(file);
    char *all = run("opt examples/compiler/conv.txt --target arm/rasp4b --passes all "
                    "--print-after all");
    int blocks = 0;
    for (char *at = text; (at = strstr(at, "```\nafter ")) != NULL; ++blocks) {
        char *line = at + strlen("```\nafter "), *line_end = strchr(line, '\n');
        char *end = strstr(line_end, "```");
        cr_assert_not_null(end);
        *line_end = *end = 0;
        char *printed = printed_after(all, line);
        check_pieces(line, line_end + 1, printed);
        free(printed);
        at = end + 1;
    }
    cr_assert_geq(blocks, 7, "%d blocks", blocks);
    free(all);
    free(text);
}
