package ui

import (
	"context"
	"sync"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// frameEvery is the least time between two frames of a run.
const frameEvery = 100 * time.Millisecond

// change is what a frame says of a step that changed. Times are milliseconds of 1970.
type change struct {
	Step    string             `json:"step"`
	Status  outcome.StepStatus `json:"status"`
	Attempt int                `json:"attempt,omitempty"`
	At      float64            `json:"at,omitempty"` // when it was decided
	Ran     float64            `json:"ran,omitempty"`
	Waited  float64            `json:"waited,omitempty"`
	Code    fault.Code         `json:"code,omitempty"`
	Worker  string             `json:"worker,omitempty"`
	Waiting string             `json:"waiting,omitempty"`
}

// written is what a frame says of what a step is writing: from byte At to byte End of it.
type written struct {
	Step    string `json:"step"`
	Attempt int    `json:"attempt"`
	At      int64  `json:"at"`
	End     int64  `json:"end"`
	Text    string `json:"text"`
}

// mostWritten bounds what a frame says of what one step is writing, in bytes: the last of it.
const mostWritten = 8 << 10

// changes gathers what happened between two frames; of each step the last word counts, and all that it has written.
type changes struct {
	mu    sync.Mutex
	steps map[string]change
	texts map[string]*written
	wake  chan struct{}
}

func newChanges() *changes {
	return &changes{steps: map[string]change{}, texts: map[string]*written{}, wake: make(chan struct{}, 1)}
}

func (c *changes) add(e client.Event) {
	switch {
	case e.Step == "" || e.Kind == subjects.EventMessage: // its call is told of by itself
		return
	case e.Kind == subjects.EventToken:
		c.write(e)
		c.woken()
		return
	}
	x := change{
		Step: e.Step, Status: e.Status, Attempt: e.Attempt, Ran: tenths(e.MS), Waited: tenths(e.QueuedMS),
		Worker: e.Worker, Waiting: e.Waiting,
	}
	if p := e.Progress; p != nil {
		x.Status, x.Waiting = outcome.StepRunning, p.Message
	}
	if !e.Time.IsZero() {
		x.At = tenths(float64(e.Time.UnixMicro()) / 1000)
	}
	if e.Error != nil {
		x.Code = e.Error.Code
	}
	c.mu.Lock()
	c.steps[e.Step] = x
	c.mu.Unlock()
	c.woken()
}

func (c *changes) woken() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write adds a part of what a step is writing. One that does not follow on what is there begins anew.
func (c *changes) write(e client.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.texts[e.Step]
	if w == nil || w.Attempt != e.Attempt || w.End != e.Offset {
		w = &written{Step: e.Step, Attempt: e.Attempt, At: e.Offset}
		c.texts[e.Step] = w
	}
	w.End = e.Offset + int64(len(e.Text))
	all := len(w.Text) + len(e.Text)
	w.Text = text.Last(w.Text+e.Text, mostWritten)
	w.At += int64(all - len(w.Text))
}

// takeTexts returns what was written since the last frame.
func (c *changes) takeTexts() []written {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []written
	for _, w := range c.texts {
		all = append(all, *w)
	}
	clear(c.texts)
	return all
}

func (c *changes) take() []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]change, 0, len(c.steps))
	for _, x := range c.steps {
		all = append(all, x)
	}
	clear(c.steps)
	return all
}

// watch tells what becomes of the steps of a run that follow reports of, at most ten times a second, until it is over.
// What can't be watched any more just ends: browsers come again.
func watch(ctx context.Context, follow func(context.Context, func(client.Event)) error, tell func(kind string, data any)) {
	gathered := newChanges()
	over := make(chan error, 1)
	go func() { over <- follow(ctx, gathered.add) }() // it is waited for, however this ends
	for {
		select {
		case <-gathered.wake:
			if list := gathered.take(); len(list) > 0 {
				tell("steps", list)
			}
			if texts := gathered.takeTexts(); len(texts) > 0 {
				tell("tokens", texts)
			}
		case err := <-over:
			if rest := gathered.take(); len(rest) > 0 {
				tell("steps", rest)
			}
			if err == nil {
				tell("end", struct{}{})
			}
			return
		}
		select {
		case <-time.After(frameEvery):
		case <-ctx.Done():
		}
	}
}
