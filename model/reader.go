package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/internal/jsonmend"
)

// MaxAnswer is the most that a model may answer, in bytes of text and arguments. What a result may hold is more.
const MaxAnswer = 4 << 20

// maxCalls is the most calls of one answer: no plan has more steps.
const maxCalls = 10_000

// Reader puts the events of a stream together.
type Reader struct {
	p      *Prepared
	a      assembly
	early  *native // makes steps of the calls that are handed over; nil before the first
	stream interface {
		event(a *assembly, name string, data []byte) *Failure
		state(a *assembly) []json.RawMessage
	}
}

// NewReader reads the answer to a prepared request.
func NewReader(p *Prepared) *Reader {
	r := &Reader{p: p}
	r.stream = &openAIStream{}
	if p.model.Provider == Anthropic {
		r.stream = &anthropicStream{}
	}
	if p.request.Mode == ModeCommands && !p.request.Final {
		r.a.early = &early{}
	}
	return r
}

// Tell has what the model writes told as it comes: its text, and its calls by name and arguments.
func (r *Reader) Tell(to func(text string)) { r.a.tell = to }

// HandOver has what is whole of an answer told before all of it is: in mode plan its text, in mode tools each call as a step, once
// the next one begins. In any other mode, and of a last answer, nothing is.
func (r *Reader) HandOver(text func(string), step func(json.RawMessage)) {
	switch {
	case r.p.request.Final:
	case r.p.request.Mode == ModePlan:
		r.a.plan = text
	case r.p.request.Mode == ModeTools:
		r.a.next = func(w *written) { r.handOver(w, step) }
	}
}

// handOver hands over a call that is whole. One that had to be mended is for the end.
func (r *Reader) handOver(w *written, step func(json.RawMessage)) {
	if r.early == nil {
		r.early = newNative(r.p.request)
	}
	if s, repaired, ok := r.early.step(w); ok && !repaired {
		step(encode(s))
	}
}

// Event takes an event of the stream, by its name where the form has names. done says that nothing more needs to be
// read: the answer has ended, or what is left can change nothing. A Failure is the provider's word, or that of a limit.
func (r *Reader) Event(name string, data []byte) (done bool, f *Failure) {
	f = r.stream.event(&r.a, name, data)
	if f == nil && (r.a.size() > MaxAnswer || len(r.a.calls) > maxCalls) {
		f = &Failure{Kind: TooLarge, Message: fmt.Sprintf("more than %d bytes or %d calls", MaxAnswer, maxCalls)}
	}
	if f != nil {
		f.by(r.p.model)
	}
	return r.a.ended || r.a.sure, f
}

// Closed returns the answer after the last event. A stream that ended before its answer did is a Failure, and so is a
// refusal.
func (r *Reader) Closed() (*Answer, *Failure) {
	failure := func(k Kind, message string) *Failure {
		return (&Failure{Kind: k, Message: Printable(message, "")}).by(r.p.model)
	}
	switch {
	case r.a.sure:
		a := &Answer{Object: json.RawMessage(`{"next_action":"response"}`)}
		r.account(a)
		return a, nil
	case r.a.end == none:
		return nil, failure(Broken, "the stream ended before the answer did")
	case r.a.end == refused || r.a.refusal != "":
		return nil, failure(Refused, r.a.refusal)
	case r.a.end == full:
		return nil, failure(TooLong, "")
	}
	a := r.answer()
	r.account(a)
	if items := r.stream.state(&r.a); len(items) > 0 && r.a.end != cut {
		a.State = &State{r.p.model.Provider, r.p.model.ID, items}
	}
	return a, nil
}

func (r *Reader) account(a *Answer) {
	a.Usage = r.a.usage
	a.Usage.Model = r.p.model.Name
	if r.a.sure { // the provider counts at the end
		a.Usage = Usage{Model: r.p.model.Name}
	}
	if p := r.p.model.Price; p != nil && a.Usage.InputTokens > 0 {
		cost := p.Cost(a.Usage)
		a.Usage.CostUSD = &cost
	}
}

// answer reads what the model wrote, by the mode of its request.
func (r *Reader) answer() *Answer {
	a := &Answer{Truncated: r.a.end == cut}
	text := r.a.text.String()
	switch req := r.p.request; {
	case req.Mode == ModeTools && !req.Final:
		a.Text = text
		r.steps(a)
	case req.structured():
		r.structured(a, text, ofDialect, a.object)
	case !isNull(req.OutputSchema):
		r.structured(a, text, func(json.RawMessage) bool { return true }, func(v json.RawMessage) { a.Output = v })
	default:
		a.Text = text
	}
	if a.Truncated && r.p.request.formed() {
		a.Problems = append(a.Problems, Problem{At: "", Message: "the answer ended at its longest length and is not whole",
			Hint: "answer with less at a time, or raise max_output_tokens"})
	}
	return a
}

