// Sets of small numbers (devices of a target, memories): values, never changed once made, so that they
// are assigned and kept like integers. Members below 64 are in the set itself; a set with others
// has further words in an arena. All functions but those that make a set with a member of 64 or more
// allocate nothing.
//
//   berth_bits set = berth_bits_of(arena, 3);
//   set = berth_bits_with(arena, set, 90);
//   for (uint32_t i = berth_bits_first(set); i != BERTH_BITS_END; i = berth_bits_next(set, i)) ...
#ifndef BERTH_BASE_BITS_H_
#define BERTH_BASE_BITS_H_

#include "base/arena.h"

#define BERTH_BITS_END UINT32_MAX

typedef struct berth_bits {
    uint64_t word;  // members 0 to 63
    const uint64_t
        *more;  // more[0] words follow, members from 64 on, the last one not 0; NULL = none
} berth_bits;

static inline bool berth_bits_is_empty(berth_bits set) {
    return set.word == 0 && !set.more;
}

static inline bool berth_bits_has(berth_bits set, uint32_t member) {
    if (member < 64) return set.word >> member & 1;
    return set.more && member / 64 <= set.more[0] && (set.more[member / 64] >> member % 64 & 1);
}

// The smallest member that is not below `least`; BERTH_BITS_END.
uint32_t berth_bits__from(berth_bits set, uint32_t least);
uint32_t berth_bits__count(berth_bits set);
bool berth_bits__meet(berth_bits a, berth_bits b);
bool berth_bits__equal(berth_bits a, berth_bits b);
berth_bits berth_bits__and(berth_arena *arena, berth_bits a, berth_bits b);
berth_bits berth_bits__or(berth_arena *arena, berth_bits a, berth_bits b);
berth_bits berth_bits__turned(berth_arena *arena, berth_bits set, uint32_t member);

// The smallest member, and the one that follows `member`; BERTH_BITS_END: there is none.
static inline uint32_t berth_bits_first(berth_bits set) {
    return set.word ? (uint32_t)__builtin_ctzll(set.word) : berth_bits__from(set, 64);
}
static inline uint32_t berth_bits_next(berth_bits set, uint32_t member) {
    return berth_bits__from(set, member + 1);
}

static inline uint32_t berth_bits_count(berth_bits set) {
    return set.more ? berth_bits__count(set) : (uint32_t)__builtin_popcountll(set.word);
}
// Exactly one member.
static inline bool berth_bits_is_single(berth_bits set) {
    return set.more ? berth_bits__count(set) == 1 : set.word && !(set.word & (set.word - 1));
}
// Whether they have a member in common.
static inline bool berth_bits_meet(berth_bits a, berth_bits b) {
    return (a.word & b.word) || (a.more && b.more && berth_bits__meet(a, b));
}
static inline bool berth_bits_equal(berth_bits a, berth_bits b) {
    return a.word == b.word && (a.more == b.more || berth_bits__equal(a, b));
}

// Results may share words with what they are made from. Inside berth_arena_try.
static inline berth_bits berth_bits_and(berth_arena *arena, berth_bits a, berth_bits b) {
    return a.more && b.more ? berth_bits__and(arena, a, b) : (berth_bits){a.word & b.word, NULL};
}
static inline berth_bits berth_bits_or(berth_arena *arena, berth_bits a, berth_bits b) {
    return a.more || b.more ? berth_bits__or(arena, a, b) : (berth_bits){a.word | b.word, NULL};
}
static inline berth_bits berth_bits_with(berth_arena *arena, berth_bits set, uint32_t member) {
    if (member < 64) return (berth_bits){set.word | (uint64_t)1 << member, set.more};
    return berth_bits_has(set, member) ? set : berth_bits__turned(arena, set, member);
}
static inline berth_bits berth_bits_without(berth_arena *arena, berth_bits set, uint32_t member) {
    if (member < 64) return (berth_bits){set.word & ~((uint64_t)1 << member), set.more};
    return berth_bits_has(set, member) ? berth_bits__turned(arena, set, member) : set;
}
static inline berth_bits berth_bits_of(berth_arena *arena, uint32_t member) {
    return berth_bits_with(arena, (berth_bits){0}, member);
}
// With words of its own, for another arena.
berth_bits berth_bits_copy(berth_arena *arena, berth_bits set);
// 0 to count - 1.
berth_bits berth_bits_below(berth_arena *arena, uint32_t count);

// A set from words, members 0 to 63 in the first: where many members come one by one. The words are
// copied.
berth_bits berth_bits_from_words(berth_arena *arena, const uint64_t *words, uint32_t word_count);
// Whether it is the set of these words.
bool berth_bits_is_of_words(berth_bits set, const uint64_t *words, uint32_t word_count);
static inline uint32_t berth_bits_word_count(uint32_t member_limit) {
    return (member_limit + 63) / 64;
}

#endif  // BERTH_BASE_BITS_H_
