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

// Kind is a kind of message. Each has versions of its own: one is raised where that kind changes, and readers of all
// others go on as they did.
type Kind uint8

// The kinds of messages whose versions matter to a reader. Of records of attempts the run says which versions may be
// (AboveRun), of entries of the registry what they need besides (Knowledge.KnownEntry); of claims and member keys,
// that they are there says all.
const (
	KindPlan Kind = iota
	KindStart
	KindStop
	KindTold
	KindAnswered // the record of a person's answer
	KindAmend
	KindStep
	KindRequest
	KindAnswer // that holds a run document
	KindEvent  // and notices and cancels
	KindOutcome
	KindDeadLetter
	KindBlob
	KindGathering
	KindSealingKey
	KindQuestion // an entry of the bucket "questions"
	KindBeat
	KindProgress
	KindToken // and what is answered to it
	KindNote
	KindRound
	KindSay
	KindGroup // an entry of the bucket "groups"
)

// versions are the versions of each kind that this Stepjet reads, as a set; all read those below 1.
var versions = [...]uint64{
	KindPlan:       1<<1 | 1<<2 | 1<<3 | 1<<4, // 2: sealed secrets; 3: permissions; 4: groups among them
	KindStart:      1<<1 | 1<<2 | 1<<3 | 1<<4,
	KindStop:       1 << 1,
	KindTold:       1 << 1,
	KindAnswered:   1 << 1,
	KindAmend:      1<<1 | 1<<4,               // 4: of a plan that was submitted for an approval
	KindStep:       1<<1 | 1<<2 | 1<<3 | 1<<4, // 3: arguments in the bucket of a declared tenant; 4: an answer to its tool
	KindRequest:    1 << 1,
	KindAnswer:     1<<1 | 1<<3, // 3: a handle that names such a bucket; there is no version between
	KindEvent:      1 << 1,
	KindOutcome:    1<<1 | 1<<3,
	KindDeadLetter: 1<<1 | 1<<3,
	KindBlob:       1 << 1,
	KindGathering:  1 << 1,
	KindSealingKey: 1<<1 | 1<<2,
	KindQuestion:   1<<1 | 1<<3 | 1<<4, // 4: about an amendment or a round, which who knows only lower ones would not show
	KindBeat:       1 << 1,
	KindProgress:   1 << 1,
	KindToken:      1 << 1,
	KindNote:       1 << 1,
	KindRound:      1<<1 | 1<<4, // 4: its bytes lie in a blob
	KindSay:        1 << 1,
	KindGroup:      1 << 1,
}

// Known reports whether this Stepjet can read a message of the kind: its version is absent, or one that it knows. Of
// a version with a dot, such as 1.2, only the number before it counts: what is new behind it may be ignored.
func (k Kind) Known(h nats.Header) bool {
	n, err := Version(h)
	return err == nil && (n == 0 || n < 64 && versions[k]>>n&1 == 1)
}

// Newer reports whether a message is of a version that some later Stepjet may know: one that is no number is of none.
func (k Kind) Newer(h nats.Header) bool {
	_, malformed := Version(h)
	return malformed == nil && !k.Known(h)
}

// Version reads the version of a message. Without one it counts as version 1: that is what stock clients send. The
// error says what is wrong with one that is no number, which no Stepjet will ever know.
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

// AboveRun says what a message of a run is that nobody is to write, though a later Stepjet could read it: one whose
// version is above that which the needs of the run's start allow. nil for any other. Readers of all versions agree on
// it, so that they agree on what became of the run.
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
	ours, _     = major(subjects.Version)
	ourNeeds, _ = major(subjects.NeedsVersion)
)

// unsaid is the version of what says none.
const unsaid = 1

func major(version string) (uint64, error) {
	number, _, _ := strings.Cut(version, ".")
	return strconv.ParseUint(number, 10, 32)
}

// Versioned returns the headers of a message that has no others than its version.
func Versioned() nats.Header { return nats.Header{subjects.HeaderVersion: ourVersion} }

// VersionedBy returns the headers of a message that may have a handle: whoever does not know of buckets must leave one
// alone whose handle names one.
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
