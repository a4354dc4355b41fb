package wire

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Step is what a worker gets with a step, besides the arguments.
type Step struct {
	Result     string        // subject that the result is published to
	Claim      string        // subject of the claim; empty for at_least_once tools
	Stream     string        // subject of the claim of a planner that may hand over steps before its answer is whole; empty for all others
	Key        string        // idempotency key
	Retried    string        // that of the same step in the run which this one tries again; empty for none
	Attempt    int           // from 1
	Definition string        // digest of the definition that the run started with; empty from an older orchestrator
	Timeout    time.Duration // of one execution; 0 for none
	Deadline   time.Time     // of step and run; zero for none
	StartBy    time.Time     // when it is too late to begin; zero for never
	Handle     *outcome.Handle
	Bucket     string  // that a large result is put into; empty for that of all tenants that are not declared
	Context    Context // out-of-band, for the tool's eyes only
	MayAsk     int     // how many questions the worker may ask a person; 0 for none
	Reply      *Reply  // to what it asked last; nil for none
	Trace      Trace
}

// Header writes the headers of a step.
func (s Step) Header() nats.Header {
	h := newHeader()
	h.set(subjects.HeaderResult, s.Result)
	h.set(subjects.HeaderKey, s.Key)
	h.set(subjects.HeaderAttempt, strconv.Itoa(s.Attempt))
	if s.Retried != "" {
		h.set(subjects.HeaderRetriedKey, s.Retried)
	}
	if s.Definition != "" {
		h.set(subjects.HeaderDefinition, s.Definition)
	}
	if s.Claim != "" {
		h.set(subjects.HeaderClaim, s.Claim)
	}
	if s.Stream != "" {
		h.set(subjects.HeaderStream, s.Stream)
	}
	if s.Timeout > 0 {
		h.set(subjects.HeaderTimeout, strconv.FormatInt(s.Timeout.Milliseconds(), 10))
	}
	h.setTime(subjects.HeaderDeadline, s.Deadline)
	h.setTime(subjects.HeaderStartBy, s.StartBy)
	s.Context.set(&h)
	if s.Bucket != "" {
		h.set(subjects.HeaderBucket, s.Bucket)
	}
	if h.setHandle(s.Handle); s.Handle != nil && s.Handle.Bucket != "" {
		h.Header[subjects.HeaderVersion] = bucketVersion
	}
	if s.MayAsk > 0 {
		h.set(subjects.HeaderMayAsk, strconv.Itoa(s.MayAsk))
	}
	if s.Reply.set(&h); s.Reply != nil {
		h.Header[subjects.HeaderVersion] = []string{subjects.AnsweredVersion}
	}
	s.Trace.set(&h)
	return h.Header
}

// ParseStep reads the headers of a step. The error says what a foreign message lacks.
func ParseStep(h nats.Header) (Step, error) {
	s := Step{
		Result: get(h, subjects.HeaderResult), Claim: get(h, subjects.HeaderClaim), Stream: get(h, subjects.HeaderStream), Key: get(h, subjects.HeaderKey), Retried: get(h, subjects.HeaderRetriedKey),
		Deadline: getTime(h, subjects.HeaderDeadline), StartBy: getTime(h, subjects.HeaderStartBy), Trace: TraceOf(h),
		Bucket: get(h, subjects.HeaderBucket),
	}
	if c, err := ContextOf(h); err == nil { // a foreign message's broken context is none
		s.Context = c
	}
	if s.Result == "" || s.Key == "" {
		return s, fault.New(fault.Internal, "a step without %s or %s", subjects.HeaderResult, subjects.HeaderKey)
	}
	n, err := strconv.Atoi(get(h, subjects.HeaderAttempt))
	if err != nil || n < 1 {
		return s, fault.New(fault.Internal, "a step with %s %q", subjects.HeaderAttempt, get(h, subjects.HeaderAttempt))
	}
	s.Attempt = n
	if d := get(h, subjects.HeaderDefinition); subjects.ValidDigest(d) { // of anything else nobody keeps a definition
		s.Definition = d
	}
	if ms, err := strconv.ParseInt(get(h, subjects.HeaderTimeout), 10, 64); err == nil && ms > 0 {
		s.Timeout = time.Duration(ms) * time.Millisecond
	}
	if n, err := strconv.Atoi(get(h, subjects.HeaderMayAsk)); err == nil && n > 0 {
		s.MayAsk = n
	}
	if s.Reply, err = replyOf(h); err != nil {
		return s, err
	}
	s.Handle, err = getHandle(h)
	return s, err
}

// Check compares a step with the attempt that its subject names, in a ledger of so many shards: all that a step of
// Stepjet's names follows from that, so that a forged one can't have a worker write another's record or read another's
// blob. maxBlob is the most bytes of arguments. The error names what is not this attempt's.
func (s Step) Check(a subjects.Attempt, shards int, maxBlob int64) error {
	switch {
	case s.Attempt != a.Number:
		return foreign(subjects.HeaderAttempt, strconv.Itoa(s.Attempt))
	case !a.HasKey(s.Key):
		return foreign(subjects.HeaderKey, s.Key)
	case !subjects.IsStepRecord(s.Result, a, shards):
		return foreign(subjects.HeaderResult, s.Result)
	case s.Claim != "" && s.Claim != subjects.ClaimRecord(a, shards):
		return foreign(subjects.HeaderClaim, s.Claim)
	case s.Stream != "" && s.Stream != subjects.ClaimRecord(a, shards):
		return foreign(subjects.HeaderStream, s.Stream)
	case s.Handle != nil && !ofRun(s.Handle.Name, a):
		return foreign(subjects.HeaderHandle, s.Handle.Name)
	case s.Handle != nil && !subjects.OwnBlobs(s.Handle.Bucket, a.Tenant):
		return foreign(subjects.HeaderHandle, "the bucket "+s.Handle.Bucket)
	case !subjects.OwnBlobs(s.Bucket, a.Tenant):
		return foreign(subjects.HeaderBucket, s.Bucket)
	case s.Handle != nil && s.Handle.Size > maxBlob:
		return foreign(subjects.HeaderHandle, "a blob of "+strconv.FormatInt(s.Handle.Size, 10)+" bytes")
	}
	return nil
}

// ofRun reports whether a blob belongs to the attempt's own run.
func ofRun(blob string, a subjects.Attempt) bool {
	return strings.HasPrefix(blob, a.Tenant+"/"+a.ID+"/"+strconv.FormatUint(a.Generation, 10)+"/")
}

func foreign(header, value string) error {
	return fault.New(fault.Internal, "%s names %q, which is not this attempt's", header, text.Clip(value, 256))
}
