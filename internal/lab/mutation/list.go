package mutation

import "slices"

// mutant is one bug: what stands in a file, once, and what takes its place.
type mutant struct {
	name, what string
	file       string
	old, new   string
	tests      string // packages
	run        string // tests of them; empty for all
}

// mutants are the bugs that the project's promises are about: those that the design names, and others that would be
// easy to make.
var mutants = append([]mutant{
	{
		"create-once", "a record that somebody else created first counts as written",
		"kv/account_create.go", "		return isDecided\n	case codeSequenceInFlight", "		return isWritten\n	case codeSequenceInFlight", "./kv", "",
	},
	{
		"expect-nothing", "records are created without expecting that there is none",
		"kv/account_create.go", "		h[headerExpect] = expectNone\n	} else {", "	} else {", "./kv", "",
	},
	{
		"full-is-decided", "a full ledger (10077) counts as decided",
		"kv/account_create.go", "	case codeStoreFailed, codeAccountResources,", "	case codeStoreFailed:\n		return isDecided\n	case codeAccountResources,", "./kv", "",
	},
	{
		"duplicate-is-success", "an answer \"duplicate\" counts as written",
		"kv/account_create.go", "		return isThere // the server knows", "		return isWritten // the server knows", "./kv", "",
	},
	{
		"read-back-at-once", "all creates that are not settled by their first answer are read back at once",
		"kv/account_create.go", "	if !c.s.enter(c.ctx) {\n		return nil, false\n	}\n	defer c.s.leave()\n", "", "./kv", "ReadingBack",
	},
	{
		"decided-anew", "a sweep begins anew what is being decided",
		"orchestrator/decider.go", "		if _, there := dc.deciding[a]; there {\n", "		if false {\n", "./orchestrator", "BegunAnew",
	},
	{
		"sinks-in-all", "a slow sink is left because there are many objects",
		"orchestrator/sinks.go", "	return func(ctx context.Context, name string, all []agents.Sent) {\n", "	return func(ctx context.Context, name string, all []agents.Sent) {\n		ctx, end := context.WithTimeout(ctx, patience)\n		defer end()\n", "./orchestrator", "SlowSinks",
	},
	{
		"message-id", "a record is sent with a message id",
		"kv/account_create.go", "	s.pub.send(&c.msg, c)\n	return c", "	h[headerMsgID] = []string{subject}\n	s.pub.send(&c.msg, c)\n	return c", "./kv ./orchestrator", "",
	},
	{
		"no-fence", "a fence is ignored",
		"kv/account_create.go", "	if fence == nil {\n		h[headerExpect]", "	if true {\n		h[headerExpect]", "./kv", "",
	},
	{
		"ack-before-record", "a worker acknowledges before the record stands",
		"worker/record.go", "	h, body := x.result.Message()\n", "	for _, d := range x.leases {\n		x.e.ack(d)\n	}\n	h, body := x.result.Message()\n", "./worker ./internal/conformance", "",
	},
	{
		"no-claim", "an at_most_once step is executed without a claim",
		"worker/prepare.go", "	if x.step.Claim != \"\" && !x.claimsLater() && !x.claim() {", "	if false {", "./worker", "Claim|Once",
	},
	{
		"claim-of-another", "a claim that another worker made for the same message counts as one's own",
		"worker/prepare.go", "	case found && there == mine:", "	case found && there.Seq == mine.Seq:", "./worker", "Claim|Once",
	},
	{
		"redelivered-runs-again", "a redelivered step is executed though it has a record",
		"worker/prepare.go", "	if x.mayStand && !x.stillOpen() {", "	if false {", "./worker", "",
	},
	{
		"never-lost", "a step that kills its workers is handed out for ever",
		"worker/prepare.go", "	if x.delivered > x.e.config.MaxDeliveries {", "	if false {", "./worker", "",
	},
	{
		"foreign-result", "a worker publishes to whatever subject a message names",
		"wire/step.go", "	case !subjects.IsStepRecord(s.Result, a, shards):", "	case false:", "./worker", "",
	},
	{
		"newer-version", "a worker executes steps of a newer version",
		"worker/deliver.go", "	if !wire.KindStep.Known(d.Header) {", "	if false {", "./worker", "",
	},
	{
		"skipped-dependency", "a step starts once one of its dependencies is over",
		"machine/settle.go", "			case dep.missing > 0 || sc.waves != nil || sc.stopping:", "			case sc.waves != nil || sc.stopping:", "./machine", "",
	},
	{
		"failure-is-data", "a failed dependency does not skip its dependents",
		"machine/settle.go", "				if x.to != cancelled {\n					work", "				if false {\n					work", "./machine", "",
	},
	{
		"retry-for-ever", "a step is tried again however often it failed",
		"machine/apply.go", " && failures(r, res) < most", " && (failures(r, res) < most || true)", "./machine", "",
	},
	{
		"second-record-counts", "a record of an attempt that was decided before counts",
		"machine/apply.go", "r.calls[i].state.terminal() || r.calls[i].state != waiting && res.Attempt < int(r.calls[i].attempt)", "r.calls[i].state.terminal()", "./machine", "",
	},
	{
		"late-stop", "a stop after the last deciding record counts",
		"machine/run.go", "	if r.finished {\n		return // a stop after", "	if r.finished && rec.Stop == nil {\n		return // a stop after", "./machine", "",
	},
	{
		"list-counted-late", "items become ready when the list was counted, not when their step did",
		"machine/items.go", "		r.replay(now, out)\n		return\n	}\n	r.join(step", "	}\n	r.join(step", "./machine", "",
	},
	{
		"fail-fast-goes-on", "a failed item of a fail-fast tool lets the others go on",
		"machine/items.go", "		r.haltItems(x.Step, at, out)\n	}\n	if s.left", "	}\n	if s.left", "./machine ./orchestrator", "",
	},
	{
		"secret-in-log", "a context prints its secrets",
		"wire/context.go", "			v = Redacted\n", "			_ = Redacted\n", "./wire", "",
	},
	{
		"escape", "arguments of a dead letter are read as references",
		"plan/escape.go", "	e.value(0, 1)\n", "", "./plan", "Escape",
	},
	{
		"duplicate-keys", "an output with a key twice counts as a success",
		"plan/output.go", "	case first == fault.DuplicateKey:\n		return nil, terminal(\"is JSON with a key used twice in one object, at %q\", clip(where)).WithHint(\"return each key once\")\n", "", "./plan", "",
	},
	{
		"wildcard-token", "a run id may hold dots and wildcards in its subject",
		"subjects/token.go", "c == '_' || c == '-'\n}", "c == '_' || c == '-' || c == '.' || c == '*'\n}", "./subjects", "",
	},
	{
		"skipped-is-dispatched", "a step that is about to be skipped is dispatched",
		"machine/settle.go", "			case sc.plan.Language == 1 && sc.standing(r).spoiler(d) != d:", "			case false:", "./machine", "",
	},
	{
		"ignored-generation", "records of an earlier run of the same id count",
		"orchestrator/loop.go", "	if r == nil || r.generation != rec.Generation {", "	if r == nil {", "./orchestrator", "",
	},
	{
		"life-of-its-own", "a sentinel that takes another's place begins a new life of its stream",
		"kv/queue_sentinel.go", "Header: wire.Versioned(), Data: old.Data}", "Header: wire.Versioned()}", "./kv", "TestALook",
	},
	{
		"mended-unseen", "a purge is not noticed where somebody has put another sentinel there since",
		"kv/upkeep.go", "		if began || bad == nil && known && was != life {", "		if began || bad == nil && known && was != life && was == life {", "./kv", "TestALook",
	},
	{
		"stream-by-the-way", "who looks after a tool creates its stream too, and tells of the consumer alone",
		"kv/upkeep.go", "!there[key] && !gone[t.Shard] && c.owns(name)", "!there[key] && c.owns(name)", "./kv", "TestUpkeepOfATool",
	},
	{
		"lost-at-work", "after a purge, steps are sent again that a worker may be at",
		"orchestrator/reconciler.go", "		return !lost || f.lane.window.slowest > gone\n", "		return !lost\n", "./orchestrator", "TestWhatAWorkerMayBeAt",
	},
	{
		"sent-twice", "what an owner is still about to send counts as lost",
		"orchestrator/reconciler.go", "	if r.flights.At(d.Call).ours(d.Attempt) {\n		return true", "	if false {\n		return true", "./orchestrator", "TestWhatAWorkerMayBeAt",
	},
	{
		"skipped-key", "a bucket counts as read though a key was written anew meanwhile",
		"kv/cursor.go", "	if len(c.awaited) == 0 && (at.streamSeq >= c.target", "	if (at.streamSeq >= c.target", "./kv", "TestWhatIsRewritten",
	},
	{
		"part-takes-all", "of a run that stops all messages are taken back where some of them are decided",
		"orchestrator/decider.go", "	return len(out.Decide) == n\n", "	return true\n", "./orchestrator", "TestMessagesAreTakenBackTogether",
	},
	{
		"known-is-there", "an attempt that its stream has had before counts as being there",
		"orchestrator/dispatcher.go", "		case err == nil && f != nil && f.seq.Load() == 0:", "		case err == nil && f != nil && false:", "./orchestrator", "TestWhatTheStreamHadBefore",
	},
	{
		"blind-sweep", "the sweep sends again what is not pending, without looking for a record",
		"orchestrator/reconciler.go", "	open, whole := rc.undecided(ctx, partition, missing)", "	open, whole := missing, true", "./orchestrator", "",
	},
	{
		"old-is-new", "a plan under an id that was used before is taken for new, since the id says when it was made",
		"orchestrator/run.go", "	return r.live && dated && r.submitted.Sub(made).Abs() < freshFor", "	return r.live && dated && r.submitted.Sub(made).Abs() < time.Hour*24", "./orchestrator", "",
	},
	{
		"anybodys-blob", "a result may lie in a blob of another run, or of another tenant",
		"wire/result.go", "	case !is || strings.Contains(unique, \"/\"):", "	case own == h.Name && !is || own == unique:", "./orchestrator", "",
	},
	{
		"gone-too-soon", "a run is purged while its id still counts as new",
		"orchestrator/run.go", "	return min(made.Add(3*freshFor).Sub(r.submitted), maxAhead)", "	return min(made.Sub(made), maxAhead)", "./orchestrator", "",
	},
	{
		"live-contract", "a run follows the registry as it is now",
		"orchestrator/dispatcher.go", "	contract := r.machine.Contract(d.Step)", "	contract := r.machine.Contract(d.Step)\n	if now := di.reg.tools[r.plan.Steps[d.Step].Tool]; now != nil {\n		contract = &now.Contract\n	}", "./orchestrator", "",
	},
	{
		"unfenced-start", "a run is started though its plan is gone",
		"orchestrator/judge.go", "	fence := &kv.Fence{Subject: subjects.PlanRecord(id, j.store.Shards()), Seq: generation}", "	fence := (*kv.Fence)(nil)", "./orchestrator", "",
	},
	{
		"unburied", "a run is over before its dead letters are written",
		"orchestrator/lifecycle_finish.go", "lc.deadLetters.writeAll(ctx, missing)", "lc.deadLetters.writeAll(ctx, missing[:0])", "./orchestrator", "",
	},
	{
		"given-up-is-sent", "what was given up goes out when there is room for it",
		"orchestrator/dispatcher.go", "r.phase != running || !r.machine.Wanted(d.Call, d.Attempt)", "r.phase != running", "./orchestrator", "",
	},
	{
		"mark-of-another-life", "what was known of the ledger before its server restarted is purged after it",
		"kv/ledger_purge.go", "p.life != \"\" && now != p.life {", "now == \"\" {", "./kv", "Life",
	},
	{
		"held-up-for-ever", "runs that are over stay in the ledger as long as one goes on that began before them",
		"orchestrator/reaper.go", ">= rp.cfg.Grace+purgeAtLast && rp.orphan(", "< 0 && rp.orphan(", "./orchestrator", "HoldsOthersUp",
	},
	{
		"purged-by-filter", "single runs are purged by a filter, for which the server looks at all that the ledger holds",
		"kv/ledger_purge.go", "	if info.Total > byNameAtMost || ", "	if info.Total > 0 || ", "./kv", "Purged",
	},
	{
		"later-plan-purged", "a run that goes by its own name takes a later plan of its id along",
		"kv/ledger_purge.go", "subjects.PlanRecord(g.Run, p.shards), Sequence: g.Number + 1}", "subjects.PlanRecord(g.Run, p.shards)}", "./kv", "Purged",
	},
	{
		"orphan-of-another-life", "what was read as an orphan before the ledger had to be read again is purged after it",
		"orchestrator/orphans.go", "rp.cursors.owned[g.Run.Partition()] == c && ", "", "./orchestrator", "EndsWithIt",
	},
	{
		"mark-not-all", "a shared shard is purged though an owner has told nothing",
		"orchestrator/reaper.go", "		if below == 0 {\n			return \"\", 0, false\n		}\n		if upTo", "		if below == 0 {\n			continue\n		}\n		if upTo", "./orchestrator", "Marks|Shared|Sim",
	},
	{
		"mark-the-highest", "a shared shard is purged below the highest mark, not the lowest",
		"orchestrator/reaper.go", "below < upTo {\n			upTo = below", "below > upTo {\n			upTo = below", "./orchestrator", "Marks|Shared|Sim",
	},
	{
		"over-goes-on", "a mark counts a run as over whose document may not stand",
		"orchestrator/run.go", "r.phase == finished && now.Sub(r.doneAt)", "(r.phase == finishing || r.phase == finished) && now.Sub(r.doneAt)", "./orchestrator", "CountsAsOver|SimulatedWorlds$",
	},
	{
		"over-new-id", "a mark counts a run as over whose id may count as new for longer than whoever comes next waits",
		"orchestrator/run.go", "r.stays()-3*freshFor", "0", "./orchestrator", "CountsAsOver|SimulatedWorlds$",
	},
	{
		"over-untold", "of a run that was over when it was taken over nobody is told, and it counts as over",
		"orchestrator/lifecycle_finish.go", "		r.drop()\n		lc.announcer.end(r.id, r.client, before)\n", "		r.drop()\n", "./orchestrator", "SimulatedWorlds$",
	},
	{
		"over-unread", "marks tell of what was not read",
		"orchestrator/reaper.go", "read := c.last + 1\n", "read := c.last + 1000\n", "./orchestrator", "CountsAsOver|SimulatedWorlds$",
	},
	{
		"over-not-free", "a mark counts a rejected run as over that could not be removed yet",
		"orchestrator/reaper.go", "going[p] = min(going[p], g.Number)", "_ = g", "./orchestrator", "CountsAsOver|SimulatedWorlds$",
	},
	{
		"skipped-later", "a forged record of a later generation has a run that was skipped purged within its grace",
		"orchestrator/orphans.go", "	case r == nil && rp.cursors.skipped", "	case false && rp.cursors.skipped", "./orchestrator", "SkippedStays",
	},
	{
		"skipped-orphan", "a late record of a run that was skipped has the run purged within its grace",
		"orchestrator/orphans.go", "	case rp.recent(rec):", "	case false:", "./orchestrator", "SkippedStays|SimulatedWorlds$",
	},
	{
		"skipped-may-go", "who has skipped runs that are over tells at once that they may go",
		"orchestrator/reaper.go", "		if rp.cursors.skipped[i].recent(0, now) {", "		if false {", "./orchestrator", "SkippedStays|SimulatedWorlds$",
	},
	{
		"skipped-stays", "what was skipped and is held up by a longer run is never removed",
		"orchestrator/orphans.go", "	if rp.seeking != nil {\n		return", "	if true {\n		return", "./orchestrator", "SkippedStays|SimulatedWorlds$",
	},
	{
		"mark-of-any-life", "partitions are read from a mark of another life of the ledger",
		"kv/cursor.go", "	if c.since.Life != c.Life() {", "	if false {", "./kv", "AReadingBegins",
	},
	{
		"mark-forgotten", "of a partition only what was told of it last is known",
		"kv/ledger_purge.go", "x.below[p], x.over[p] = max(x.below[p], m.Below), max(x.over[p], m.Over)", "x.below[p], x.over[p] = m.Below, m.Over", "./kv", "MarksThatWereHeard",
	},
	{
		"skipped-conflict", "another plan under the id of a run that was skipped is refused without a word",
		"orchestrator/api.go", "			s.submittedAgain(l, m, id)\n", "", "./orchestrator", "TakeoverSkips",
	},
	{
		"leased-purged", "leased steps are purged in one request, which makes the server forget others' leases",
		"kv/queue_withdraw.go", "	return s.takeOut(ctx, shard, tool, subjects.RunToolFilter(\"step\", r, generation, tool, shard))",
		"	return s.purge(ctx, subjects.StepsStream(shard), purgeRequest{Subject: subjects.RunToolFilter(\"step\", r, generation, tool, shard)})", "./kv", "",
	},
	{
		"newer-overwritten", "a registry entry of a newer version is written over",
		"kv/registry.go", "	case fault.NewerVersion:\n		return standing{}, err\n	}", "	}", "./kv", "Newer|Forms",
	},
	{
		"unknown-dropped", "what a newer version added to a registry entry is lost by writing it anew",
		"kv/registry.go", "\tt.Inherit(old.Registered)\n", "", "./kv", "Unknown|Forms",
	},
	{
		"newer-requests", "requests of a newer version are carried out",
		"orchestrator/api.go", "			if known(m) {", "			if known(m) || true {", "./orchestrator", "Newer",
	},
	{
		"stray-freezes", "a record below step. that is of no attempt makes the owner leave the run alone",
		"orchestrator/lifecycle.go", "	case subjects.NoteKind, subjects.StrayRecord:\n", "	case subjects.NoteKind:\n", "./orchestrator", "TestNobodyFreezes",
	},
	{
		"any-version-counts", "a record of a version above its run's is read all the same",
		"orchestrator/driver.go", "wire.AboveRun(e.Header, r.version); bad != nil", "wire.AboveRun(e.Header, r.version); bad == nil && false", "./orchestrator", "TestARecordThatNobody",
	},
	{
		"stray-keeps-sweep-away", "records without effect postpone the sweep of their run",
		"orchestrator/lifecycle.go", "		if r.plan != nil && !r.has(rec.Attempt) {\n			return", "		if r.plan != nil && !r.has(rec.Attempt) {\n			r.touched = lc.clock.Now()\n			return", "./orchestrator", "TestRecordsWithoutEffect",
	},
	{
		"orphan-of-the-future", "a record of a generation that is still to come is purged with every older plan of its id",
		"orchestrator/orphans.go", "	case rec.Generation >= e.Seq || r != nil", "	case r != nil", "./orchestrator", "TestSimulatedWorlds",
	},
	{
		"two-names", "a number with a leading zero names the same attempt",
		"subjects/record.go", " || token[0] == '0' && len(token) > 1", "", "./subjects", "",
	},
	{
		"cancelled-in-vain", "the cancel of a run that is left alone says that it was cancelled",
		"orchestrator/api.go", "	case r.phase == foreign:\n		s.refuse(m, leftAlone(id))\n	default:\n		return r", "	default:\n		return r", "./orchestrator", "TestARunThatIsLeftAlone",
	},
	{
		"leased-taken-back", "a step that its worker has is taken out of the queue when its run stops",
		"kv/queue_withdraw.go", "|| err == nil && e.Seq <= given {", "|| err == nil && given < 0*e.Seq {", "./kv", "TestOnlyWhatNoWorkerHas|TestWhatWasGivenOut",
	},
	{
		"ack-at-work", "a step that was decided without its handler is acknowledged while that is at work",
		"worker/owing.go", "	if !x.owing.CompareAndSwap(handlerAt, ackOwed) {", "	if true {", "./orchestrator ./worker", "TestLimitsHoldWhen|TestAbandonedHandler",
	},
	{
		"deaf-for-ever", "a deaf handler holds a place in its tool's limit for ever",
		"worker/owing.go", "		if x.owing.CompareAndSwap(ackOwed, owesNothing) {\n			x.log()", "		if false {\n			x.log()", "./worker", "TestAbandonedHandler",
	},
	{
		"last-item-fails", "a for_each step fails with its last failed item",
		"machine/items.go", "			if worst == nil {\n				worst = itemFailure(x)", "			if worst == nil || s.failure == nil {\n				worst = itemFailure(x)", "./machine", "TestAListFails",
	},
	{
		"retry-by-own-clock", "the next attempt is due by the clock of who reads the record",
		"machine/apply.go", "instantOf(rec.Time.Add(delay))", "instantOf(time.Now().Add(delay))", "./machine", "TestARetryIsDue",
	},
	{
		"stop-asked-once", "a run's stop is asked for once",
		"machine/deadlines.go", "	if r.expiring && !r.root.stopping {\n		out.Stop", "	if false {\n		out.Stop", "./machine", "TestAStopIsAsked",
	},
	{
		"halted-goes-on", "an item of a for_each step that has failed is tried again",
		"machine/apply.go", "	return !r.halting(i) && r.calls[i].state != expanding", "	return r.calls[i].state != expanding", "./machine", "TestItemsThatWere",
	},
	{
		"expiry-asked-twice", "a stop is asked for although it stands",
		"machine/deadlines.go", "	if r.expiring && !r.root.stopping {\n		out.Stop", "	if r.expiring {\n		out.Stop", "./machine", "TestAStopIsAsked",
	},
	{
		"impatient-sweep", "the sweep takes the worker of a claimed step for lost without its patience",
		"orchestrator/reconciler.go", "x.now.Sub(e.Time) <= x.patience:", "x.now.Sub(e.Time) <= 0*x.patience:", "./orchestrator", "TestSimulatedWorlds",
	},
	{
		"unreadable-is-open", "a record that the sweep could not read counts as none",
		"orchestrator/reconciler.go", "			if errors.Is(err, &fault.Error{Code: fault.NotFound}) {\n				open", "			if err != nil {\n				open", "./orchestrator", "TestSimulatedWorlds",
	},
	{
		"unread-plan-stands", "a plan that the sweep could not read counts as one that stands",
		"orchestrator/reconciler.go", "	return err == nil, err", "	return true, err", "./orchestrator", "TestAPlanThatCanNotBeRead",
	},
	{
		"waits-in-a-slot", "a retry that waits for its time takes a place in its tool's limit, after a takeover",
		"orchestrator/reconciler.go", "			if x.dispatch.At.IsZero() {\n				there", "			if true {\n				there", "./orchestrator", "TestARetryThatWaits",
	},
	{
		"taken-over-blindly", "an owner that takes over sends again whatever should be out",
		"orchestrator/driver.go", "	if r.recovered && len(eff.Dispatch) > 0 {", "	if r.recovered && false {", "./orchestrator", "TestATakeoverSends",
	},
	{
		"let-go-too-soon", "a partition is let go of before its next owner has its runs",
		"orchestrator/partitions.go", " && serves[next]>>p&1 == 1:", ":", "./orchestrator", "TestAPartitionIsKept",
	},
	{
		"leaver-takes-over", "who is about to leave takes partitions over",
		"orchestrator/partitions.go", "bool { return m.Leaving })", "bool { return false })", "./orchestrator ./kv", "Leav|HandsOver|Member",
	},
	{
		"lacking-takes-part", "who does not know what runs need takes a share of the partitions",
		"orchestrator/partitions.go", "bool { return m.Lacks != \"\" })", "bool { return false })", "./orchestrator", "TestWhoSharesThePartitions",
	},
	{
		"needs-ignored", "a run is gone on with by who does not know what it needs",
		"orchestrator/lifecycle.go", "if needs := r.start.Needs; !lc", "if needs := r.start.Needs; false && !lc", "./orchestrator", "TestWhoDoesNotKnow",
	},
	{
		"another-generations-end", "the history of an earlier run of the same id ends a run that is taken over",
		"orchestrator/judge.go", "err != nil || doc.Generation != generation", "err != nil || doc.Generation == 0*generation", "./orchestrator", "TestSimulatedWorlds",
	},
	{
		"lost-rooms", "a run that is another's now keeps its places in the limits",
		"orchestrator/dispatcher.go", "	for _, f := range r.flights.All() {\n		f.release()\n	}\n	lanes", "	lanes", "./orchestrator", "TestSimulatedWorlds",
	},
	{
		"old-record-is-now", "a record that lay in the ledger counts as news of its time",
		"orchestrator/loop.go", "	if from.caughtUp {\n		l.times.heard(r", "	if from != nil {\n		l.times.heard(r", "./orchestrator", "TestARecordThatLay",
	},
	{
		"time-goes-back", "a record that comes late takes the time of its run back",
		"kv/servertime.go", "t.zero = max(t.zero, told.UnixNano()-int64(came))", "t.zero = told.UnixNano() - int64(came)", "./kv", "TestTheServersTime",
	},
	{
		"clock-for-ever", "the clock of a server that led a shard once counts for ever",
		"kv/servertime.go", "if came-t.since > recently {", "if came-t.since > recently && t.since < 0 {", "./kv", "TestWhatWasHeard",
	},
	{
		"woken-buries", "an orchestrator that stood still declares the others dead",
		"kv/members_watch.go", "	if asleep || now.Sub", "	if asleep && false || now.Sub", "./kv", "TestAMemberThatStoodStill",
	},
	{
		"unheard-buries", "an orchestrator that can't renew its own key declares the others dead",
		"kv/members_watch.go", " || now.Sub(m.written) > 2*memberRenewal", "", "./kv", "TestAMemberThatStoodStill",
	},
	{
		"reconnect-is-death", "an orchestrator that connects to another server counts as dead at once",
		"kv/members_watch.go", "now.Sub(x.unheard) >= pulseGone && now", "now.Sub(x.unheard) >= 0*pulseGone && now", "./kv", "TestAMember",
	},
	{
		"wait-from-the-first", "the wait for a slot of a later attempt counts from the first one",
		"machine/deadlines.go", "	return max(s.at, s.ready).time()", "	return s.ready.time()", "./machine", "",
	},
	{
		"retry-after-ignored", "a tool's own word when it may be tried again counts for nothing",
		"machine/apply.go", "max(backoff.Delay(failures(r, rec.Result), r.jitter(i, rec.Result.Attempt)), rec.Result.Error.RetryAfter)", "backoff.Delay(failures(r, rec.Result), r.jitter(i, rec.Result.Attempt))", "./machine", "",
	},
	{
		"one-clump", "all items of a list are tried again at the same moment",
		"machine/apply.go", "	_, _ = h.Write([]byte(r.Token(r.calls[i].Call)))\n", "", "./machine", "",
	},
	{
		"unread-list-succeeds", "a list that could not be read is a success where items may fail",
		"machine/items.go", " && s.failure == nil\n", "\n", "./machine", "",
	},
	{
		"interrupted-list", "a list of which one item failed counts as cancelled, since the others were",
		"machine/items.go", "	case (r.scopeOf(i).stopping || s.discarded != notDiscarded) && interrupted:", "	case interrupted:", "./machine", "",
	},
	{
		"stop-leaves-retries", "what waits for its next attempt goes on when the run stops",
		"machine/apply.go", "	case ready, retrying:\n		if !spared(r, i) {\n", "	case ready:\n		if !spared(r, i) {\n", "./machine", "",
	},
	{
		"later-stop-counts", "the second stop record gives the run its status",
		"machine/apply.go", "	if r.stop != nil || r.root.over() { // a stop", "	if r.root.over() { // a stop", "./machine", "",
	},
	{
		"sent-in-doubt", "a step is sent though a list that is yet to be counted may have stopped the run",
		"machine/items.go", "	case r.uncertain():\n", "	case r.uncertain() && len(r.calls) == 0:\n", "./machine", "TestStoppedRuns|TestNothingNew",
	},
	{
		"doubt-for-ever", "what was withheld for a list that is yet to be counted is forgotten",
		"machine/items.go", "		out.move(r.withheld)\n", "", "./machine", "",
	},
	{
		"lists-in-any-order", "of two lists the one that is counted first decides whether the run stops",
		"machine/items.go", "	if uncertain && r.ordered != ordered {", "	if uncertain && ordered < 0 {", "./machine", "Scenarios",
	},
	{
		"bucket-believed", "the bucket that a worker's handle names is believed as it stands",
		"wire/result.go", "	case h.Bucket != \"\" && h.Bucket != bucket:", "	case false:", "./orchestrator", "TestAHandleBrings",
	},
	{
		"anybodys-bucket", "a blob is read from, and put into, whatever bucket somebody names",
		"kv/archive_blobs.go", "	return subjects.OwnBlobs(bucket, tenant)", "	return tenant != \"\"", "./kv", "TestAHandleIsReadFrom",
	},
	{
		"large-results-are-shared", "a worker puts the large results of a declared tenant where all tenants may read",
		"worker/record.go", "PutBlob(x.e.hard, x.step.Bucket, name", "PutBlob(x.e.hard, \"\", name", "./orchestrator", "TestAllThatADeclared",
	},
	{
		"declared-reads-shared", "users of a declared tenant may read the bucket of all others too",
		"internal/acl/roles.go", "	g.blobs(s.bucketOf(s.Tenant))", "	g.blobs(s.bucketOf(s.Tenant))\n	g.blobs(\"\")", "./internal/acl", "TestABucketIs",
	},
	{
		"declared-too-early", "a tenant counts as declared before all orchestrators know of it",
		"kv/archive_tenants.go", "	return made, s.allKnow(ctx)", "	return made, nil", "./kv", "TestADeclaredTenantHas",
	},
	{
		"tenants-of-before", "what was known of tenants counts though the own member key may have expired since",
		"kv/archive_tenants.go", " && submitted.Before(t.stored.Add(keyStands))", "", "./kv", "TestWhatIsKnown|TestWhoStoodStill",
	},
	{
		"tenants-of-another-key", "what was asked before the own member key expired counts as soon as there is one again",
		"kv/archive_tenants.go", "		t.before = t.asked\n", "", "./kv", "TestWhatIsKnown",
	},
	{
		"bucket-of-the-day", "an orchestrator of before goes on with a run whose results lie in a declared tenant's bucket",
		"wire/start.go", "	if s.Bucket != \"\" {\n		return subjects.BucketVersion", "	if false {\n		return subjects.BucketVersion", "./orchestrator", "TestAllThatADeclared",
	},
	{
		"share-of-its-own", "a huge run keeps the share of a run that is alone, whoever comes",
		"orchestrator/window.go", "	if w.neighbours.alone() {", "	if true {", "./orchestrator", "TestAHugeRunLeavesRoomAtOnce",
	},
	{
		"made-up-proves", "what the least value goes wrong with fails a step of a dry run",
		"internal/dryrun/arguments.go", "x.tool.from == outcome.FromExample", "x.tool.from != outcome.FromNothing", "./internal/dryrun", "",
	},
	{
		"examples-prove-nothing", "what an example goes wrong with is a doubt",
		"internal/dryrun/arguments.go", "	switch sure := t.sure; {", "	switch sure := false; {", "./internal/dryrun", "",
	},
	{
		"dry-run-of-all", "a dry run goes by the contract that counts for all tenants",
		"client/dryrun.go", "own[t.Name].Narrow(t.Contract)", "own[\"\"].Narrow(t.Contract)", "./client", "DryRun",
	},
	{
		"unchecked-sample", "a made-up value is taken that its schema refuses",
		"tool/samplemaker.go", "m.steps < 0 || !fits(v, all) || !accept(v)", "m.steps < 0 || !accept(v)", "./tool", "Sample",
	},
	{
		"work-unbounded", "an expression may look at the same value for ever",
		"internal/expression/evaluation.go", "	if e.work += units; e.work > maxWork {", "	if false {", "./internal/expression", "",
	},
	{
		"reads-unbounded", "an expression reads values of any size",
		"internal/expression/evaluation.go", "	if e.bytes += len(v.raw); e.bytes > e.limits.Bytes {", "	if false {", "./internal/expression", "Limits",
	},
	{
		"half-to-even", "numbers are rounded half to even",
		"internal/expression/number.go", "	Rounding: apd.RoundHalfUp,", "	Rounding: apd.RoundHalfEven,", "./internal/expression", "",
	},
	{
		"null-decides", "null ends and as false does",
		"internal/expression/node.go", "		case v.kind == null:\n			unknown = true\n		case v.kind != boolean:", "		case v.kind == null:\n			return value{}, nil\n		case v.kind != boolean:", "./internal/expression", "",
	},
	{
		"minus-in-key", "$ref:a.total-5 is read as a key",
		"internal/expression/scan.go", "	if i := minusInPath(text); i >= 0 {", "	if i := minusInPath(text); false {", "./internal/expression", "",
	},
	{
		"equal-by-bytes", "numbers are equal only if they are written alike",
		"internal/expression/compare.go", "		n, err := e.compareNumbers(a, b)\n		return n == 0, err", "		return string(a.raw) == string(b.raw), nil", "./internal/expression", "",
	},
	{
		"taken-untaken", "a step runs though what it plainly refers to was not taken",
		"machine/taking.go", "	case sc.standing(r).lacks(s):", "	case false:", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-alternatives", "a failure among alternatives skips though another of them succeeded",
		"machine/standing.go", "		case succeeded:\n			return -1\n		case failed, skipped, cancelled:", "		case succeeded:\n		case failed, skipped, cancelled:", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-handled", "a failure counts as handled though the step that names it did not succeed",
		"machine/standing.go", "r.plan.Steps[d].Regards(i) && r.call(d).state == succeeded", "r.plan.Steps[d].Regards(i)", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-handled-instead", "a failure counts as handled though the step that had an alternative did not succeed",
		"machine/standing.go", "by < 0 && r.call(d).state == succeeded", "by < 0", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-early", "what becomes of a step is decided before all that it refers to is over",
		"machine/settle.go", "			dep.missing--\n", "			if dep.missing--; sc.plan.Language > 1 {\n				dep.missing = 0\n			}\n", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-unread", "a condition over what lies in a blob is decided without its record",
		"machine/taking.go", "	case slices.ContainsFunc(s.If.Reads, sc.standing(r).inBlob), s.If.TakesInput && sc.input.away:", "	case false:", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-told", "an owner does not follow what was told of a condition",
		"machine/taking.go", "r.judged(t.Step, t.Holds, t.Error)", "r.judged(t.Step, true, nil)", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-cancelled", "a cancelled run waits for what a condition came to",
		"machine/apply.go", "	case waiting, held, judging, deriving, weighing, asking, closing, fitting:", "	case waiting, held, deriving, weighing, asking, closing, fitting:", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-order", "steps are decided in the order in which they were reached",
		"machine/taking.go", "	at, _ := slices.BinarySearch(q.steps[q.next:], step)", "	at := len(q.steps) - q.next", "./machine", "Scenarios|Stopped",
	},
	{
		"taken-uncounted", "steps are let through though an uncounted list may lead to a condition that fails",
		"machine/items.go", "(len(r.early) > 0 || r.root.plan.Language > 1)", "len(r.early) > 0", "./machine", "Scenarios|Stopped",
	},
	{
		"value-unread", "a value of what lies in a blob is derived without its record",
		"machine/derive.go", "s.ReadsAny(sc.standing(r).inBlob)", "s.ReadsAny(func(int) bool { return false })", "./machine", "Scenarios|Stopped|Value",
	},
	{
		"value-told", "an owner does not follow what was told of a value",
		"machine/taking.go", "		r.values.derived(r, t.Step, t.Value, rec.Time, out)", "		r.values.derive(r, t.Step, rec.Time, out)", "./machine", "Scenarios|Stopped|Value",
	},
	{
		"value-cancelled", "a cancelled run waits for what a value comes to",
		"machine/apply.go", "	case waiting, held, judging, deriving, weighing, asking, closing, fitting:", "	case waiting, held, judging, weighing, asking, closing, fitting:", "./machine", "Scenarios|Stopped|Value",
	},
	{
		"stream-unkept", "a run is not kept open while text of its plan comes of which nothing can be sent",
		"client/stream_away.go", "	if !came || s.run == nil", "	if came || s.run == nil", "./client", "TextThatComes",
	},
	{
		"stream-kept-for-ever", "a run is kept open though no text comes any more",
		"client/stream_away.go", "	s.comes = false\n", "", "./client", "TextThatIsSilent",
	},
	{
		"another-is-meant", "what is asked of a run that is over is done to the next of its id",
		"orchestrator/api.go", "	case meant > 0 && meant < r.generation:", "	case meant > 0 && meant < r.generation && r.phase == finished:", "./orchestrator", "TheRunThatIsMeant",
	},
	{
		"state-anything", "a result that breaks the schema of the state is a success",
		"machine/fit.go", "			return refuse(s, err)", "			_ = err\n			return succeeded", "./machine", "Scenarios",
	},
	{
		"state-unread", "a result that lies in a blob is not held against the schema of the state",
		"machine/fit.go", "	if s.result.Value != nil && !v.effort.Spent() {", "	if s.result.Value == nil {\n		return succeeded\n	}\n	if !v.effort.Spent() {", "./machine", "Scenarios",
	},
	{
		"state-told", "an owner does not follow what was told of a result that lies in a blob",
		"machine/fit.go", "	to := refuse(s, t.Error)", "	to := refuse(s, nil)", "./machine", "Scenarios",
	},
	{
		"state-room", "a call whose result is still to be held against the state takes room",
		"machine/fit.go", "		r.scopeOf(i).bounded().take(-1)\n", "", "./machine", "Scenarios",
	},
	{
		"state-cancelled", "a cancelled run waits for whether a result fits the state",
		"machine/apply.go", "weighing, asking, closing, fitting:", "weighing, asking, closing:", "./machine", "Scenarios",
	},
	{
		"state-of-before", "a run that was started before results were held against the state has them held after a takeover",
		"orchestrator/judge.go", "Unheld: !slices.Contains(start.Needs, plan.StateSchema)", "Unheld: false", "./orchestrator", "StateIsHeld",
	},
	{
		"state-alone", "what a result lacks is a mistake though another call writes it",
		"internal/dialect/held.go", "k.method == \"merge\" || blueprint{c}.shared(step, p)", "k.method == \"merge\"", "./machine", "Scenarios",
	},
	{
		"value-room", "values that double are not bounded together",
		"machine/derive.go", "	v.held += res.Size\n", "", "./machine", "Value",
	},
	{
		"value-meanwhile", "a value that was recorded is not counted where its record stands",
		"machine/derive.go", "err == nil && res.Size > v.room()", "false", "./machine", "Value",
	},
	{
		"value-loop", "an owner's loop builds values of any size",
		"machine/derive.go", "	return value, err, !left.Spent() && !large", "	return value, err, !large", "./machine", "Value",
	},
	{
		"calc-lenient", "a value is derived though what it plainly refers to was not taken",
		"plan/need.go", "needsOf(calcs[h.calc-1], h.targets, true)", "needsOf(calcs[h.calc-1], h.targets, false)", "./machine", "Scenarios|Match",
	},
	{
		"calc-elsewhere", "an object with $calc in arguments is calculated",
		"plan/value.go", "	if only && w.calc && key == \"$calc\" {", "	if only && key == \"$calc\" {", "./plan", "Value",
	},
	{
		"calc-built", "a value is built before it is known to be too large",
		"plan/arguments.go", "		if size > most { // nothing more is read\n			return nil, r.tooLarge(size)\n		}\n	}\n	if size > most {\n		return nil, r.tooLarge(size)\n	}\n", "	}\n", "./plan", "Value|TooLarge",
	},
	{
		"value-reused", "a retry takes values over",
		"orchestrator/reuse.go", "!ok || p.Steps[at].Value { // values are derived anew", "!ok {", "./orchestrator", "RetryDerives",
	},
	{
		"ask-nobody", "a step begins without the approval that its plan asks for",
		"machine/tree.go", "	return p.Ask || p.Approval != nil || t.Contract(s.Step).Approval == tool.AlwaysApprove\n}\n\n// weighs", "	return p.Ask || t.Contract(s.Step).Approval == tool.AlwaysApprove\n}\n\n// weighs", "./machine", "Scenarios",
	},
	{
		"ask-no-contract", "a plan can leave out the approval that a contract asks for",
		"machine/tree.go", "	return a != \"\" && a != tool.AlwaysApprove", "	return a == tool.AlwaysApprove", "./machine", "Scenarios",
	},
	{
		"ask-any-digest", "an answer to something else counts",
		"machine/asking.go", "a.Number != q.Number || a.Digest != q.Digest ||", "a.Number != q.Number ||", "./machine", "Scenarios",
	},
	{
		"ask-same-number", "after a void answer the question is asked under the same number",
		"machine/asking.go", "q.Number, q.expiring = a.Number+1, false", "q.expiring = false", "./machine", "Scenarios",
	},
	{
		"ask-timeout-approves", "no answer in time stands for the approval that a contract asks for",
		"machine/asking.go", "	case r.Contract(c.Step).Approval != \"\", q != nil && q.guard > 0:\n", "	case q != nil && q.guard > 0:\n", "./machine", "Scenarios",
	},
	{
		"ask-error-is-no", "a contract's condition that can't be decided asks nobody",
		"machine/weighing.go", "	if !t.Holds && t.Error == nil {", "	if !t.Holds {", "./machine", "Scenarios",
	},
	{
		"ask-deadline-early", "the items of a step have the time of their step, asked or not",
		"machine/tree.go", "	return p.Ask || p.Approval != nil || t.Contract(step).Approval != \"\"", "	return false", "./machine", "Scenarios",
	},
	{
		"ask-worker-decides", "a record of a worker decides a step that nobody has approved of",
		"machine/apply.go", "	case !there || r.calls[i].state == waiting || res.Attempt > int(r.calls[i].attempt):",
		"	case !there || r.calls[i].state == waiting || res.Attempt > int(r.calls[i].attempt) && !r.calls[i].state.asks():", "./machine", "Scenarios",
	},
	{
		"ask-unshown", "a question that can't be shown waits as long as its run",
		"orchestrator/questions.go", "				qs.post(func() { qs.unshown(r, q, err) })\n", "				qs.log.Debug(err.Message)\n", "./orchestrator", "NobodyKeepsAsking",
	},
	{
		"ask-forged-header", "who answers is believed by a header that anybody may write",
		"wire/answer.go", "	if !subjects.Imported(m.Reply) {", "	if false {", "./wire", "Verifies|Requester",
	},
	{
		"guard-opens", "a contract's condition that comes to null asks nobody",
		"tool/guard.go", "return holds || !known || why != nil, why", "return holds || known && false || why != nil, why", "./tool", "Approval",
	},
	{
		"guard-of-one-form", "a contract's condition counts for one way of calling a batch only",
		"tool/approval.go", "	if c.Batch == nil {", "	if true {", "./tool", "Approval",
	},
	{
		"ask-forged-bytes", "a header is believed, some bytes of which were not read",
		"wire/answer.go", "m.Size() == read.Size()", "m.Size() >= read.Size()", "./internal/acl", "NoBytes",
	},
	{
		"dialect-sees-itself", "a call of the state dialect sees what it writes itself",
		"internal/dialect/reading.go", "\tbefore := func(w writer) bool { return w.call < v.call }", "\tbefore := func(w writer) bool { return w.call <= v.call }", "./internal/dialect", "Agree",
	},
	{
		"dialect-initial-last", "the initial state doesn't stand before all calls",
		"internal/dialect/reading.go", "\t\tv.others = r.initial == 0 && !here.any(before)", "\t\tv.others = !here.any(before)", "./internal/dialect", "Agree",
	},
	{
		"dialect-no-guard", "a call is taken though a result lacks the path that it reads",
		"internal/dialect/words.go", "o.unsure || len(o.rest) > 0 || w.named[o.step]", "o.unsure || w.named[o.step]", "./internal/dialect", "Agree",
	},
	{
		"dialect-goes-on", "alternatives go on behind one that is always there",
		"internal/dialect/origin.go", "\t\tif ok = ok && fine; !s.sure() {", "\t\tif ok = ok && fine; s.constant == nil {", "./internal/dialect", "Agree",
	},
	{
		"dialect-pushes-null", "null is pushed to a list",
		"internal/dialect/assemble.go", `		x = "(" + x + " == null ? null : [" + x + "])"`, `		x = "[" + x + "]"`, "./internal/dialect", "Agree",
	},
	{
		"dialect-hides-failures", "what is put together hides the failures of its parts",
		"internal/dialect/assemble.go", "\tif len(needs) == 0 {", "\tif true {", "./internal/dialect", "Agree",
	},
	{
		"dialect-error-of-all", "a call that was skipped writes an error, too",
		"internal/dialect/state.go", "` == 'failed'\",\"value\"", "` != 'succeeded'\",\"value\"", "./internal/dialect", "Agree",
	},
	{
		"dialect-language-1", "a plan of the state dialect may be owned by who doesn't know it",
		"plan/dialect.go", "parse(d.Plan, c, l, true)", "parse(d.Plan, c, l, false)", "./internal/dialect", "Cases",
	},
	{
		"taken-evaluated-once", "who takes over from an owner that died before it recorded what a condition or a value came to does not evaluate it",
		"orchestrator/evaluator.go", "	if r.evaluating[of] || ", "	if !r.live || r.evaluating[of] || ", "./orchestrator", "SimulatedWorlds",
	},
	{
		"unread-header", "a header with bytes that were not read is believed to say who asks",
		"wire/answer.go", " && m.Size() == read.Size()", " && (true || m.Size() == read.Size())", "./internal/acl", "NoBytes",
	},
	{
		"approval-too-early", "a tool that asks for approvals is registered while an orchestrator is alive that does not know of them",
		"kv/registry_needs.go", "	case id != \"\":\n", "	case false:\n", "./kv", "Approval",
	},
	{
		"override-for-all", "an override does not say that it asks for approvals",
		"kv/registry_override.go", "	if o.Guards() {", "	if false {", "./kv", "Approval",
	},
	{
		"old-entry-unguarded", "what an orchestrator has registered that does not know of approvals asks for none",
		"kv/registry_tools.go", "	t.Guard()\n", "", "./kv", "Approval",
	},
	{
		"room-uncounted", "calls are let in before a list is counted whose items come first",
		"machine/room.go", "r.rooms.first >= 0 && r.uncounted == 0 {", "r.rooms.first >= 0 {", "./machine", "Scenarios|Stopped",
	},
	{
		"room-kept", "a call that is decided keeps its room",
		"machine/settle.go", "			sc.bounded().take(-1)\n", "", "./machine", "Scenarios",
	},
	{
		"room-order", "room goes to the calls in the order in which they came",
		"machine/room.go", "	x.held = slices.Insert(x.held, at, i)", "	x.held = append(x.held, max(at, i))", "./machine", "Scenarios|Stopped",
	},
	{
		"room-record", "what waits for room is asked to be decided when its list fails",
		"machine/items.go", "		case x.state == held, x.state.asks():\n", "		case x.state == held:\n			r.askDecision(c, out)\n		case x.state.asks():\n", "./machine", "Scenarios|Stopped",
	},
	{
		"output-stop", "a stop counts that comes behind the last step",
		"machine/apply.go", "r.stop != nil || r.root.over() {", "r.stop != nil {", "./machine", "Scenarios",
	},
	{
		"output-strict", "what is missing of a run that did not succeed fails its output",
		"machine/shape.go", "Output(sc.lenient(r), seen", "Output(false, seen", "./machine", "Scenarios",
	},
	{
		"output-unread", "an output is made without what lies in blobs",
		"machine/shape.go", "	if slices.ContainsFunc(shape.Reads, sc.standing(r).inBlob) || shape.TakesInput && sc.input.away {", "	if shape == nil {", "./machine", "Scenarios|RandomPlans",
	},
	{
		"scope-partial", "a composite succeeds with a part of its plan though its step doesn't say so",
		"machine/enter.go", "	return r.stepOf(i).Partial && sc.anyOutput(r)", "	return (r.stepOf(i).Partial || true) && sc.anyOutput(r)", "./machine", "RandomScopes",
	},
	{
		"scope-goes-on", "what stops a plan doesn't stop the plans within it",
		"machine/apply.go", "r.calls[i].state == entered && x.goesOn()", "false && x.goesOn()", "./machine", "StopsAPlan",
	},
	{
		"regrown-at-once", "a stream that somebody deletes is created anew while the server is at that still",
		"kv/account_api.go", "now.Sub(since) >= regrowAfter", "true", "./kv", "CreatedAnewAtOnce",
	},
	{
		"failure-stays", "a plan within another that took too long goes on where the state is computed anew",
		"machine/scope.go", "sc.failure = sc.base(), nil, nil\n", "_ = sc.base(), nil, sc.plan\n", "./machine", "RandomScopesThatStop",
	},
	{
		"late-at-once", "a plan within another took too long for whoever has yet to read its input, though it was over",
		"machine/items.go", "	if s.state != expanding || r.stepOf(i).Plan == nil ||", "	if true || s.state != expanding || r.stepOf(i).Plan == nil ||", "./machine", "RandomScopesThatStop",
	},
	{
		"scope-room-inner", "a call needs room in the nearest plan alone",
		"machine/room.go", "		x.taken += n\n", "		x.taken += n\n		n = 0\n", "./machine", "RandomScopes",
	},
	{
		"scope-unbounded", "the steps of all items may be more than a run may have",
		"machine/items.go", "	if p == nil || int(r.steps)+n*len(p.Steps) <= plan.MaxSteps {", "	if p == nil || plan.MaxSteps > 0 {", "./machine", "TooManySteps",
	},
	{
		"scope-digest", "what a person is asked about within a composite is the same whatever its input is",
		"machine/asking.go", "	if sc.outer != nil {\n		sum := r.digestInputs", "	if false {\n		sum := r.digestInputs", "./machine", "QuestionWithin",
	},
	{
		"scope-answer-lost", "an answer that comes before its scope is entered uses no number up",
		"machine/asking.go", "		r.spend(name, a.Number) // of", "		if a.Token == \"\" {\n			r.spend(name, a.Number)\n		} // of", "./machine", "AnswerBefore",
	},
	{
		"scope-blind-dry-run", "dry runs take a composite's result for certain whatever it is made of",
		"internal/dryrun/arguments.go", "t.certainInput(step) && (s.Value || t.certainWithin(s.Plan) && (s.Repeat == nil || s.Repeat.Until == nil))", "s.Plan != nil || t.certainInput(step)", "./internal/dryrun", "PlanOfAStep",
	},
	{
		"asked-after-the-stop", "a run that stops goes on asking",
		"machine/apply.go", "	case waiting, held, judging, deriving, weighing, asking, closing, fitting:", "	case waiting, held, judging, deriving, weighing, closing, fitting:", "./machine", "Scenarios",
	},
	{
		"items-still-asked", "items go on asking though one of them has failed the step",
		"machine/items.go", "		case x.state == held, x.state.asks():\n", "		case x.state == held:\n", "./machine", "Scenarios",
	},
	{
		"void-number-again", "a question is asked under a number that a void answer has used up before",
		"machine/questions.go", "q.Number, q.open = qs.spent[name]+1, true", "q.Number, q.open = 1, true", "./machine", "Scenarios",
	},
	{
		"loop-after-a-stop", "a loop goes on though its scope stops",
		"machine/loop.go", "	case r.halting(i):\n		r.end(i, cancelled, at, out)\n	case last:", "	case last:", "./machine", "Scenarios",
	},
	{
		"loop-own-last", "an iteration takes itself for the last",
		"machine/sight.go", "	if !t.over {\n		n--\n	}\n", "	n--\n", "./machine", "RandomScopes",
	},
	{
		"loop-blind-until", "whether a loop is over is derived by owners that can't read what it returned",
		"machine/loop.go", "until.TakesLast && after.inBlob()", "false", "./machine", "Scenarios",
	},
	{
		"loop-hurry", "iterations don't wait as the loop says",
		"machine/loop.go", "	if s.Repeat.Every > 0 && sc.iteration > 1 {", "	if false {", "./machine", "Scenarios",
	},
	{
		"loop-endless", "iterations don't count among the steps of a run",
		"machine/loop.go", "	if int(r.steps)+steps > plan.MaxSteps {", "	if false {", "./orchestrator", "ManyIterations",
	},
	{
		"loop-asked-once", "what a person is asked about in an iteration is the same whatever the one before came to",
		"machine/asking.go", "	if sc.iteration > 1 {\n		digestResult", "	if false {\n		digestResult", "./machine", "IterationsAreAskedAbout",
	},
	{
		"loop-at-its-end-again", "a retry takes over the iterations of a loop that ran as often as it may, and comes to the same end",
		"orchestrator/reuse.go", "	if st.Status == outcome.StepFailed && !st.FailedWithin() {", "	if false {", "./orchestrator", "GoesOnWithALoop",
	},
	{
		"loop-past-max", "a record is taken for an iteration's that a loop can't have",
		"plan/plan.go", "			if x.Number >= s.Repeat.Max {", "			if x.Number > s.Repeat.Max {", "./plan", "FindIterations",
	},
	{
		"template-of-now", "who takes a run over reads its templates as they are now",
		"orchestrator/registry.go", "k != nil && k.Digest == digest {", "k != nil {", "./orchestrator", "KeepsItsTemplates",
	},
	{
		"template-takes-all", "an input is not held against the schema of its template",
		"machine/enter.go", "	case err == nil && s.HasRefs: ", "	case false: ", "./machine", "Template",
	},
	{
		"template-returns-all", "what a template comes to is not held against its output schema",
		"machine/shape.go", "err = r.stepOf(i).Template.Returns(value)", "_ = i", "./machine", "Template",
	},
	{
		"template-uncounted", "the steps of the templates that a template calls don't count",
		"plan/called.go", "	c.expanded += v.steps\n", "	c.expanded += len(v.plan.Steps)\n", "./plan", "WrongWithACall",
	},
	{
		"template-by-workers", "a worker may say what a plan calls",
		"kv/registry.go", "	if !def.Hosted() {\n		what := ", "	if false {\n		what := ", "./orchestrator", "AppliedAsSuch",
	},
	{
		"template-too-early", "a template is registered while an orchestrator is alive that takes it for a tool without workers",
		"kv/registry.go", " || !def.Hosted() {\n		t.Needs", " {\n		t.Needs", "./kv", "ATemplateWaits",
	},
	{
		"template-retried-blind", "a retry takes over what was done in a template that is another now",
		"orchestrator/reuse.go", "!bytes.Equal(t.Plan, x.doc.Templates[s.Tool])", "false", "./orchestrator", "RetryWithinATemplate",
	},
	{
		"template-for-all", "a template of one tenant is checked against the tools of all",
		"orchestrator/catalog.go", "of[0].all = true; len(d.Tenants) > 0 {", "of[0].all = true; false {", "./orchestrator", "TenantsOfTemplates",
	},
	{
		"withheld-is-new", "a run that was taken over is compared again and again as long as a step of it is withheld",
		"orchestrator/notes.go", "		if released = !c.withholds(d); released {", "		if released = true; released {", "./orchestrator", "WhatIsWithheld",
	},
	{
		"amend-any-number", "an amendment counts that is not the next of its scope",
		"machine/amend.go", "a.Revision != x.sc.revision()+1 {", "a.Revision <= x.sc.revision() {", "./machine", "Scenarios",
	},
	{
		"stream-agent", "a streamed plan begins without its agent, which no amendment adds",
		"client/stream.go", "			s.options.Whole = true // no amendment adds it", "			s.options.Whole = false // no amendment adds it", "./client", "AgentsOfStreams",
	},
	{
		"stream-behind", "a streamed plan whose options stand behind its steps begins without them",
		"client/stream.go", "			if !s.sends() {\n				continue", "			if false {\n				continue", "./client", "OptionsRightBehind",
	},
	{
		"amend-begun", "a step that is out is written again",
		"machine/consider.go", "		case c.state != waiting || c.discarded != notDiscarded:", "		case c.discarded != notDiscarded:", "./machine", "Scenarios",
	},
	{
		"amend-half", "a stale amendment discards all the same",
		"machine/amend.go", "		x.isStale(err, out)\n", "		x.isStale(err, out)\n		x.discardAll(rec.Time, out)\n", "./machine", "Scenarios",
	},
	{
		"amend-retries", "a step that was discarded is tried again",
		"machine/apply.go", "r.calls[s.Step].halted || discardedAbove(&r.tree, i)\n", "r.calls[s.Step].halted\n", "./machine", "Scenarios",
	},
	{
		"amend-counts", "a step that was discarded counts for the status",
		"machine/standing.go", " || r.call(i).discarded != notDiscarded {", " {", "./machine", "Scenarios",
	},
	{
		"amend-gone", "a step may refer to one that is gone, and waits for it as long as its run",
		"machine/amending.go", "	if c.discarded > discardedOver {\n		return true\n	}\n", "", "./machine", "Scenarios",
	},
	{
		"amend-certain", "what follows from an amendment is sent while a list may still make it stale",
		"machine/run.go", "	r.stops = r.stops || rec.Amendment != nil || rec.Round != nil || rec.Say != nil // from now on the order counts\n", "", "./machine", "Scenarios",
	},
	{
		"amend-open", "an open plan is over with its steps",
		"machine/scope.go", "	case !sc.plan.Open || sc.stopping:", "	case sc.remaining == 0:", "./machine", "Scenarios",
	},
	{
		"amend-early", "steps that became ready by what an amendment discards are taken before all that it adds is there",
		"machine/amending.go", "	sc.reached.taking = true // nobody is taken before all that is added is there\n", "", "./machine", "Scenarios|RandomAmendments",
	},
	{
		"amend-outcome", "what an amendment adds is missing among the results of a plan that returns all",
		"plan/amend.go", "	if !p.AllOutputs {", "	if len(p.Steps) > 0 {", "./plan", "Amend",
	},
	{
		"amend-again", "a step can't refer to one that is written again with it",
		"plan/amend.go", " && !x.again[d] && ", " && ", "./plan", "Amend",
	},
	{
		"amend-places", "a step that is written again keeps the places of what it was",
		"machine/amending.go", "			s.below, added.below[k] = added.below[k], s.below\n", "", "./machine", "ComeToStandElsewhere",
	},
	{
		"amend-read-anew", "of what an amendment came to when it was read only the last is kept, and its lists are asked for without end",
		"machine/amending.go", "		k = len(a.readings)\n		a.readings = append(a.readings, ", "		k = 0\n		a.readings = append(a.readings[:0], ", "./machine", "ReadInTwoPlaces",
	},
	{
		"amend-loop", "the plan of a loop's iteration, which nobody wrote, is amended as that of the loop",
		"machine/names.go", "sc != nil && sc.iteration == 0 {", "sc != nil {", "./machine", "Scenarios/amendments",
	},
	{
		"amend-template", "the plan of a template is amended where it is called",
		"machine/consider.go", "	if name := x.calledBy(); name != \"\" {", "	if name := x.calledBy(); false {", "./orchestrator", "AmendmentsCallTemplates",
	},
	{
		"approve-no-amendment", "an amendment of a plan that was approved is in force at once",
		"machine/waiting.go", "return Approves(x.Run) && !x.a.Approved", "return false", "./machine", "Scenarios",
	},
	{
		"approve-for-ever", "a person is asked about an amendment of a plan that is over",
		"machine/enter.go", "	dropProposal(sc)\n", "", "./machine", "Scenarios",
	},
	{
		"approve-closed", "an open plan is closed while an amendment of it waits",
		"machine/waiting.go", "	sc.amended.until, sc.amended.expiring = time.Time{}, false\n", "", "./machine", "Scenarios",
	},
	{
		"approve-beside", "a plan is amended while another amendment of it waits",
		"machine/waiting.go", "w := x.sc.amended.proposal(); w != nil {", "w := x.sc.amended.proposal(); false && w != nil {", "./machine", "Scenarios|RandomApproved",
	},
	{
		"approve-by-anybody", "whoever amends a plan that was approved is taken for one who may approve",
		"orchestrator/api_amend.go", "rec.Approved = a.approved && machine.ApprovesOf(a.r.machine, a.asks.Scope)\n	rec.Approves", "rec.Approved = machine.ApprovesOf(a.r.machine, a.asks.Scope)\n	rec.Approves", "./orchestrator", "ApprovedAmendments",
	},
}, slices.Concat(ofAgents, ofInquiries, ofLettingGo, ofFigures, ofStreams, ofModels)...)
