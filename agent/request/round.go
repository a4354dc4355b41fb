package request

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Round is what a planner answered, and what came of it.
type Round struct {
	// Plan is the answer as it was written: its steps, calls or commands; a text that was none is a JSON string.
	Plan Value
	// Text is what the answer said beside it.
	Text string
	// Records are what its calls came to, in the answer's order. Calls that did not run are among them, as not_run.
	Records []Record
	// Problems are what was wrong with an answer that could not be used.
	Problems []fault.Problem
	// Provider is what the planner wants back with the next request, as Answer.Provider; nil for nothing.
	Provider json.RawMessage
}

// NotRun is the status of a call that an answer has and that did not run before the planner was asked again.
const NotRun = "not_run"

// Record is what one call came to.
type Record struct {
	// ID is the step's, and Tool the name by which the planner called; empty for a value.
	ID, Tool string
	// Purpose, TodoSuggestion and Next are those of a command.
	Purpose, TodoSuggestion, Next string
	// Arguments are those that it was called with, without what is bound.
	Arguments Value
	// Status is what the call came to: succeeded, failed, skipped, not_run and so on.
	Status string
	// Result is what it returned, Error the error of one that failed; one of them.
	Result, Error Value
	// Note is for the planner, beside a result: such as that the call was made before.
	Note string
	// MS is how long it ran, in milliseconds.
	MS int64
}

// executed reports whether a call was made.
func (r Record) executed() bool {
	return r.Tool != "" && (r.Status == "succeeded" || r.Status == "failed")
}

// purpose is what a call was for, also where nobody said.
func (r Record) purpose() string {
	if r.Purpose == "" {
		return "Use " + r.Tool
	}
	return r.Purpose
}

// json renders a record. more says how to read on in its result.
func (r Record) json(most int, more func(Record) func(int) string) []byte {
	var o jsontape.ObjectWriter
	text := func(name, s string) {
		if s != "" {
			o.Text(name, clip(s, most))
		}
	}
	o.Text("id", r.ID)
	if r.Tool != "" {
		o.Text("tool", r.Tool)
	}
	text("purpose", r.Purpose)
	if r.Arguments.there() {
		raw, _ := r.Arguments.render(most, nil)
		o.Add("arguments", raw)
	}
	text("todo_suggestion", r.TodoSuggestion)
	text("next", r.Next)
	o.Text("status", r.Status)
	bytes := int64(0)
	came := func(name string, v Value, more func(int) string) {
		if !v.there() {
			return
		}
		raw, whole := v.render(most, more)
		if !whole {
			bytes = v.size()
		}
		o.Add(name, raw)
	}
	came("result", r.Result, more(r))
	came("error", r.Error, nil)
	text("note", r.Note)
	if bytes > 0 {
		o.Int("bytes", bytes)
	}
	o.Int("ms", r.MS)
	return o.JSON()
}

// clip returns the beginning of a text, and how much there was.
func clip(s string, most int) string {
	most = max(most, least)
	if len(s) <= most {
		return s
	}
	to := most
	for to > 0 && s[to]&0xC0 == 0x80 {
		to--
	}
	return s[:to] + fmt.Sprintf("… (%d bytes)", len(s))
}

// readOn says how to read what a preview of a result has left out; nil where nothing can.
func readOn(mode agent.Mode, round int) func(Record) func(int) string {
	refers := mode == agent.ModeTools || mode == agent.ModePlan
	return func(r Record) func(int) string {
		if r.Result.Object == "" && !refers {
			return nil
		}
		return func(from int) string {
			var how []string
			if r.Result.Object != "" {
				var o jsontape.ObjectWriter
				o.Text("name", r.Result.Object)
				o.Text("path", "")
				o.Int("from", int64(from))
				how = append(how, "blackboard_get "+string(o.JSON())+" reads on")
			}
			if refers {
				how = append(how, "$ref:r"+strconv.Itoa(round)+"."+r.ID+" stands for all of it")
			}
			return strings.Join(how, "; ")
		}
	}
}

// entry renders a round as it stands among a request's rounds.
func (l *Loop) entry(r Round) json.RawMessage {
	most := l.d.Context.TotalBytes / 2
	provider := r.Provider
	if len(provider) > most/2 {
		provider = nil // its text, calls and results are rendered anew
	}
	return halves(l.d.Context.ResultBytes, most, func(n int) []byte {
		enough := most
		if n == 0 { // nothing else makes it fit
			enough = most / 2
		}
		var records [][]byte
		for size := 0; len(records) < len(r.Records); {
			raw := r.Records[len(records)].json(n, readOn(l.d.Planner.Mode, l.round))
			if size += len(raw) + 1; size <= enough {
				records = append(records, raw)
				continue
			}
			if n > 0 {
				return nil
			}
			break
		}
		return l.entryOf(r, n, records, len(r.Records)-len(records), provider)
	})
}

func (l *Loop) entryOf(r Round, n int, records [][]byte, left int, provider json.RawMessage) []byte {
	var o jsontape.ObjectWriter
	o.Int("round", int64(l.round))
	if len(l.messages) > 0 {
		o.Add("messages", jsontape.AppendArray(nil, l.messages))
	}
	if l.changes != nil {
		o.Add("tool_changes", l.changes)
	}
	if r.Plan.there() {
		raw, _ := r.Plan.render(min(4*n, l.d.Context.TotalBytes/8), nil)
		o.Add("plan", raw)
	}
	if r.Text != "" {
		o.Text("text", clip(r.Text, min(4*n, l.d.Context.TotalBytes/8)))
	}
	o.Add("records", jsontape.AppendArray(nil, records))
	if left > 0 {
		o.Int("records_left_out", int64(left))
	}
	if len(r.Problems) > 0 {
		o.Add("problems", problems(r.Problems, l.d.Context.TotalBytes/16))
	}
	if len(provider) > 0 && n > 0 {
		o.Add("provider_state", sound(provider))
	}
	return o.JSON()
}

// fitting returns as many of the first items as have at most some bytes.
func fitting(items [][]byte, most int) [][]byte {
	size := 0
	for i, x := range items {
		if size += len(x) + 1; size > most {
			return items[:i]
		}
	}
	return items
}

func problems(all []fault.Problem, most int) []byte {
	var list [][]byte
	for _, p := range all {
		var o jsontape.ObjectWriter
		o.Text("code", string(p.Code))
		o.Text("at", p.Path)
		o.Text("message", p.Message)
		if p.Hint != "" {
			o.Text("hint", p.Hint)
		}
		list = append(list, o.JSON())
	}
	return jsontape.AppendArray(nil, fitting(list, most))
}
