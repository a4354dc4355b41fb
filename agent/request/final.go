package request

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Respond returns the last request of an agent that responds, once its loop is over: it asks for an answer of what
// all calls came to, whose records are given in the ledger's order. ok is false where nothing was executed, or the
// agent does not respond: then the planner is not asked. The round is open.
func (l *Loop) Respond(now Now, all []Record) (r Request, ok bool) {
	var done []Record
	for _, rec := range all {
		if rec.executed() {
			done = append(done, rec)
		}
	}
	if l.d.Respond == nil || len(done) == 0 {
		return Request{}, false
	}
	return l.request(now, func(o *jsontape.ObjectWriter) {
		o.Add("action_results", actionResults(done, l.d.Context.ResultBytes, l.d.Context.TotalBytes/4))
		o.Text("extra_instruction", l.d.Respond.ExtraInstruction)
	}), true
}

// summarise is what is asked of who makes a summary.
const summarise = "Summarize the rounds up to number %d, for whoever goes on with the task and will not see them: what was asked for, found, " +
	"decided and done, with the names, numbers and ids that are needed further on, what failed and why, and what is still open. " +
	"Answer with the summary alone, in at most %d bytes."

// Summarise returns the request for a summary of the rounds that are cut with the part of this one, which is open and over:
// a last request with the rounds before it. ok is false where none are.
func (l *Loop) Summarise(r Round, left agent.Budget, maxOutput int64) (q Request, ok bool) {
	c, due := l.Due(r)
	if !due || l.last == nil {
		return Request{}, false
	}
	var o jsontape.ObjectWriter
	o.Add("messages", []byte("[]"))
	o.Int("round", int64(l.round+1))
	o.Int("max_rounds", int64(l.d.MaxRounds))
	o.Add("budget", budget(left, 0))
	o.Text("mode", string(agent.ModePlan))
	if p := l.d.Planner; p.Tool == l.d.Context.Summary && p.Model != "" {
		o.Text("model", p.Model)
	}
	if maxOutput > 0 {
		o.Int("max_output_tokens", maxOutput)
	}
	o.Add("final", []byte("true"))
	var of jsontape.ObjectWriter
	of.Add("rounds", span(0, int64(c.To)))
	of.Int("bytes", int64(l.mostCut()))
	o.Add("summarize", of.JSON())
	o.Text("extra_instruction", fmt.Sprintf(summarise, c.To, l.mostCut()))
	return l.sent(o.JSON()), true
}

// actionResults returns what calls came to by what they were for; of two for the same the second is "purpose (2)".
func actionResults(done []Record, each, most int) []byte {
	return halves(each, most, func(n int) []byte {
		var o jsontape.ObjectWriter
		taken := map[string]int{} // by names; how often each was wanted
		for _, rec := range done {
			if n > 0 && len(o.Open()) > most {
				return nil
			}
			purpose := clip(rec.purpose(), each)
			name := purpose
			for taken[name] > 0 {
				taken[purpose]++
				name = purpose + " (" + strconv.Itoa(taken[purpose]) + ")"
			}
			taken[name]++
			if rec.Status == "failed" {
				var failed jsontape.ObjectWriter
				raw, _ := rec.Error.render(n, nil)
				failed.Add("error", raw)
				o.Add(name, failed.JSON())
				continue
			}
			raw, _ := rec.Result.render(n, nil)
			o.Add(name, raw)
		}
		return o.JSON()
	})
}

// ToolLogs returns what an agent's account has of its calls: [{purpose, tool_name, kwargs, todo_suggestion, next,
// success, result, error}], those that were executed. Values of more than most bytes are previews.
func ToolLogs(all []Record, most int) []byte {
	var logs [][]byte
	for _, rec := range all {
		if rec.executed() {
			logs = append(logs, logged(rec.json(most, func(Record) func(int) string { return nil })))
		}
	}
	return jsontape.AppendArray(nil, logs)
}

// logged puts a record into the form of a log of commands.
func logged(rec []byte) []byte {
	var o jsontape.ObjectWriter
	or := func(name, as, otherwise string) {
		v := member(rec, name)
		if v == nil {
			v = []byte(otherwise)
		}
		o.Add(as, v)
	}
	purpose := jsontape.AppendQuoted(nil, "Use "+jsontape.Unquoted(or0(member(rec, "tool"))))
	or("purpose", "purpose", string(purpose))
	or("tool", "tool_name", `""`)
	or("arguments", "kwargs", "{}")
	or("todo_suggestion", "todo_suggestion", `""`)
	or("next", "next", `""`)
	o.Add("success", strconv.AppendBool(nil, string(member(rec, "status")) == `"succeeded"`))
	or("result", "result", "null")
	or("error", "error", "null")
	return o.JSON()
}

func or0(raw []byte) []byte {
	if raw == nil {
		return []byte(`""`)
	}
	return raw
}

// Rendered returns a request with all its rounds, for a planner that wants it whole: in mode commands with done_plans
// and last_round_records, which are views of the rounds and repeat them.
func Rendered(ctx context.Context, r Request, k *parts.Keeper, fetch parts.Fetch) ([]byte, error) {
	whole, err := k.Whole(ctx, r.Bytes, fetch)
	if err != nil || jsontape.Unquoted(or0(member(whole, "mode"))) != string(agent.ModeCommands) {
		return whole, err
	}
	return views(whole), nil
}

// views adds to a whole request what planners of commands know its rounds by: the calls of all rounds, and those of the
// last one.
func views(whole []byte) []byte {
	done, last := [][]byte{}, [][]byte{}
	for _, round := range items(member(whole, "rounds")) {
		last = [][]byte{}
		for _, rec := range items(member(round, "records")) {
			if s := string(member(rec, "status")); member(rec, "tool") != nil && (s == `"succeeded"` || s == `"failed"`) {
				last = append(last, logged(rec))
			}
		}
		done = append(done, last...)
	}
	b := slices.Concat(whole[:len(whole)-1], []byte(`,"done_plans":`))
	b = append(jsontape.AppendArray(b, done), `,"last_round_records":`...)
	return append(jsontape.AppendArray(b, last), '}')
}
