#include "toolkit/tune_search.h"

// SplitMix64 (Steele, Lea, Flood 2014).
static uint64_t next_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t below(uint64_t *state, int64_t limit) {
    return limit <= 1 ? 0 : (int64_t)(next_random(state) % (uint64_t)limit);
}

static bool is_free(const berth_nest_decisions *policy, int which) {
    if (which == BERTH_DECISION_FORM || which == BERTH_DECISION_INTRINSIC) return false;
    return policy->made >> which & 1 && policy->least[which] < policy->most[which];
}

static int64_t random_divisor(int64_t of, uint64_t *state) {
    int64_t found[64];
    int count = 0;
    for (int64_t d = 1; d <= of && d <= 4096 && count < 64; ++d)
        if (of % d == 0) found[count++] = d;
    return found[below(state, count)];
}

static int64_t changed(const berth_nest_decisions *policy, int which, int64_t now,
                       uint64_t *state) {
    enum { many = 1 << 20, near = 16 };
    int64_t least = policy->least[which], most = policy->most[which];
    if (which == BERTH_DECISION_CHUNK && most < many) return random_divisor(most, state);
    int64_t reach = most < least + near ? most : least + near;
    int64_t values[] = {now + 1, now - 1, now * 2, now / 2,
                        least + below(state, reach - least + 1)};
    int64_t value = values[below(state, 5)];
    return value < least ? least : value > most ? most : value;
}

static int64_t current_value(const berth_nest_decisions *policy, const berth_nest_decisions *nest,
                             int which) {
    return nest->given >> which & 1 ? nest->given_values[which] : policy->values[which];
}

// One decision of a nest becomes another, or the policy's again.
static void mutate(const berth_nest_decisions *policy, berth_nest_decisions *nest,
                   uint64_t *state) {
    int free[BERTH_DECISION_COUNT];
    int count = 0;
    for (int i = 0; i < BERTH_DECISION_COUNT; ++i)
        if (is_free(policy, i)) free[count++] = i;
    if (count == 0) return;
    int which = free[below(state, count)];
    // A chunk is of tiles of one height.
    if (which == BERTH_DECISION_ROWS) nest->given &= ~(1u << BERTH_DECISION_CHUNK);
    if (nest->given >> which & 1 && below(state, 4) == 0) {
        nest->given &= ~(1u << which);
        return;
    }
    nest->given_values[which] = changed(policy, which, current_value(policy, nest, which), state);
    nest->given |= 1u << which;
}

// The alternatives that policies name, best estimate first; what is cheaper or little dearer.
static bool take_alternative(berth_tune_kernel *k, berth_nest_decisions *nests) {
    static const double worth_trying = 1.25;
    uint32_t at = 0;
    for (uint32_t n = 0; n < k->nest_count; ++n)
        for (uint32_t i = 0; i < k->policy[n].alternatives.count; ++i) {
            const berth_alternative *a = &k->policy[n].alternatives.data[i];
            if (a->cost <= 0 || a->cost > worth_trying || at++ < k->next) continue;
            k->next = at;
            nests[n] = (berth_nest_decisions){0};
            berth_status status = berth_decisions_parse(&nests[n], a->what);
            if (!status) return true;
            berth_status_free(status);  // an alternative that is no list of decisions
        }
    return false;
}

static bool is_new(berth_arena *arena, berth_tune_kernel *k, const berth_nest_decisions *nests) {
    const char **texts = berth_arena_new_array(arena, const char *, k->nest_count + 1);
    berth_strbuf key = berth_strbuf_make(arena);
    bool any = false;
    for (uint32_t n = 0; n < k->nest_count; ++n) {
        berth_nest_decisions shown = nests[n];
        for (int i = 0; i < BERTH_DECISION_COUNT; ++i)  // as the policy says anyway
            if (shown.given >> i & 1 && shown.given == 1u << i &&
                shown.given_values[i] == k->policy[n].values[i])
                shown.given = 0;
        any |= shown.given != 0;
        texts[n] = berth_decisions_print(arena, &shown, true);
        berth_strbuf_addf(&key, "%s;", texts[n]);
    }
    uint32_t known = 0;
    if (!any || berth_intern_find(k->tried, berth_strbuf_text(&key), &known)) return false;
    (void)berth_intern(k->tried, berth_strbuf_text(&key));
    k->candidate = texts;
    return true;
}

bool berth_tune__propose(berth_arena *arena, berth_tune_kernel *k, uint64_t *state) {
    enum { attempts = 64 };
    berth_nest_decisions *nests = berth_arena_new_array(arena, berth_nest_decisions, k->nest_count);
    for (int i = 0; i < attempts && !k->exhausted; ++i) {
        for (uint32_t n = 0; n < k->nest_count; ++n) {
            nests[n] = (berth_nest_decisions){0};
            berth_status status = berth_decisions_parse(&nests[n], k->best[n]);
            if (status) berth_status_free(status);  // never: print wrote it
        }
        if (!take_alternative(k, nests)) {
            uint32_t n = (uint32_t)below(state, k->nest_count);
            mutate(&k->policy[n], &nests[n], state);
            if (below(state, 3) == 0) mutate(&k->policy[n], &nests[n], state);
        }
        if (is_new(arena, k, nests)) return true;
    }
    k->exhausted = true;
    return false;
}
