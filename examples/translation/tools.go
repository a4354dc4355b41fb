package main

import (
	"context"
	"strings"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// french is all the French that these tools know.
var french = strings.NewReplacer("Bonjour", "Hello", "le monde", "world")

// Text is what is looked at.
type Text struct {
	Text string `json:"text"`
}

func detectLanguage(_ context.Context, in Text) (string, error) {
	if french.Replace(in.Text) != in.Text {
		return "fr", nil
	}
	return "en", nil
}

func isEnglish(_ context.Context, in struct {
	Language string `json:"language"`
}) (bool, error) {
	return in.Language == "en", nil
}

func translateText(_ context.Context, in struct {
	Text      string `json:"text"`
	IsEnglish bool   `json:"isEnglish"`
}) (string, error) {
	if in.IsEnglish {
		return in.Text, nil
	}
	return french.Replace(in.Text), nil
}

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "detect_language", detectLanguage, worker.DefinedBy(defs...))
	worker.Handle(w, "is_english", isEnglish, worker.DefinedBy(defs...))
	worker.Handle(w, "translate_text", translateText, worker.DefinedBy(defs...))
}
