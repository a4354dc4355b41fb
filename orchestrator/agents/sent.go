package agents

import "github.com/stepjet/stepjet/agent"

// SentBy returns what calls of a loop's rounds that are not past have returned that goes to sinks, in the order of the ledger, from
// the first of each round on that is not known to be sent. It follows from the records, so that whoever sends it again sends the
// same. What was taken over from a run that this one tries again was sent by that one, and what has begun before an answer was
// whole is sent once the record of its round stands.
func SentBy(l *Loop, known func(*Sent) bool) (all []Sent) {
	for n := l.Past.Rounds(); n < len(l.Rounds); n++ {
		if l.Rounds[n].Record == nil { // what begins while a planner writes is of no round yet
			continue
		}
		begun, err := l.begin(n)
		if err != nil {
			return all
		}
		c := cameIn(l, n)
		if c.sending.facts == nil {
			c.sending.facts = begun.Clone()
		}
		all = append(all, c.unsent(l, n, known)...)
	}
	return all
}

// unsent goes on through what the calls of a round came to.
func (c *came) unsent(l *Loop, round int, known func(*Sent) bool) []Sent {
	s := &c.sending
	for ; s.through < len(c.all); s.through++ {
		o := &c.all[s.through]
		a, tool, to := agent.AddSending(s.facts, o.asOf(l, round, o.seq, nil))
		if !o.again && o.token != "" && len(to) > 0 {
			s.unsent = append(s.unsent, Sent{o.token, tool, a.Type, a.Value, to})
		}
	}
	for len(s.unsent) > 0 && known(&s.unsent[0]) {
		s.unsent = s.unsent[1:]
	}
	return s.unsent
}
