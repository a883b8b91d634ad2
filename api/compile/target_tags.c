// Targets by name (<berth/target.h>).
#include <berth/target.h>

#include "target/target.h"

struct berth_tag_list {
    berth_arena *arena;  // of this struct
    berth_tag_facts *tags;
    uint32_t count;
};

typedef struct list_job {
    berth_arena *arena;
    const char *folder;
    berth_tag_list *list;
} list_job;

static berth_status make_list(void *user) {
    list_job *job = user;
    berth_target_tag *tags = NULL;
    berth_tag_list *list = berth_arena_new(job->arena, berth_tag_list);
    list->arena = job->arena;
    BERTH_TRY(berth_target_list_tags(job->arena, job->folder, &tags, &list->count));
    list->tags = berth_arena_new_array(job->arena, berth_tag_facts, list->count);
    for (uint32_t i = 0; i < list->count; ++i)
        list->tags[i] = (berth_tag_facts){.name = tags[i].name,
                                          .description = tags[i].description,
                                          .sources = tags[i].sources,
                                          .is_users = tags[i].user};
    job->list = list;
    return BERTH_OK;
}

berth_status berth_tag_list_create(const char *tag_folder, berth_tag_list **out_list) {
    *out_list = NULL;
    list_job job = {.folder = tag_folder};
    BERTH_TRY(berth_arena_make(make_list, &job, &job.arena));
    *out_list = job.list;
    return BERTH_OK;
}

void berth_tag_list_free(berth_tag_list *list) {
    if (list) berth_arena_destroy(list->arena);
}

uint32_t berth_tag_list_count(const berth_tag_list *list) {
    return list->count;
}

const berth_tag_facts *berth_tag_list_at(const berth_tag_list *list, uint32_t index) {
    return index < list->count ? &list->tags[index] : NULL;
}
