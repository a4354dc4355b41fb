package request

import (
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Cut says which rounds stand whole no more.
type Cut struct {
	// From and To are the first and the last of those that are shortened by it, both included.
	From, To int
}

// room is how many bytes the rounds may have beside the head, and target what is left of them by a cut: together with
// the head total_bytes, and half of it. A head that has most of that leaves a quarter.
func (l *Loop) room() (room, target int) {
	total := l.d.Context.TotalBytes
	return max(total-l.headSize, total/4), max(total/2-l.headSize, total/8)
}

// Due says which rounds would be cut with the part of this one, and whether any. It is asked before End, by who has a
// summary made of them.
func (l *Loop) Due(r Round) (c Cut, due bool) {
	ahead := *l
	entry := ahead.entry(r)
	ahead.whole = append(ahead.whole[:len(l.whole):len(l.whole)], stand(entry))
	return ahead.due()
}

// due derives the next cut of the sizes alone. The last round stays whole, whatever it has.
func (l *Loop) due() (c Cut, due bool) {
	room, target := l.room()
	cut, whole := sizeOf(l.cut), 0
	for _, s := range l.whole {
		whole += s.size
	}
	if cut+whole <= room || len(l.whole) == 1 {
		return c, false
	}
	n := 0
	for n < len(l.whole)-1 && (n == 0 || min(cut, l.mostCut())+whole > target) {
		cut += len(l.whole[n].short) + 1
		whole -= l.whole[n].size
		n++
	}
	return Cut{l.from, l.from + n - 1}, true
}

// mostCut is how many bytes may stand in the place of rounds that were cut.
func (l *Loop) mostCut() int { return l.d.Context.TotalBytes / 8 }

func sizeOf(entries []json.RawMessage) (n int) {
	for _, e := range entries {
		n += len(e) + 1
	}
	return n
}

// shrink makes a cut. What has changed of the tools since the head was rendered goes into a new one.
func (l *Loop) shrink(c Cut, summary string, f *agent.Facts) {
	n := c.To - c.From + 1
	if summary != "" {
		l.cut = []json.RawMessage{summaryOf(c.To, clip(summary, l.mostCut()))}
	} else {
		cut := slices.Clone(l.cut)
		for _, s := range l.whole[:n] {
			cut = append(cut, s.short)
		}
		l.cut = counted(cut, l.mostCut())
	}
	l.whole, l.from = slices.Clone(l.whole[n:]), c.To+1
	for i := range l.whole { // what they say of tools, the head knows
		l.whole[i].size = l.whole[i].settled
	}
	if shown(f.Shown()).changes(l.headTools) != nil {
		l.begin(f)
	} else {
		l.told = l.headTools
	}
}

// short is a round that was cut: ids, statuses and sizes, and what people have said.
func short(entry json.RawMessage) json.RawMessage {
	var o jsontape.ObjectWriter
	o.Add("round", member(entry, "round"))
	o.Add("cut", []byte("true"))
	if m := member(entry, "messages"); m != nil {
		o.Add("messages", m)
	}
	var records [][]byte
	for _, rec := range items(member(entry, "records")) {
		var r jsontape.ObjectWriter
		for _, name := range []string{"id", "tool", "status"} {
			if v := member(rec, name); v != nil {
				r.Add(name, v)
			}
		}
		if n := sizeOfResult(rec); n > 0 {
			r.Int("bytes", n)
		}
		records = append(records, r.JSON())
	}
	o.Add("records", jsontape.AppendArray(nil, records))
	return o.JSON()
}

// sizeOfResult is how many bytes a record's result or error had.
func sizeOfResult(rec []byte) int64 {
	if n := integer(rec, "bytes"); n > 0 {
		return n
	}
	return int64(len(member(rec, "result")) + len(member(rec, "error")))
}

func items(array []byte) (all []json.RawMessage) {
	_ = json.Unmarshal(array, &all) // it was rendered here
	return all
}

func summaryOf(to int, text string) json.RawMessage {
	var o jsontape.ObjectWriter
	o.Add("rounds", span(0, int64(to)))
	o.Text("summary", text)
	return o.JSON()
}

func span(from, to int64) []byte {
	raw, _ := json.Marshal([]int64{from, to})
	return raw
}
