package main

import (
	"context"
	"strings"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Wish is what write_draft is given.
type Wish struct {
	Topic string `json:"topic"`
	Tone  string `json:"tone"`
}

// Draft is a text.
type Draft struct {
	Text string `json:"text"`
}

// Revision is what revise is given.
type Revision struct {
	Text   string `json:"text"`
	Advice string `json:"advice"`
}

// Drafts are what judge compares.
type Drafts struct {
	Drafts []string `json:"drafts"`
}

// Verdict is what judge returns: the best, what it is worth, from 0 to 9, and what would make it better.
type Verdict struct {
	Best   string `json:"best"`
	Score  int    `json:"score"`
	Advice string `json:"advice"`
}

// The tools stand for language models: what they return is as fixed as a test wants it.

func write(_ context.Context, in Wish) (Draft, error) {
	text := "The " + in.Topic + " is late."
	if in.Tone == "warm" {
		text = "We are sorry: the " + in.Topic + " is late."
	}
	return Draft{text}, nil
}

func revise(_ context.Context, in Revision) (Draft, error) {
	return Draft{in.Text + " " + in.Advice}, nil
}

// wanted is what a good letter has.
var wanted = []string{"sorry", "It comes tomorrow.", "Thank you for waiting."}

func judge(_ context.Context, in Drafts) (Verdict, error) {
	best := Verdict{Score: -1}
	for _, text := range in.Drafts {
		v := Verdict{Best: text}
		for _, part := range wanted {
			if strings.Contains(text, part) {
				v.Score += 3
			} else if v.Advice == "" {
				v.Advice = part
			}
		}
		if v.Score > best.Score {
			best = v
		}
	}
	return best, nil
}

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "write_draft", write, worker.DefinedBy(defs...))
	worker.Handle(w, "revise", revise, worker.DefinedBy(defs...))
	worker.Handle(w, "judge", judge, worker.DefinedBy(defs...))
}
