package subjects

import (
	"strconv"
	"strings"
)

// BlobsStream gives the stream of the object store, BlobsSubjects what it takes, as every client makes an object store.
func BlobsStream() string { return "OBJ_" + BlobsBucket }

// BlobsSubjects gives the subjects of the object store: of chunks and of descriptions.
func BlobsSubjects() []string {
	return []string{"$O." + BlobsBucket + ".C.>", "$O." + BlobsBucket + ".M.>"}
}

// ParseStepsStream gives the tool shard of a step stream.
func ParseStepsStream(stream string) (shard int, ok bool) {
	rest, ok := strings.CutPrefix(stream, "STEPS_")
	if !ok {
		return 0, false
	}
	shard, err := strconv.Atoi(rest)
	return shard, err == nil && shard >= 0 && strconv.Itoa(shard) == rest
}

// ToolOfDurable gives the tool whose durable consumer has a name; false where the name is a hash, or none of Stepjet's.
func ToolOfDurable(durable string) (tool string, ok bool) {
	tool, ok = Decode(durable)
	return tool, ok && ValidTool(tool)
}

// AllSteps matches all steps that a step stream holds, dispatched or scheduled.
func AllSteps(shard int) string { return "*." + strconv.Itoa(shard) + ".>" }

// StartFilter matches the start records of a ledger shard, StepFilter the records that decide attempts.
func StartFilter(shard int) string { return LedgerPrefix(shard) + "*.*.*.*.start" }

// StepFilter matches the records of a ledger shard that decide attempts.
func StepFilter(shard int) string { return LedgerPrefix(shard) + "*.*.*.*.step.*.*.*" }

// LedgerFilter matches all records of a ledger shard.
func LedgerFilter(shard int) string { return LedgerPrefix(shard) + ">" }

// RunFilter matches all records of a run, of all its generations.
func RunFilter(r Run, shards int) string { return string(make(name, 0, room).ledger(r, shards)) + ">" }

// SealingKey is the key of the registry bucket that holds the public key which secrets are sealed to. It is no tool's,
// whose encoded names have hex digits behind "=", and has one token, as what every role may read.
const SealingKey = "=secrets"

// ParseToolsKey reads a key of the registry bucket: of a tool, of a definition kept under its digest, or of an override.
func ParseToolsKey(key string) (tool, digest, override string, ok bool) {
	if rest, is := strings.CutPrefix(key, "def."); is {
		return "", rest, "", rest != ""
	}
	if _, tool, is := ParseTenantOverrideKey(key); is {
		return "", "", tool, true
	}
	if rest, is := strings.CutPrefix(key, "override."); is {
		override, ok = Decode(rest)
		return "", "", override, ok
	}
	tool, ok = Decode(key)
	return tool, "", "", ok
}

// IntakeProbe gives two names of one plan: what a stock client publishes to, and where it must come out.
func IntakeProbe(r Run, shards int) (published, arrives string) {
	return Submit(r.Tenant, r.ID), SubmitTo(r, shards)
}
