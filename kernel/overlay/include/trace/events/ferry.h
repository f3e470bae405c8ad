/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ferry

#if !defined(_TRACE_FERRY_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_FERRY_H

#include <linux/migrate.h>
#include <linux/tracepoint.h>

TRACE_EVENT(ferry_copy_begin,
	    TP_PROTO(const char *migrator, enum migrate_reason reason,
		     unsigned int folios, size_t bytes),
	    TP_ARGS(migrator, reason, folios, bytes),
	    TP_STRUCT__entry(__string(migrator, migrator)
			     __field(int, reason)
			     __field(unsigned int, folios)
			     __field(size_t, bytes)),
	    TP_fast_assign(__assign_str(migrator);
			   __entry->reason = reason;
			   __entry->folios = folios;
			   __entry->bytes = bytes;),
	    TP_printk("migrator=%s reason=%d folios=%u bytes=%zu",
		      __get_str(migrator), __entry->reason, __entry->folios,
		      __entry->bytes)
);

TRACE_EVENT(ferry_copy_end,
	    TP_PROTO(const char *migrator, int error, unsigned int copied,
		     u64 ns),
	    TP_ARGS(migrator, error, copied, ns),
	    TP_STRUCT__entry(__string(migrator, migrator)
			     __field(int, error)
			     __field(unsigned int, copied)
			     __field(u64, ns)),
	    TP_fast_assign(__assign_str(migrator);
			   __entry->error = error;
			   __entry->copied = copied;
			   __entry->ns = ns;),
	    TP_printk("migrator=%s error=%d copied=%u ns=%llu",
		      __get_str(migrator), __entry->error, __entry->copied,
		      __entry->ns)
);

#endif /* _TRACE_FERRY_H */

#include <trace/define_trace.h>
