package agents

import (
	"encoding/json"

	"github.com/stepjet/stepjet/agent"
)

// Sent is an object that goes to sinks, beside the blackboard.
type Sent struct {
	// Step is the token of the call that returned it, Tool what it called.
	Step, Tool string
	// Type is that of the object, Value the object.
	Type  string
	Value json.RawMessage
	// To are the sinks, by their places in the entry.
	To map[int]agent.Sink
}

// SentBy returns what calls of a loop's rounds that are not past have returned that goes to sinks, in the order of the ledger. It
// follows from the records, so that whoever sends it again sends the same. What was taken over from a run that this one
// tries again was sent by that one, and what has begun before an answer was whole is sent once the record of its round stands.
func SentBy(l *Loop) (all []Sent) {
	for n := l.Past.Rounds(); n < len(l.Rounds); n++ {
		if l.Rounds[n].Record == nil { // what begins while a planner writes is of no round yet
			continue
		}
		begun, err := l.begin(n)
		if err != nil {
			return all
		}
		f := begun.Clone()
		for _, o := range outcomesOf(l, n, ^uint64(0)) {
			a, tool, to := agent.AddSending(f, o.asOf(l, n, o.seq, nil))
			if !o.again && o.token != "" && len(to) > 0 {
				all = append(all, Sent{o.token, tool, a.Type, a.Value, to})
			}
		}
	}
	return all
}
