// lookup and tf_idf_vectorizer: elements found among keys, numbers or strings.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval/strings.h"

// -1, 0, 1; NaN is above everything and equal to itself. The types are the same.
static int compare_keys(const berth_tensor *a, int64_t i, const berth_tensor *b, int64_t j) {
    if (a->dtype == BERTH_DTYPE_STRING)
        return berth_string_compare(berth_tensor_strings(a)[i], berth_tensor_strings(b)[j]);
    if (berth_dtype_is_float(a->dtype)) {
        double m = berth_tensor_get_f64(a, i), n = berth_tensor_get_f64(b, j);
        if (isnan(m) || isnan(n)) return (isnan(m) != 0) - (isnan(n) != 0);
        return (m > n) - (m < n);
    }
    int64_t m = berth_tensor_get_i64(a, i), n = berth_tensor_get_i64(b, j);
    if (a->dtype == BERTH_DTYPE_U64)
        return ((uint64_t)m > (uint64_t)n) - ((uint64_t)m < (uint64_t)n);
    return (m > n) - (m < n);
}

// Something that is searched: entries in an order, by a comparison of two of them.
typedef struct sorted {
    const int64_t *items;
    int64_t count;
} sorted;

typedef int (*order_fn)(const void *user, int64_t a, int64_t b);

// Bottom-up merge sort, stable: of equal entries the first one is found.
static sorted sort_entries(berth_eval_context *ctx, int64_t count, order_fn order,
                           const void *user) {
    int64_t *items = berth_eval__indices(ctx, count), *spare = berth_eval__indices(ctx, count);
    for (int64_t i = 0; i < count; ++i) items[i] = i;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            int64_t mid = low + width < count ? low + width : count;
            int64_t high = low + 2 * width < count ? low + 2 * width : count;
            for (int64_t i = low, j = mid, k = low; k < high; ++k) {
                bool left = j >= high || (i < mid && order(user, items[i], items[j]) <= 0);
                spare[k] = left ? items[i++] : items[j++];
            }
        }
        int64_t *other = items;
        items = spare;
        spare = other;
    }
    return (sorted){.items = items, .count = count};
}

// ---- lookup

static int order_keys(const void *user, int64_t a, int64_t b) {
    return compare_keys(user, a, user, b);
}

