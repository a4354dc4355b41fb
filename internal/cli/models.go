package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/agentcheck"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// modelFlags say which models a command hosts.
type modelFlags struct{ word, file string }

func (f *modelFlags) add(fs *pflag.FlagSet, as string) {
	fs.StringVar(&f.word, "model", "", "host a language `model` here as "+as+": ollama:qwen3:4b, openai:ID or anthropic:ID")
	fs.StringVar(&f.file, "models", "", "host the language models of a models `file` here")
}

// given reports whether there is anything to host.
func (f *modelFlags) given() bool { return f.word != "" || f.file != "" }

// open reads what is to be hosted, a word under the names of tools.
func (f *modelFlags) open(a *app, tools ...string) (Models, error) {
	switch {
	case f.word != "" && f.file != "":
		return nil, usage(errors.New("--model and --models say which models are hosted: leave one of them out"))
	case a.env.Models == nil:
		return nil, fault.New(fault.InvalidConfig, "this program was built without language models").
			WithHint("modelworker hosts them; docs/models.md describes it")
	}
	return a.env.Models(f.file, f.word, tools, a.lookup)
}

// hosting are models that are hosted while a command runs.
type hosting struct {
	end  context.CancelFunc
	over chan error // what the worker ended with
}

// hostModels returns once the tools are registered, and closes the models when it is ended. failed gets the error of a worker
// that ends by itself.
func hostModels(ctx context.Context, a *app, nc *nats.Conn, m Models, failed func(error)) (*hosting, error) {
	w, err := worker.New(nc, worker.Config{Name: fmt.Sprintf("models-%d", os.Getpid()), Logger: a.log()})
	if err == nil {
		err = m.Host(nc, w, a.log())
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	working, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h := &hosting{end: cancel, over: make(chan error, 1)}
	go func() {
		err := w.Run(working)
		m.Close()
		if working.Err() == nil {
			failed(fault.Wrap(fault.CodeOf(err), err, "hosting the language models"))
		}
		h.over <- err
	}()
	ctx, patience := a.patience(ctx)
	defer patience()
	select {
	case <-w.Ready():
		return h, nil
	case err = <-h.over:
		h.over <- err
	case <-ctx.Done():
		err = why(ctx, context.Cause(ctx))
	}
	h.close()
	return nil, err
}

// close ends the hosting; answers that are under way are recorded.
func (h *hosting) close() {
	if h == nil {
		return
	}
	h.end()
	<-h.over
}

// planner is what "agents run" does so that somebody plans for the agent.
type planner struct {
	*app
	models modelFlags
	files  []string // definitions to be registered before
	list   []*applied
	agent  string
	again  bool // the run may be there already
	hosts  bool // what plans is hosted here
}

// read takes the files apart.
func (p *planner) read() (err error) {
	p.list, err = p.definitionsIn(p.files)
	return err
}

// ready hosts the models of the flags, registers what the files have, and makes sure that a worker hosts the agent's planner. The
// context that it returns ends with the models.
func (p *planner) ready(ctx context.Context, s *session) (context.Context, func(), error) {
	within, end, err := p.host(ctx, s)
	if err == nil && len(p.list) > 0 {
		err = forRole(p.applyOn(within, s, p.list), "an operator of the cluster registers agents: stepjet agents apply FILE; then run it without --apply")
		if i := slices.IndexFunc(p.list, func(x *applied) bool { return x.Status == "refused" }); err == nil && i >= 0 {
			why := p.list[i].Error
			err = fault.New(why.Code, "%s is refused: %s", p.list[i].place, why.Message).WithHint("%s", why.Hint)
		}
	}
	if err == nil && !p.models.given() && !p.again {
		err = p.planned(ctx, s)
	}
	if err != nil {
		end()
	}
	return within, end, err
}

// host hosts the models of the flags.
func (p *planner) host(ctx context.Context, s *session) (context.Context, func(), error) {
	nothing := func() {}
	if !p.models.given() {
		return ctx, nothing, nil
	}
	var planners []string
	var err error
	if p.models.file == "" {
		if planners, err = p.unhosted(ctx, s); err != nil || len(planners) == 0 {
			return ctx, nothing, err
		}
	}
	m, err := p.models.open(p.app, planners...)
	if err != nil {
		return ctx, nothing, err
	}
	within, cancel := context.WithCancelCause(ctx)
	h, err := hostModels(ctx, p.app, s.nc, m, cancel)
	p.hosts = err == nil
	err = forRole(err, "a worker of that tool hosts a model: modelworker --models FILE, with the credentials of stepjet acl worker; then run the agent without --model")
	return within, func() { h.close(); cancel(nil) }, err
}

// unhosted returns the planners, of the agent and of those below it, that no worker hosts; none of an agent that nobody
// knows, since the run says so.
func (p *planner) unhosted(ctx context.Context, s *session) ([]string, error) {
	all, err := p.planners(ctx, s)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	elsewhere, err := hosts(ctx, p.app, s, all, kv.AnswerWithin)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		p.say("%s the worker %s hosts the planner %s, which is asked there", p.errStyle.yellow("note:"), oneLine(elsewhere[name]), oneLine(name))
	}
	open := slices.DeleteFunc(all, func(name string) bool { return elsewhere[name] != "" })
	if len(open) == 0 {
		return nil, fault.New(fault.InvalidConfig, "%s would not be asked: other workers host what plans for %s", p.models.word, p.agent).
			WithHint("leave --model out, or end those workers")
	}
	return open, nil
}

