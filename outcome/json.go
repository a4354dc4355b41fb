package outcome

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/unknown"
)

// The writers of this file exist because encoding/json compacts and HTML-escapes what a Marshaler returns: results must
// keep their producer's exact bytes.

// JSON writes the outcome; results keep their producers' bytes.
func (o *Outcome) JSON() []byte { return o.append(make([]byte, 0, 512+o.Results.size()+len(o.Output))) }

// MarshalJSON serves embedding into other documents, where encoding/json may compact the results' white space.
func (o *Outcome) MarshalJSON() ([]byte, error) { return o.JSON(), nil }

func (o *Outcome) append(b []byte) []byte {
	b = append(b, `{"run":`...)
	b = jsontape.AppendQuoted(b, o.Run)
	b = append(b, `,"status":`...)
	b = jsontape.AppendQuoted(b, string(o.Status))
	if o.Generation > 0 {
		b = append(b, `,"generation":`...)
		b = strconv.AppendUint(b, o.Generation, 10)
	}
	if len(o.Output) > 0 {
		b = append(b, `,"output":`...)
		b = append(b, o.Output...)
	} else {
		b = append(b, `,"results":`...)
		b = o.Results.append(b)
	}
	b = append(b, `,"errors":`...)
	if len(o.Errors) == 0 {
		b = append(b, `[]`...)
	} else {
		b = appendValue(b, o.Errors)
	}
	if len(o.NotTaken) > 0 {
		b = append(b, `,"not_taken":`...)
		b = appendValue(b, o.NotTaken)
	}
	if len(o.Problems) > 0 {
		b = append(b, `,"problems":`...)
		b = appendValue(b, o.Problems)
	}
	if len(o.Warnings) > 0 {
		b = append(b, `,"warnings":`...)
		b = appendValue(b, o.Warnings)
	}
	b = append(b, `,"stats":`...)
	b = o.Stats.append(b)
	b = append(b, o.unknown...)
	return append(b, '}')
}

var outcomeNames, runNames = unknown.NamesOf(Outcome{}), unknown.NamesOf(Run{})

// UnmarshalJSON reads what JSON and Head write, and keeps fields of the document itself that this version doesn't know.
func (r *Run) UnmarshalJSON(b []byte) error {
	type plain Run // without this method
	if err := json.Unmarshal(b, (*plain)(r)); err != nil {
		return err
	}
	r.unknown = unknown.Of(b, runNames)
	return nil
}

// MarshalJSON writes one object in the order of the slice.
func (r Results) MarshalJSON() ([]byte, error) { return r.append(make([]byte, 0, r.size())), nil }

func (r Results) size() int {
	n := 2
	for _, x := range r {
		n += len(x.Step) + len(x.JSON) + 4
	}
	return n
}

func (r Results) append(b []byte) []byte {
	b = append(b, '{')
	for i, x := range r {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontape.AppendQuoted(b, x.Step)
		b = append(b, ':')
		b = append(b, x.JSON...)
	}
	return append(b, '}')
}

// UnmarshalJSON reads an object and keeps the order of its keys and the bytes of its values.
func (r *Results) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return err
	}
	*r = Results{} // an object without keys is not nil, unlike none
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		name, _ := key.(string)
		*r = append(*r, Result{name, value})
	}
	return nil
}

func (s Stats) append(b []byte) []byte {
	field := func(name string, v int64) {
		b = append(b, '"')
		b = append(b, name...)
		b = append(b, '"', ':')
		b = strconv.AppendInt(b, v, 10)
		b = append(b, ',')
	}
	b = append(b, '{')
	field("steps", int64(s.Steps))
	field("succeeded", int64(s.Succeeded))
	field("failed", int64(s.Failed))
	field("skipped", int64(s.Skipped))
	if s.Cancelled > 0 {
		field("cancelled", int64(s.Cancelled))
	}
	if s.NotTaken > 0 {
		field("not_taken", int64(s.NotTaken))
	}
	if s.Items > 0 {
		field("items", int64(s.Items))
	}
	if s.ItemsFailed > 0 {
		field("items_failed", int64(s.ItemsFailed))
	}
	b = append(b, `"elapsed_ms":`...)
	b = strconv.AppendFloat(b, s.ElapsedMS, 'f', -1, 64)
	b = append(b, ',')
	field("bytes_returned", s.BytesReturned)
	field("bytes_kept_out", s.BytesKeptOut)
	field("tokens_kept_out_estimate", s.TokensKeptOut)
	b[len(b)-1] = '}'
	return b
}

