/* SPDX-License-Identifier: GPL-2.0 */
/*
 * dcbm: one batch on one channel, whose device and driver may fail, while the driver is unbound.
 *
 * Must hold: a device writes only to memory that is mapped for it, allocated, and not in use; a destination becomes
 * the page only if all of it was copied; the channel is not touched after it was freed; every task comes to its end.
 * README.md tells what is left out, and why that is sound.
 */
#include "experiment.h"

/* What a broken dcbm leaves out. */
#define fail_deadline                 1   /* a callback is waited for without a limit */
#define fail_terminate                2   /* after a timeout terminate_all() is believed to have stopped the device */
#define fail_source_reference         3   /* a hung channel holds no reference on the source */
#define fail_source_lock              4   /* the reference on the source is dropped while the folio is being moved */
#define fail_destination_reference    5
#define fail_recover_early            6   /* a hung channel is taken back although callbacks are missing */
#define fail_leak                     7   /* the destinations are freed when the driver is unbound */
#define fail_unbound                  8   /* the channel is freed before the driver is gone */
#define fail_late_sync                9   /* the late unmapping writes the bounce buffer back */
#define fail_mapped                   10  /* a folio counts as copied while it is still mapped */
#define fail_verify                   11  /* the driver's success is believed */
#define fail_refuted                  12  /* a refuted completion is taken as the end of the device's work */
#define fail_refuted_pending          13  /* a channel that hangs for a refuted completion waits for no callback */
#define fail_neighbour                14  /* completed descriptors on a hung channel, not verified, are not held */
#define fail_result                   15  /* the result of a callback is ignored */
#define fail_aborted                  16  /* an aborted descriptor counts as an error that has ended */
#define fail_second_callback          17  /* each callback counts, also the second of a descriptor */
#define fail_submit_error             18  /* a submit error counts, also if there was a callback */
#define fail_claim_recheck            19  /* a batch uses a slot that was removed before the claim */
#define fail_claim_wait               20  /* a channel is freed while a batch uses it */
#define fail_hung_wakes               21  /* a task that waits for the claim is not woken when the channel hangs */
#define fail_unclaim_wakes            22  /* or when the batch ends */
#define fail_done_order               23  /* a group is counted as complete before its last descriptor is */
#define fail_done_at_error            24  /* it is not counted if that one failed to be submitted */

/* States without which the model would show nothing. The first line has the names of testdma's faults. */
#define see_error                     1
#define see_partial                   2
#define see_lost                      3
#define see_late                      4
#define see_late_write                5
#define see_early_completion          6
#define see_prep                      7
#define see_copied                    8
#define see_aborted                   9
#define see_second_callback           10
#define see_submit_error              11
#define see_map_failure               12
#define see_aborted_idle              13
#define see_neighbour_moved           14  /* beside a folio that a device may still write */
#define see_move_fails                15
#define see_recovered                 16
#define see_recovered_in_unbind       17
#define see_returned                  18
#define see_leaked                    19
#define see_freed_unbound             20
#define see_write_after_unbind        21
#define see_waits_for_claim           22
#define see_claim_lost                23
#define see_second_group              24
#define see_look_in_vain              25

/* Why completions can be believed; RESULT is reports_errors, NONE_IDLE is done_means_idle without it. */
mtype:trust = { RESULT, NONE, NONE_IDLE };
mtype:trust trust;
bool aborted_means_idle;
bool verify_always;
bool bounce;				/* bounce buffers: a destination has the data after the unmapping */
bool one_folio;				/* both descriptors copy parts of one folio */

#define DESCS		2
#define bit_of(number)	(1 << (number))
#define folio_of(desc)	(one_folio -> 0 : desc)

mtype:status = { AGAIN, PROGRESS, DONE, ERROR };

/* Of the driver: not yet (or not any more) to be made, to be made, made. */
mtype:callback = { NEVER, DUE, MADE };

