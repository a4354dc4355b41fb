package request

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Now is what is true of one request alone.
type Now struct {
	// Left is what is left of the budget (Spending.Left), and Elapsed how long the agent has run, as of the record that
	// began the round.
	Left    agent.Budget
	Elapsed time.Duration
	// MaxOutput bounds the answer (Reservation.MaxOutput); 0: as the definition says.
	MaxOutput int64
	// Began are the calls that the planner has handed over in an attempt that ended before its answer was whole.
	Began []Record
	// Dropped is an output of the answer before that did not count, since a call beside it failed.
	Dropped Value
}

// Request is what a planner is sent.
type Request struct {
	// Bytes are what is sent: with the last part's name in the place of the head and the rounds.
	Bytes []byte
	// Size is how many bytes the request has once it is whole, and Fresh how many of them no request before had.
	Size, Fresh int64
}

// Request returns what the planner of the round is sent. The round is open.
func (l *Loop) Request(now Now) Request { return l.request(now, nil) }

// request renders a request, with members that only the last one has.
func (l *Loop) request(now Now, last func(o *jsontape.ObjectWriter)) Request {
	var o jsontape.ObjectWriter
	l.tail(&o, now, last == nil)
	if last != nil {
		last(&o)
	}
	return l.sent(o.JSON())
}

// sent is a request of what stands before it and its own members.
func (l *Loop) sent(own []byte) Request {
	rounds := sizeOf(l.cut)
	for _, s := range l.whole {
		rounds += s.size
	}
	r := Request{Size: int64(l.headSize + len(`,"rounds":[]`) + max(rounds-1, 0) + len(own) - 1)}
	switch n := len(l.whole); {
	case l.last == nil:
		c := parts.Chain{Head: l.head}
		r.Bytes, r.Fresh = c.With(own), r.Size
	case n == 0 || l.anew:
		r.Fresh = r.Size
	default:
		r.Fresh = int64(l.whole[n-1].size + len("]") + len(own))
	}
	if l.last != nil {
		var named jsontape.ObjectWriter
		named.Add("part", link(*l.last))
		r.Bytes = append(append(named.Open(), ','), own[1:]...)
	}
	return r
}

func link(l parts.Link) []byte {
	var o jsontape.ObjectWriter
	o.Text("name", l.Name)
	o.Text("sha256", l.SHA256)
	return o.JSON()
}

// tail writes what no later request begins with.
func (l *Loop) tail(o *jsontape.ObjectWriter, now Now, goesOn bool) {
	o.Add("messages", jsontape.AppendArray(nil, l.messages))
	if l.changes != nil {
		o.Add(parts.Changes, l.changes)
	}
	o.Add("plan", l.plan)
	each := l.d.Context.ResultBytes
	most := min(4*each, l.d.Context.TotalBytes/4)
	if s := l.facts.Shared(); len(s) > 0 {
		o.Add("state", bounded(s, min(each, most), most, l.inState))
	}
	o.Add("facts", l.known(most))
	if locked := locked(l.facts.Shown()); locked != nil {
		o.Add("locked", bounded(locked, most, most, nothing))
	}
	if len(now.Began) > 0 {
		var began [][]byte
		for _, r := range now.Began {
			began = append(began, r.json(each, func(Record) func(int) string { return nil }))
		}
		o.Add("began", jsontape.AppendArray(nil, began))
	}
	if now.Dropped.there() {
		dropped, _ := now.Dropped.render(each, nil)
		o.Add("dropped_output", dropped)
	}
	o.Int("round", int64(l.round))
	o.Int("max_rounds", int64(l.d.MaxRounds))
	o.Add("budget", budget(now.Left, now.Elapsed))
	p := l.d.Planner
	o.Text("mode", string(p.Mode))
	if p.Model != "" {
		o.Text("model", p.Model)
	}
	if n := max(now.MaxOutput, 0); n > 0 || p.MaxOutputTokens > 0 {
		if n == 0 {
			n = int64(p.MaxOutputTokens)
		}
		o.Int("max_output_tokens", n)
	}
	o.Add("final", strconv.AppendBool(nil, !goesOn))
}

// inState says how the next call reads a part of the state that is shown as a preview.
func (l *Loop) inState(name string) func(int) string {
	if l.d.Planner.Mode != agent.ModeCalls {
		return nil
	}
	return func(int) string { return "†state." + name + " stands for all of it" }
}

func nothing(string) func(int) string { return nil }

// known are the facts; what is too much of them is shortened like a state.
func (l *Loop) known(most int) []byte {
	raw, err := jsontape.Marshal(l.facts)
	if err != nil {
		panic(err) // facts hold nothing but JSON
	}
	return bounded(raw, most, most, nothing)
}

// budget writes what is left of each bound that there is.
func budget(left agent.Budget, elapsed time.Duration) []byte {
	var o jsontape.ObjectWriter
	count := func(name string, n int64) {
		if n != 0 {
			o.Int(name, max(n, 0))
		}
	}
	count("steps", left.Steps)
	count("tokens", left.Tokens)
	if left.CostUSD != 0 {
		usd := math.Round(max(left.CostUSD, 0)*1e9) / 1e9
		o.Add("cost_usd", strconv.AppendFloat(nil, usd, 'f', -1, 64))
	}
	if left.Time > 0 {
		o.Int("time_ms", max((left.Time-elapsed).Milliseconds(), 0))
	}
	return o.JSON()
}

// planOf returns the answer of the last round, each call with what became of it, as what the next one begins with: it
// may be followed, changed or left.
func planOf(entry json.RawMessage, c agent.Context) json.RawMessage {
	var calls [][]byte
	for _, rec := range items(member(entry, "records")) {
		var o jsontape.ObjectWriter
		for _, name := range []string{"id", "tool", "purpose", "arguments", "status"} {
			if v := member(rec, name); v != nil {
				o.Add(name, v)
			}
		}
		calls = append(calls, o.JSON())
	}
	calls = fitting(calls, c.TotalBytes/8)
	return jsontape.AppendArray(nil, calls)
}
