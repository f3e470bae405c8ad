/* SPDX-License-Identifier: GPL-2.0 */
/*
 * migrc: a page that CPUs have in their TLBs moves, and the flush waits.
 *
 * Must hold: a CPU that reads through its TLB sees what was written last, wherever the page is by then, and reads no
 * free frame and no address that was unmapped or forbidden. README.md tells what is left out, and why that is sound.
 */
#include "experiment.h"

/* What a broken kernel leaves out or does in the wrong order. The first line has the words of migrc's fault_inject. */
#define fail_write_fault              1
#define fail_swap_fault               2
#define fail_protect                  3
#define fail_gup                      4
#define fail_mixed                    5
#define fail_failure                  6
#define fail_pages                    7
#define fail_file_open                8
#define fail_file_recheck             9
#define fail_entry                    10
#define fail_pending                  11
#define fail_fork                     12
#define fail_quarantine               13
#define fail_drain                    14
#define fail_generation               15
#define fail_table                    16
#define fail_clear_order              17  /* the generation is read before the PTE is cleared */
#define fail_check_unlocked           18  /* a write fault looks for a pending flush before it takes the PTE's lock */
#define fail_start_late               19  /* a flush has the generation of its end, not of its beginning */
#define fail_flushed_early            20  /* a flush is recorded before all CPUs have done it */
#define fail_list_recheck             21  /* an mm leaves the list without a second look at its deferrals */
#define fail_drain_order              22  /* a drain takes the sources after the flush */
#define fail_lazy                     23  /* a CPU that was lazy returns without the flush that it missed */
#define fail_open_order               24  /* an opener reads the file's generation before it counts as a writer */
#define fail_commit_order             25  /* migration looks for writers before it records the file's generation */
#define fail_open_early               26  /* an opener relies on a flush that is not over */
#define fail_pin_order                27  /* memfd_pin_folios() flushes before it has found its folio */
#define fail_free_wait                28  /* a task that needs pages does not wait until another drain has freed them */
#define fail_pay_left_out             29  /* a payment that has left an mm out is recorded in it */
#define fail_stays                    30  /* migration lets a page that stays go without a flush */
#define fail_begin_late               31  /* a drain takes the sources before others can see that it has begun */
#define fail_protect_pte              32  /* mprotect() flushes for what it changes and for entries, not for its table */

/* States without which the model would show nothing. */
#define see_write_fault_flushes       1
#define see_swap_fault_flushes        2
#define see_protect_flushes           3
#define see_gup_flushes               4
#define see_gather_flushes            5
#define see_fork_flushes              6
#define see_batch_flushes             7
#define see_drain_frees               8
#define see_open_flushes              9
#define see_pin_flushes               10
#define see_mixed_flushes             11
#define see_failure_drains            12
#define see_pages_drains              13
#define see_source_read               14  /* a CPU reads a source that waits in the quarantine */
#define see_two_waiting               15  /* two sources wait */
#define see_open_skips_flush          16
#define see_opener_seen               17
#define see_move_fails                18  /* of a page whose flush is deferred */
#define see_lazy_flushes              19
#define see_pay_shared                20
#define see_entry_zapped              21  /* while its flush is pending */
#define see_pay_left_out              22
#define see_stays_flushes             23
#define see_stays_is_freed            24  /* a page that did not move, and was unmapped meanwhile */
#define see_pages_skips_drain         25
#define see_mapped_protected          26  /* mprotect() finds a PTE that has its protection, while a flush is pending */

/* Anonymous memory of two threads; a file that two processes map; a page that one maps writable and one does not. */
mtype:kind = { THREADS, FILE, MIXED };
mtype:kind kind;

/* A source, its destination, and the destination of a second migration. */
#define FRAMES		3
#define bit_of(number)	(1 << (number))
/* What a PTE can be besides a frame; the first is also an empty TLB. */
#define NONE		7
#define MIGRATION	6
#define SWAPPED		5
#define present(m)	(mm[m].pte < FRAMES)
#define accessible(m)	(present(m) && !mm[m].none)
/* pte_accessible(): a TLB may have it. */
#define cached(m)	(accessible(m) || mm[m].flush_pending)
#define max(a, b)	((a) > (b) -> (a) : (b))