// The first entry that is not below the wanted element.
static int64_t lower_bound(const sorted *s, const berth_tensor *keys, const berth_tensor *x,
                           int64_t index) {
    int64_t low = 0, high = s->count;
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (compare_keys(keys, s->items[mid], x, index) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

berth_status berth_eval__lookup(berth_eval_context *ctx) {
    const berth_tensor *x = &ctx->inputs[0], *keys = &ctx->inputs[1];
    const berth_tensor *values = &ctx->inputs[2], *absent = &ctx->inputs[3];
    int64_t key_count = berth_tensor_element_count(keys);
    if (x->dtype != keys->dtype || values->dtype != absent->dtype)
        return berth_status_make(BERTH_INVALID_ARGUMENT,
                                 "%s is looked up among %s, for %s or else %s",
                                 berth_dtype_name(x->dtype), berth_dtype_name(keys->dtype),
                                 berth_dtype_name(values->dtype), berth_dtype_name(absent->dtype));
    BERTH_TRY(berth_eval__need_count(values, "the values", key_count));
    BERTH_TRY(berth_eval__need_count(absent, "the value for what is no key", 1));
    BERTH_TRY(berth_eval__output(ctx, 0, values->dtype, x->rank, x->dims));
    sorted s = sort_entries(ctx, key_count, order_keys, keys);
    int64_t count = berth_tensor_element_count(x);
    size_t size = berth_dtype_size_bytes(values->dtype);
    for (int64_t i = 0; i < count; ++i) {
        int64_t at = lower_bound(&s, keys, x, i);
        bool found = at < key_count && compare_keys(keys, s.items[at], x, i) == 0;
        berth_eval__copy_element(ctx->outputs[0].data, i, found ? values->data : absent->data,
                                 found ? s.items[at] : 0, size);
    }
    return BERTH_OK;
}

// ---- tf_idf_vectorizer

typedef struct vocabulary {
    berth_eval_context *ctx;
    berth_tensor pool;      // of x's element type (integers: i64)
    int64_t *begin, *size;  // of n-grams: where they are in the pool
    int64_t count;
    int64_t least, most, skips;
    bool counts, weighted;
    const int64_t *columns;
    const double *weights;  // NULL = 1 each
    sorted order;
} vocabulary;

static int compare_grams(const vocabulary *v, int64_t a, const berth_tensor *x, int64_t start,
                         int64_t step, int64_t size) {
    if (v->size[a] != size) return v->size[a] < size ? -1 : 1;
    for (int64_t k = 0; k < size; ++k) {
        int order = compare_keys(&v->pool, v->begin[a] + k, x, start + k * step);
        if (order) return order;
    }
    return 0;
}

static int order_grams(const void *user, int64_t a, int64_t b) {
    const vocabulary *v = user;
    return compare_grams(v, a, &v->pool, v->begin[b], 1, v->size[b]);
}

// The n-gram's number, or -1.
static int64_t find_gram(const vocabulary *v, const berth_tensor *x, int64_t start, int64_t step,
                         int64_t size) {
    int64_t low = 0, high = v->order.count;
    while (low < high) {
        int64_t mid = low + (high - low) / 2, item = v->order.items[mid];
        int order = compare_grams(v, item, x, start, step, size);
        if (order == 0) return item;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return -1;
}

static berth_status bad(const char *what) {
    return berth_status_make(BERTH_INVALID_ARGUMENT, "attribute %s", what);
}

static berth_status read_pool(vocabulary *v) {
    berth_eval_context *ctx = v->ctx;
    const berth_attr *words = berth_attrs_find(ctx->module, &ctx->op->attrs, "pool_strings");
    uint32_t count = 0;
    const int64_t *numbers = berth_attrs_ints(ctx->module, &ctx->op->attrs, "pool_int64s", &count);
    bool strings = words && words->kind == BERTH_ATTR_STRINGS;
    if (strings == (count > 0)) return bad("pool_strings or pool_int64s: one of them is needed");
    if (strings) count = words->count;
    int64_t extent = count;
    v->pool = berth_tensor_create(ctx->scratch, strings ? BERTH_DTYPE_STRING : BERTH_DTYPE_I64, 1,
                                  &extent);
    for (uint32_t i = 0; i < count; ++i) {
        if (strings)
            ((berth_string *)v->pool.data)[i] =
                berth_string_of(berth_module_str(ctx->module, words->strings[i]));
        else
            berth_tensor_set_i64(&v->pool, i, numbers[i]);
    }
    if (strings != (ctx->inputs[0].dtype == BERTH_DTYPE_STRING))
        return berth_status_make(BERTH_INVALID_ARGUMENT, "the operand is %s, the pool %s",
                                 berth_dtype_name(ctx->inputs[0].dtype),
                                 berth_dtype_name(v->pool.dtype));
    return BERTH_OK;
}

// ngram_counts[i] is where the n-grams of i + 1 items begin.
static berth_status read_grams(vocabulary *v) {
    berth_eval_context *ctx = v->ctx;
    uint32_t starts = 0, columns = 0;
    const int64_t *start = berth_attrs_ints(ctx->module, &ctx->op->attrs, "ngram_counts", &starts);
    v->columns = berth_attrs_ints(ctx->module, &ctx->op->attrs, "ngram_indexes", &columns);
    int64_t total = v->pool.dims[0];
    v->begin = berth_eval__indices(ctx, total);
    v->size = berth_eval__indices(ctx, total);
    if (starts == 0) return bad("ngram_counts is missing or empty");
    for (uint32_t i = 0; i < starts; ++i) {
        int64_t end = i + 1 < starts ? start[i + 1] : total, size = (int64_t)i + 1;
        if (start[i] < 0 || start[i] > end || end > total || (end - start[i]) % size)
            return bad("ngram_counts does not divide the pool into n-grams");
        for (int64_t at = start[i]; at < end; at += size) {
            v->begin[v->count] = at;
            v->size[v->count++] = size;
        }
    }
    if (columns != v->count) return bad("ngram_indexes has not one entry for each n-gram");
    v->order = sort_entries(ctx, v->count, order_grams, v);
    for (int64_t i = 1; i < v->count; ++i)
        if (order_grams(v, v->order.items[i - 1], v->order.items[i]) == 0)
            return bad("pool has an n-gram twice");
    return BERTH_OK;
}

static berth_status read_vocabulary(vocabulary *v) {
    berth_eval_context *ctx = v->ctx;
    uint32_t weights = 0;
    const char *mode = berth_eval__string(ctx, "mode", "");
    v->counts = strcmp(mode, "TF") == 0 || strcmp(mode, "TFIDF") == 0;
    v->weighted = strcmp(mode, "IDF") == 0 || strcmp(mode, "TFIDF") == 0;
    if (!v->counts && !v->weighted) return bad("mode is none of TF, IDF, TFIDF");
    v->least = berth_eval__int(ctx, "min_gram_length", 0);
    v->most = berth_eval__int(ctx, "max_gram_length", 0);
    v->skips = berth_eval__int(ctx, "max_skip_count", 0);
    if (v->least < 1 || v->most < v->least || v->skips < 0)
        return bad("min_gram_length, max_gram_length or max_skip_count is out of range");
    BERTH_TRY(read_pool(v));
    BERTH_TRY(read_grams(v));
    v->weights = berth_eval__floats(ctx, "weights", &weights);
    if (v->weights && weights != v->count) return bad("weights has not one entry for each n-gram");
    return BERTH_OK;
}

// Items of one n-gram stand `step` apart; n-grams of one item are counted once.
static void count_row(const vocabulary *v, const berth_tensor *x, int64_t begin, int64_t length,
                      double *counts) {
    int64_t most = v->most < v->pool.dims[0] ? v->most : v->pool.dims[0];
    for (int64_t step = 1; step - 1 <= v->skips && (step == 1 || step < length); ++step) {
        for (int64_t i = 0; i < length; ++i) {
            for (int64_t size = v->least; size <= most; ++size) {
                if ((size - 1) * step >= length - i) break;
                if (size == 1 && step > 1) continue;
                int64_t gram = find_gram(v, x, begin + i, step, size);
                if (gram >= 0) counts[gram]++;
            }
        }
    }
}

berth_status berth_eval__tf_idf_vectorizer(berth_eval_context *ctx) {
    vocabulary v = {.ctx = ctx};
    berth_tensor x = ctx->inputs[0];
    int64_t width = 0;
    BERTH_TRY(berth_eval__need_rank(ctx, 0, 0, 2));
    BERTH_TRY(read_vocabulary(&v));
    for (int64_t i = 0; i < v.count; ++i) {
        if (v.columns[i] < 0 || v.columns[i] == INT64_MAX)
            return bad("ngram_indexes is out of range");
        if (v.columns[i] >= width) width = v.columns[i] + 1;
    }
    int64_t rows = x.rank == 2 ? x.dims[0] : 1;
    int64_t length = x.rank == 2 ? x.dims[1] : berth_tensor_element_count(&x);
    int64_t dims[2] = {x.rank == 2 ? rows : width, width};
    BERTH_TRY(berth_eval__output(ctx, 0, BERTH_DTYPE_F32, x.rank == 2 ? 2 : 1, dims));
    if (x.dtype != BERTH_DTYPE_STRING)
        x = (berth_tensor){.dtype = BERTH_DTYPE_I64,
                           .data = (void *)(uintptr_t)berth_eval__load_i64(ctx, &x)};
    double *counts = berth_eval__doubles(ctx, v.count);
    for (int64_t row = 0; row < rows; ++row) {
        memset(counts, 0, (size_t)v.count * sizeof(*counts));
        count_row(&v, &x, row * length, length, counts);
        for (int64_t i = 0; i < v.count; ++i) {
            double value = v.counts ? counts[i] : counts[i] > 0;
            if (v.weighted && v.weights) value *= v.weights[i];
            if (counts[i] > 0)
                berth_tensor_set_f64(&ctx->outputs[0], row * width + v.columns[i], value);
        }
    }
    return BERTH_OK;
}
