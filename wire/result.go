package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// Result is the record that decides an attempt. Body is the tool's output where Error is nil, else ignored.
type Result struct {
	Error          *fault.Error
	Asks           *Asks // a person is asked in the place of a result; nil for none. Then Body is ignored too
	Body           []byte
	Handle         *outcome.Handle // where the body lies in the object store
	Text           bool            // the body is text/plain: it becomes a JSON string
	Type           string          // what kind of object it is, for agents; empty for none
	Planner        string          // what a planner is shown in its place; empty: the result itself
	Worker         string
	Started, Ended time.Time
	// Deliveries is how often the attempt was handed out; 0 and 1 are not written.
	Deliveries int
	Trace      Trace
}

// Message writes a result as headers and body.
func (r Result) Message() (nats.Header, []byte) {
	h := newHeader()
	status := subjects.StatusOK
	switch {
	case r.Error != nil:
		status = subjects.StatusError
	case r.Asks != nil:
		status = subjects.StatusAsks
	}
	h.set(subjects.HeaderStatus, status)
	if r.Worker != "" {
		h.set(subjects.HeaderWorker, r.Worker)
	}
	h.setTime(subjects.HeaderStarted, r.Started)
	h.setTime(subjects.HeaderEnded, r.Ended)
	if r.Deliveries > 1 {
		h.set(subjects.HeaderDeliveries, strconv.Itoa(r.Deliveries))
	}
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
	if r.Asks != nil {
		return h.Header, r.Asks.body()
	}
	if r.Text {
		h.set(subjects.HeaderContentType, "text/plain")
	}
	if r.Type != "" {
		h.set(subjects.HeaderType, r.Type)
	}
	if r.Planner != "" {
		h.set(subjects.HeaderPlanner, plannerText(r.Planner))
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
	return ParseCleanResult(h, body, Codes{}, func() *Redactor { return nil })
}

// ParseCleanResult is ParseResult without the secrets in the error that a redactor takes out. That is asked for only
// where there is an error, and looks at it before it is shortened: half a secret would not be found. codes is as for
// ParseError.
func ParseCleanResult(h nats.Header, body []byte, codes Codes, redactor func() *Redactor) Result {
	r := Result{
		Worker:  text.Clip(get(h, subjects.HeaderWorker), 256),
		Started: getTime(h, subjects.HeaderStarted), Ended: getTime(h, subjects.HeaderEnded), Trace: TraceOf(h),
	}
	if v := get(h, subjects.HeaderDeliveries); v != "" {
		if n, err := strconv.ParseUint(v, 10, 31); err == nil && n > 1 {
			r.Deliveries = int(n)
		}
	}
	switch status := get(h, subjects.HeaderStatus); status {
	case subjects.StatusOK, "":
	case subjects.StatusError:
		r.Error = redactor().Error(ParseError(body, codes))
		r.Error.Message, r.Error.Hint = text.Clip(r.Error.Message, 16<<10), text.Clip(r.Error.Hint, 4096)
		return r
	case subjects.StatusAsks:
		r.Asks, r.Error = ParseAsks(body)
		return r
	default:
		r.Error = fault.New(fault.ToolTerminal, "the worker sent the unknown status %q", text.Clip(status, 64)).
			WithHint("%s is %q, %q or %q", subjects.HeaderStatus, subjects.StatusOK, subjects.StatusError, subjects.StatusAsks)
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
	if v := get(h, subjects.HeaderType); subjects.ValidTool(v) {
		r.Type = strings.Clone(v)
	}
	if v := get(h, subjects.HeaderPlanner); v != "" && len(v) <= MaxPlanner {
		_ = json.Unmarshal([]byte(v), &r.Planner) // what is no text is none: the result itself is shown
	}
	return r
}

// MaxPlanner is the longest text that a planner is shown in a result's place, in bytes of its JSON: it is one of the
// headers of a record, for which there are 16 KiB.
const MaxPlanner = 8 << 10

// plannerText writes a text as JSON of at most MaxPlanner bytes; what is too much is cut off.
func plannerText(s string) string {
	for most := MaxPlanner; ; most -= most / 4 {
		if b := appendJSON(nil, text.Clip(s, most)); len(b) <= MaxPlanner {
			return string(b)
		}
	}
}

// CheckResult says what is wrong with the handle of an attempt's result, in a run whose large values lie in a bucket.
// A worker may name no blob but its own attempt's: else a forged record could bring another tenant's bytes into an
// outcome. It lies in the bucket of the run, or in that of all tenants that are not declared: a worker of before
// writes there. maxBlob is the most bytes.
func CheckResult(h *outcome.Handle, a subjects.Attempt, bucket string, maxBlob int64) *fault.Error {
	own := a.BlobName("")
	switch unique, is := strings.CutPrefix(h.Name, own); {
	case !is || strings.Contains(unique, "/"): // with another slash it is of a step whose token goes on here
		return fault.New(fault.ToolTerminal, "the result lies in the blob %q, which is not this attempt's", text.Clip(h.Name, 256)).
			WithHint("a worker names the blob of a result %s<anything unique without a slash>", own)
	case h.Bucket != "" && h.Bucket != bucket:
		return fault.New(fault.ToolTerminal, "the result lies in the bucket %q, which is not its run's", text.Clip(h.Bucket, 80)).
			WithHint("a worker puts a result into the bucket that %s of the step names, and says so in its handle; without it into %s",
				subjects.HeaderBucket, subjects.BlobsBucket)
	case h.Size > maxBlob:
		return fault.New(fault.TooLarge, "the result is said to have %d bytes; the limit is %d", h.Size, maxBlob).
			WithHint("return a part of it, or a place to fetch it from")
	}
	return nil
}

// ParseError reads an error as a tool wrote it: the envelope of fault.Error, a JSON string, or whatever else, which
// becomes the message of a tool_failed. A code outside the set goes into the message. Texts are as long as they came.
// It never fails.
//
// Own codes are kept as the error's ToolCode instead. Such an error is retryable only where the tool says so. So it keeps
// the "tool_code" beside tool_failed and tool_terminal, which is how a worker names a code of its own that a reader of
// before is to take for one of the set.
func ParseError(body []byte, codes Codes) *fault.Error {
	var e fault.Error
	if err := json.Unmarshal(body, &e); err != nil || e.Message == "" && e.Code == "" {
		text := string(body)
		_ = json.Unmarshal(body, &text) // a bare string is the message itself
		return fault.New(fault.ToolFailed, "%s", text)
	}
	e.ToolCode = text.Clip(e.ToolCode, maxToolCode)
	if !codes.Own || e.Code != fault.ToolFailed && e.Code != fault.ToolTerminal {
		e.ToolCode = ""
	}
	known := e.Code.OfStep() && (e.Code != fault.Replan || codes.Replan) && (e.Code != fault.Rejected || codes.Guards)
	if e.Code == fault.Replan || e.Code == fault.Rejected {
		e.Retryable = e.Retryable && !known
	}
	if !known && codes.Own {
		e.ToolCode, e.Code = text.Clip(string(e.Code), maxToolCode), fault.ToolFailed
		e.Retryable = e.Retryable && retryableSet(body)
		return &e
	}
	if !known {
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

// Codes are those of errors of tools that the readers of a run agree on beside the first ones.
type Codes struct {
	Own    bool // a tool's own, for runs whose plans may refer to it
	Replan bool // fault.Replan, for runs that need it
	Guards bool // fault.Rejected, likewise: an owner has not made a call
}

// CodesOf returns those of a run by the version of its plan's language and what it needs.
func CodesOf(language int, needs []string) Codes {
	return Codes{Own: language > 1, Replan: slices.Contains(needs, Replan), Guards: slices.Contains(needs, Guards)}
}

// AsksToReplan reads the body by which something behind a worker says that it asks for a new plan: the error envelope with
// the code replan. It returns nil for any other.
func AsksToReplan(body []byte) *fault.Error {
	var e fault.Error
	if json.Unmarshal(body, &e) != nil || e.Code != fault.Replan {
		return nil
	}
	if e.Message == "" {
		e.Message = "the tool asks for a new plan"
	}
	return &fault.Error{Code: fault.Replan, Message: text.Clip(e.Message, 16<<10), Hint: text.Clip(e.Hint, 4096)}
}

// maxToolCode bounds the bytes of a tool's own code.
const maxToolCode = 128

func retryableSet(body []byte) bool {
	var in struct {
		Retryable *bool `json:"retryable"`
	}
	return json.Unmarshal(body, &in) == nil && in.Retryable != nil
}
