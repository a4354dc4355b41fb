// Package orchestrator runs plans: it reads the ledger, lets package machine decide, and carries out the effects.
//
// Any number of orchestrators run at once. Each keeps a member key alive and owns the partitions that rendezvous
// hashing over the live members assigns to it. Nothing rests on that: two owners of a partition for a moment are
// harmless, because every decision is a record that can be created once, and every effect may be carried out twice. So
// there is no leader, no lock and no fencing, and a process may be killed at any time: another reads the same records
// and goes on.
//
// # How it is built
//
// All state of a run lives on one goroutine, that of its loop. What must wait for I/O, such as history, blobs or a
// large plan, happens in jobs beside it, which post what they found back to the loop. The loop itself only routes: a
// record goes to the lifecycle of its run, a tick to whoever asked for it. Behind it are types that hold their own
// state, and know only those below them:
//
//	                     loop (mailbox, ticks)          api (requests, submissions)
//	     ┌──────────────────┼──────────────────┐                 │
//	partitions          reconciler             │             explains from
//	(ownership,         (what should be out    │             runs, dispatcher,
//	 takeover)           against what is)      │             documents
//	     └────────┬─────────┘                  │
//	         lifecycle ────────────────────  reaper
//	(open, begin, finish, forget)            (grace, marks, purge, orphans)
//	     ┌────────┼──────────────┐
//	   judge    driver       documents
//	 (verdict, (a machine,  (history, outcome)
//	  reuse)    its effects)
//	              │
//	     ┌────────┼─────────┬────────────┐
//	dispatcher  decider  deadLetters  announcer
//	(windows,   (records and stops    (events, to
//	 burdens,    of its own)           who listens)
//	 flights)
//	     └────────┴────┬────┘
//	                values, memory (results and blobs, and room for them)
//	                   │
//	env (storage, bus, clock, jobs, mailbox) · runs, cursors, ledgerTime, timers, suspects (what is known)
//
// A process has one or several such loops (loops), each with a group of its partitions. They share the registry, the
// member key and the requests, and the room of tools and tenants (pool), and know nothing of each other otherwise.
//
// Arrows point down. Where something below must tell something above (a machine is done, a record asks for a
// comparison) it calls a function that newLoop has set.
package orchestrator
