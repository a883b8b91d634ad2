#include "base/dynlib.h"
#include "image/internal.h"

static berth_status load(berth_image__library *library) {
    berth_dynlib *opened = NULL;
    berth_status status = berth_dynlib_open(library->names, &opened);
    if (status)
        return berth_status_prefix(status, "%s pictures need %s", library->format,
                                   library->package);
    const char *missing = berth_dynlib_find_functions(berth_dynlib_find_in, opened,
                                                      library->functions, library->table);
    if (missing) {
        berth_dynlib_close(opened);
        return berth_status_make(BERTH_UNAVAILABLE, "%s pictures need %s: the one here lacks %s",
                                 library->format, library->package, missing);
    }
    berth_dynlib_abandon(opened);
    library->loaded = true;
    return BERTH_OK;
}

berth_status berth_image__load(berth_image__library *library) {
    pthread_mutex_lock(&library->lock);
    berth_status status = library->loaded ? BERTH_OK : load(library);
    pthread_mutex_unlock(&library->lock);
    return status;
}
