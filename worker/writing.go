package worker

import (
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

// Write tells whoever watches the run what the handler of ctx is writing, as a language model writes its answer: text is
// what has come since the last call. Nothing rests on it, and nothing is stored: it may be lost, and what the step came to
// is what the handler returns. It is told four times a second while somebody listens, and hardly at all while nobody does;
// it never blocks, and does nothing outside of a handler, or in a batch.
func Write(ctx context.Context, text string) {
	if x, _ := ctx.Value(executionKey{}).(*execution); x != nil && text != "" {
		writingOf(x).add(text)
	}
}

// How often it is told what a handler is writing: while somebody listens, after nobody did, and where nobody passes it on.
const (
	writeEvery  = 250 * time.Millisecond
	writeLater  = time.Second
	writeSeldom = 10 * time.Second
	// writeWithin is how long the owner of the run may take to say whether somebody listens.
	writeWithin = time.Second
)

// writing is what the handler of one execution is writing.
type writing struct {
	x *execution

	mu    sync.Mutex
	at    int64       // where the text begins that was not told
	text  []byte      // at most wire.MaxToken bytes of it: the newest
	timer *time.Timer // tells it; nil while nothing is to be told
	over  bool
}

// writingOf returns that of an execution, made when it is first needed: most handlers write nothing.
func writingOf(x *execution) *writing {
	if w := x.writes.Load(); w != nil {
		return w
	}
	x.writes.CompareAndSwap(nil, &writing{x: x})
	return x.writes.Load()
}

func (w *writing) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.text = append(w.text, text...)
	if more := len(w.text) - wire.MaxToken; more > 0 {
		for more < len(w.text) && !utf8.RuneStart(w.text[more]) {
			more++
		}
		w.cut(more)
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(0, w.tell)
	}
}

// cut lets go of the first bytes.
func (w *writing) cut(n int) {
	w.at += int64(n)
	w.text = append(w.text[:0], w.text[n:]...)
}

// next returns what is to be told now: no half of a letter.
func (w *writing) next() (t wire.Token, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := len(w.text)
	for n := 1; n <= min(utf8.UTFMax, whole); n++ {
		if c := w.text[whole-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(w.text[whole-n:]) {
				whole -= n
			}
			break
		}
	}
	if w.over || whole == 0 {
		w.timer = nil
		return t, false
	}
	return wire.Token{At: w.at, Text: string(w.text[:whole])}, true
}

// tell tells it, and asks with that whether somebody listens. What nobody heard stays, as far as there is room for it, for
// who comes later.
func (w *writing) tell() {
	t, ok := w.next()
	if !ok {
		return
	}
	end, x := t.At+int64(len(t.Text)), w.x
	t.Text = x.redactor().Text(t.Text)
	if len(t.Text) > wire.MaxToken {
		t.Text = t.Text[:wire.MaxToken]
	}
	ctx, cancel := context.WithTimeout(x.base, writeWithin)
	heard, err := x.e.store.Beats().Write(ctx, x.attempt, t)
	cancel()
	again := writeEvery
	switch {
	case err != nil:
		if again = writeLater; fault.CodeOf(err) == fault.NotFound || fault.CodeOf(err) == fault.Permission {
			again = writeSeldom
		}
	case !heard:
		again = writeLater
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over { // meanwhile: nothing is left of it
		w.timer = nil
		return
	}
	if n := int(end - w.at); heard && n > 0 { // else it was let go of meanwhile
		w.cut(n)
	}
	w.timer = time.AfterFunc(again, w.tell)
}

// stop tells no more: the execution is over.
func (w *writing) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over, w.text = true, nil
	if w.timer != nil {
		w.timer.Stop()
	}
}
