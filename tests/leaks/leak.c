// A test that leaks, to see that leaks are found (tests/CMakeLists.txt): where Criterion no longer
// sets what tests/lsan_parent.c tells the processes of tests by, every other test would stay silent.
#include <criterion/criterion.h>
#include <stdlib.h>

Test(leaks, are_found) {
    char *volatile lost = malloc(4321);
    lost[0] = 1;
    lost = NULL;
}
