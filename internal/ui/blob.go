package ui

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

const (
	// mostSaved is how many values are held at a time to be saved, each up to kv.MaxBlob; whoever comes later waits.
	mostSaved = 2
	// savedRate is how many bytes in a second a browser has to take, so that none holds a value for long.
	savedRate = 64 << 10
)

// saving hands whole values out, as files to be saved and nothing that a browser opens: what they hold is anybody's.
type saving struct {
	looking
	turns chan struct{}
}

func newSaving(l looking) saving { return saving{l, make(chan struct{}, mostSaved)} }

// blob sends all of a step's result, or of its arguments. It is read whole before its first byte leaves: only then it is
// known to be what was recorded.
func (s saving) blob(w http.ResponseWriter, r *http.Request) (any, error) {
	of := r.URL.Query().Get("of")
	if of != "" && of != "result" && of != "arguments" {
		return nil, fault.New(fault.InvalidValue, "of=%.20s", of).WithHint("result or arguments")
	}
	run, doc, err := s.of(r)
	if err != nil {
		return nil, err
	}
	token := r.PathValue("step")
	step := find(doc.Steps, token)
	if step == nil {
		return nil, fault.New(fault.NotFound, "run %q has no step %q", run.Plain(), token)
	}
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	raw, kind := []byte(step.Arguments), ".json"
	if of != "arguments" {
		if raw, err = s.whole(r.Context(), run.Tenant, doc, step); err != nil {
			return nil, err
		}
		if step.Text && near(doc, step) == nil {
			kind = ".txt"
		}
	}
	if raw == nil {
		return nil, fault.New(fault.NotFound, "step %q of run %q has no such value, or it is not kept", token, run.Plain()).
			WithHint("a step that did not run has none; of arguments only so much is computed anew for each run")
	}
	send(w, fileName(run, token, of)+kind, raw)
	return nil, nil
}

// send answers with a file.
func send(w http.ResponseWriter, name string, raw []byte) {
	head := w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	head.Set("Content-Length", strconv.Itoa(len(raw)))
	head.Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(writeWithin + time.Duration(len(raw)/savedRate)*time.Second)) // else none is needed
	_, _ = w.Write(raw)                                                                                   // a browser that is gone needs no answer
	_ = out.SetWriteDeadline(time.Time{})
}

// fileName names a value in letters that no system reads anything into.
func fileName(run subjects.Run, step, of string) string {
	name := run.Plain() + "-" + step
	if of == "arguments" {
		name += "-arguments"
	}
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, name)
	return plain[:min(len(plain), 120)]
}
