package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// round adds what came before an answer, the answer, and what came of it.
func (t *transcript) round(n int, round Round, native bool, m Model) {
	if round.Cut || len(round.Span) == 2 {
		t.cut(round)
		return
	}
	for _, msg := range round.Messages {
		t.message(msg)
	}
	t.toolChanges(round.ToolChanges, native)
	said := turn{role: assistant, text: round.Text}
	if round.Provider.fits(m) {
		said.state = round.Provider
		// what goes back has calls, each of which takes a result of its own, whatever the mode
		native = native || slices.ContainsFunc(said.state.calls(), func(s Step) bool { return s.Tool != answerName })
	}
	heard := turn{role: user}
	var values []Record
	if native {
		var called map[string]Step // as it was written; most records say all of it themselves
		for _, rec := range round.Records {
			if rec.Tool == "" || isNull(rec.Arguments) { // a plan that was called, or a value; or its references came to nothing
				if called == nil {
					called = round.called(said.state)
				}
				call, is := called[rec.ID]
				if rec.Tool == "" && !is {
					values = append(values, rec)
					continue
				}
				rec.Tool, rec.Arguments = cmp.Or(rec.Tool, call.Tool), call.Arguments
			}
			t.call(rec, &said, &heard)
		}
	}
	if !isNull(round.Plan) && (!native || len(round.Records) == 0 && said.text == "") {
		said.text = readable(round.Plan)
	}
	heard.text = round.heard(n, native, values)
	if said.text == "" && len(said.calls) == 0 && said.state == nil {
		said.text = "(no answer)"
	}
	t.turns = append(t.turns, said)
	if len(heard.results) > 0 || heard.text != "" {
		t.turns = append(t.turns, heard)
	}
}

// call adds a native call and its result. Steps of several rounds may have one id, calls of a conversation may not;
// those of a provider's state have their own.
func (t *transcript) call(rec Record, said, heard *turn) {
	res := rec.result()
	if said.state == nil {
		res.id = stepID(rec.ID, rec.Tool, t.ids)
	}
	t.ids[res.id] = true
	said.calls = append(said.calls, Step{ID: res.id, Tool: rec.Tool, Arguments: objectOf(rec.Arguments)})
	heard.results = append(heard.results, res)
}

// heard is what a model is told of a round, beside the results of native calls.
func (r Round) heard(n int, native bool, values []Record) string {
	var parts []string
	if len(values) > 0 {
		parts = append(parts, "Values of round "+strconv.Itoa(n)+":\n"+string(encode(values)))
	}
	ran := len(r.Records) > 0 // of an answer that was of no use nothing was
	if !native && (ran || isNull(r.Problems)) {
		parts = append(parts, "Results of round "+strconv.Itoa(n)+":\n"+string(encode(orEmpty(r.Records))))
	}
	if r.LeftOut > 0 {
		parts = append(parts, "There were "+strconv.Itoa(r.LeftOut)+" more calls.")
	}
	if !isNull(r.Problems) {
		why := "This answer can't be used, and nothing of it was run."
		if ran {
			why = "What this answer came to was not taken as the output."
		}
		parts = append(parts, why+" Problems:\n"+string(compact(r.Problems)))
	}
	return strings.Join(parts, "\n\n")
}

// cut adds what is left of rounds that don't stand whole: what people have said as it was said, and the rest in words.
func (t *transcript) cut(round Round) {
	said := round.Messages
	round.Messages, round.ToolChanges = nil, nil
	if round.Summary != "" && len(said) == 0 && round.Calls == 0 {
		t.say("Summary of rounds " + strconv.Itoa(round.Span[0]) + " to " + strconv.Itoa(round.Span[1]) + ":\n" + round.Summary)
		return
	}
	for _, msg := range said {
		t.message(msg)
	}
	t.say("Shortened:\n" + string(encode(round)))
}

// toolChanges tells how the tools have changed. They are told in words where they are offered natively, too: what is
// offered stays as it is, so that the request begins as the one before.
func (t *transcript) toolChanges(c *ToolChanges, native bool) {
	if c == nil {
		return
	}
	var parts []string
	if len(c.Added) > 0 {
		how := "These tools are there now, or are others than before:"
		if native {
			how = "These tools are there now, or are others than before. Call one that is not offered by answering with JSON alone, " +
				`{"steps": [{"id", "tool", "arguments"}]}:`
		}
		parts = append(parts, how+toolLines(c.Added))
	}
	if len(c.Gone) > 0 {
		parts = append(parts, "These tools are there no more: "+strings.Join(c.Gone, ", "))
	}
	if len(parts) > 0 {
		t.say(strings.Join(parts, "\n"))
	}
}
