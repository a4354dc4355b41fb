package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/worker"
)

// rounds are what planners were asked and what they answered.
type rounds struct {
	mu    sync.Mutex
	asked map[string]*asked // by the planner's step
	order []string
}

// asked is what is told of one request.
type asked struct {
	agent  string
	answer json.RawMessage
	Round  int `json:"round"`
	Final  bool
	Tools  []named
	Rounds []struct {
		Records []struct {
			ID, Tool, Status, Note string
			Arguments, Result      json.RawMessage
			Error                  *struct{ Message string }
		}
		Problems []struct{ At, Message string }
	}
	Messages []struct {
		Content json.RawMessage
		By      string
	}
	ToolChanges struct {
		Added []named
		Gone  []string
	} `json:"tool_changes"`
	Locked        map[string]string
	DroppedOutput json.RawMessage `json:"dropped_output"`
	ActionResults json.RawMessage `json:"action_results"`
}

type named struct{ Name string }

// listen notes what a planner is asked and what it answers. A request names the rounds before by their last part, so it
// is put together first.
func (r *rounds) listen(planner string) func(worker.Handler) worker.Handler {
	keeper := parts.NewKeeper(parts.DefaultKept)
	return func(next worker.Handler) worker.Handler {
		return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
			out, err := next(ctx, args)
			info, _ := worker.InfoFrom(ctx)
			if info.Tool != planner || err != nil {
				return out, err
			}
			whole, err := keeper.Whole(ctx, args, worker.ReadPart)
			if err != nil {
				return out, err
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			a := &asked{agent: agentOf(info.Step), answer: out.Body}
			if err := json.Unmarshal(whole, a); err != nil {
				return out, worker.Terminal(err)
			}
			if r.asked == nil {
				r.asked = map[string]*asked{}
			}
			if r.asked[info.Step] == nil {
				r.order = append(r.order, info.Step)
			}
			r.asked[info.Step] = a
			return out, nil
		}
	}
}

// transcript tells the rounds as their planners saw them: which tools, what is locked, what was answered, and, with the
// request that follows, what came of it.
func (r *rounds) transcript() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, step := range r.order {
		a := r.asked[step]
		a.cameOf(&b)
		heading := fmt.Sprintf("ROUND %d", a.Round)
		if a.Final {
			heading = "THE LAST ANSWER"
		}
		if deep := strings.Count(a.agent, "/"); deep > 0 {
			heading += " of " + a.agent
		}
		fmt.Fprintln(&b, heading)
		for _, m := range a.Messages {
			fmt.Fprintf(&b, "  %s says: %s\n", m.By, m.Content)
		}
		a.shown(&b)
		if a.DroppedOutput != nil {
			fmt.Fprintf(&b, "  dropped output: %s\n", a.DroppedOutput)
		}
		if a.ActionResults != nil {
			fmt.Fprintf(&b, "  action results: %s\n", a.ActionResults)
		}
		fmt.Fprintf(&b, "  answer: %s\n", a.answer)
	}
	return b.String()
}

// shown tells which tools there are, or how they have changed.
func (a *asked) shown(b *strings.Builder) {
	line := func(what string, all []string) {
		if len(all) > 0 {
			fmt.Fprintf(b, "  %s: %s\n", what, strings.Join(all, ", "))
		}
	}
	if a.Round == 0 {
		line("tools", namesOf(a.Tools))
	}
	line("more tools", namesOf(a.ToolChanges.Added))
	line("gone", a.ToolChanges.Gone)
	line("locked", slices.Sorted(maps.Keys(a.Locked)))
}

func namesOf(all []named) (list []string) {
	for _, t := range all {
		list = append(list, t.Name)
	}
	return list
}

// cameOf tells what the calls of the round before came to.
func (a *asked) cameOf(b *strings.Builder) {
	if len(a.Rounds) == 0 {
		return
	}
	last := a.Rounds[len(a.Rounds)-1]
	for _, p := range last.Problems {
		fmt.Fprintf(b, "  no good: %s %s\n", p.At, p.Message)
	}
	for _, x := range last.Records {
		came := x.Status
		switch {
		case x.Error != nil:
			came += ": " + x.Error.Message
		case x.Result != nil:
			came = string(x.Result)
		}
		if x.Note != "" {
			came += " (" + x.Note + ")"
		}
		fmt.Fprintf(b, "  %s %s -> %s\n", x.Tool, x.Arguments, came)
	}
}

// agentOf returns the agent's step of its planner's, AGENT/=ROUND/=plan.
func agentOf(step string) string {
	for range 2 {
		step = step[:max(0, strings.LastIndex(step, "/="))]
	}
	return step
}