typedef mm_struct {
	byte pte;
	bool writable;			/* of the PTE, or of the migration entry */
	bool vma_none, none;		/* PROT_NONE: the VMA; the PTE, if it is present */
	bool ptl;			/* the lock of the page table */
	byte deferred;
	byte flushed = 1;
	bool listed;			/* in migrc_mms */
	byte flush_pending;		/* mm_tlb_flush_pending() */
	bool forking;
	bool batched;			/* tlb_flush_batched */
	bool unmapped			/* munmap() has returned, or mprotect(PROT_NONE) */
};
#define MMS	2
mm_struct mm[MMS];

/*
 * The CPU whose TLB is observed; it runs mm[0]. The threads on other CPUs reach memory by the page tables: each
 * violation is one between memory and the TLB of one CPU, and all CPUs are alike.
 */
byte tlb = NONE;			/* the frame that it maps */
bool tlb_writable;
bool idle;				/* the thread does not run */
bool lazy;				/* in lazy TLB mode */
bool behind;				/* a flush has begun that the CPU has not done */

byte page;				/* the frame where the page cache or the swap cache has the page */
byte fresh = bit_of(0);			/* the frames that hold what was written last */
byte refs;				/* references besides migration's */
bool strangers;				/* tasks that are not in the model may have some */
bool folio_locked, isolated;

byte newest_gen = 1, flushed_gen = 1;
bool mms_lock, pay_lock, flush_mutex, drain_mutex;
byte quarantine, free;			/* sets of frames */
byte draining;				/* drains that have begun and have not freed */
byte file_gen, writecount;

inline lock(what)	{ atomic { !what -> what = true } }
#define unlock(what)	what = false
#define store(frame)	fresh = bit_of(frame)

/* Flushes of the architecture. A CPU in lazy TLB mode is not interrupted. */

inline flush_tlb_mm(m)
{
	behind = behind || m == 0;
	d_step {
		if
		:: m == 0 && !lazy -> tlb = NONE; tlb_writable = false; behind = false
		:: else
		fi
	}
}

/* mm/migrc/mm.c */

#define flush_pending(m)	(mm[m].deferred >= mm[m].flushed && !should_fail(generation))

/* Since the generation `start` */
inline flush_begun(m)
{
	if
	:: should_fail(flushed_early) -> mm[m].flushed = max(mm[m].flushed, start)
	:: else
	fi;
	flush_tlb_mm(m);
	d_step {
		if
		:: should_fail(start_late) -> newest_gen++; start = newest_gen
		:: else
		fi;
		mm[m].flushed = max(mm[m].flushed, start);
		start = 0
	}
}

/* migrc_flush_tlb_mm() */
inline flush_and_record(m)
{
	d_step { newest_gen++; start = newest_gen };
	flush_begun(m)
}

/* migrc_pay(). Between the look of its caller and migrc_gather() a drain may have done the flush. */
inline migrc_pay(m)
{
	d_step { newest_gen++; start = newest_gen };
	if
	:: flush_pending(m) -> flush_begun(m)
	:: d_step {
		!flush_pending(m) ->
		reached(pay_left_out);
		mm[m].flushed = (should_fail(pay_left_out) -> max(mm[m].flushed, start) : mm[m].flushed);
		start = 0
	   }
	fi
}

/* A task that waited looks again. */
inline __migrc_flush(m)
{
	lock(pay_lock);
	if
	:: flush_pending(m) -> migrc_pay(m)
	:: d_step { !flush_pending(m) -> reached(pay_shared) }
	fi;
	unlock(pay_lock)
}

