// What the tests of target/ share: an arena per test, and parsing that shows the diagnostics when
// it fails.
#ifndef BERTH_TESTS_TARGET_SUPPORT_H_
#define BERTH_TESTS_TARGET_SUPPORT_H_

#include <criterion/criterion.h>
#include <string.h>

#include "target/target.h"

extern berth_arena *test_arena;

void test_arena_open(void);
void test_arena_close(void);

// A made-up machine, the same wherever the tests run: 8 cores, AVX2, two OpenCL devices.
const berth_machine_facts *test_machine(void);

berth_multi_target *parse_with(const char *text, const berth_target_options *options);
berth_multi_target *parse(const char *text);
// The diagnostics of a text that must have some.
berth_target_diagnostics diagnose(const char *text, const berth_target_options *options);
bool has_diagnostic(berth_target_diagnostics diagnostics, const char *path, const char *part);
// Parses the canonical form again and compares bytes.
void check_round_trip(const berth_multi_target *target, const char *label);
// Everything target.h promises of a berth_multi_target.
void check_invariants(const berth_multi_target *target, const char *label);

#endif  // BERTH_TESTS_TARGET_SUPPORT_H_
