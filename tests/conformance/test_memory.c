// Memories, buffers, views, imports, host access.
#include <stdint.h>

#include "tests/conformance/conformance.h"

CONFORMANCE(memory, facts) {
    const berth_device_info *info = berth_device_get_info(f->devices[0]);
    cr_assert_neq(info->name[0], '\0');
    cr_assert_gt(info->compute_units, 0);
    cr_assert_gt(info->max_group_size, 0);
    cr_assert_gt(info->memory_count, 0);
    cr_assert_str_eq(info->memories[0].scope, "global");
    for (uint32_t i = 0; i < info->memory_count; ++i) {
        uint32_t alignment = info->memories[i].alignment_bytes, found = UINT32_MAX;
        cr_assert(alignment >= 1 && (alignment & (alignment - 1)) == 0, "alignment %u", alignment);
        check_ok(berth_device_find_memory(f->devices[0], info->memories[i].scope, &found));
        cr_assert_eq(found, i);
    }
    uint32_t unused;
    check_code(berth_device_find_memory(f->devices[0], "moon", &unused), BERTH_NOT_FOUND);
    berth_device_info again;
    check_ok(berth_driver_device_info(f->driver, 0, &again));
    cr_assert_str_eq(again.name, info->name);
    cr_assert_str_eq(berth_device_kind_text(f->devices[0]), f->row->kind);
}

CONFORMANCE(memory, no_such_device) {
    berth_device *device = NULL;
    uint32_t count = berth_driver_device_count(f->driver);
    check_code(berth_device_open(f->driver, count, NULL, &device), BERTH_NOT_FOUND);
    cr_assert_null(device);
    berth_device_info info;
    check_code(berth_driver_device_info(f->driver, count, &info), BERTH_NOT_FOUND);
    berth_driver *driver = NULL;
    check_code(berth_driver_open("abacus", f->allocator, &driver), BERTH_NOT_FOUND);
    cr_assert_null(driver);
}

CONFORMANCE(memory, every_memory_holds_data) {
    const berth_device_info *info = berth_device_get_info(f->devices[0]);
    for (uint32_t i = 0; i < info->memory_count; ++i) {
        berth_buffer *buffer = NULL;
        unsigned char data[5000], back[5000];
        for (size_t k = 0; k < sizeof(data); ++k) data[k] = (unsigned char)(k * 7 + i);
        check_ok(berth_buffer_allocate(f->devices[0], i, sizeof(data), &buffer));
        write_buffer(buffer, data, sizeof(data));
        read_buffer(buffer, back, sizeof(back));
        cr_assert_arr_eq(data, back, sizeof(data));
        berth_buffer_free(buffer);
    }
}

// Views and imports are others' bytes; what is freed counts no more, but the peak stays.
CONFORMANCE(memory, the_most_at_once_is_counted) {
    berth_device *device = f->devices[0];
    uint32_t alignment = berth_device_get_info(device)->memories[0].alignment_bytes;
    uint64_t before = berth_device_peak_bytes(device), size_bytes = 2 * (uint64_t)alignment + 5000;
    berth_buffer *first = make_buffer(device, size_bytes), *view = NULL;
    check_ok(berth_buffer_view(first, alignment, 100, &view));
    cr_expect_eq(berth_device_peak_bytes(device), before + size_bytes);
    berth_buffer_free(first);  // the view keeps it
    berth_buffer *second = make_buffer(device, size_bytes);
    cr_expect_eq(berth_device_peak_bytes(device), before + 2 * size_bytes);
    berth_buffer_free(second);
    berth_buffer_free(view);
    berth_buffer_free(make_buffer(device, size_bytes));
    cr_expect_eq(berth_device_peak_bytes(device), before + 2 * size_bytes);
}

CONFORMANCE(buffer, sizes) {
    static const uint64_t sizes[] = {0, 1, 3, 127, 128, 4097, 65536, 1 << 20, (9 << 20) + 1};
    uint32_t alignment = berth_device_get_info(f->devices[0])->memories[0].alignment_bytes;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        berth_buffer *buffer = make_buffer(f->devices[0], sizes[i]);
        cr_assert_eq(berth_buffer_size_bytes(buffer), sizes[i]);
        cr_assert_eq(berth_buffer_device(buffer), f->devices[0]);
        cr_assert_eq(berth_buffer_host(buffer) != NULL, f->row->synchronous || f->row->host_memory);
        cr_assert_eq((uintptr_t)berth_buffer_host(buffer) % alignment, 0);
        if (sizes[i]) {  // both ends are there
            unsigned char *data = NULL;
            check_ok(berth_buffer_map(buffer, 0, sizes[i], true, (void **)&data));
            data[0] = 1;
            data[sizes[i] - 1] = 2;
            check_ok(berth_buffer_unmap(buffer, data));
        }
        berth_buffer_free(buffer);
    }
    berth_buffer_free(NULL);
}

CONFORMANCE(buffer, too_large) {
    berth_buffer *buffer = NULL;
    check_code(berth_buffer_allocate(f->devices[0], 0, UINT64_MAX, &buffer), BERTH_OUT_OF_MEMORY);
    check_code(berth_buffer_allocate(f->devices[0], 0, (uint64_t)1 << 60, &buffer),
               BERTH_OUT_OF_MEMORY);
    check_code(berth_buffer_allocate(f->devices[0], 99, 16, &buffer), BERTH_OUT_OF_RANGE);
    cr_assert_null(buffer);
}