// formed reports whether the answer is more than text, so that half of it is nothing.
func (r *Request) formed() bool { return r.Mode != ModeText || !isNull(r.OutputSchema) }

// object takes the object of a dialect.
func (a *Answer) object(v json.RawMessage) { a.Object = object(v) }

// steps makes steps of native calls. Those of an answer that was cut off are left out whole: the last one lacks a part,
// and which of the others would make sense without it nobody can tell.
func (r *Reader) steps(a *Answer) {
	if a.Truncated {
		return
	}
	calls := newNative(r.p.request)
	for i, w := range r.a.calls {
		s, repaired, ok := calls.step(w)
		a.Repaired = a.Repaired || repaired
		if !ok {
			a.Problems = append(a.Problems, Problem{At: fmt.Sprintf("/steps/%d/arguments", i),
				Message: "they are no JSON object", Hint: "write the arguments of " + s.Tool + " as one JSON object"})
		}
		a.Steps = append(a.Steps, s)
	}
}

// structured reads an object or a value that the model wrote as text, or as the arguments of the call that stands for
// its answer. A text in which there is none remains a text.
func (r *Reader) structured(a *Answer, text string, wanted func(json.RawMessage) bool, take func(json.RawMessage)) {
	for _, w := range r.a.calls {
		if w.name == answerName {
			text = w.arguments.String()
		}
	}
	if a.Truncated {
		a.Text = text
		return
	}
	v := jsonmend.Value(text, wanted)
	if v.Flaw == jsonmend.None {
		a.Repaired = v.Repaired
		take(v.Value)
		return
	}
	a.Text = text
	if r.p.request.structured() && len(r.a.calls) > 0 { // it was told of tools, and calls them as it is used to
		r.steps(a)
		return
	}
	message, hint := v.Flaw.Told()
	if message == "" && (!isNull(r.p.request.OutputSchema) && !r.p.request.structured() || v.Flaw == jsonmend.Unwanted && strings.ContainsAny(string(v.Value[:1]), "{[")) {
		message, hint = "the answer is not the JSON that was asked for", "answer with one JSON object and nothing else"
	}
	if message != "" {
		a.Problems = append(a.Problems, Problem{At: "", Message: message, Hint: hint})
	}
}

// ending says how an answer ended.
type ending int

const (
	none ending = iota
	whole
	cut     // at the longest length
	refused // by the model or a filter
	full    // at the end of the model's context
)

// assembly is an answer as far as it has come.
type assembly struct {
	text    strings.Builder
	calls   []*written
	refusal string
	end     ending
	ended   bool // nothing more will come
	sure    bool // nothing more matters
	early   *early
	tell    func(string)     // what is written, as it comes; nil: nobody
	plan    func(string)     // likewise of the text of a plan
	next    func(w *written) // is told of each call once the next one begins; nil: nobody
	usage   Usage
	bytes   int // beside text and arguments
}

func (a *assembly) say(text string) {
	a.text.WriteString(text)
	a.told(text)
	a.planned(text)
	a.watch(text)
}

// told tells what was written.
func (a *assembly) told(text string) {
	if a.tell != nil && text != "" {
		a.tell(text)
	}
}

// planned tells what was written of a plan.
func (a *assembly) planned(text string) {
	if a.plan != nil && text != "" {
		a.plan(text)
	}
}

// argue takes more of the arguments of a call. Whoever is told reads its name before them.
func (a *assembly) argue(w *written, text string) {
	if w.arguments.Len() == 0 && text != "" && w.name != answerName {
		a.told("\n" + w.name + " ")
	}
	w.arguments.WriteString(text)
	a.told(text)
	if w.name == answerName {
		a.planned(text)
	}
}

// watch looks at what an object of commands goes on with.
func (a *assembly) watch(text string) {
	if a.early != nil && a.early.write(text) {
		a.sure = true
	}
}

func (a *assembly) call(id, name string) *written {
	if n := len(a.calls); n > 0 && a.next != nil {
		a.next(a.calls[n-1])
	}
	w := &written{id: id, name: name}
	a.calls = append(a.calls, w)
	return w
}

func (a *assembly) finish(e ending) { a.end = e }

func (a *assembly) size() int {
	n := a.text.Len() + len(a.refusal) + a.bytes
	for _, w := range a.calls {
		n += w.arguments.Len() + len(w.name)
	}
	return n
}

// failed makes a failure of an error that came as an event.
func (a *assembly) failed(data []byte) *Failure {
	s := readError(data)
	return &Failure{Kind: kindOf(0, s), Message: Printable(s.message, "")}
}

// sent are the calls as they were written, for a state that goes back verbatim.
func (a *assembly) sent() (all []Step) {
	for _, w := range a.calls {
		all = append(all, Step{ID: w.id, Tool: w.name, Arguments: json.RawMessage(w.arguments.String())})
	}
	return all
}
