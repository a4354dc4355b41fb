package doctor

import (
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	allowRollup = "allow_rollup"
	rollupMeans = "by a header, whoever may write one message removes all others"
)

// difference is a setting of a stream that is not what it should be.
type difference struct {
	name, want, have string
	means            string // what it costs
	// set puts the wanted value into a configuration for an update; nil where the server takes no such update.
	set func(*jetstream.StreamConfig)
}

// differences compares the settings that Stepjet's promises rest on. What an operator may choose freely (descriptions,
// compression, placement, metadata of others, a size limit) is left alone, but for a size limit on steps, which would
// lose them.
func differences(want, have jetstream.StreamConfig) []difference {
	return slices.Concat(contentDifferences(want, have), createOnceDifferences(want, have), limitDifferences(want, have),
		placeDifferences(want, have))
}

func differs[T comparable](all *[]difference, name, means string, want, have T, set func(*jetstream.StreamConfig)) {
	if want != have {
		*all = append(*all, difference{name, fmt.Sprint(want), fmt.Sprint(have), means, set})
	}
}

// contentDifferences are about what a stream takes.
func contentDifferences(want, have jetstream.StreamConfig) (all []difference) {
	if !sameSet(want.Subjects, have.Subjects) {
		all = append(all, difference{
			"subjects", fmt.Sprint(want.Subjects), fmt.Sprint(have.Subjects), "what is published elsewhere is stored nowhere",
			func(c *jetstream.StreamConfig) { c.Subjects = want.Subjects },
		})
	}
	differs(&all, "subject transform", "submitted plans do not reach the ledger", transformText(want.SubjectTransform),
		transformText(have.SubjectTransform),
		func(c *jetstream.StreamConfig) { c.SubjectTransform = want.SubjectTransform })
	differs(&all, "retention", "messages go too early or never", want.Retention, have.Retention, nil)
	differs(&all, "storage", "a restart of the server loses all of it", want.Storage, have.Storage, nil)
	differs(&all, "mirror", "the stream takes no messages of its own", want.Mirror != nil, have.Mirror != nil, nil)
	differs(&all, "sealed", "the stream takes nothing any more", want.Sealed, have.Sealed, nil)
	differs(&all, "no_ack", "a write is not acknowledged, so everything waits", want.NoAck, have.NoAck, func(c *jetstream.StreamConfig) { c.NoAck = want.NoAck })
	return all
}

// createOnceDifferences are about a record being written once and staying.
func createOnceDifferences(want, have jetstream.StreamConfig) (all []difference) {
	const once = "a record could be replaced or a second one stored"
	differs(&all, "max_msgs_per_subject", once, none(want.MaxMsgsPerSubject), none(have.MaxMsgsPerSubject), func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = want.MaxMsgsPerSubject })
	differs(&all, "discard", once, want.Discard, have.Discard, func(c *jetstream.StreamConfig) { c.Discard = want.Discard })
	differs(&all, "discard_new_per_subject", once, want.DiscardNewPerSubject, have.DiscardNewPerSubject, func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = want.DiscardNewPerSubject })
	var deny func(*jetstream.StreamConfig)
	if want.DenyDelete { // it can be set, but never taken back
		deny = func(c *jetstream.StreamConfig) { c.DenyDelete = true }
	}
	differs(&all, "deny_delete", "single records could be deleted", want.DenyDelete, have.DenyDelete, deny)
	differs(&all, "deny_purge", "finished runs can't be removed", want.DenyPurge, have.DenyPurge, nil)
	differs(&all, allowRollup, rollupMeans, want.AllowRollup, have.AllowRollup, func(c *jetstream.StreamConfig) { c.AllowRollup = want.AllowRollup })
	var ttl, schedules func(*jetstream.StreamConfig)
	if want.AllowMsgTTL {
		ttl = func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }
	}
	if want.AllowMsgSchedules {
		schedules = func(c *jetstream.StreamConfig) { c.AllowMsgSchedules = true }
	}
	differs(&all, "allow_msg_ttl", "messages could expire that must stay, or stay that must expire", want.AllowMsgTTL,
		have.AllowMsgTTL, ttl)
	differs(&all, "allow_msg_schedules", "retries can't wait for their time, or records could come by schedule",
		want.AllowMsgSchedules, have.AllowMsgSchedules, schedules)
	differs(&all, "subject_delete_marker_ttl", "an orchestrator's end is noticed later", want.SubjectDeleteMarkerTTL,
		have.SubjectDeleteMarkerTTL,
		func(c *jetstream.StreamConfig) { c.SubjectDeleteMarkerTTL = want.SubjectDeleteMarkerTTL })
	if want.Duplicates > 0 {
		differs(&all, "duplicate_window", "a repeated message id hides a message for that long", want.Duplicates, have.Duplicates, func(c *jetstream.StreamConfig) { c.Duplicates = want.Duplicates })
	}
	return all
}

// limitDifferences are about when a stream drops or refuses messages.
func limitDifferences(want, have jetstream.StreamConfig) (all []difference) {
	const drops = "messages that are needed are dropped or refused"
	differs(&all, "max_age", "what it holds expires too early or too late", want.MaxAge, have.MaxAge, func(c *jetstream.StreamConfig) { c.MaxAge = want.MaxAge })
	differs(&all, "max_msgs", drops, none(want.MaxMsgs), none(have.MaxMsgs), func(c *jetstream.StreamConfig) { c.MaxMsgs = -1 })
	means := drops
	if want.MaxMsgSize > 0 {
		means = "the orchestrators' memory takes records as large as somebody writes them, or plans are refused"
	}
	differs(&all, "max_msg_size", means, none(int64(want.MaxMsgSize)), none(int64(have.MaxMsgSize)), func(c *jetstream.StreamConfig) { c.MaxMsgSize = int32(none(int64(want.MaxMsgSize))) })
	differs(&all, "max_consumers", "a tool or an orchestrator gets no consumer", none(int64(want.MaxConsumers)),
		none(int64(have.MaxConsumers)), nil)
	_, steps := stepShard(want.Name)
	if steps || want.MaxBytes > 0 {
		differs(&all, "max_bytes", drops, none(want.MaxBytes), none(have.MaxBytes), func(c *jetstream.StreamConfig) { c.MaxBytes = none(want.MaxBytes) })
	}
	return all
}

// placeDifferences are about copies and flushing.
func placeDifferences(want, have jetstream.StreamConfig) (all []difference) {
	differs(&all, "replicas", "the loss of a node loses what has no copy elsewhere, or more nodes write than need to",
		want.Replicas, have.Replicas,
		func(c *jetstream.StreamConfig) { c.Replicas = want.Replicas })
	if have.PersistMode == jetstream.AsyncPersistMode {
		// For steps, which are derived, it is a choice; see durability. The server takes it with one replica only.
		if _, steps := stepShard(want.Name); !steps || want.Replicas > 1 {
			differs(&all, "persist_mode", "a killed server loses what it acknowledged, and a stream with copies can't have it",
				want.PersistMode, have.PersistMode, nil)
		}
	}
	if want.AllowDirect { // where it is not needed it does no harm
		differs(&all, "allow_direct", "programs that may not ask the stream's leader can't read", true, have.AllowDirect,
			func(c *jetstream.StreamConfig) { c.AllowDirect = true })
	}
	return all
}

// none writes a limit as the server does: where there is none, as -1.
func none(n int64) int64 {
	if n <= 0 {
		return -1
	}
	return n
}

func transformText(t *jetstream.SubjectTransformConfig) string {
	if t == nil {
		return "none"
	}
	return t.Source + " → " + t.Destination
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}
