// How public settings open a session.
#ifndef BERTH_API_RUN_SESSION_H_
#define BERTH_API_RUN_SESSION_H_

#include <berth/session.h>

#include "executor/session.h"

// As berth_session_create, but the program is the caller's to keep, and berth_session_close closes it.
// `base`: an open session to share with (berth_session_options), or NULL.
BERTH_MUST_USE berth_status berth_api__session_open(const berth_program *program,
                                                    const berth_session_settings *settings,
                                                    berth_session *base,
                                                    berth_session **out_session);

#endif  // BERTH_API_RUN_SESSION_H_