typedef desc_struct {
	/* struct dcbm_desc */
	mtype:status status = AGAIN;
	bool in_flight;
	/* the driver and the device */
	bool writes;			/* the device may write */
	mtype:callback callback = NEVER;
	bool told;			/* the driver has reported success */
	bool written;			/* all of it, by the device */
	bool copied			/* all of it is in the destination */
};
desc_struct desc[DESCS];

typedef folio_struct {
	bool locked = true;		/* the source */
	byte src_refs;			/* of hung.c */
	byte dst_refs = 1;
	bool moved;			/* the destination is the page */
	bool failed			/* the status of the pair */
};
folio_struct folio[DESCS];

/* struct dcbm_channel; each descriptor has one segment */
short pending;
bool done;				/* the number in struct dcbm_done has changed since the last look */
bool mapped, timed_out;
byte in_flight, src_put;		/* sets of segments */
bool hung, listed, unbound, freed;
bool has_chan = true, held = true, claimed;
bool mutex;				/* dcbm_mutex */
bool woken;				/* the task that sleeps on dcbm_wait, if any */
byte calling;				/* callbacks that run */
bool second_callback;			/* was made */
bool driver_gone;

inline lock(what)	{ atomic { !what -> what = true } }
#define unlock(what)	what = false
#define wake_up_all()	woken = true
#define wake_unless(fault)	woken = woken || !should_fail(fault)

/* The device */

#define stopped(d)	(!desc[d].writes)

inline device_write(d)
{
	d_step {
		desc[d].writes ->
		assert(!folio[folio_of(d)].moved);
		assert(folio[folio_of(d)].dst_refs);
		assert(mapped || desc[d].told);
		reached_if(early_completion, desc[d].told);
		reached_if(late_write, desc[d].callback == NEVER && timed_out);
		reached_if(write_after_unbind, driver_gone);
		desc[d].writes = false;
		desc[d].written = true;
		desc[d].copied = !bounce
	}
}

/* It writes all of a descriptor's destination, or less, which is as good as nothing, at any time or never. */
proctype device()
{
end:	do
	:: device_write(0)
	:: device_write(1)
	:: d_step { desc[0].writes -> desc[0].writes = false }
	:: d_step { desc[1].writes -> desc[1].writes = false }
	od
}

/* submit.c */

/* The decrement of pending is the last access to the channel. The number of groups follows it. */
inline dcbm_desc_done()
{
	if
	:: should_fail(done_order) && pending == 1 -> done = true
	:: else
	fi;
	d_step { assert(!freed); pending--; last = !pending };
	done = done || (last && !should_fail(done_order))
}

inline dcbm_callback(d, result)
{
	d_step {
		assert(!freed);
		count = desc[d].status == PROGRESS || should_fail(second_callback);
		if
		:: desc[d].status == PROGRESS -> desc[d].status = (should_fail(result) -> DONE : result)
		:: else
		fi
	};
	if
	:: count -> dcbm_desc_done()
	:: else
	fi;
	d_step { count = false; calling-- }
}

/* The driver, whose device works on each descriptor by itself */

#define due(d)		(desc[d].callback == DUE && !driver_gone)
#define may_complete(d)	(trust == NONE || (trust == NONE_IDLE && stopped(d)) || (trust == RESULT && desc[d].written))

inline call_back(d)
{
	if
	:: d_step { due(d) && may_complete(d) ->
		reached_if(partial, !desc[d].written && stopped(d));
		reached_if(late, timed_out);
		desc[d].callback = MADE; desc[d].told = true; calling++ };
		dcbm_callback(d, DONE)
	:: d_step { due(d) && stopped(d) && !desc[d].written ->
		reached(error);
		desc[d].callback = MADE; calling++ };
		dcbm_callback(d, ERROR)
	/* DMA_TRANS_ABORTED: the device may continue, unless the quirks say that it has stopped. */
	:: d_step { trust == RESULT && !aborted_means_idle && due(d) ->
		reached(aborted);
		desc[d].callback = NEVER; calling = calling + should_fail(aborted) };
		if
		:: should_fail(aborted) -> dcbm_callback(d, ERROR)
		:: else
		fi
	:: d_step { aborted_means_idle && due(d) && stopped(d) ->
		reached(aborted_idle);
		desc[d].callback = MADE; calling++ };
		dcbm_callback(d, ERROR)
	:: d_step { due(d) -> reached(lost); desc[d].callback = NEVER }
	fi
}

