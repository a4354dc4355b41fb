package orchestrator

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// announcer tells whoever listens what happens to runs. Nothing rests on it: core NATS, at most once.
type announcer struct {
	*env
	listeners map[uint64]*run // runs that may have some, by the token of their audience
	lastToken uint64
	answers   string // prefix of the subjects on which the server says that there are none
}

func newAnnouncer(e *env) *announcer { return &announcer{env: e, listeners: map[uint64]*run{}} }

// askEvery is how long the server's word counts: one who subscribes to a run that goes on misses that much at most.
const askEvery = 250 * time.Millisecond

// tell sends an event of a run, if somebody may listen.
func (a *announcer) tell(r *run, subject string, body func() []byte) {
	of, now := &r.audience, a.clock.Now()
	if now.Sub(of.asked) < askEvery {
		if !of.none {
			a.publish(subject, body())
		}
		return
	}
	if of.token == 0 {
		a.lastToken++
		of.token = a.lastToken
		a.listeners[of.token] = r
	}
	of.asked, of.none = now, false
	a.sent(subject, a.bus.PublishRequest(subject, a.answers+strconv.FormatUint(of.token, 36), body()))
}

// nobody takes the server's word that nobody listens to a run.
func (a *announcer) nobody(token uint64) {
	if r := a.listeners[token]; r != nil {
		r.audience.none = true
	}
}

// arrived lets the next event of a run be sent, whatever the server said before, or says yet of what was asked before.
func (a *announcer) arrived(r *run) {
	a.forget(r)
	r.audience = audience{}
}

// forget drops a run that has no more to tell.
func (a *announcer) forget(r *run) { delete(a.listeners, r.audience.token) }

// watchNoResponders subscribes to what the server says of events that nobody listens to.
func (a *announcer) watchNoResponders(nc *nats.Conn) (stop func(), err error) {
	a.answers = nc.NewInbox() + "."
	sub, err := nc.Subscribe(a.answers+"*", func(m *nats.Msg) {
		token, err := strconv.ParseUint(m.Subject[min(len(a.answers), len(m.Subject)):], 36, 64)
		if err == nil && kv.NoResponders(m) {
			a.post(func() { a.nobody(token) })
		}
	})
	if err != nil {
		return nil, kv.Fault(err)
	}
	return func() { _ = sub.Unsubscribe() }, nil // the connection may be gone already; then so is the subscription
}

// publish sends an event.
func (a *announcer) publish(subject string, body []byte) {
	a.sent(subject, a.bus.Publish(subject, body))
}

func (a *announcer) sent(subject string, err error) {
	if err != nil && a.ctx.Err() == nil {
		a.log.Debug("an event was not sent", "subject", subject, "error", err)
	}
}

// start announces a run.
func (a *announcer) start(r *run) {
	a.tell(r, subjects.Event(r.id, subjects.EventStart), func() []byte {
		return wire.StartEvent{Run: r.id.Plain(), Steps: len(r.plan.Steps), Time: r.machine.Started()}.Body()
	})
}

func (a *announcer) step(r *run, c machine.Call) {
	a.tell(r, subjects.Event(r.id, subjects.EventStep), func() []byte { return stepEvent(r, c).Body() })
	if x := messageOf(r, c); x != nil && !x.message.Reused && x.value.value != nil {
		a.tell(r, subjects.Event(r.id, subjects.EventMessage), func() []byte {
			x.read(x.value.value)
			return wire.MessageEvent{Run: r.id.Plain(), Agent: x.agent, Message: x.message}.Body()
		})
	}
}

// stepEvent says that a call was decided.
func stepEvent(r *run, c machine.Call) wire.StepEvent {
	s := r.machine.Step(c, time.Time{})
	_, isList := r.machine.Items(c.Step)
	return wire.StepEventOf(r.id.Plain(), &s, isList && c.Item == 0)
}

// progress passes on what a worker says of how far an attempt is, if that is out.
func (a *announcer) progress(r *run, of subjects.Attempt, p outcome.Progress) {
	f := flightOf(r, of)
	if f == nil || f.told.Take(a.clock.Now(), tellEvery, tellsAtOnce) > 0 {
		return
	}
	a.tell(r, subjects.Event(r.id, subjects.EventProgress), func() []byte {
		return wire.ProgressEvent{Run: r.id.Plain(), Step: of.Step, Tool: of.Tool, Attempt: of.Number, Progress: p}.Body()
	})
}

