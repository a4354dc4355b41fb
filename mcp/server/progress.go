package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// mostASecond is the most that a client is told in any second. A client that was told nothing for a while is told as much
// at once, else one by one.
const mostASecond = 4

// pace is when a client was told something, the last times; it bounds what it is told next.
type pace struct {
	told [mostASecond]time.Time // in turn
	next int
}

// may reports whether something may be told now.
func (p *pace) may(now time.Time) bool {
	oldest, newest := p.told[p.next], p.told[(p.next+mostASecond-1)%mostASecond]
	return now.Sub(oldest) >= time.Second && (now.Sub(newest) >= beatEvery || now.Sub(oldest) >= 2*time.Second)
}

// tells takes note that something is told now.
func (p *pace) tells(now time.Time) {
	p.told[p.next] = now
	p.next = (p.next + 1) % mostASecond
}

// progress tells a client how far its call is, if it wants to know. It is told by the goroutine that returns the call's
// result, so nothing comes after that.
type progress struct {
	say    func(context.Context, *mcp.ProgressNotificationParams)
	token  any  // nil: nobody wants to know
	single bool // a single tool is called
	quiet  time.Duration

	total, over int
	parts       map[string]float64 // how far steps are that workers have, each of 1
	own         *outcome.Progress  // of a single tool, what its worker says of how far it is
	now         string             // what goes on
	round       bool               // now is of a round of the agent that is called
	value       float64            // told last; it only rises
	told        string             // what was said last
	last        time.Time
	pace        pace
}

// leastRise is by how much progress rises where nothing else does, and leastNews what is worth telling by itself.
const leastRise, leastNews = 0.001, 0.01

func newProgress(req *mcp.CallToolRequest, kind task.Kind, quiet time.Duration) progress {
	return progress{
		token: req.Params.GetProgressToken(), single: kind == task.Tool, quiet: quiet, parts: map[string]float64{},
		say: func(ctx context.Context, p *mcp.ProgressNotificationParams) {
			_ = req.Session.NotifyProgress(ctx, p) // a client that is gone is noticed elsewhere
		},
	}
}

// mostNamed is the most of a step's token that progress tells, in bytes.
const mostNamed = 80

// happened takes what a step came to.
func (p *progress) happened(e client.Event) {
	p.now, p.round = p.named(e.Step)+" "+string(e.Status), p.inRound(e.Step)
}

// inRound reports whether a step is a call of the agent that is the call's single tool.
func (p *progress) inRound(step string) bool {
	_, _, ok := task.Round(callStep, step)
	return p.single && ok
}

// named names a step: in the loop of an agent by its round, and what it is there.
func (p *progress) named(step string) string {
	if p.inRound(step) {
		n, call, _ := task.Round(callStep, step)
		step = fmt.Sprintf("round %d: %s", n, call)
	}
	return text.Clip(step, mostNamed)
}

// heard takes what the worker of a step says of how far it is. What that of a single tool says is how far the call is;
// what those say whom an agent or a template calls is not.
func (p *progress) heard(e client.Event) {
	if p.single && e.Step == callStep {
		p.own = e.Progress
		return
	}
	if e.Progress.Total > 0 && !strings.Contains(e.Step, "/") {
		if _, _, item := subjects.SplitItem(e.Step); !item {
			p.parts[e.Step] = min(e.Progress.Done/e.Progress.Total, 1)
		}
	}
	said := e.Progress.Message
	if said == "" && e.Progress.Total > 0 {
		said = fmt.Sprintf("%.0f of %.0f", e.Progress.Done, e.Progress.Total)
	}
	p.now, p.round = p.named(e.Step)+": "+said, p.inRound(e.Step)
}

// far returns how far the call is, and of how much; 0 where that isn't known.
func (p *progress) far() (value, total float64) {
	if p.own != nil {
		return p.own.Done, p.own.Total
	}
	value = float64(p.over)
	for _, part := range p.parts {
		value += part
	}
	return value, float64(p.total)
}

// soon tells what is new, unless much was told just now: then the next beat does.
func (p *progress) soon(ctx context.Context) {
	if p.news() && p.pace.may(time.Now()) {
		p.tell(ctx)
	}
}

func (p *progress) news() bool {
	value, _ := p.far()
	return value > p.value+leastNews || p.message() != p.told
}

// beat tells what is new, or that it goes on. The next beat would be too late for what is not told now.
func (p *progress) beat(ctx context.Context) {
	if time.Since(p.last) > p.quiet-2*beatEvery {
		p.tell(ctx)
	} else {
		p.soon(ctx)
	}
}

func (p *progress) tell(ctx context.Context) {
	if p.token == nil {
		return
	}
	value, total := p.far()
	if value > p.value {
		p.value = value
	} else if p.told != "" {
		p.value += leastRise
	}
	p.told, p.last = p.message(), time.Now()
	p.pace.tells(p.last)
	p.say(ctx, &mcp.ProgressNotificationParams{ProgressToken: p.token, Progress: p.value, Total: total, Message: p.told})
}

// message says how far the run is.
func (p *progress) message() string {
	if p.own != nil && p.own.Message != "" {
		return p.own.Message
	}
	switch {
	case p.total == 0:
		return "submitted"
	case p.round:
		return p.now // the one step that there is tells nothing
	}
	said := fmt.Sprintf("%d of %s", p.over, text.Count(p.total, "step"))
	if p.now != "" {
		said += ": " + p.now
	}
	return said
}
