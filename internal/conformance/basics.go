package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func takesSteps(ctx context.Context, s *stage, v *verdict) {
	p := s.step(ctx, "first", `{"echo":"hello"}`)
	until(ctx, s.o.Patience, func() bool { _, ok := p.result(ctx); return ok || s.ended() != "" })
	if _, ok := p.result(ctx); !ok {
		v.fatal = true
		until(ctx, 100*time.Millisecond, func() bool { return len(s.witness.kind(kv.Managed)) > 0 })
		switch managed := s.witness.kind(kv.Managed); {
		case len(managed) > 0:
			v.must("pull from the durable consumer that the answer to the registration names; its fan-out limit holds over all workers",
				"it asked for %s and took no step from the tool's consumer%s", managed[0].Call, s.ended())
		case s.ended() != "":
			v.must("look at what it printed; it finds the server in NATS_URL and the tool's name in STEPJET_TOOL", "no record%s",
				s.ended())
		case p.acked():
			v.must("publish the result to the subject in "+subjects.HeaderResult+", wait for the PubAck, then acknowledge",
				"the step was acknowledged, but has no record: its result is lost")
		case !s.registered.Load():
			v.must("request "+subjects.Register(s.o.Tool)+
				" with the definition until it is answered, then pull from the consumer that the answer names",
				"within %v it neither registered the tool nor took a step", s.o.Patience)
		default:
			v.must("pull from the consumer that the answer to the registration names, run the tool, publish to the subject in "+
				subjects.HeaderResult,
				"it registered the tool, and within %v there is no record of the step", s.o.Patience)
		}
		return
	}
	if !s.registered.Load() {
		v.should("register on start: that creates the consumer and keeps the definition up to date",
			"it took the step without having registered the tool")
	}
}

func record(ctx context.Context, s *stage, v *verdict) {
	const trace, secret = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "hush-7d1f"
	p := s.probe(s.newRun(ctx, "record"), "s1")
	bag, _ := wire.NewContext(map[string]string{"token": secret}, "token") // within every limit
	h := p.header(func(w *wire.Step) { w.Trace.Parent, w.Context = trace, bag })
	h["Some-Later-Header"] = []string{"to be ignored"}
	const args = `{"echo":{"list":[1,true,null,"x"],"object":{}}}`
	p.send(ctx, h, []byte(args))
	r, ok := p.await(ctx, s.o.Patience)
	if !ok {
		v.must("ignore headers that you don't know",
			"there is no record of a step with "+subjects.HeaderContext+" and a header of a later version")
		return
	}
	if r.Error != nil {
		v.must("return what stands under echo", "the conformance tool failed: %s", said(r.Error))
	} else if want := `{"list":[1,true,null,"x"],"object":{}}`; !sameJSON(r.Body, []byte(want)) {
		v.must("the body is the tool's output and nothing else", "the body is %s instead of %s",
			text.Clip(string(r.Body), 120), want)
	}
	offers := s.witness.offered(p.record())
	if len(offers) == 0 {
		return
	}
	m := offers[0]
	recordHeaders(v, m)
	if got := header(m.Header, subjects.HeaderTraceparent); got != trace {
		v.should("copy traceparent and tracestate to the result", "traceparent is %q instead of the step's", got)
	}
	for _, values := range m.Header {
		if len(values) > 0 && bytes.Contains([]byte(values[0]), []byte(secret)) {
			v.must("leave the step's "+subjects.HeaderContext+" out of records: it is for the tool alone",
				"the record carries the step's context")
		}
	}
}

// maxWorkerName is the longest name of a worker that is kept, in bytes.
const maxWorkerName = 256