// JSON writes the document of a run; plan and results keep their exact bytes.
func (r *Run) JSON() []byte {
	b := r.header(make([]byte, 0, r.size()))
	if r.Outcome != nil {
		b = append(b, `,"outcome":`...)
		b = r.Outcome.append(b)
	}
	if len(r.Plan) > 0 {
		b = append(b, `,"plan":`...)
		b = append(b, r.Plan...)
	}
	b = r.appendTemplates(b)
	if len(r.Agents) > 0 {
		b = append(b, `,"agents":`...)
		b = appendValue(b, r.Agents)
	}
	b = appendSteps(b, `,"steps":`, r.Steps)
	return append(b, '}')
}

func (r *Run) appendTemplates(b []byte) []byte {
	if len(r.Templates) == 0 {
		return b
	}
	b = append(b, `,"templates":`...)
	for i, name := range slices.Sorted(maps.Keys(r.Templates)) {
		b = append(b, "{,"[min(i, 1)])
		b = append(jsontape.AppendQuoted(b, name), ':')
		b = append(b, r.Templates[name]...)
	}
	return append(b, '}')
}

// size is about how many bytes JSON writes, so that results of megabytes are copied once.
func (r *Run) size() int {
	n := 2048 + len(r.Plan)
	if r.Outcome != nil {
		n += len(r.Outcome.Output)
		for i := range r.Outcome.Results {
			n += 64 + len(r.Outcome.Results[i].JSON)
		}
	}
	for i := range r.Steps {
		n += 320 + len(r.Steps[i].Result) // most of it times
	}
	return n
}

// Head writes the same document without outcome, plan and steps: what stays in the key when the rest is a blob.
func (r *Run) Head() []byte { return append(r.header(nil), '}') }

// HeadLimit is the largest outcome, in bytes, that stands beside a document's head.
const HeadLimit = 256 << 10

// HeadWithOutcome writes the head and the outcome, where that is small: so its reader needs the blob for plan and steps
// alone. Of a rejection whose problems are too many for that it has the first ones, since they are all that a rejected
// run came to.
func (r *Run) HeadWithOutcome() []byte {
	o := r.Outcome
	if o == nil {
		return r.Head()
	}
	body := o.JSON()
	if len(body) > HeadLimit {
		if o.Status != Rejected {
			return r.Head()
		}
		body = o.firstProblems().JSON()
	}
	return append(append(append(r.header(nil), `,"outcome":`...), body...), '}')
}

// firstProblems returns a rejection with as many problems as fit into HeadLimit, and one that says how many are
// missing.
func (o *Outcome) firstProblems() *Outcome {
	const room = HeadLimit - 4096 // for all else
	short, size := *o, 0
	short.Warnings, short.Problems = nil, nil
	for i := range o.Problems {
		if size += len(appendValue(nil, o.Problems[i])) + 1; size > room {
			short.Problems = append(short.Problems, fault.Problem{
				Code: o.Problems[i].Code, Message: strconv.Itoa(len(o.Problems)-i) + " more problems stand in the whole document",
				Hint: "read the blob that this document names, or mend the problems before this one first",
			})
			break
		}
		short.Problems = append(short.Problems, o.Problems[i])
	}
	return &short
}

// MarshalJSON serves embedding into other documents, where encoding/json may compact white space.
func (r *Run) MarshalJSON() ([]byte, error) { return r.JSON(), nil }