proctype driver()
{
	bool count, last;

end:	do
	:: call_back(0)
	:: call_back(1)
	:: d_step { desc[0].callback == MADE && mapped && !timed_out && !second_callback ->
		reached(second_callback);
		second_callback = true; calling++ };
		dcbm_callback(0, DONE)
	od
}

inline dcbm_submit(d)
{
	d_step { desc[d].status = PROGRESS; pending++ };
	if
	:: d_step { desc[d].callback = DUE; desc[d].writes = true }
	/* A driver may call back before it returns the error. The first descriptor does without. */
	:: d != 0 ->
		if
		:: calling++; dcbm_callback(d, ERROR)
		:: skip
		fi;
		d_step {
			reached(submit_error);
			count = desc[d].status == PROGRESS || should_fail(submit_error);
			desc[d].status = (desc[d].status == PROGRESS -> ERROR : desc[d].status)
		};
		if
		:: count && should_fail(done_at_error) -> pending--
		:: count && !should_fail(done_at_error) -> dcbm_desc_done()
		:: else
		fi;
		count = false
	fi
}

/* Up to two descriptors. With prep() failing it may be fewer, or none. */
inline dcbm_submit_group()
{
	assert(!freed);
	d_step { reached_if(second_group, next > 0); first = next };
	do
	:: next < DESCS -> dcbm_submit(next); next++
	:: next > first || next == DESCS -> break
	:: d_step { next == first -> reached(prep) }; break
	od
}

/* Looks at pending once for each change of the number, and when the group is overdue. */
inline dcbm_wait_for_channels()
{
	do
	:: done ->
		done = false;
		if
		:: !pending -> break
		:: else -> d_step { reached(look_in_vain) }
		fi
	:: pending && !should_fail(deadline) -> timed_out = true; break
	od
}

inline dcbm_poll_channel()
{
	do
	:: next < DESCS ->
		dcbm_submit_group();
		if
		:: next == first -> break
		:: next > first -> dcbm_wait_for_channels()
		fi;
		if
		:: timed_out -> break
		:: else
		fi
	/* Also when the batch's deadline has passed */
	:: break
	od
}

/* map.c */

inline dcbm_unmap(sync)
{
	d_step {
		if
		:: sync && bounce ->
			assert(!folio[folio_of(0)].moved);
			assert(!folio[folio_of(1)].moved);
			desc[0].copied = desc[0].written;
			desc[1].copied = desc[1].written
		:: else
		fi;
		mapped = false
	}
}

/* complete.c */

#define verify		((trust == NONE || trust == NONE_IDLE || verify_always) && !should_fail(verify))

inline dcbm_mark_in_flight(d)
{
	desc[d].in_flight = desc[d].status == PROGRESS;
	in_flight = in_flight | desc[d].in_flight * bit_of(d)
}

/* A completion that is not verified, or that verification refutes, holds the segment. */
inline dcbm_desc_result(d)
{
	if
	:: desc[d].in_flight || desc[d].status != DONE -> folio[folio_of(d)].failed = true
	:: else ->
		if
		:: (!mapped || should_fail(mapped)) && (!verify || desc[d].copied)
		:: else ->
			folio[folio_of(d)].failed = true;
			if
			:: verify && trust != NONE_IDLE && !(mapped && should_fail(neighbour)) &&
			   !(!mapped && should_fail(refuted)) -> in_flight = in_flight | bit_of(d)
			:: else
			fi
		fi
	fi
}