// planners returns the tools that are asked what to do next, of the agent and of those below it, its own first.
func (p *planner) planners(ctx context.Context, s *session) ([]string, error) {
	ctx, cancel := p.patience(ctx)
	defer cancel()
	registered, err := s.client.Tools(ctx)
	if err != nil {
		return nil, why(ctx, err)
	}
	all := agentcheck.Files{}
	for _, t := range registered {
		all[t.Name] = t.Definition
	}
	for _, x := range p.list { // they take the place of those that are registered
		if d, err := tool.ParseDefinition(x.raw); err == nil {
			all[d.Name] = d
		}
	}
	if d := all[p.agent]; d != nil && d.Agent == nil {
		return nil, fault.New(fault.InvalidConfig, "%s is a tool, and no agent", p.agent).
			WithHint("stepjet agents list names the agents; a plan calls any tool: stepjet run")
	}
	return all.Planners(p.agent), nil
}

// planned returns an error where no worker hosts the planner of the agent.
func (p *planner) planned(ctx context.Context, s *session) error {
	all, err := p.planners(ctx, s)
	if err != nil || len(all) == 0 {
		return err
	}
	// A worker that answers nobody says that it lives all the same, so often.
	found, err := hosts(ctx, p.app, s, all[:1], wire.BeatEvery+kv.AnswerWithin)
	if err != nil || found == nil || found[all[0]] != "" {
		return err
	}
	return fault.New(fault.NotReady, "no worker hosts %s, the planner of the agent %s", all[0], p.agent).
		WithHint("have a language model plan: --model ollama:qwen3:4b here, or openai:MODEL or anthropic:MODEL with a key in OPENAI_API_KEY or " +
			"ANTHROPIC_API_KEY; or start a worker that hosts it, such as modelworker --models FILE")
}

// hosts returns a worker of each of some tools, of those that are heard within a time; as soon as there is one of each.
// Nil is that who asks may not hear workers.
func hosts(ctx context.Context, a *app, s *session, tools []string, within time.Duration) (by map[string]string, err error) {
	err = a.withStore(ctx, s, func(store *kv.Store) error {
		w, err := store.Beats().Hear(ctx)
		if err != nil {
			return err
		}
		defer w.Stop()
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		for look := time.Tick(5 * time.Millisecond); ; <-look {
			by = map[string]string{}
			all, _ := w.List()
			for _, x := range all {
				for _, t := range x.Tools {
					if !x.Leaving && slices.Contains(tools, t.Tool) {
						by[t.Tool] = x.Name
					}
				}
			}
			if len(by) == len(tools) || ctx.Err() != nil {
				return nil
			}
		}
	})
	if fault.CodeOf(err) == fault.Permission {
		return nil, nil
	}
	return by, why(ctx, err)
}
