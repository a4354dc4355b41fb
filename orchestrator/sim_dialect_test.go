package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/reference"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// In some worlds plans are written in the state dialect. The reference knows nothing of that: it is given what the plan is
// compiled to, which internal/dialect compares with an interpreter of the dialect, and told which calls return something else
// than a number where the schema of the state has one.

// speaksDialect is whether this is such a world.
func (w *world) speaksDialect() bool { return w.seed%7 == 2 }

// spoken is a plan of the dialect.
type spoken struct {
	compiled []byte
	numbers  map[string]bool // calls whose result has to be a number, by id
	held     bool            // the state has a schema: what lies in a blob is held against it by a record, whatever it may be
}

// misfit is the message of the error of a call that returned something else than a number, as the machine words it.
func misfit(body []byte) string {
	kind := "a string"
	if body[0] == '{' { // a forger's
		kind = "an object"
	}
	return fmt.Sprintf("what was returned does not fit the schema of the state: †state.n must be a number, not %s: %s", kind, body)
}

// fits reports whether the result of a call may stand in the state.
func (x *truth) fits(step string, body []byte) bool {
	return x.spoken == nil || !x.spoken.numbers[step] || len(body) == 0 || body[0] != '"' && body[0] != '{'
}

// newSpoken makes up a plan of the dialect: branches, alternatives, errors as data, and often a schema.
func (w *world) newSpoken() []byte {
	held := w.chance(2)
	doc := spoken{numbers: map[string]bool{}, held: held}
	scripts := map[string]reference.Script{}
	var calls []map[string]any
	written := []string{"input.k"}
	for i := range 2 + w.Intn(6) {
		id, name := fmt.Sprint("c", i), simTools[w.Intn(len(simTools))]
		place := pickOne(w, "n", "text", "user", "other")
		c := map[string]any{"_tool": name, "_id": id, "_outputPath": "†state." + place}
		script := reference.Script{Reply: reference.Reply{Body: []byte(pickOne(w, `{"x":1,"y":"z"}`, `"text"`, `null`, `7`))}}
		if held && place == "n" {
			if w.knobs.tools[name].Contract.Approval != "" { // what a person says in its place is held against it too
				continue
			}
			doc.numbers[id] = true
			script.Reply.Body = []byte(pickOne(w, `5`, `2.5`, `null`, `"text"`))
		}
		if w.chance(4) {
			script.Failures = []reference.Err{{Code: "tool_failed", Message: "no", Retryable: w.chance(2)}}
		}
		if w.chance(3) {
			c["_outputPath"] = "†state." + place + " || †state.error"
		}
		for k := range w.Intn(3) {
			from := "†" + written[w.Intn(len(written))]
			c[fmt.Sprint("a", k)] = pickOne(w, from, from, from+` || "none"`, from+" || †"+written[w.Intn(len(written))], "<${"+from+"}>")
		}
		if from := written[w.Intn(len(written))]; w.chance(4) && from != written[0] {
			c["_if"] = "†" + from + pickOne(w, " != null", " == 7")
		}
		if i > 0 && w.chance(4) && len(calls) > 0 {
			c["_after"] = calls[w.Intn(len(calls))]["_id"]
		}
		scripts[id] = script
		calls = append(calls, c)
		if written = append(written, "state."+place); strings.Contains(c["_outputPath"].(string), "error") {
			written = append(written, "state.error.code")
		}
	}
	if len(calls) == 0 {
		return w.newSpoken()
	}
	body := map[string]any{"calls": calls, "input": map[string]any{"k": 1}}
	if held {
		body["state"] = map[string]any{"schema": map[string]any{"type": "object", "properties": map[string]any{
			"n": map[string]any{"type": "number"}, "text": true, "user": true, "other": true, "error": map[string]any{},
		}}}
	}
	if last := written[len(written)-1]; w.chance(3) {
		body["output"] = map[string]any{"o": "†" + last, "k": "†input.k"}
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	// Whatever the text uses, it is of language 2: the reference is told so by a word of it that bounds nothing.
	doc.compiled = []byte(`{"concurrency":10000,` + string(plan.Compiled(text)[1:]))
	w.truths.spoken[plan.Digest(text)] = &doc
	w.truths.cases[plan.Digest(text)] = reference.Case{Plan: doc.compiled, Scripts: scripts}
	return text
}

// text is the plan as the reference reads it.
func (x *truth) text() []byte {
	if x.spoken != nil {
		return x.spoken.compiled
	}
	return x.body
}

// misfits returns why the success of a call is none: it does not fit the schema of the state.
func (x *truth) misfits(step string, r *wire.Result) *fault.Error {
	if r.Error != nil || x.fits(step, r.Body) {
		return nil
	}
	err := fault.New(fault.StateInvalid, "%s", misfit(r.Body))
	err.Retryable = false
	return err
}

// holdBack keeps the success of a call from the reference, where a record has to say whether it fits: its result lies in a
// blob. What follows from it begins where that record stands.
func (x *truth) holdBack(step string, r *wire.Result, d reference.Decided) bool {
	if x.spoken == nil || !x.spoken.held || r.Handle == nil || x.fitting[step] != nil {
		return false
	}
	if x.fitting == nil {
		x.fitting = map[string]*reference.Decided{}
	}
	x.fitting[step] = &d
	return true
}

// stopFitting takes note that what waits to be told whether its result fits is over with the run. What comes to its result
// later is still told.
func (x *truth) stopFitting() {
	for step := range x.fitting {
		if !x.told[step+" "+subjects.ToldState] {
			if x.untold == nil {
				x.untold = map[string]bool{}
			}
			x.untold[step] = true
			x.hinted = true // it has an attempt, of which the reference is told nothing
		}
	}
}

// fitRecorded checks that whether a result fits the state is told once, of a call whose result lies in a blob, and as it
// is.
func (t *truths) fitRecorded(x *truth, rec subjects.Record, e *kv.Entry) {
	d, key := x.fitting[rec.Step], rec.Step+" "+rec.What
	told := wire.ParseTold(e.Data)
	switch {
	case d == nil || x.start == nil || x.start.Rejected():
		t.w.violate("I8", "a record of whether a result fits which nobody has to read: %s", e.Subject)
		return
	case x.told[key]:
		t.w.violate("I2", "a second record of whether what %s returned fits", rec.Step)
		return
	case (told.Error == nil) != (d.Reply.Err == nil) || told.Error != nil && told.Error.Code != fault.StateInvalid:
		t.w.violate("I6", "a record says of what %s returned: %v, and it is %v", rec.Step, told.Error, d.Reply.Err)
	}
	x.told[key] = true
	t.w.stats["told by a record: "+rec.What]++
	if told.Error != nil {
		t.w.stats["told by a record that a result does not fit the state"]++
	}
	if x.untold[rec.Step] {
		t.w.stats["told by a record whether a result fits, after the stop"]++
		return
	}
	x.decided = append(x.decided, *d)
}

// behaviour is what the tools do, as the reference is to see it.
func (t *truths) behaviour(x *truth) reference.Behaviour {
	c := t.cases[x.digest]
	return func(step, name string, args []byte, attempt int) reference.Reply {
		r := c.Call(step, name, args, attempt)
		if r.Err == nil && !x.fits(step, r.Body) {
			r = reference.Reply{Err: &reference.Err{Code: string(fault.StateInvalid), Message: misfit(r.Body)}}
		}
		return r
	}
}
