// Routes that were looked for before, for who asks about many values of few sizes.
//
//   berth_route_memo *memo = berth_route_memo_create(arena, target);
//   berth_target_route route;
//   if (berth_route_memo_get(memo, from, to, size_bytes, &route)) ...   // as berth_multi_target_route
#ifndef BERTH_TARGET_ROUTE_MEMO_H_
#define BERTH_TARGET_ROUTE_MEMO_H_

#include "target/target.h"

typedef struct berth_route_memo berth_route_memo;

// In `arena`, where it also keeps up to 4096 routes. One thread. Inside berth_arena_try, both.
berth_route_memo *berth_route_memo_create(berth_arena *arena, const berth_multi_target *target);

// berth_multi_target_route, of which the latest answers are kept (a table by the hash of the question, where
// a later one takes the place of another). Between memories, any size.
bool berth_route_memo_get(berth_route_memo *memo, uint32_t from, uint32_t to, uint64_t size_bytes,
                          berth_target_route *out_route);

#endif  // BERTH_TARGET_ROUTE_MEMO_H_