// token passes on what the handler of an attempt is writing, if that is out; is says so. heard is whether somebody listened
// to the last event that was told.
func (a *announcer) token(r *run, of subjects.Attempt, t wire.Token) (heard, is bool) {
	f := flightOf(r, of)
	if f == nil || f.wrote.Take(a.clock.Now(), tellEvery, tellsAtOnce) > 0 {
		return false, f != nil
	}
	heard = !r.audience.none
	a.tell(r, subjects.Event(r.id, subjects.EventToken), func() []byte {
		return wire.TokenEvent{Run: r.id.Plain(), Step: of.Step, Tool: of.Tool, Attempt: of.Number, Token: t}.Body()
	})
	return heard, true
}

// says tells what an agent's planner says to the user in passing by a call; nothing for an empty text.
func (a *announcer) says(r *run, d machine.Dispatch, message string) {
	p, ok := wire.ParseProgress(wire.ProgressBody(outcome.Progress{Message: strings.Join(strings.Fields(message), " ")}))
	if message == "" || !ok {
		return
	}
	a.tell(r, subjects.Event(r.id, subjects.EventProgress), func() []byte {
		tool := r.step(d.Step).Tool
		return wire.ProgressEvent{Run: r.id.Plain(), Step: r.token(d.Call), Tool: tool, Attempt: d.Attempt, Progress: p}.Body()
	})
}

// question announces that a run waits for a person.
func (a *announcer) question(r *run, q *outcome.Question) {
	a.tell(r, subjects.Event(r.id, subjects.EventQuestion), func() []byte {
		return wire.QuestionEvent{
			Run: q.Run, Step: q.Step, Number: q.Number, Kind: q.Kind, Text: text.Clip(q.Text, maxEventText), Digest: q.Digest, Revision: q.Revision,
			Round: q.Round,
			Time:  q.Since, Until: q.Until,
		}.Body()
	})
}

// amended announces that an amendment is in force.
func (a *announcer) amended(r *run, x *machine.Amendment) {
	a.tell(r, subjects.Event(r.id, subjects.EventAmend), func() []byte {
		return wire.AmendEvent{Run: r.id.Plain(), Step: x.Scope, Revision: x.Revision, Steps: x.Steps(), By: text.Clip(x.By, maxEventText), Time: x.At()}.Body()
	})
}

// maxEventText bounds, in bytes, the text of a question in an event; all of it stands in its entry.
const maxEventText = 4096

func (a *announcer) retry(r *run, d machine.Dispatch) {
	a.tell(r, subjects.Event(r.id, subjects.EventStep), func() []byte { return retryEvent(r, d).Body() })
}

func retryEvent(r *run, d machine.Dispatch) wire.StepEvent {
	s := r.machine.Step(d.Call, time.Time{})
	e := wire.StepEvent{
		Run: r.id.Plain(), Step: s.ID, Tool: s.Tool, Status: s.Status, Attempt: d.Attempt - 1, Time: r.machine.LastTime(), Worker: s.Worker, Error: s.Error,
	}
	if !d.At.IsZero() {
		e.RetryAt = &d.At
	}
	return e
}

// conflictProblem says that a run id belongs to another plan.
func conflictProblem(id subjects.Run, before, now string) fault.Problem {
	return fault.Problem{
		Code: fault.Conflict, Path: "",
		Message: "the run id '" + id.Plain() + "' was used for another plan (sha256 " + before[:min(12, len(before))] + "…, not " + now[:min(12, len(now))] + "…)",
		Hint:    "send the same bytes to get the same outcome, or choose another run id",
	}
}

// conflict tells watchers, and the client that sent the other plan. The stored outcome stays.
func (a *announcer) conflict(id subjects.Run, client, before, now string) {
	problem := conflictProblem(id, before, now)
	a.publish(subjects.Event(id, subjects.EventConflict), wire.ConflictEvent{Run: id.Plain(), Problems: []fault.Problem{problem}}.Body())
	if client != "" {
		o := outcome.Outcome{Run: id.Plain(), Status: outcome.Rejected, Problems: []fault.Problem{problem}}
		a.publish(subjects.Notify(id, client), o.JSON())
	}
}

func (a *announcer) end(id subjects.Run, client string, doc *outcome.Run) {
	var body []byte
	if doc.Outcome != nil && doc.Stats.BytesReturned <= wire.InlineLimit {
		body = doc.Outcome.JSON()
	}
	if body == nil || len(body) > wire.InlineLimit {
		body = doc.HeadWithOutcome()
	}
	a.publish(subjects.Event(id, subjects.EventEnd), body)
	if client != "" {
		a.publish(subjects.Notify(id, client), body)
	}
}
