package reference

// The tool of a step may ask a person in the middle of a call: an attempt comes to that, and the next begins with the
// answer. Such attempts are none that failed, and a call that waits has no seat.

// mostAsked is how often the tool of a call may ask.
const mostAsked = 16

// asks takes the reply of a tool that asks a person, where it may.
func (s *Step) asks(may bool) {
	switch {
	case !may:
		s.fail(&Err{Code: codeToolTerminal, Message: "it does not say that it asks"})
	case s.asked == mostAsked:
		s.fail(&Err{Code: codeToolTerminal, Message: "it asks too often"})
	default:
		s.asked++
		s.waits = true
	}
}

// givenUp is whether a reply ends a call that is to end as one that was cancelled: it was, or its tool asks, and nobody is
// asked any more.
func (r *run) givenUp(i int, reply Reply) bool {
	if reply.Asks {
		return r.contracts[r.plan.Steps[i].Tool].Asks
	}
	return reply.Err != nil && reply.Err.Code == codeCancelled
}

// told goes on with a call whose tool has asked, or ends it.
func (s *Step) told(a *Answer) {
	s.waits = false
	switch {
	case a.Err != nil:
		s.fail(a.Err)
	case a.Value == nil && a.Decision == expire:
		s.fail(&Err{Code: codeTimeout, Message: a.Refusal, Hint: a.Hint})
	case a.Value == nil:
		s.fail(&Err{Code: codeRejected, Message: a.Refusal, Hint: a.Hint})
	}
}

// leaveSeat gives the seat of a call that waits for a person to others.
func (r *run) leaveSeat(i, k int) {
	if r.seats != nil && r.of(i, k).waits {
		delete(r.seats, seat{i, k})
	}
}

// asksInBetween makes up that the tool of a step asks a person, after it has failed for some times.
func (g *generator) asksInBetween(s *Script, tool string) {
	if !g.questions || g.Intn(4) > 0 {
		return
	}
	s.Asks, s.AsksAfter = 1+g.Intn(3), g.Intn(2)
	if g.c.Contracts[tool].Asks {
		g.c.Forms["tool asks"]++
		return
	}
	if len(s.Failures) > 0 {
		s.Asks = 0 // what it fails with depends on nothing else
	}
}

// asked reports whether a tool asks in an attempt, and returns the number that the attempt has without those that do.
func (s *Script) asked(attempt int) (asks bool, number int) {
	switch {
	case attempt <= s.AsksAfter || s.Asks == 0:
		return false, attempt
	case attempt <= s.AsksAfter+s.Asks:
		return true, attempt
	}
	return false, attempt - s.Asks
}
