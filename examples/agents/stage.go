package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/client"
	modelform "github.com/stepjet/stepjet/model"
	"github.com/stepjet/stepjet/model/provider"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

// stage is an example at work.
type stage struct {
	example
	rounds
	client *client.Client
	agent  string // the one that is run
}

// open hosts the tools and the planner, and applies the agents. The planner is the script unless a model is named.
func (s *stage) open(ctx context.Context, nc *nats.Conn, model string) (end func() error, err error) {
	w, err := worker.New(nc, worker.Config{Name: "agents"})
	if err != nil {
		return nil, err
	}
	closeModel := func() {}
	planner := "script"
	if model == "" {
		err = s.script(w)
	} else {
		planner = "model"
		closeModel, err = hostModel(w, model)
	}
	if err != nil {
		return nil, err
	}
	w.Use(s.listen(planner))
	host(w, s.folder, s.say)
	working, stop := context.WithCancel(ctx)
	worked := make(chan error, 1)
	go func() { worked <- w.Run(working) }()
	end = func() error {
		if s.client != nil {
			s.client.Close()
		}
		stop() // the worker finishes what it has
		err := <-worked
		closeModel()
		return err
	}
	select {
	case <-w.Ready():
	case err := <-worked:
		worked <- nil
		return nil, errors.Join(err, end())
	}
	if s.client, err = client.New(ctx, nc, client.Config{}); err == nil {
		err = s.apply(ctx, model != "")
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// apply registers groups and agents. A model takes the script's place in all of them.
func (s *stage) apply(ctx context.Context, model bool) error {
	var groups, agents []json.RawMessage
	err := json.Unmarshal(s.agents, &agents)
	if s.groups != nil {
		err = errors.Join(err, json.Unmarshal(s.groups, &groups))
	}
	if err != nil {
		return err
	}
	for _, g := range groups {
		if _, err := client.GroupsOf(s.client).Apply(ctx, g); err != nil {
			return err
		}
	}
	byModel := func(text []byte) []byte {
		if !model {
			return text
		}
		return []byte(strings.Replace(string(text), `"tool": "script"`, `"tool": "model"`, 1))
	}
	s.plan = byModel(s.plan)
	for _, a := range agents {
		a = byModel(a)
		made, err := s.client.ApplyTemplate(ctx, a)
		if err != nil {
			return err
		}
		s.agent = made.Name
	}
	return nil
}

// play runs the agent under a run id, "" for a new one, with somebody beside it who answers what it asks.
func (s *stage) play(ctx context.Context, run string) (*outcome.Outcome, error) {
	r, err := s.submit(ctx, client.SubmitOptions{Run: run})
	if err != nil {
		return nil, err
	}
	if s.person != nil {
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		go s.answer(ctx, r.ID())
	}
	return r.Wait(ctx)
}

// submit submits the plan, or a call of the agent.
func (s *stage) submit(ctx context.Context, o client.SubmitOptions) (*client.Run, error) {
	if len(s.plan) > 0 {
		return s.client.Submit(ctx, s.plan, o)
	}
	return client.AgentOf(s.client, s.agent).Submit(ctx, json.RawMessage(s.input), o)
}

// decision is what a person says of a call or of a round: that it may be, or why not.
type decision struct {
	Approve bool
	Reject  string
}

// decisions are those of person.json where it is a list of them, one for each question; otherwise it is what the one
// question is answered with.
func (s *stage) decisions() (all []decision) {
	if json.Unmarshal(s.person, &all) != nil || len(all) == 0 {
		return []decision{{Approve: true}}
	}
	return all
}

// answer answers the questions of a run, each as soon as it is asked.
func (s *stage) answer(ctx context.Context, run string) {
	answered := map[string]bool{}
	all := s.decisions()
	for look := time.Tick(10 * time.Millisecond); ctx.Err() == nil && len(answered) < len(all); <-look {
		asked, err := s.client.Questions(ctx, run)
		if err != nil {
			continue
		}
		for _, q := range asked {
			if key := fmt.Sprint(q.Step, " ", q.Number); !answered[key] && s.decide(ctx, q, all[len(answered)]) == nil {
				answered[key] = true
				break
			}
		}
	}
}

func (s *stage) decide(ctx context.Context, q *outcome.Question, d decision) (err error) {
	say := client.Answer{By: "the example", Reason: d.Reject}
	switch {
	case q.Kind == outcome.Ask:
		_, err = s.client.Answer(ctx, q, s.person, say)
	case d.Approve:
		_, err = s.client.Approve(ctx, q, say)
	default:
		_, err = s.client.Reject(ctx, q, say)
	}
	return err
}

// say says something to the agent, as its user would from another window.
func (s *stage) say(ctx context.Context, text string) error {
	info, _ := worker.InfoFrom(ctx)
	_, err := client.Say(ctx, s.client, info.Run, client.Word{ID: "word", Text: text, By: "ann"})
	return err
}

// script hosts the planner that plays a written list of answers: one for each round, by the name of the agent's model
// where there are several agents.
func (s *stage) script(w *worker.Worker) error {
	all := map[string][]json.RawMessage{}
	if json.Unmarshal(s.answers, &all) != nil {
		var one []json.RawMessage
		if err := json.Unmarshal(s.answers, &one); err != nil {
			return err
		}
		all[""] = one
	}
	worker.Handle(w, "script", func(_ context.Context, in struct {
		Round int    `json:"round"`
		Model string `json:"model"`
	}) (json.RawMessage, error) {
		if list := all[in.Model]; in.Round < len(list) {
			return list[in.Round], nil
		}
		return nil, worker.Terminal(fmt.Errorf("the script %q has no answer in round %d", in.Model, in.Round))
	}, worker.InputSchema(json.RawMessage(`{"type": "object"}`)), worker.Description("Plays a written list of answers."))
	return nil
}

// hostModel hosts a language model, "ollama:qwen3:4b".
func hostModel(w *worker.Worker, name string) (end func(), err error) {
	config, err := modelform.Named(name, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	caller, err := provider.New(config, nil)
	if err != nil {
		return nil, err
	}
	return caller.Close, caller.Host(w, provider.Definition("model", "", config))
}