// recordHeaders checks what the worker added to its output.
func recordHeaders(v *verdict, m published) {
	if m.Reply == "" {
		v.must("publish through JetStream, or as a request, and wait for the PubAck",
			"the record was published without asking for a PubAck")
	}
	if got := header(m.Header, headerExpect); got != "0" {
		v.must("set "+headerExpect+": 0, so that whoever comes second is refused", "%s is %q", headerExpect, got)
	}
	if id := header(m.Header, headerMsgID); id != "" {
		v.must("leave "+headerMsgID+" away: the server would answer \"duplicate\" for a record that it didn't store",
			"%s is %q", headerMsgID, id)
	}
	switch got := header(m.Header, subjects.HeaderVersion); got {
	case subjects.Version:
	case "":
		v.should("set it to "+subjects.Version, "%s is missing", subjects.HeaderVersion)
	default:
		v.must("set it to "+subjects.Version, "%s is %q", subjects.HeaderVersion, got)
	}
	if got := header(m.Header, subjects.HeaderStatus); got == "" {
		v.should("set it to "+subjects.StatusOK, "%s is missing", subjects.HeaderStatus)
	}
	switch n := len(header(m.Header, subjects.HeaderWorker)); {
	case n == 0:
		v.should("name the worker, so that people can tell who did it", "%s is missing", subjects.HeaderWorker)
	case n > maxWorkerName:
		v.must("give it a name of at most 256 bytes: a longer one is cut off, and no two such workers can be told apart",
			"%s has %d bytes", subjects.HeaderWorker, n)
	}
	for _, name := range []string{subjects.HeaderStarted, subjects.HeaderEnded} {
		if at := header(m.Header, name); at != "" {
			if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
				v.should("write times as RFC 3339 in UTC, or leave them away", "%s is %q", name, at)
			}
		}
	}
}

// Headers of JetStream's own.
const (
	headerExpect = "Nats-Expected-Last-Subject-Sequence"
	headerMsgID  = "Nats-Msg-Id"
)

func ack(ctx context.Context, s *stage, v *verdict) {
	p := s.step(ctx, "ack", `{"echo":1}`)
	if _, ok := p.await(ctx, s.o.Patience); !ok {
		v.must("take one step after the other", "there is no record of the second step%s", s.ended())
		return
	}
	if !p.settled(ctx, s.o.Patience) {
		v.must("acknowledge the step (+ACK to its reply subject) once the record's PubAck is there",
			"the step was never acknowledged: it is handed out again for ever")
		return
	}
	a := p.acknowledgement()
	if offers := s.witness.offered(p.record()); len(offers) > 0 && a.place < offers[0].place {
		v.must("publish the record, wait for its PubAck, and only then acknowledge: a worker that dies in between loses the step",
			"it acknowledged before it published the record")
	}
	if a.Delivered > 1 {
		v.must("acknowledge the step as soon as the record's PubAck is there",
			"the step was acknowledged only after it had been handed out again")
	}
	if a.Kind == kv.Terminated {
		v.should("acknowledge with +ACK", "it ended the step with +TERM")
	}
}

func unicodeText(ctx context.Context, s *stage, v *verdict) {
	const want = `"grüße, 東京 😀 \u0000 \u2028 <&> \" \\ \/ é"`
	p := s.step(ctx, "text", `{"echo":`+want+`}`)
	switch r, ok := p.await(ctx, s.o.Patience); {
	case !ok:
		v.must("read and write the bodies as UTF-8", "there is no record of a step with such text")
	case r.Error != nil:
		v.must("read and write the bodies as UTF-8", "the step failed: %s", said(r.Error))
	case !sameJSON(r.Body, []byte(want)):
		v.must("read and write the bodies as UTF-8", "%s came back as %s", want, text.Clip(string(r.Body), 200))
	}
}

func numbers(ctx context.Context, s *stage, v *verdict) {
	const want = `[12345678901234567890,1.0,0.1e1]`
	p := s.step(ctx, "numbers", `{"echo":`+want+`}`)
	r, ok := p.await(ctx, s.o.Patience)
	if !ok || r.Error != nil {
		v.must("numbers have any number of digits in JSON", "a step with %s was not done", want)
		return
	}
	var got bytes.Buffer
	if json.Compact(&got, r.Body) != nil || got.String() != want {
		v.should("pass values through as raw JSON where your language can; where not, say in the tool's description that large numbers go as strings",
			"%s came back as %s", want, text.Clip(string(r.Body), 120))
	}
}

// sameJSON compares two JSON texts by value.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
