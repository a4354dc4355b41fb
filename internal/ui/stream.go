package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
)

const (
	// commentEvery keeps proxies from closing a stream that is silent.
	commentEvery = 15 * time.Second
	// writeWithin is how long a browser may take to read a frame.
	writeWithin = 30 * time.Second
)

// stream serves server-sent events: of one run where "run" names it, else of the list. It begins with "reset", which
// says to read what is shown, unless the browser was here a moment ago and has missed nothing; and has one again
// whenever frames were lost. Then come "steps", "tokens" and "end" of a run, or "runs" of a list; and "lost" when the
// connection to NATS is, which a "reset" ends.
func (h *hub) stream(w http.ResponseWriter, r *http.Request) (any, error) {
	name := topicRuns
	if key := r.URL.Query().Get("run"); key != "" {
		run, err := named(r, key)
		if err != nil {
			return nil, err
		}
		name = run.Key()
	}
	out := &events{w: w, flush: http.NewResponseController(w)}
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-store")
	head.Set("X-Accel-Buffering", "no")
	v, last := h.join(name)
	defer h.leave(name, v)
	if !current(r.Header.Get("Last-Event-ID"), v.epoch, last) {
		v.lost.Store(true)
	}
	out.write(": \n\n") // so that the browser knows at once that it is heard
	comment := time.NewTicker(h.silent)
	defer comment.Stop()
	for {
		if v.lost.Swap(false) {
			out.send("reset", v.epoch, last, h.standing())
		}
		if out.err != nil {
			return nil, nil //nolint:nilerr // the browser is gone: nobody is left to be told
		}
		select {
		case f, open := <-v.frames:
			if !open {
				return nil, nil
			}
			last = f.id
			out.send(f.kind, v.epoch, f.id, f.data)
		case <-comment.C:
			out.write(": \n\n")
		case <-r.Context().Done():
			return nil, nil
		}
	}
}

// current reports whether a browser that saw an event last has missed nothing.
func current(seen, epoch string, last uint64) bool {
	before, id, ok := strings.Cut(seen, "-")
	return ok && before == epoch && id == strconv.FormatUint(last, 10)
}

// events writes server-sent events.
type events struct {
	w     http.ResponseWriter
	flush *http.ResponseController
	err   error
}

func (e *events) send(kind, epoch string, id uint64, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		e.err = fault.Wrap(fault.Internal, err, "writing an event")
		return
	}
	e.write(fmt.Sprintf("id: %s-%d\nevent: %s\ndata: %s\n\n", epoch, id, kind, body))
}

func (e *events) write(text string) {
	if e.err != nil {
		return
	}
	_ = e.flush.SetWriteDeadline(time.Now().Add(writeWithin)) // where it can't be set, none is needed
	if _, e.err = e.w.Write([]byte(text)); e.err == nil {
		e.err = e.flush.Flush()
	}
}
