// `berth target detect`, targets that are exports of hwloc, pictures of machines, CPU devices that
// share the cores.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/command/support.h"

#define MNIST "../shared/models/mnist"
#define TOPOLOGIES "../shared/topologies"

static bool has(const char *path) {
    if (access(path, R_OK) == 0) return true;
    fprintf(stderr, "skipped: there is no %s\n", path);
    return false;
}

// The figures below a value have a source each, by their path.
static void check_sources(const json_t *value, const char *path, const json_t *sources) {
    char below[256];
    const char *key = NULL;
    json_t *member = NULL;
    size_t index = 0;
    if (json_is_number(value)) {
        const char *source = json_string_value(json_object_get(sources, path));
        cr_expect(source &&
                      (strncmp(source, "measured", 8) == 0 || strncmp(source, "reported", 8) == 0 ||
                       strncmp(source, "assumed", 7) == 0),
                  "%s: %s", path, source ? source : "no source");
    }
    // jansson's loops change nothing.
    json_t *loop = json_deep_copy(value);
    if (json_is_object(loop)) {
        json_object_foreach(loop, key, member) {
            snprintf(below, sizeof(below), "%s%s%s", path, *path ? "." : "", key);
            check_sources(member, below, sources);
        }
    } else if (json_is_array(loop)) {
        json_array_foreach(loop, index, member) {
            snprintf(below, sizeof(below), "%s[%zu]", path, index);
            check_sources(member, below, sources);
        }
    }
    json_decref(loop);
}

static double figure(json_t *root, const char *list, size_t index, const char *key) {
    return json_number_value(
        json_object_get(json_array_get(json_object_get(root, list), index), key));
}

Test(detect_command, this_machine, .timeout = 240) {
    json_t *root = berth_run_json("target detect --quiet --name here");
    json_t *sources = json_incref(json_object_get(root, "sources"));
    cr_expect_str_eq(json_string_value(json_object_get(root, "name")), "here");
    json_object_del(root, "sources");
    check_sources(root, "", sources);
    // What every computer that builds Berth can do, and none can.
    double read = figure(root, "memories", 0, "bandwidth_bytes_per_s");
    double latency_ns = figure(root, "memories", 0, "latency_ns");
    cr_expect(read > 1e8 && read < 1e13, "%g bytes/s", read);
    cr_expect(latency_ns >= 1 && latency_ns < 1e5, "%g ns", latency_ns);
    json_t *cpu = json_object_get(json_array_get(json_object_get(root, "devices"), 0), "target");
    double core = json_number_value(json_object_get(cpu, "core_bandwidth_bytes_per_s"));
    cr_expect(core > 1e7 && core <= read, "one core: %g of %g bytes/s", core, read);
    const char *source =
        json_string_value(json_object_get(sources, "memories[0].bandwidth_bytes_per_s"));
    cr_expect_eq(strncmp(source, "measured", 8), 0, "%s", source);
    json_decref(sources);
    json_decref(root);
}

Test(detect_command, is_a_target, .timeout = 240) {
    if (!has(MNIST)) return;
    char path[] = "/tmp/berth_detect_XXXXXX.json", arguments[512];
    int fd = mkstemps(path, 5);
    cr_assert_geq(fd, 0);
    close(fd);
    snprintf(arguments, sizeof(arguments), "target detect --no-measure -o %s", path);
    const result *r = berth_run(arguments);
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    snprintf(arguments, sizeof(arguments),
             "verify " MNIST "/model.onnx --data " MNIST "/test_data_set_0 --target %s", path);
    r = berth_run(arguments);
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    snprintf(arguments, sizeof(arguments), "target show %s --format=svg", path);
    r = berth_run(arguments);
    cr_expect_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_eq(strncmp(r->out, "<svg", 4), 0);
    unlink(path);
}

// Facts of the machines, by their makers or their file names.
static const struct {
    const char *file;
    uint32_t cpus, gpus, memories;
} machines[] = {
    {"16amd64-4distances.xml", 8, 0, 8},
    {"192em64t-24n8c2t.xml", 24, 0, 24},
    {"28intel64-2p2g7c-CoDgroups.v1.xml", 4, 0, 4},
    {"64intel64-fakeKNL-SNC4-hybrid.xml", 4, 0, 8},
    {"8intel64-4n2t-memattrs.xml", 4, 0, 4},
    {"nvidiaDGX2.xml", 2, 16, 18},
    {"power8gpudistances.xml", 2, 4, 6},
    {"dudley.xml", 1, 0, 1},
};

Test(detect_command, other_machines, .timeout = 240) {
    if (!has(TOPOLOGIES) || !has(MNIST)) return;
    char arguments[512];
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        snprintf(arguments, sizeof(arguments), "target detect --topology " TOPOLOGIES "/%s",
                 machines[i].file);
        json_t *root = berth_run_json(arguments);
        json_t *sources = json_object_get(root, "sources");
        uint32_t cpus = 0, gpus = 0;
        size_t index = 0;
        json_t *device = NULL;
        json_array_foreach(json_object_get(root, "devices"), index, device) {
            const char *kind =
                json_string_value(json_object_get(json_object_get(device, "target"), "kind"));
            if (strcmp(kind, "cpu") == 0)
                ++cpus;
            else
                ++gpus;
        }
        cr_expect_eq(cpus, machines[i].cpus, "%s: %u", machines[i].file, cpus);
        cr_expect_eq(gpus, machines[i].gpus, "%s: %u", machines[i].file, gpus);
        cr_expect_eq(json_array_size(json_object_get(root, "memories")), machines[i].memories, "%s",
                     machines[i].file);
        cr_expect_gt(json_object_size(sources), 0u);
        json_decref(root);
    }
}

