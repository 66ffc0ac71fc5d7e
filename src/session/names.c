// SPDX-License-Identifier: BSD-2-Clause
/* Names for reports: cgroups, kernel addresses. */
#include "session/internal.h"

struct report_names session_names(struct session *session)
{
	return (struct report_names){ .context = session };
}