/* A channel that must wait for a device though no callback is due waits for one that never comes. */
inline dcbm_complete()
{
	if
	:: timed_out && should_fail(terminate) -> timed_out = false
	:: else
	fi;
	if
	:: timed_out -> d_step { dcbm_mark_in_flight(0); dcbm_mark_in_flight(1) }
	:: else -> dcbm_unmap(true)
	fi;
	d_step { dcbm_desc_result(0) };
	d_step { dcbm_desc_result(1) };
	if
	:: timed_out -> dcbm_channel_hung()
	:: !timed_out && !in_flight -> claimed = false; wake_unless(unclaim_wakes)
	:: !timed_out && in_flight -> pending = pending + !should_fail(refuted_pending); dcbm_channel_hung()
	fi
}

/* channels.c */

/* Waits for callbacks that run: dmaengine_synchronize(). */
inline dcbm_channel_free()
{
	d_step { !calling -> freed = true; has_chan = false; claimed = false }
}

/* hung.c */

#define holds(d)	(in_flight & bit_of(d))

inline dcbm_channel_hung()
{
	d_step {
		folio[folio_of(0)].src_refs = folio[folio_of(0)].src_refs + (holds(0) && !should_fail(source_reference));
		folio[folio_of(1)].src_refs = folio[folio_of(1)].src_refs + (holds(1) && !should_fail(source_reference));
		folio[folio_of(0)].dst_refs = folio[folio_of(0)].dst_refs + (holds(0) && !should_fail(destination_reference));
		folio[folio_of(1)].dst_refs = folio[folio_of(1)].dst_refs + (holds(1) && !should_fail(destination_reference))
	};
	d_step { hung = true; listed = true };
	wake_unless(hung_wakes)
}

#define may_put(d)	(holds(d) && !(src_put & bit_of(d)) && (!folio[folio_of(d)].locked || should_fail(source_lock)))

inline put_source(d)
{
	src_put = src_put | bit_of(d);
	folio[folio_of(d)].src_refs = folio[folio_of(d)].src_refs - !should_fail(source_reference)
}

inline put_destination(d)
{
	folio[folio_of(d)].dst_refs = folio[folio_of(d)].dst_refs - (holds(d) && !should_fail(destination_reference))
}

/* The mutex is held, and the sources are put. */
inline dcbm_channel_recovered()
{
	dcbm_unmap(should_fail(late_sync));
	d_step { put_destination(0); put_destination(1) };
	d_step { reached(recovered); in_flight = 0; src_put = 0; hung = false; listed = false }
}

/*
 * A driver that completes too early may do so after a timeout, too. dcbm then believes it, because the source is no
 * longer there to compare with. docs/decisions/0007 has this limit, so the model assumes that the device has stopped.
 */
#define told_too_early	((desc[0].told && desc[0].writes) || (desc[1].told && desc[1].writes))
#define callbacks_came	((!pending || should_fail(recover_early)) && !(timed_out && told_too_early))

/* The work */
proctype dcbm_hung_fn()
{
end:	do
	:: d_step { listed && !mutex && may_put(0) -> put_source(0) }
	:: d_step { listed && !mutex && may_put(1) -> put_source(1) }
	:: d_step { listed && !mutex && src_put == in_flight && (unbound || (should_fail(unbound) && !has_chan)) ->
		reached(freed_unbound);
		freed = true; listed = false }
	:: atomic { listed && !mutex && src_put == in_flight && has_chan && callbacks_came -> mutex = true };
		dcbm_channel_recovered();
		/* dcbm_channel_return() */
		if
		:: held -> claimed = false; d_step { reached(returned); wake_up_all() }
		:: else -> dcbm_channel_free()
		fi;
		unlock(mutex)
	od
}

/* channels.c */