// header writes the scalar fields without the closing brace: by hand what encoding/json would write of them, since
// every run has them.
func (r *Run) header(b []byte) []byte {
	b = append(b, `{"version":`...)
	b = strconv.AppendInt(b, int64(r.Version), 10)
	b = append(b, `,"run":`...)
	b = jsontape.AppendQuoted(b, r.Run)
	b = append(b, `,"tenant":`...)
	b = jsontape.AppendQuoted(b, r.Tenant)
	b = append(b, `,"generation":`...)
	b = strconv.AppendUint(b, r.Generation, 10)
	b = append(b, `,"digest":`...)
	b = jsontape.AppendQuoted(b, r.Digest)
	b = append(b, `,"status":`...)
	b = jsontape.AppendQuoted(b, string(r.Status))
	b = append(b, `,"submitted":"`...)
	b = r.Submitted.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	b = appendTime(b, `,"started":`, r.Started)
	b = appendTime(b, `,"finished":`, r.Finished)
	b = appendText(b, `,"stopped_by":`, r.StoppedBy)
	b = appendText(b, `,"retry_of":`, r.RetryOf)
	b = appendText(b, `,"retry_from":`, r.RetryFrom)
	if r.Permissions != nil {
		b = append(b, `,"permissions":`...)
		b = appendValue(b, r.Permissions)
	}
	if r.Approval != nil {
		b = append(b, `,"approval":`...)
		b = appendValue(b, r.Approval)
	}
	b = appendNumber(b, `,"revision":`, r.Revision)
	if len(r.Amendments) > 0 {
		b = append(b, `,"amendments":`...)
		b = appendValue(b, r.Amendments)
	}
	if len(r.Context) > 0 {
		b = append(b, `,"context":`...)
		b = appendValue(b, r.Context)
	}
	b = append(b, `,"stats":`...)
	b = r.Stats.append(b)
	if r.Blob != nil {
		b = append(b, `,"blob":`...)
		b = appendValue(b, r.Blob)
	}
	return append(b, r.unknown...)
}

// appendNumber writes a number that is not 0, behind its key.
func appendNumber(b []byte, key string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, key...), int64(n), 10)
}

// appendText writes a string that is not empty, behind its key.
func appendText(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return jsontape.AppendQuoted(append(b, key...), s)
}