CONFORMANCE(buffer, views_share_bytes) {
    uint32_t alignment = berth_device_get_info(f->devices[0])->memories[0].alignment_bytes;
    uint64_t size = 4 * (uint64_t)alignment + 5;
    berth_buffer *root = make_buffer(f->devices[0], size), *view = NULL, *inner = NULL;
    unsigned char data[4096];
    cr_assert_leq(size, sizeof(data));
    for (size_t i = 0; i < size; ++i) data[i] = (unsigned char)i;
    write_buffer(root, data, size);
    check_ok(berth_buffer_view(root, alignment, size - alignment, &view));
    check_ok(berth_buffer_view(view, alignment, alignment + 3, &inner));
    cr_assert_eq(berth_buffer_size_bytes(inner), alignment + 3);
    unsigned char back[4096];
    read_buffer(inner, back, alignment + 3);
    cr_assert_arr_eq(back, data + 2 * alignment, alignment + 3);
    memset(back, 0xee, alignment);
    write_buffer(inner, back, alignment);
    read_buffer(root, back, size);
    memset(data + 2 * alignment, 0xee, alignment);
    cr_assert_arr_eq(back, data, size);
    berth_buffer_free(root);  // the views keep the memory
    berth_buffer_free(view);
    read_buffer(inner, back, alignment + 3);
    cr_assert_arr_eq(back, data + 2 * alignment, alignment + 3);
    berth_buffer_free(inner);
}

CONFORMANCE(buffer, bad_views) {
    uint32_t alignment = berth_device_get_info(f->devices[0])->memories[0].alignment_bytes;
    berth_buffer *root = make_buffer(f->devices[0], 4 * (uint64_t)alignment), *view = NULL;
    check_code(berth_buffer_view(root, 1, 1, &view), BERTH_INVALID_ARGUMENT);
    check_code(berth_buffer_view(root, alignment, 3 * (uint64_t)alignment + 1, &view),
               BERTH_OUT_OF_RANGE);
    check_code(berth_buffer_view(root, UINT64_MAX - alignment + 1, alignment, &view),
               BERTH_OUT_OF_RANGE);
    check_code(berth_buffer_view(root, alignment, UINT64_MAX, &view), BERTH_OUT_OF_RANGE);
    cr_assert_null(view);
    check_ok(berth_buffer_view(root, 4 * (uint64_t)alignment, 0, &view));
    cr_assert_eq(berth_buffer_size_bytes(view), 0);
    void *data = NULL;
    check_code(berth_buffer_map(view, 0, 1, false, &data), BERTH_OUT_OF_RANGE);
    berth_buffer_free(view);
    berth_buffer_free(root);
}

CONFORMANCE(buffer, import) {
    static _Alignas(4096) unsigned char data[8192];
    berth_buffer *buffer = NULL;
    berth_status status = berth_buffer_import(f->devices[0], data, sizeof(data), &buffer);
    const berth_device_info *info = berth_device_get_info(f->devices[0]);
    if (!info->unified && !info->memories[0].host_visible) {
        check_code(status, BERTH_UNSUPPORTED);
        return;
    }
    check_ok(status);
    cr_assert_eq(berth_buffer_host(buffer), data);
    berth_command commands[] = {hand_over_command(BERTH_COMMAND_TO_DEVICE, &buffer, 1),
                                fill_command(buffer, 3, 7, 0x5a, 1),
                                hand_over_command(BERTH_COMMAND_TO_HOST, &buffer, 1)};
    check_ok(berth_queue_run(f->queues[0], commands, 3));
    cr_assert(data[2] == 0 && data[3] == 0x5a && data[9] == 0x5a && data[10] == 0);
    berth_buffer_free(buffer);
    check_code(berth_buffer_import(f->devices[0], NULL, 1, &buffer), BERTH_INVALID_ARGUMENT);
}

CONFORMANCE(map, parts_keep_the_rest) {
    enum { SIZE = 1000 };
    unsigned char data[SIZE], back[SIZE];
    for (int i = 0; i < SIZE; ++i) data[i] = (unsigned char)(i * 13);
    berth_buffer *buffer = make_buffer(f->devices[0], SIZE);
    write_buffer(buffer, data, SIZE);
    static const int parts[][2] = {{0, 1}, {1, 3}, {7, 64}, {333, 501}, {999, 1}};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        int offset = parts[i][0], size = parts[i][1];
        for (int write_only = 0; write_only < 2; ++write_only) {
            unsigned char *mapped = NULL;
            check_ok(berth_buffer_map(buffer, (uint64_t)offset, (uint64_t)size, write_only != 0,
                                      (void **)&mapped));
            if (!write_only) cr_assert_arr_eq(mapped, data + offset, (size_t)size);
            memset(mapped, 100 + write_only, (size_t)size);
            memset(data + offset, 100 + write_only, (size_t)size);
            check_ok(berth_buffer_unmap(buffer, mapped));
        }
    }
    read_buffer(buffer, back, SIZE);
    cr_assert_arr_eq(back, data, SIZE);
    berth_buffer_free(buffer);
}

CONFORMANCE(map, bad_ranges) {
    berth_buffer *buffer = make_buffer(f->devices[0], 100);
    void *data = NULL;
    check_code(berth_buffer_map(buffer, 0, 101, false, &data), BERTH_OUT_OF_RANGE);
    check_code(berth_buffer_map(buffer, 100, 1, false, &data), BERTH_OUT_OF_RANGE);
    check_code(berth_buffer_map(buffer, 1, UINT64_MAX, false, &data), BERTH_OUT_OF_RANGE);
    check_code(berth_buffer_map(buffer, 0, 0, false, &data), BERTH_INVALID_ARGUMENT);
    check_code(berth_buffer_unmap(buffer, NULL), BERTH_INVALID_ARGUMENT);
    cr_assert_null(data);
    berth_buffer_free(buffer);
}
