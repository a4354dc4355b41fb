// Package wire is the form of every message: how a step, a result, a start and a stop are written into headers and body,
// and read back. It knows no connection; docs/protocol.md describes the same forms for other languages.
//
// Bodies are the user's own bytes. What Stepjet adds stands in the headers of package subjects. A reader ignores headers
// that it doesn't know and leaves messages of a higher version alone.
package wire

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// InlineLimit is the largest body, in bytes, of a result, of arguments or of a start record that travels in the message
// itself. What is larger goes through the object store and leaves a handle.
const InlineLimit = 256 << 10

// Step is what a worker gets with a step, besides the arguments.
type Step struct {
	Result     string        // subject that the result is published to
	Claim      string        // subject of the claim; empty for at_least_once tools
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
	s.Trace.set(&h)
	return h.Header
}

// ParseStep reads the headers of a step. The error says what a foreign message lacks.
func ParseStep(h nats.Header) (Step, error) {
	s := Step{
		Result: get(h, subjects.HeaderResult), Claim: get(h, subjects.HeaderClaim), Key: get(h, subjects.HeaderKey), Retried: get(h, subjects.HeaderRetriedKey),
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
	s.Handle, err = getHandle(h)
	return s, err
}

// Result is the record that decides an attempt. Body is the tool's output where Error is nil, else ignored.
type Result struct {
	Error          *fault.Error
	Body           []byte
	Handle         *outcome.Handle // where the body lies in the object store
	Text           bool            // the body is text/plain: it becomes a JSON string
	Worker         string
	Started, Ended time.Time
	Trace          Trace
}

// Message writes a result as headers and body.
func (r Result) Message() (nats.Header, []byte) {
	h := newHeader()
	status := subjects.StatusOK
	if r.Error != nil {
		status = subjects.StatusError
	}
	h.set(subjects.HeaderStatus, status)
	if r.Worker != "" {
		h.set(subjects.HeaderWorker, r.Worker)
	}
	h.setTime(subjects.HeaderStarted, r.Started)
	h.setTime(subjects.HeaderEnded, r.Ended)
	r.Trace.set(&h)
	if r.Error != nil {
		body, err := json.Marshal(r.Error)
		if err != nil || len(body) > InlineLimit { // details that are no JSON, or huge: the rest still counts
			short := *r.Error
			short.Details, short.Message, short.Hint = nil, text.Clip(short.Message, 4096), text.Clip(short.Hint, 4096)
			body, _ = json.Marshal(&short)
		}
		return h.Header, body
	}
	if r.Text {
		h.set(subjects.HeaderContentType, "text/plain")
	}
	if r.Handle != nil {
		h.setHandle(r.Handle)
		return h.Header, nil
	}
	return h.Header, r.Body
}

// ParseResult reads a result. It never fails: what can't be read becomes a terminal error of the attempt, because the
// record stands and decides.
func ParseResult(h nats.Header, body []byte) Result {
	return ParseCleanResult(h, body, func() *Redactor { return nil })
}

// ParseCleanResult is ParseResult without the secrets in the error that a redactor takes out. That is asked for only
// where there is an error, and looks at it before it is shortened: half a secret would not be found.
func ParseCleanResult(h nats.Header, body []byte, redactor func() *Redactor) Result {
	r := Result{
		Worker:  text.Clip(get(h, subjects.HeaderWorker), 256),
		Started: getTime(h, subjects.HeaderStarted), Ended: getTime(h, subjects.HeaderEnded), Trace: TraceOf(h),
	}
	switch status := get(h, subjects.HeaderStatus); status {
	case subjects.StatusOK, "":
	case subjects.StatusError:
		r.Error = redactor().Error(ParseError(body))
		r.Error.Message, r.Error.Hint = text.Clip(r.Error.Message, 16<<10), text.Clip(r.Error.Hint, 4096)
		return r
	default:
		r.Error = fault.New(fault.ToolTerminal, "the worker sent the unknown status %q", text.Clip(status, 64)).
			WithHint("%s is %q or %q", subjects.HeaderStatus, subjects.StatusOK, subjects.StatusError)
		return r
	}
	handle, err := getHandle(h)
	if err != nil {
		r.Error = fault.New(fault.ToolTerminal, "the worker sent a %s that can't be read: %v", subjects.HeaderHandle, err)
		return r
	}
	r.Handle = handle
	r.Text = isText(get(h, subjects.HeaderContentType))
	if handle == nil {
		r.Body = body
	}
	return r
}

// ParseError reads an error as a tool wrote it: the envelope of fault.Error, a JSON string, or whatever else, which
// becomes the message of a tool_failed. A code outside the set goes into the message. Texts are as long as they came. It never fails.
func ParseError(body []byte) *fault.Error {
	var e fault.Error
	if err := json.Unmarshal(body, &e); err != nil || e.Message == "" && e.Code == "" {
		text := string(body)
		_ = json.Unmarshal(body, &text) // a bare string is the message itself
		return fault.New(fault.ToolFailed, "%s", text)
	}
	if !e.Code.OfStep() {
		// A code of the tool's own: it is kept in the message, so that nothing is lost and the set stays closed.
		if e.Code != "" {
			e.Message = string(e.Code) + ": " + e.Message
		}
		e.Code = fault.ToolFailed
		if !retryableSet(body) {
			e.Retryable = true
		}
	}
	return &e
}

func retryableSet(body []byte) bool {
	var in struct {
		Retryable *bool `json:"retryable"`
	}
	return json.Unmarshal(body, &in) == nil && in.Retryable != nil
}
