// Subgroups for OpenCL devices that have none: functions of cl_khr_subgroups in OpenCL C 2.0, of a size that a macro
// says, by memory of all groups and barriers of a whole group. All work-items of a group have to come by, then;
// OpenCL asks that of those of a subgroup alone. Subgroups, and work-items in them, count from the group's last: which
// is where is a device's choice. The last subgroup has what is left.
#ifndef BERTH_TESTS_FAULTS_OPENCL_SUBGROUPS_H_
#define BERTH_TESTS_FAULTS_OPENCL_SUBGROUPS_H_

#define OPENCL_SUBGROUPS_MOST_GROUPS 16  // of a launch, of at most as many work-items:
#define OPENCL_SUBGROUPS_MOST_ITEMS 256

// clang-format off
static const char opencl_subgroups[] =
    "#define cl_khr_subgroups 1\n"
    "#define SUBGROUP_ITEMS ((uint)get_local_size(0))\n"
    "#define SUBGROUP_RANK (SUBGROUP_ITEMS - 1 - (uint)get_local_id(0))\n"
    "#define SUBGROUP_FIRST (SUBGROUP_RANK / SUBGROUP_MOST * SUBGROUP_MOST)\n"
    "static inline uint get_sub_group_size(void) { return min((uint)SUBGROUP_MOST, SUBGROUP_ITEMS - SUBGROUP_FIRST); }\n"
    "static inline uint get_sub_group_local_id(void) { return SUBGROUP_RANK - SUBGROUP_FIRST; }\n"
    "#define SUBGROUP(NAME, T, TOGETHER) \\\n"
    "__global T subgroup_##NAME##_##T[16][256]; \\\n"
    "static inline T __attribute__((overloadable)) NAME(T x) { \\\n"
    "    __global T *all = subgroup_##NAME##_##T[get_group_id(0)]; \\\n"
    "    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE); \\\n"
    "    all[SUBGROUP_RANK] = x; \\\n"
    "    barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE); \\\n"
    "    x = all[SUBGROUP_FIRST]; \\\n"
    "    for (uint i = 1; i < get_sub_group_size(); ++i) { const T y = all[SUBGROUP_FIRST + i]; x = TOGETHER; } \\\n"
    "    return x; }\n"
    // Of a NaN and a number, the number, as OpenCL's fmax and fmin give.
    "#define SUBGROUP_EXTREMES(T, MAX, MIN) \\\n"
    "SUBGROUP(sub_group_reduce_max, T, MAX(x, y)) SUBGROUP(sub_group_reduce_min, T, MIN(x, y))\n"
    "SUBGROUP_EXTREMES(float, fmax, fmin) SUBGROUP_EXTREMES(double, fmax, fmin) SUBGROUP_EXTREMES(int, max, min)\n"
    "SUBGROUP(sub_group_reduce_add, float, x + y) SUBGROUP(sub_group_reduce_add, double, x + y)\n"
    "SUBGROUP(sub_group_reduce_add, uint, x + y) SUBGROUP(sub_group_any, int, x || y)\n";
// clang-format on

#endif  // BERTH_TESTS_FAULTS_OPENCL_SUBGROUPS_H_
