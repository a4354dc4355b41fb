package wire

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Known reports whether this version of Stepjet can read the message: its version is absent or not higher than ours. Of a
// version with a dot, such as 1.2, only the number before it counts: what is new behind it may be ignored.
func Known(h nats.Header) bool { return known(h, ours) }

// KnownStart is Known for a start record, of which there are four versions. What the fourth needs has to be known besides.
func KnownStart(h nats.Header) bool { return known(h, ourNeeds) }

// KnownPlan is Known for a plan, which may have sealed values in its context.
func KnownPlan(h nats.Header) bool { return known(h, ourSealed) }

// KnownStep is Known for a step, which may have them too, and arguments in a declared tenant's bucket.
func KnownStep(h nats.Header) bool { return known(h, ourBucket) }

// KnownBucket is Known for what may have a handle that names a declared tenant's bucket: an outcome, a dead letter, an answer. Of
// these there is no version between.
func KnownBucket(h nats.Header) bool {
	n, err := Version(h)
	return err == nil && (n <= ours || n == ourBucket)
}

func known(h nats.Header, most uint64) bool {
	n, err := Version(h)
	return err == nil && n <= most
}

// Version reads the version of a message. Without one it counts as version 1: that is what stock clients send. The error says
// what is wrong with one that is no number, which no Stepjet will ever know.
func Version(h nats.Header) (uint64, error) {
	v := get(h, subjects.HeaderVersion)
	switch v {
	case "":
		return unsaid, nil
	case subjects.Version:
		return ours, nil
	}
	n, err := major(v)
	if err != nil {
		return 0, fault.New(fault.InvalidValue, "the header %s is %q, which is no version", subjects.HeaderVersion, text.Clip(v, 32)).
			WithHint("it is a number; leave it out, or write %s", subjects.Version)
	}
	return n, nil
}

// AboveRun says what a message of a run is that nobody is to write, though a later Stepjet could read it: one whose version is
// above that which the needs of the run's start allow. nil for any other. Readers of all versions agree on it, so that they agree
// on what became of the run.
func AboveRun(h nats.Header, run uint64) *fault.Error {
	n, err := Version(h)
	if err == nil && n <= run {
		return nil
	}
	return fault.New(fault.InvalidRecord, "the record of the attempt says %s %q; that of its run is %d",
		subjects.HeaderVersion, text.Clip(get(h, subjects.HeaderVersion), 32), run).
		WithHint("a worker answers in the version of the step that it was given; upgrade or mend the worker that wrote this")
}

var (
	ours, _      = major(subjects.Version)
	ourSealed, _ = major(subjects.SealedVersion)
	ourBucket, _ = major(subjects.BucketVersion)
	ourNeeds, _  = major(subjects.NeedsVersion)
)

// unsaid is the version of what says none.
const unsaid = 1

func major(version string) (uint64, error) {
	number, _, _ := strings.Cut(version, ".")
	return strconv.ParseUint(number, 10, 32)
}

// Versioned gives the headers of a message that has no others than its version.
func Versioned() nats.Header { return nats.Header{subjects.HeaderVersion: ourVersion} }

// VersionedBy gives the headers of a message that may have a handle: whoever does not know of buckets must leave one alone whose
// handle names one.
func VersionedBy(handle *outcome.Handle) nats.Header {
	if handle == nil || handle.Bucket == "" {
		return Versioned()
	}
	return nats.Header{subjects.HeaderVersion: bucketVersion}
}

// bucketVersion is shared by all messages; nobody writes to it.
var bucketVersion = []string{subjects.BucketVersion}

// Newer is the error for what a newer version of Stepjet has written.
func Newer(what string) *fault.Error {
	return fault.New(fault.NewerVersion, "%s was written by a newer version of Stepjet", what).WithHint("upgrade this program; what is there is left as it is")
}
