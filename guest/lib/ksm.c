// SPDX-License-Identifier: GPL-2.0
#include "ksm.h"

#include "sysfile.h"

bool ksm_hurry(bool merge)
{
	return sysfile_set_until_exit(KSM_DIR "pages_to_scan", "2000") &&
	       sysfile_set_until_exit(KSM_DIR "sleep_millisecs", "10") &&
	       sysfile_set_until_exit(KSM_DIR "run", merge ? "1" : "0");
}
