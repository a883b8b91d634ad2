#include "base/bits.h"

#include <string.h>

static uint64_t further_words(berth_bits set) {
    return set.more ? set.more[0] : 0;
}

static uint64_t word_of(berth_bits set, uint64_t index) {
    if (index == 0) return set.word;
    return index <= further_words(set) ? set.more[index] : 0;
}

uint32_t berth_bits__from(berth_bits set, uint32_t least) {
    for (uint64_t w = least / 64; w <= further_words(set); ++w) {
        uint64_t bits = word_of(set, w);
        if (w == least / 64) bits &= UINT64_MAX << least % 64;
        if (bits) return (uint32_t)(w * 64) + (uint32_t)__builtin_ctzll(bits);
    }
    return BERTH_BITS_END;
}

uint32_t berth_bits__count(berth_bits set) {
    uint32_t count = 0;
    for (uint64_t w = 0; w <= further_words(set); ++w)
        count += (uint32_t)__builtin_popcountll(word_of(set, w));
    return count;
}

bool berth_bits__meet(berth_bits a, berth_bits b) {
    for (uint64_t w = 1; w <= further_words(a); ++w)
        if (a.more[w] & word_of(b, w)) return true;
    return false;
}

bool berth_bits__equal(berth_bits a, berth_bits b) {
    uint64_t words = further_words(a);
    return words == further_words(b) &&
           (words == 0 || memcmp(a.more + 1, b.more + 1, words * sizeof(uint64_t)) == 0);
}

// `words` are the arena's, with words[0] for the number of further ones.
static berth_bits trimmed(uint64_t word, uint64_t *words, uint64_t count) {
    while (count && words[count] == 0) --count;
    if (words) words[0] = count;
    return (berth_bits){word, count ? words : NULL};
}

berth_bits berth_bits__and(berth_arena *arena, berth_bits a, berth_bits b) {
    uint64_t word = a.word & b.word;
    uint64_t count = further_words(a) < further_words(b) ? further_words(a) : further_words(b);
    bool is_a = count == further_words(a), is_b = count == further_words(b);
    for (uint64_t w = 1; w <= count; ++w) {
        is_a &= (a.more[w] & ~b.more[w]) == 0;
        is_b &= (b.more[w] & ~a.more[w]) == 0;
    }
    if (is_a) return (berth_bits){word, a.more};
    if (is_b) return (berth_bits){word, b.more};
    while (count && !(a.more[count] & b.more[count])) --count;
    if (!count) return (berth_bits){word, NULL};
    uint64_t *words = berth_arena_new_array(arena, uint64_t, count + 1);
    for (uint64_t w = 1; w <= count; ++w) words[w] = a.more[w] & b.more[w];
    return trimmed(word, words, count);
}

berth_bits berth_bits__or(berth_arena *arena, berth_bits a, berth_bits b) {
    uint64_t word = a.word | b.word;
    berth_bits more = further_words(a) < further_words(b) ? b : a;
    berth_bits less = more.more == a.more ? b : a;
    bool inside = true;
    for (uint64_t w = 1; w <= further_words(less); ++w)
        inside &= (less.more[w] & ~more.more[w]) == 0;
    if (inside) return (berth_bits){word, more.more};
    uint64_t count = further_words(more);
    uint64_t *words = berth_arena_copy(arena, more.more, (count + 1) * sizeof(uint64_t));
    for (uint64_t w = 1; w <= further_words(less); ++w) words[w] |= less.more[w];
    return (berth_bits){word, words};
}

// In or out.
berth_bits berth_bits__turned(berth_arena *arena, berth_bits set, uint32_t member) {
    uint64_t count = further_words(set);
    if (member / 64 > count) count = member / 64;
    uint64_t *words = berth_arena_new_array(arena, uint64_t, count + 1);
    for (uint64_t w = 1; w <= count; ++w) words[w] = word_of(set, w);
    words[member / 64] ^= (uint64_t)1 << member % 64;
    return trimmed(set.word, words, count);
}

berth_bits berth_bits_copy(berth_arena *arena, berth_bits set) {
    if (!set.more) return set;
    return (berth_bits){set.word,
                        berth_arena_copy(arena, set.more, (set.more[0] + 1) * sizeof(uint64_t))};
}

berth_bits berth_bits_below(berth_arena *arena, uint32_t count) {
    if (count <= 64) return (berth_bits){count ? UINT64_MAX >> (64 - count) : 0, NULL};
    uint32_t word_count = berth_bits_word_count(count) - 1;
    uint64_t *words = berth_arena_new_array(arena, uint64_t, word_count + 1);
    words[0] = word_count;
    for (uint32_t w = 1; w <= word_count; ++w) words[w] = UINT64_MAX;
    if (count % 64) words[word_count] >>= 64 - count % 64;
    return (berth_bits){UINT64_MAX, words};
}

berth_bits berth_bits_from_words(berth_arena *arena, const uint64_t *words, uint32_t word_count) {
    while (word_count > 1 && words[word_count - 1] == 0) --word_count;
    if (word_count < 2) return (berth_bits){word_count ? words[0] : 0, NULL};
    uint64_t *more = berth_arena_copy(arena, words, word_count * sizeof(uint64_t));
    more[0] = word_count - 1;
    return (berth_bits){words[0], more};
}

bool berth_bits_is_of_words(berth_bits set, const uint64_t *words, uint32_t word_count) {
    if (further_words(set) >= word_count) return word_count == 0 && berth_bits_is_empty(set);
    for (uint32_t w = 0; w < word_count; ++w)
        if (words[w] != word_of(set, w)) return false;
    return true;
}
