// Replays a corpus folder through a libFuzzer entry point, so that the ordinary test run covers
// what fuzzing found.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return 1;
    size_t capacity = (size_t)16 << 20;
    uint8_t *data = malloc(capacity);
    size_t size = data ? fread(data, 1, capacity, file) : 0;
    fclose(file);
    if (!data) return 1;
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv) {
    int replayed = 0;
    int failed = 0;
    for (int i = 1; i < argc; ++i) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            fprintf(stderr, "cannot open corpus folder %s\n", argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            if (entry->d_name[0] == '.') continue;
            char path[4096];
            snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
            failed += replay_file(path);
            replayed++;
        }
        closedir(folder);
    }
    printf("%d inputs replayed\n", replayed);
    return replayed == 0 || failed != 0;
}