/* wait_event(): whoever makes the condition true wakes afterwards. */
inline dcbm_unpublish()
{
	held = false;
	do
	:: woken = false;
		if
		:: atomic { !claimed || should_fail(claim_wait) -> claimed = true; got = true }; break
		:: claimed && hung && !should_fail(claim_wait) -> break
		:: d_step { claimed && !hung && !should_fail(claim_wait) -> reached(waits_for_claim) }; woken
		fi
	od
}

/* dcbm is deselected. */
proctype dcbm_release_channels()
{
	bool got;

	lock(mutex);
	dcbm_unpublish();
	if
	:: got -> dcbm_channel_free()
	:: else
	fi;
	unlock(mutex)
}

/* hotplug.c */

/* dcbm_wait_for_recovery(), for a limited time, and dcbm_give_up() */
inline dcbm_evict()
{
	dcbm_unpublish();
	if
	:: got -> dcbm_channel_free()
	:: !got && timed_out && callbacks_came ->
		listed = false;
		if
		:: d_step { may_put(0) -> put_source(0) }
		:: !holds(0) || (src_put & bit_of(0))
		fi;
		if
		:: d_step { may_put(1) -> put_source(1) }
		:: !holds(1) || (src_put & bit_of(1))
		fi;
		d_step { reached(recovered_in_unbind) };
		dcbm_channel_recovered();
		dcbm_channel_free()
	:: !got ->
		d_step {
			reached(leaked);
			has_chan = false; claimed = false;
			if
			:: should_fail(leak) -> put_destination(0); put_destination(1)
			:: else
			fi
		}
	fi
}

proctype unbind()
{
	bool got;

	lock(mutex);
	dcbm_evict();
	unlock(mutex);
	d_step { !calling -> driver_gone = true };
	d_step { !mutex -> unbound = listed && !has_chan }
}

/* channels.c, copy.c, and the move of mm/migrate.c */

inline dcbm_try_claim()
{
	if
	:: held ->
		if
		:: d_step { !claimed -> claimed = true };
			if
			:: held || should_fail(claim_recheck) -> got = true
			:: else -> claimed = false; d_step { reached(claim_lost); wake_up_all() }
			fi
		:: claimed
		fi
	:: !held
	fi
}

inline dcbm_copy_job()
{
	assert(!freed);
	if
	:: mapped = true; dcbm_poll_channel()
	:: d_step { true -> reached(map_failure) }
	fi;
	dcbm_complete()
}

#define all_copied(f)	(one_folio -> desc[0].copied && desc[1].copied : desc[f].copied)

/* A source with other references is not moved. */
inline migrate_folio_move(f)
{
	if
	:: d_step { folio[f].src_refs -> reached(move_fails); folio[f].dst_refs-- }
	:: d_step { !folio[f].src_refs ->
		assert(folio[f].failed || all_copied(f));
		reached_if(copied, !folio[f].failed);
		reached_if(neighbour_moved, folio[f].failed && in_flight);
		folio[f].moved = true }
	fi;
	folio[f].locked = false
}

proctype migrate()
{
	byte first, next;
	bool got, count, last;

	dcbm_try_claim();
	if
	:: got -> dcbm_copy_job()
	:: else -> folio[0].failed = true; folio[1].failed = true
	fi;
	migrate_folio_move(0);
	if
	:: !one_folio -> migrate_folio_move(1)
	:: else
	fi
}

init
{
	atomic {
		choose_fault();
		if
		:: trust = RESULT;
			if
			:: verify_always = true
			:: skip
			fi;
			if
			:: aborted_means_idle = true
			:: skip
			fi
		:: trust = NONE
		:: trust = NONE_IDLE
		fi;
		if
		:: bounce = true
		:: one_folio = true
		fi;
		run device();
		run driver();
		run dcbm_hung_fn();
		run migrate();
		if
		:: run unbind()
		:: run dcbm_release_channels()
		fi
	}
}
