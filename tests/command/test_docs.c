// The examples of docs/planner.md: blocks that begin with "$ berth ..." show what the command
// prints.
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
