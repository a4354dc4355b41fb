package subjects

import (
	"strconv"
	"strings"
)

// With one ledger shard the ledger's stream takes IntakeFilter itself. With more, shard i takes plan.in.i.*.*: Go
// clients publish there, and an account mapping (IntakeMapping) leads what stock clients publish to plan.submit the
// same way.

// ShardIntakeFilter returns the subjects of plans that a ledger shard takes, where there are shards of them.
func ShardIntakeFilter(shard, shards int) string {
	if shards == 1 {
		return IntakeFilter
	}
	return "plan.in." + strconv.Itoa(shard) + ".*.*"
}

// ShardIntakeTarget returns the destination of a ledger shard's subject transform, whose source is ShardIntakeFilter.
func ShardIntakeTarget(shard, shards int) string {
	if shards == 1 {
		return IntakeTarget()
	}
	return LedgerPrefix(shard) + "{{partition(" + strconv.Itoa(Partitions) + ",2)}}.{{wildcard(1)}}.{{wildcard(2)}}.plan"
}

// SubmitTo returns the subject that a Go client publishes a plan to, where there are shards ledger shards.
func SubmitTo(r Run, shards int) string {
	if shards == 1 {
		return Submit(r.Tenant, r.ID)
	}
	return "plan.in." + strconv.Itoa(LedgerShard(r.Partition(), shards)) + "." + r.Tenant + "." + r.ID
}

// IntakeMapping returns source and destination of the account mapping that serves stock clients where there is more
// than one ledger shard.
func IntakeMapping(shards int) (source, destination string) {
	return IntakeFilter, "plan.in.{{partition(" + strconv.Itoa(shards) + ",2)}}.{{wildcard(1)}}.{{wildcard(2)}}"
}

// ParseSubmit reads a subject that a plan is published to, with or without a shard.
func ParseSubmit(subject string) (Run, bool) {
	t := strings.Split(subject, ".")
	switch {
	case len(t) == 4 && t[0] == "plan" && t[1] == "submit":
		return Run{t[2], t[3]}, true
	case len(t) == 5 && t[0] == "plan" && t[1] == "in":
		return Run{t[3], t[4]}, true
	}
	return Run{}, false
}

// StreamOf returns the stream that a subject of a bucket or of a step stream is stored in; "" for any other subject.
func StreamOf(subject string) string {
	if rest, ok := strings.CutPrefix(subject, "$KV."); ok {
		if bucket, _, ok := strings.Cut(rest, "."); ok {
			return "KV_" + bucket
		}
		return ""
	}
	t := strings.SplitN(subject, ".", 3)
	if len(t) > 1 && (t[0] == "step" || t[0] == "sched" || t[0] == "sentinel") {
		return "STEPS_" + t[1]
	}
	return ""
}
