package subjects

import (
	"strconv"
	"strings"
)

// Objects that calls of an agent return are sent to sinks, where its definition says so. Whatever a definition names lies below
// the tenant of the run, and is made of plain words: no name of a sink leads to another tenant, nor to what is Stepjet's own.

// SinksBucket is the KV bucket that objects are put into which go to a bucket. Stepjet does not make it.
const SinksBucket = "sinks"

// AllSinks matches all that objects are published on.
const AllSinks = sinks + ">"

const sinks = "sink."

// MaxSink is the most bytes of the name of a sink.
const MaxSink = 128

// ValidSinkSubject reports whether a definition may name such a subject: 1 to 8 words of [A-Za-z0-9_-], between them dots, of
// at most 128 bytes together.
func ValidSinkSubject(s string) bool {
	words := strings.Split(s, ".")
	for _, w := range words {
		if !word(w, MaxSink) {
			return false
		}
	}
	return len(words) <= 8 && len(s) <= MaxSink
}

// ValidSinkBucket reports whether a definition may name such a bucket: [A-Za-z0-9_-]{1,128}.
func ValidSinkBucket(s string) bool { return word(s, MaxSink) }

// SinkSubject returns where objects of a tenant's runs are published that go to a subject: sink.T.<subject>.
func SinkSubject(tenant, subject string) string { return sinks + tenant + "." + subject }

// SinkKey returns the key of the bucket "sinks" under which lies what a call returned that goes to a bucket: T.<bucket>.R.G.S.
func SinkKey(r Run, generation uint64, bucket, step string) string {
	return r.Tenant + "." + bucket + "." + r.ID + "." + strconv.FormatUint(generation, 10) + "." + step
}

// SinkID returns the message id of what a call returned and goes to a sink, in the order of its entry: T/R/G/S/=sink.<n>.
func SinkID(r Run, generation uint64, step string, n int) string {
	return string(make(name, 0, room).identity(r, generation).text("/", step, "/=sink.").int(n))
}

// TenantSinksFilter matches what objects of a tenant's runs are published on, TenantSinksKeys their keys in the bucket.
func TenantSinksFilter(tenant string) string { return SinkSubject(tenant, ">") }

// TenantSinksKeys is described at TenantSinksFilter.
func TenantSinksKeys(tenant string) string { return BucketSubject(SinksBucket, tenant+".>") }

// IsKey reports whether what goes to a sink goes to the bucket.
func IsKey(sink string) bool { return strings.HasPrefix(sink, BucketSubject(SinksBucket, "")) }
