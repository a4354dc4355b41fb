package request

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Loop renders the requests of one agent's loop, round by round. It holds sizes of the rounds, not the rounds. One
// goroutine may use it at a time.
type Loop struct {
	d    *agent.Definition
	name func(round int) string // of parts

	head      json.RawMessage // until a part has it
	headIn    parts.Link
	headSize  int
	headTools told

	last  *parts.Link
	from  int               // the first round that stands whole
	cut   []json.RawMessage // in the place of those before
	whole []standing        // the others
	plan  json.RawMessage   // of the last round
	anew  bool              // the next request begins anew

	round    int
	facts    *agent.Facts
	told     told // as of the round before
	messages [][]byte
	changes  json.RawMessage
}

// standing is a round that stands whole: its size, that without what it says of tools, and what a cut leaves of it.
type standing struct {
	size, settled int
	short         json.RawMessage
}

func stand(entry json.RawMessage) standing {
	return standing{len(entry) + 1, len(parts.Settled(entry)) + 1, short(entry)}
}

// Begin begins the requests of an agent's loop. The facts are those of its beginning, and name says what the part of a
// round is called (subjects.PartName).
func Begin(d *agent.Definition, f *agent.Facts, name func(round int) string) *Loop {
	l := &Loop{d: d, name: name, round: -1, plan: json.RawMessage("[]")}
	l.begin(f)
	return l
}

// Clone returns a loop that goes its own way from here on. A round is to be opened in it.
func (l *Loop) Clone() *Loop {
	c := *l
	c.whole, c.facts = slices.Clip(l.whole), nil
	return &c
}

// begin makes the head anew.
func (l *Loop) begin(f *agent.Facts) {
	tools := shown(f.Shown())
	l.head = head(l.d, f, tools)
	l.headSize, l.headTools, l.told = len(l.head), tools.told(), tools.told()
}

// head renders what a request begins with.
func head(d *agent.Definition, f *agent.Facts, tools toolset) json.RawMessage {
	instructions, extra := d.Told(f.Input())
	var o jsontape.ObjectWriter
	o.Text("instructions", instructions)
	if extra != "" {
		o.Text("extra_requirement", extra)
	}
	input, _ := Whole(f.Input()).render(d.Context.TotalBytes/4, nil)
	o.Add("input", input)
	if s := d.OutputSchema(); len(s) > 0 {
		o.Add("outputSchema", sound(s))
	}
	o.Add("tools", tools.list())
	return o.JSON()
}

// Open begins the next round, on the facts as of the record that began it, with what people have said since the round
// before began.
func (l *Loop) Open(f *agent.Facts, said []Message) {
	l.round++
	l.facts = f
	l.messages = render(said, l.round, l.d.Context.TotalBytes/4)
	l.changes = nil
	if l.round > 0 {
		l.changes = shown(f.Shown()).changes(l.told)
	}
}

// Part is a round that is over, as it is kept.
type Part struct {
	parts.Link
	// Bytes are what is kept under its name.
	Bytes []byte
	// Cut says which rounds were shortened with it; nil for none.
	Cut *Cut
}

// End ends the round: it returns its part. The facts are those of the beginning of the next round. summary stands in
// the place of the rounds that are cut, if Due says that there are some; empty leaves their ids, statuses and sizes.
func (l *Loop) End(r Round, f *agent.Facts, summary string) Part {
	entry := l.entry(r)
	p := parts.Part{Before: l.last, Round: l.round, From: l.from, Entry: entry}
	if l.changes != nil {
		l.told = l.told.after(l.changes)
	}
	l.whole = append(l.whole, stand(entry))
	p.Head = l.head // of the first round
	c, due := l.due()
	if due {
		l.shrink(c, summary, f)
		p.From, p.Cut, p.Head = l.from, l.cut, l.head
		if p.Head == nil {
			p.HeadIn = &l.headIn
		}
	}
	out := Part{Bytes: p.Encode()}
	out.Link = parts.Link{Name: l.name(l.round), SHA256: parts.Digest(out.Bytes)}
	if due {
		out.Cut = &c
	}
	l.anew = due
	l.last, l.plan = &out.Link, planOf(entry, l.d.Context)
	if p.Head != nil {
		l.headIn, l.head = out.Link, nil
	}
	l.messages, l.changes = nil, nil
	return out
}

// Resume goes on with a loop whose parts were kept, from the last of them on; the round behind it is to be opened.
func Resume(d *agent.Definition, name func(round int) string, last parts.Link, c *parts.Chain) *Loop {
	l := &Loop{d: d, name: name, headIn: c.In, headSize: len(c.Head), last: &last, from: c.From, cut: c.Cut,
		round: c.From + len(c.Entries) - 1}
	l.headTools = toldBy(member(c.Head, "tools"))
	l.told = l.headTools
	for _, e := range c.Entries {
		l.whole = append(l.whole, stand(e))
		if changes := member(e, parts.Changes); changes != nil {
			l.told = l.told.after(changes)
		}
		l.plan = planOf(e, d.Context)
	}
	l.anew = c.Anew > 0 && c.Anew == l.round
	return l
}

// Resumed is Resume for a loop whose parts fetch reads.
func Resumed(
	ctx context.Context, d *agent.Definition, name func(round int) string, last parts.Link, k *parts.Keeper, fetch parts.Fetch,
) (*Loop, error) {
	c, err := k.Chain(ctx, last, fetch)
	if err != nil {
		return nil, err
	}
	return Resume(d, name, last, c), nil
}

// member returns a member of an object; nil where there is none.
func member(object []byte, name string) json.RawMessage {
	i := jsontape.Member(object, 0, name)
	if i < 0 {
		return nil
	}
	return slices.Clip(object[i:jsontape.SkipValue(object, i)])
}

// integer reads a member that is a whole number; 0 for none.
func integer(object []byte, name string) int64 {
	n, _ := strconv.ParseInt(string(member(object, name)), 10, 64)
	return n
}
