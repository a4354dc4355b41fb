package agentbench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

// Words is what became of what was said to agents that were about to end: a file of bench/.
type Words struct {
	bench.Stamp
	Agents int `json:"agents"`
	Said   int `json:"said"`
	// Taken were told to a planner, in one round each; Late were answered that the agent is over.
	Taken int `json:"taken"`
	Late  int `json:"answered_already_finished"`
	// Wrong are those that were taken twice, by nobody although they were accepted, or although they were refused.
	Wrong int `json:"wrong"`
}

const (
	listenerTool = "listener"
	hasty        = `{"name":"hasty","description":"Is about to end.","agent":{"planner":{"tool":"listener","mode":"plan"},"max_rounds":1000}}`
	wordsEach    = 10
)

// listener is a planner that has its output from the first round on, so that only what is said keeps an agent from its
// end. It keeps in which round it was told what.
type listener struct {
	mu   sync.Mutex
	told map[string]map[int]bool
}

func (l *listener) answer(ctx context.Context, args json.RawMessage) (worker.Output, error) {
	var in struct {
		Round    int                   `json:"round"`
		Messages []struct{ ID string } `json:"messages"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return worker.Output{}, worker.Terminal(err)
	}
	info, _ := worker.InfoFrom(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range in.Messages {
		key := info.Run + " " + m.ID
		if l.told[key] == nil {
			l.told[key] = map[int]bool{}
		}
		l.told[key][in.Round] = true
	}
	return worker.Output{Body: json.RawMessage(`{"output":"done"}`)}, nil
}

// measureWords says things to agents while they end, and looks at who heard what.
func measureWords(ctx context.Context, env Env, scale float64, stamp bench.Stamp) (any, error) {
	l := &listener{told: map[string]map[int]bool{}}
	env.Extra = bench.Extra{Tools: 1, Slots: 64, Host: func(w *worker.Worker, _ *nats.Conn) error {
		return w.HandleRaw(definition(listenerTool), l.answer)
	}}
	w, err := bench.NewWorld(ctx, env.Env, bench.Embedded)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if err := w.Start(); err != nil {
		return nil, err
	}
	if _, err := w.Client.ApplyTemplate(ctx, []byte(hasty)); err != nil {
		return nil, err
	}
	f := &Words{Stamp: stamp, Agents: atLeast(1000*scale, 10)}
	var mu sync.Mutex
	answers := map[string]error{}
	g, in := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for range f.Agents {
		g.Go(func() error {
			return talk(in, w.Client, func(word string, err error) {
				mu.Lock()
				defer mu.Unlock()
				answers[word] = err
			})
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	f.Said = len(answers)
	for word, err := range answers {
		rounds := len(l.told[word])
		switch code := fault.CodeOf(err); {
		case err == nil && rounds == 1:
			f.Taken++
		case code == fault.AlreadyFinished && rounds == 0:
			f.Late++
		default:
			f.Wrong++
			env.Progress(fmt.Sprintf("%s: told in %d rounds, answered %v", word, rounds, err))
		}
	}
	env.Progress(fmt.Sprintf("%d words to %d agents: %d taken in one round each, %d already finished, %d wrong", f.Said, f.Agents, f.Taken, f.Late, f.Wrong))
	if f.Wrong > 0 {
		return nil, fault.New(fault.Internal, "%d of %d words came to something else", f.Wrong, f.Said)
	}
	return f, nil
}

// talk runs an agent and says words to it, each at a moment of the first milliseconds.
func talk(ctx context.Context, c *client.Client, answered func(word string, err error)) error {
	r, err := client.AgentOf(c, "hasty").Submit(ctx, nil, client.SubmitOptions{})
	if err != nil {
		return err
	}
	g, in := errgroup.WithContext(ctx)
	for i := range wordsEach {
		g.Go(func() error {
			select {
			case <-time.After(time.Duration(rand.IntN(20_000)) * time.Microsecond):
			case <-in.Done():
				return context.Cause(in)
			}
			id := fmt.Sprintf("w%d", i)
			for {
				_, err := client.Say(in, c, r.ID(), client.Word{ID: id, Text: "Wait."})
				switch fault.CodeOf(err) {
				case fault.NotFound, fault.InvalidID: // it has not begun
					continue
				}
				answered(r.ID()+" "+id, err)
				return nil
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	out, err := r.Wait(ctx)
	if err == nil && out.Status != outcome.Succeeded {
		err = fault.New(fault.Internal, "an agent came to %s: %.500s", out.Status, out.JSON())
	}
	return err
}