Test(detect_command, plans_for_every_export, .timeout = 240) {
    if (!has(TOPOLOGIES) || !has(MNIST)) return;
    FILE *list = popen("ls " TOPOLOGIES "/*.xml", "r");
    char path[512], arguments[1024];
    uint32_t count = 0;
    while (fgets(path, sizeof(path), list)) {
        path[strcspn(path, "\n")] = 0;
        snprintf(arguments, sizeof(arguments), "plan " MNIST "/model.onnx --target '%s'", path);
        const result *r = berth_run(arguments);
        cr_expect_eq(r->exit_status, 0, "%s: %s", path, r->err);
        ++count;
    }
    pclose(list);
    cr_expect_geq(count, 11u);
}

// The memory attributes of the file: 22500 and 90000 MiB/s; NVLink of a POWER8: 2 x 20 GB/s.
Test(detect_command, figures_of_exports, .timeout = 60) {
    if (!has(TOPOLOGIES)) return;
    json_t *root =
        berth_run_json("target detect --topology " TOPOLOGIES "/64intel64-fakeKNL-SNC4-hybrid.xml");
    cr_expect_eq(figure(root, "memories", 0, "bandwidth_bytes_per_s"), 2.36e10);
    cr_expect_eq(figure(root, "memories", 4, "bandwidth_bytes_per_s"), 9.44e10);
    json_decref(root);
    root = berth_run_json("target detect --topology " TOPOLOGIES "/power8gpudistances.xml");
    json_t *links = json_object_get(root, "links");
    size_t index = 0;
    json_t *link = NULL;
    uint32_t nvlinks = 0;
    json_array_foreach(links, index, link) {
        const char *from = json_string_value(json_object_get(link, "from"));
        nvlinks += strncmp(from, "gpu", 3) == 0 &&
                   json_number_value(json_object_get(link, "bandwidth_bytes_per_s")) == 4e10;
    }
    cr_expect_eq(nvlinks, 2u, "two pairs of GPUs");
    json_decref(root);
}

static void refuse(const char *text, const char *message) {
    char path[] = "/tmp/berth_export_XXXXXX.xml", arguments[256];
    int fd = mkstemps(path, 4);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    snprintf(arguments, sizeof(arguments), "target detect --topology %s", path);
    berth_run_fails(arguments, 1, message);
    snprintf(arguments, sizeof(arguments), "target show %s", path);
    berth_run_fails(arguments, 1, message);
    unlink(path);
}

Test(detect_command, bad_exports, .timeout = 120) {
    refuse("<html></html>", "no export of hwloc");
    refuse("<topology version=\"3.0\"></topology>", "export of hwloc 3");
    refuse("<?xml version=\"1.0\"?><!DOCTYPE t [<!ENTITY a \"b\">]><topology/>", "entities");
    refuse("<topology version=\"2.0\"><object type=\"Machine\"", "does not read it");
    berth_run_fails("target detect --topology /nowhere.xml", 1, "/nowhere.xml");
    berth_run_fails("target detect cpu", 2, "no argument");
    berth_run_fails("target show cpu -o x", 2, "--output is for");
}

// Text of a target is data in a picture.
Test(detect_command, pictures, .timeout = 60) {
    const result *r =
        berth_run("target show --format=svg '{\"kind\": \"cpu\", \"model\": \"<b>&\"}'");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    cr_expect_not_null(strstr(r->out, "&lt;b&gt;&amp;"));
    cr_expect_null(strstr(r->out, "<b>"));
    r = berth_run("target show --format=svg aws/p4d.24xlarge");
    cr_assert_eq(r->exit_status, 0, "%s", r->err);
    for (int i = 0; i < 8; ++i) {
        char name[32];
        snprintf(name, sizeof(name), ">gpu%d</text>", i);
        cr_expect_not_null(strstr(r->out, name), "%s", name);
    }
    cr_expect_not_null(strstr(r->out, "each of 8 with each: 28 links"));  // NVLink by its switches
}

Test(detect_command, cpu_devices_share_the_cores, .timeout = 120) {
    if (!has(MNIST) || sysconf(_SC_NPROCESSORS_ONLN) < 2) return;
    const char *first = "verify " MNIST "/model.onnx --data " MNIST "/test_data_set_0 --pin "
                        "'op:Conv=cpu:1' --target ";
    char arguments[512];
    static const char *const targets[] = {"'cpu -cores=1,cpu -cores=1'",
                                          "'cpu -cores=64,cpu -cores=64'"};
    for (size_t i = 0; i < 2; ++i) {
        snprintf(arguments, sizeof(arguments), "%s%s", first, targets[i]);
        const result *r = berth_run(arguments);
        cr_expect_eq(r->exit_status, 0, "%s: %s", targets[i], r->err);
    }
    const result *r =
        berth_run("run " MNIST "/model.onnx --target 'cpu -cores=64,cpu -cores=64' --pin "
                  "'op:Conv=cpu:1'");
    cr_expect_not_null(strstr(r->out, "of 64 wanted"), "%s", r->out);
    berth_run_fails("run " MNIST "/model.onnx --target 'cpu -cpuset=4095'", 1,
                    "none of the processors 4095 is here");
    berth_run_fails("target show 'cpu -cpuset=3-1'", 1, "no number of a hardware thread");
}
