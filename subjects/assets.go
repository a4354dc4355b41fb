package subjects

import (
	"strconv"
	"strings"
)

// BlobsOf returns the bucket of a declared tenant's large values. Those of all other tenants lie in BlobsBucket. A
// tenant is made of what a bucket's name may hold, so its name stands there as it is.
func BlobsOf(tenant string) string { return BlobsBucket + "-" + tenant }

// OwnBlobs reports whether large values of a tenant may lie in a bucket; none is BlobsBucket. Whoever reads a handle
// asks: it may say anything, and another tenant's values are nobody else's.
func OwnBlobs(bucket, tenant string) bool {
	return bucket == "" || bucket == BlobsOf(tenant) && ValidTenant(tenant)
}

// BlobsStream returns the stream of a bucket of large values, BlobsSubjects what it takes, as every client makes an
// object store.
func BlobsStream(bucket string) string { return "OBJ_" + orBlobs(bucket) }

// BlobsSubjects returns the subjects of a bucket of large values: of chunks and of descriptions.
func BlobsSubjects(bucket string) []string {
	return []string{blobs(bucket) + ".C.>", blobs(bucket) + ".M.>"}
}

// TenantOfBlobs returns the tenant that a stream holds the large values of; false where it is no declared tenant's.
func TenantOfBlobs(stream string) (tenant string, ok bool) {
	tenant, ok = strings.CutPrefix(stream, BlobsStream(BlobsOf("")))
	return tenant, ok && ValidTenant(tenant)
}

func blobs(bucket string) string { return "$O." + orBlobs(bucket) }

func orBlobs(bucket string) string {
	if bucket == "" {
		return BlobsBucket
	}
	return bucket
}

// ParseStepsStream returns the tool shard of a step stream.
func ParseStepsStream(stream string) (shard int, ok bool) {
	rest, ok := strings.CutPrefix(stream, "STEPS_")
	if !ok {
		return 0, false
	}
	shard, err := strconv.Atoi(rest)
	return shard, err == nil && shard >= 0 && strconv.Itoa(shard) == rest
}

// ToolOfDurable returns the tool whose durable consumer has a name; false where the name is a hash, or none of
// Stepjet's.
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

// NeedKey returns the key of the registry bucket that says that some run needs something; NeedFilter matches all of
// them. It has two tokens, so that nobody takes it for a tool's.
func NeedKey(name string) string { return needs + name }

// NeedFilter is described at NeedKey.
const NeedFilter = needs + "*"

const needs = "=need."

// ParseNeedKey returns the need that a key of the registry bucket names.
func ParseNeedKey(key string) (name string, ok bool) { return strings.CutPrefix(key, needs) }

// ParseToolsKey reads a key of the registry bucket: of a tool, of a definition kept under its digest, or of an
// override.
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

// IntakeProbe returns two names of one plan: what a stock client publishes to, and where it must come out.
func IntakeProbe(r Run, shards int) (published, arrives string) {
	return Submit(r.Tenant, r.ID), SubmitTo(r, shards)
}