#define migrc_flush(m, cause)						\
	if								\
	:: d_step { flush_pending(m) && !should_fail(cause) ->		\
		reached(cause##_flushes) };				\
		__migrc_flush(m)					\
	:: else								\
	fi

inline migrc_mm_defer(m)
{
	mm[m].deferred = max(mm[m].deferred, now);
	if
	:: !mm[m].listed -> atomic { !mms_lock -> mm[m].listed = true }
	:: else
	fi
}

/* The second look is needed because migrc_mm_defer() looks at the list without its lock. */
inline migrc_gather(m)
{
	if
	:: d_step { flush_pending(m) -> gathered = gathered | bit_of(m); todo = todo & ~bit_of(m) }
	:: d_step { !flush_pending(m) -> mms_lock = true; todo = todo & ~bit_of(m) };
		mm[m].listed = false;
		d_step {
			if
			:: flush_pending(m) && !should_fail(list_recheck) ->
				mm[m].listed = true; gathered = gathered | bit_of(m)
			:: else
			fi;
			unlock(mms_lock)
		}
	fi
}

inline migrc_flush_all_mms()
{
	d_step { newest_gen++; start = newest_gen };
	if
	:: should_fail(open_early) -> flushed_gen = max(flushed_gen, start)
	:: else
	fi;
	/* migrc_visit_mms() */
	todo = mm[0].listed * bit_of(0) + mm[1].listed * bit_of(1);
	do
	:: todo & bit_of(0) -> migrc_gather(0)
	:: todo & bit_of(1) -> migrc_gather(1)
	:: !todo -> break
	od;
	if
	:: gathered & bit_of(0) -> flush_tlb_mm(0)
	:: else
	fi;
	d_step {
		/* migrc_set_flushed() */
		mm[0].flushed = (gathered & bit_of(0) -> max(mm[0].flushed, start) : mm[0].flushed);
		mm[1].flushed = (gathered & bit_of(1) -> max(mm[1].flushed, start) : mm[1].flushed);
		flushed_gen = max(flushed_gen, start);
		start = 0; gathered = 0
	}
}

/* A flush that began after this one was asked for serves it, too. */
inline migrc_flush_mms()
{
	entered = newest_gen;
	lock(flush_mutex);
	if
	:: flushed_gen <= entered -> migrc_flush_all_mms()
	:: else
	fi;
	d_step { unlock(flush_mutex); entered = 0 }
}

/* mm/migrc/quarantine.c */

#define take_sources()	taken = quarantine; quarantine = 0

/* migrc_drain_with(); a drain is active before it takes anything, see offline_pages(). */
inline __migrc_drain()
{
	if
	:: d_step { !drain_mutex && should_fail(begin_late) -> drain_mutex = true; take_sources() }; draining++
	:: d_step { !drain_mutex && !should_fail(begin_late) -> drain_mutex = true; draining++ };
		d_step {
			if
			:: !should_fail(drain_order) -> take_sources()
			:: else
			fi
		}
	fi;
	if
	:: !should_fail(drain) -> migrc_flush_mms()
	:: else
	fi;
	if
	:: should_fail(drain_order) -> take_sources()
	:: else
	fi;
	unlock(drain_mutex);
	d_step { reached_if(drain_frees, taken); draining--; free = free | taken; taken = 0 }
}

#define migrc_drain(cause)						\
	if								\
	:: !should_fail(cause) -> __migrc_drain()			\
	:: else								\
	fi

/* mm/migrc/file.c */

#define open_for_write()	(writecount && !should_fail(file_recheck))

inline migrc_file_commit()
{
	if
	:: should_fail(commit_order) -> mixed = open_for_write(); file_gen = max(file_gen, newest_gen)
	:: else -> file_gen = max(file_gen, newest_gen); mixed = open_for_write()
	fi;
	d_step { reached_if(opener_seen, mixed) }
}

#define migrc_file_flush(who)						\
	if								\
	:: d_step { gen >= flushed_gen && !should_fail(file_open) ->	\
		reached(who##_flushes) };				\
		migrc_flush_mms()					\
	:: else								\
	fi

/* mm/migrc/unmap.c, and its callers in mm/rmap.c and mm/migrate.c */

#define SEEN_DEFERRED	1
#define SEEN_WRITABLE	2
#define SEEN_REFUSED	4
#define seen_others	(seen & (SEEN_WRITABLE | SEEN_REFUSED))

/* migrc_read_only(): a PTE of a file that is not open for writing was never writable. */
#define may_be_in_a_tlb_writable(m)					\
	(kind != FILE &&						\
	 ((mm[m].forking && !should_fail(fork)) || (mm[m].flush_pending && !should_fail(pending))))

inline migrc_try_defer_pte(m)
{
	defer = false;
	if
	:: seen_others || !cached(m)
	:: !seen_others && cached(m) && mm[m].writable -> seen = seen | SEEN_WRITABLE
	:: else ->
		if
		:: kind == FILE && !seen && open_for_write() -> seen = SEEN_REFUSED
		:: else ->
			if
			:: may_be_in_a_tlb_writable(m) -> seen = seen | SEEN_WRITABLE
			:: else -> seen = seen | SEEN_DEFERRED; defer = true
			fi
		fi
	fi
}

inline try_to_migrate_one(m)
{
	if
	:: d_step { !mm[m].ptl && mm[m].pte != src }
	:: d_step { !mm[m].ptl && mm[m].pte == src -> mm[m].ptl = true; flush = cached(m); migrc_try_defer_pte(m) };
		if
		:: should_fail(clear_order) -> now = newest_gen; mm[m].pte = MIGRATION
		:: else -> mm[m].pte = MIGRATION; now = newest_gen
		fi;
		if
		:: !defer -> d_step {
			if
			:: flush -> mm[m].batched = true; to_flush = to_flush | bit_of(m)
			:: else
			fi;
			flush = false;
			unlock(mm[m].ptl)
		   }
		:: defer -> migrc_mm_defer(m); d_step { flush = false; unlock(mm[m].ptl) }
		fi
	fi
}

/* The walk meets the mms in any order. */
inline try_to_migrate()
{
	if
	:: m = 0
	:: kind != THREADS -> m = 1
	fi;
	try_to_migrate_one(m);
	m = 1 - m;
	try_to_migrate_one(m);
	m = 0
}

inline migrc_folio_unmapped()
{
	if
	:: (seen & SEEN_DEFERRED) && seen_others -> mixed = true
	:: (seen & SEEN_DEFERRED) && !seen_others && kind == FILE -> migrc_file_commit()
	:: else
	fi
}

/* try_to_unmap_flush(); both are in one batch. */
inline try_to_unmap_flush()
{
	if
	:: to_flush & bit_of(0) -> flush_tlb_mm(0)
	:: else
	fi
}

inline remove_migration_pte(m)
{
	d_step {
		!mm[m].ptl;
		if
		:: mm[m].pte == MIGRATION -> mm[m].pte = page; mm[m].none = mm[m].vma_none
		:: else
		fi
	}
}

/*
 * Copies, checks the references again, and switches. A page with other references stays where it is. Those of `strangers`
 * come and go at any time.
 */
inline migrate_folio_move()
{
	if
	:: d_step { !refs -> fresh = (fresh & bit_of(src) -> fresh | bit_of(src + 1) : fresh & ~bit_of(src + 1)) };
		if
		:: d_step { !refs -> page = src + 1; moved = true }
		:: refs
		fi
	:: refs || strangers
	fi;
	d_step { reached_if(move_fails, !moved && (seen & SEEN_DEFERRED)) };
	remove_migration_pte(0);
	remove_migration_pte(1)
}

/* Of a mixed batch nothing is kept. */
#define kept	((seen & SEEN_DEFERRED) && !mixed && !should_fail(quarantine))

/* migrate_folio_done() and migrc_batch_end() */
inline migrate_folio_done()
{
	if
	:: d_step { moved && kept ->
		quarantine = quarantine | bit_of(src);
		reached_if(two_waiting, quarantine == (bit_of(0) | bit_of(1))) }
	:: moved && !kept -> free = free | bit_of(src)
	:: else
	fi
}

/* __migrc_batch_end(): a mixed batch has been flushed. */
#define stays_deferred	(!moved && (seen & SEEN_DEFERRED) && !mixed)

/* putback_movable_pages(): the reference of migration may be the last. */
inline putback()
{
	if
	:: d_step { !moved && kind == THREADS && mm[0].pte == NONE && !refs ->
		reached(stays_is_freed);
		free = free | bit_of(src) }
	:: else
	fi
}

/* migrate_pages_batch() with one folio, from one frame to the next */
proctype migrate()
{
	byte m, src, seen, to_flush, start, now, todo, gathered, entered;
	bool defer, flush, mixed, moved;

end:	d_step {
		!isolated && !folio_locked && !(free & bit_of(page)) ->
		isolated = true; folio_locked = true; src = page
	};
	try_to_migrate();
	migrc_folio_unmapped();
	try_to_unmap_flush();
	if
	:: d_step { mixed && !should_fail(mixed) -> reached(mixed_flushes) };
		migrc_flush_mms()
	:: else
	fi;
	migrate_folio_move();
	unlock(folio_locked);
	migrate_folio_done();
	if
	:: d_step { stays_deferred && !should_fail(stays) -> reached(stays_flushes) };
		migrc_flush_mms()
	:: else
	fi;
	putback();
	d_step {
		isolated = false;
		src = 0; seen = 0; to_flush = 0; now = 0; defer = false; mixed = false; moved = false
	}
}

/* The observed CPU */
proctype cpu()
{
end:	do
	:: d_step { tlb == NONE && accessible(0) -> tlb = mm[0].pte; tlb_writable = mm[0].writable }
	:: d_step {
		tlb != NONE && !idle ->
		assert(!(free & bit_of(tlb)));
		assert(!mm[0].unmapped);
		assert(fresh & bit_of(tlb));
		reached_if(source_read, quarantine & bit_of(tlb))
	   }
	:: d_step { tlb_writable && !idle -> store(tlb) }
	od
}

#define read_only(m)	(kind == THREADS && present(m) && !mm[m].writable && !mm[m].vma_none)

/* wp_page_reuse() */
inline write_fault(m)
{
	if
	:: should_fail(check_unlocked) && read_only(m) -> migrc_flush(m, write_fault); lock(mm[m].ptl)
	:: d_step { !should_fail(check_unlocked) && read_only(m) && !mm[m].ptl -> mm[m].ptl = true };
		migrc_flush(m, write_fault)
	fi;
	d_step {
		mm[m].writable = mm[m].writable || present(m);
		unlock(mm[m].ptl)
	}
}

/* do_swap_page(), of a write */
inline swap_fault(m)
{
	d_step {
		!folio_locked && !mm[m].ptl && mm[m].pte == SWAPPED && !mm[m].vma_none ->
		folio_locked = true; mm[m].ptl = true
	};
	migrc_flush(m, swap_fault);
	d_step {
		mm[m].pte = page; mm[m].writable = true;
		unlock(mm[m].ptl);
		unlock(folio_locked)
	}
}

/* The threads on other CPUs */
proctype threads()
{
	byte start;

end:	do
	:: d_step { accessible(0) -> assert(fresh & bit_of(mm[0].pte)) }
	:: d_step { accessible(0) && mm[0].writable -> store(mm[0].pte) }
	:: d_step { present(1) && mm[1].writable -> store(mm[1].pte) }
	:: write_fault(0)
	:: swap_fault(0)
	od
}

/* Paths that meet a deferral or need what waits. */

/* A task that migrates and finds no room, or the worker */
proctype drain()
{
	byte start, todo, gathered, taken, entered;

	__migrc_drain()
}

/* The observed CPU runs a kernel thread and returns; switch_mm_irqs_off() then flushes. */
proctype kernel_thread()
{
	d_step { idle = true; lazy = true };
	lazy = false;
	if
	:: d_step { behind && !should_fail(lazy) ->
		reached(lazy_flushes);
		tlb = NONE; tlb_writable = false; behind = false }
	:: else
	fi;
	idle = false
}

/*
 * offline_pages(), drain_all_pages(): a page that waits must be free afterwards. If nothing is in quarantine, another
 * drain has taken it, and is active.
 */
proctype offline_pages()
{
	byte start, todo, gathered, taken, entered;

end:	quarantine & bit_of(0);
	if
	:: should_fail(pages)
	:: !should_fail(pages) && quarantine -> __migrc_drain()
	:: d_step { !should_fail(pages) && !quarantine -> reached(pages_skips_drain) }
	fi;
	if
	:: !should_fail(free_wait) -> !draining
	:: else
	fi;
	d_step { assert(free & bit_of(0)); reached(pages_drains) }
}

/* A source that waits fails: no CPU may read it any more when it is marked. */
proctype memory_failure()
{
	byte start, todo, gathered, taken, entered;

end:	quarantine & bit_of(0);
	migrc_drain(failure);
	d_step { assert(tlb != 0 || behind); reached(failure_drains) }
}

/* Where a migration entry is removed, the kernel by itself flushes nothing. */
proctype munmap()
{
	byte start;
	bool zapped, held;

	mm[0].flush_pending++;
	lock(mm[0].ptl);
	/* flush_tlb_batched_pending() */
	if
	:: d_step { mm[0].batched -> reached(batch_flushes); mm[0].batched = false };
		flush_and_record(0)
	:: else
	fi;
	/* zap_pte_range(), with migrc_flush_entries() */
	d_step {
		reached_if(entry_zapped, mm[0].pte == MIGRATION && flush_pending(0));
		held = present(0);
		zapped = held || (mm[0].pte == MIGRATION && !should_fail(entry));
		refs = refs + held;
		mm[0].pte = NONE;
		unlock(mm[0].ptl)
	};
	/* tlb_finish_mmu(), with migrc_flush_gather() */
	if
	:: d_step { zapped && flush_pending(0) -> reached(gather_flushes) }; flush_and_record(0)
	:: zapped && !flush_pending(0) -> flush_tlb_mm(0)
	:: else
	fi;
	d_step {
		refs = refs - held;
		mm[0].flush_pending--; mm[0].unmapped = true; zapped = false; held = false
	}
}

/* Write-protects the PTE, and flushes later. */
proctype clear_refs()
{
	mm[0].flush_pending++;
	d_step { !mm[0].ptl -> mm[0].writable = false };
	flush_tlb_mm(0);
	mm[0].flush_pending--
}

/* fork, in the parent */
proctype dup_mmap()
{
	byte start;

	mm[0].forking = true;
	d_step { !mm[0].ptl -> mm[0].writable = false };
	d_step { reached_if(fork_flushes, flush_pending(0)) };
	flush_and_record(0);
	mm[0].forking = false
}

/* FOLL_FORCE: the kernel writes the page of a read-only PTE. */
proctype follow_page_pte()
{
	byte start, frame;

	lock(mm[0].ptl);
	migrc_flush(0, gup);
	d_step {
		frame = mm[0].pte;
		refs = refs + present(0);
		unlock(mm[0].ptl)
	};
	if
	:: frame < FRAMES -> d_step { store(frame); refs-- }
	:: else
	fi;
	frame = 0
}

/* shrink_folio_list() unmaps the page, flushes later, and then keeps it. */
proctype reclaim()
{
	bool flush;

	d_step { !isolated && !folio_locked -> isolated = true };
	d_step {
		!mm[0].ptl && !folio_locked;
		if
		:: present(0) -> flush = cached(0); mm[0].pte = SWAPPED; mm[0].batched = mm[0].batched || flush
		:: else
		fi
	};
	if
	:: flush -> flush_tlb_mm(0)
	:: else
	fi;
	isolated = false
}

/* mprotect() that allows writing, and userfaultfd; the flush at its end is for the range */
proctype mprotect()
{
	byte start;

	mm[0].flush_pending++;
	lock(mm[0].ptl);
	if
	:: read_only(0) -> migrc_flush(0, protect)
	:: else
	fi;
	d_step { mm[0].writable = mm[0].writable || present(0); unlock(mm[0].ptl) };
	mm[0].flush_pending--
}

/*
 * mprotect(PROT_NONE). The VMA changes before its PTEs; what migration maps then has the new protection, so that there
 * is nothing to change.
 */
proctype mprotect_none()
{
	byte start;
	bool changed;

	mm[0].flush_pending++;
	mm[0].vma_none = true;
	lock(mm[0].ptl);
	/* flush_tlb_batched_pending() */
	if
	:: d_step { mm[0].batched -> mm[0].batched = false }; flush_and_record(0)
	:: else
	fi;
	/* change_pte_range(), with migrc_table_needs_flush() */
	d_step {
		reached_if(mapped_protected, present(0) && mm[0].none && flush_pending(0));
		changed = accessible(0) || (should_fail(protect_pte) -> mm[0].pte == MIGRATION :
					    flush_pending(0) && !should_fail(table));
		mm[0].none = present(0);
		unlock(mm[0].ptl)
	};
	/* tlb_finish_mmu(), with migrc_flush_gather() */
	if
	:: changed && flush_pending(0) -> flush_and_record(0)
	:: changed && !flush_pending(0) -> flush_tlb_mm(0)
	:: else
	fi;
	d_step { mm[0].flush_pending--; mm[0].unmapped = true; changed = false }
}

/* A payment for another table of the mm, in which a deferral waits, too, under the lock of that table */
proctype other_table()
{
	byte start;

	if
	:: flush_pending(0) -> __migrc_flush(0)
	:: else
	fi
}

/* open(O_WRONLY), write(), close() */
proctype open_and_write()
{
	byte start, todo, gathered, entered, gen;

	if
	:: should_fail(open_order) -> gen = file_gen; writecount++
	:: else -> writecount++; gen = file_gen
	fi;
	d_step { reached_if(open_skips_flush, gen && gen < flushed_gen) };
	migrc_file_flush(open);
	d_step { !folio_locked -> store(page) };
	d_step { writecount--; gen = 0 }
}

/* Pins, waits for a migration in progress, and writes without write access to the file. */
proctype memfd_pin_folios()
{
	byte start, todo, gathered, entered, gen, frame;

	if
	:: should_fail(pin_order) -> gen = file_gen
	:: else
	fi;
	d_step { frame = page; refs++ };
	!folio_locked;
	if
	:: !should_fail(pin_order) -> gen = file_gen
	:: else
	fi;
	migrc_file_flush(pin);
	d_step { store(frame); refs--; gen = 0; frame = 0 }
}

inline run_path(number)
{
	if
	:: number == 0 -> run drain()
	:: number == 1 -> run kernel_thread()
	:: number == 2 -> run migrate()
	:: number == 3 && kind == THREADS -> run offline_pages()
	:: number == 3 && kind == FILE -> run open_and_write()
	:: number == 4 && kind == THREADS -> run memory_failure()
	:: number == 4 && kind == FILE -> run memfd_pin_folios()
	:: number == 5 -> run munmap()
	:: number == 6 -> run clear_refs()
	:: number == 7 -> run dup_mmap()
	:: number == 8 -> run follow_page_pte()
	:: number == 9 -> run reclaim()
	:: number == 10 -> run mprotect()
	:: number == 11 -> run other_table()
	:: number == 12 -> run mprotect_none()
	fi
}

init
{
	byte number, last;

	atomic {
		choose_fault();
		if
		:: kind = FILE; last = 5
		:: kind = MIXED; last = 2; if :: mm[0].writable = true :: mm[1].writable = true fi
		:: kind = THREADS; mm[1].pte = NONE; last = 12; if :: mm[0].writable = true :: skip fi
		fi;
		do
		:: number < last -> number++
		:: break
		od;
		strangers = number == 5;
		run cpu();
		run threads();
		run migrate();
		run_path(number);
		if
		:: run drain()
		:: run migrate()
		:: number == 11 -> run drain(); run migrate()
		fi;
		number = 0; last = 0
	}
}