// append writes by hand what encoding/json would write of the struct: a run has up to 10,000 of them.
func (s *Step) append(b []byte) []byte {
	b = append(b, `{"id":`...)
	b = jsontape.AppendQuoted(b, s.ID)
	b = append(b, `,"tool":`...)
	b = jsontape.AppendQuoted(b, s.Tool)
	b = append(b, `,"status":`...)
	b = jsontape.AppendQuoted(b, string(s.Status))
	if s.Attempts != 0 {
		b = append(b, `,"attempts":`...)
		b = strconv.AppendInt(b, int64(s.Attempts), 10)
	}
	b = appendTime(b, `,"ready":`, s.Ready)
	b = appendTime(b, `,"started":`, s.Started)
	b = appendTime(b, `,"ended":`, s.Ended)
	b = appendTime(b, `,"decided":`, s.Decided)
	if s.Worker != "" {
		b = append(b, `,"worker":`...)
		b = jsontape.AppendQuoted(b, s.Worker)
	}
	if len(s.Tries) > 0 {
		b = append(b, `,"tries":`...)
		b = appendValue(b, s.Tries)
	}
	if s.Waiting != "" {
		b = append(b, `,"waiting":`...)
		b = jsontape.AppendQuoted(b, s.Waiting)
	}
	if s.Error != nil {
		b = append(b, `,"error":`...)
		b = appendValue(b, s.Error)
	}
	if len(s.Arguments) > 0 {
		b = append(b, `,"arguments":`...)
		b = append(b, s.Arguments...)
	}
	if len(s.Result) > 0 {
		b = append(b, `,"result":`...)
		b = append(b, s.Result...)
	}
	if s.Bytes != 0 {
		b = append(b, `,"bytes":`...)
		b = strconv.AppendInt(b, s.Bytes, 10)
	}
	if s.Blob != nil {
		b = append(b, `,"blob":`...)
		b = appendValue(b, s.Blob)
	}
	if s.Text {
		b = append(b, `,"text":true`...)
	}
	b = appendText(b, `,"type":`, s.Type)
	b = appendText(b, `,"shown":`, s.Shown)
	if s.Reused {
		b = append(b, `,"reused":true`...)
	}
	if s.Discarded {
		b = append(b, `,"discarded":true`...)
	}
	b = appendNumber(b, `,"revision":`, s.Revision)
	if s.Answer != nil {
		b = append(b, `,"answer":`...)
		b = appendValue(b, s.Answer)
	}
	if len(s.Answers) > 0 {
		b = append(b, `,"answers":`...)
		b = appendValue(b, s.Answers)
	}
	if len(s.Said) > 0 {
		b = append(b, `,"said":`...)
		b = appendValue(b, s.Said)
	}
	if len(s.Messages) > 0 {
		b = append(b, `,"messages":`...)
		b = appendValue(b, s.Messages)
	}
	b = appendNumber(b, `,"messages_left_out":`, s.MessagesLeftOut)
	if len(s.Refused) > 0 {
		b = append(b, `,"refused":`...)
		b = appendValue(b, s.Refused)
	}
	if len(s.ToolLogs) > 0 {
		b = append(b, `,"tool_logs":`...)
		b = appendValue(b, s.ToolLogs)
	}
	b = appendNumber(b, `,"tool_logs_left_out":`, s.LogsLeftOut)
	b = appendText(b, `,"list":`, s.List)
	b = appendText(b, `,"retried_key":`, s.RetriedKey)
	b = appendSteps(b, `,"items":`, s.Items)
	b = appendSteps(b, `,"steps":`, s.Steps)
	return append(b, '}')
}

// appendSteps writes a list of steps that is not empty, behind its key.
func appendSteps(b []byte, key string, steps []Step) []byte {
	if len(steps) == 0 {
		return b
	}
	b = append(append(b, key...), '[')
	for i := range steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = steps[i].append(b)
	}
	return append(b, ']')
}

// appendTime writes a time that is not zero, behind its key.
func appendTime(b []byte, key string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	b = append(b, key...)
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendValue marshals a value that can't fail: structs of this package and package fault, made of strings, numbers and
// times. Were it ever to fail, null keeps the document well-formed.
func appendValue(b []byte, v any) []byte {
	buf := bytes.NewBuffer(b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return append(b, "null"...)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// Withhold takes out of a document what is no JSON of the values in it, so that the rest can be read: an error says so in
// the place of each result that was to be returned. It reports whether there was anything. No run of ours comes to that; a
// document that nobody can read would take the whole outcome with it.
func Withhold(doc *Run) (some bool) {
	lacks := func(step string) {
		doc.Outcome.Errors = append(slices.Clip(doc.Outcome.Errors), StepError{
			Step: step, Code: fault.Internal, Message: "the step's result is no JSON, so it is left out", Hint: "this is a mistake of Stepjet's: please report it, with the plan",
		})
	}
	if o := doc.Outcome; o != nil {
		o.Results = slices.DeleteFunc(slices.Clone(o.Results), func(x Result) bool {
			bad := !json.Valid(x.JSON)
			if bad {
				lacks(x.Step)
			}
			some = some || bad
			return bad
		})
		if len(o.Output) > 0 && !json.Valid(o.Output) {
			o.Output, some = json.RawMessage("null"), true
			lacks("=")
		}
	}
	return withhold(doc.Steps) || some
}

func withhold(steps []Step) (some bool) {
	for i := range steps {
		s := &steps[i]
		if len(s.Result) > 0 && !json.Valid(s.Result) {
			s.Result, some = nil, true
		}
		some = withhold(s.Items) || some
		some = withhold(s.Steps) || some
	}
	return some
}
