package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

type document struct{ id, title, text string }

// library is what is searched.
var library = []document{
	{"d-17", "Retrying without hurting",
		"Retry only what can be retried. Between two attempts the backoff grows, so that a retry storm can't form."},
	{"d-23", "Timeouts", "A timeout says how long one is ready to wait, not how long the other side takes."},
	{"d-31", "Jitter", "Backoff without jitter brings all clients back at the same moment."},
	{"d-42", "Idempotency keys",
		"With a key of its own, a write may be sent again: a retry finds what the first attempt did."},
	{"d-58", "Queues", "A queue that only grows is a leak with a nicer name."},
}

// Hit is a document that was found.
type Hit struct {
	DocumentID string `json:"document_id"`
	Title      string `json:"title"`
	Score      int    `json:"score"`
}

// Hits is what search_documents returns.
type Hits struct {
	Hits []Hit `json:"hits"`
}

// search counts how often the words of the query occur.
func search(_ context.Context, in struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}) (Hits, error) {
	hits := []Hit{}
	for _, d := range library {
		score := 0
		for word := range strings.FieldsSeq(strings.ToLower(in.Query)) {
			score += strings.Count(strings.ToLower(d.title+" "+d.text), word)
		}
		if score > 0 {
			hits = append(hits, Hit{d.id, d.title, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return Hits{hits[:min(cmp.Or(in.Limit, 5), len(hits))]}, nil
}

// Document is what fetch_document returns.
type Document struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

func fetch(_ context.Context, in struct {
	DocumentID string `json:"document_id"`
}) (Document, error) {
	for _, d := range library {
		if d.id == in.DocumentID {
			return Document{d.title, d.text}, nil
		}
	}
	return Document{}, worker.Terminal(fmt.Errorf("no document has the id %q", in.DocumentID))
}

// host adds the tools to a worker, under their definitions.
func host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "search_documents", search, worker.DefinedBy(defs...))
	worker.Handle(w, "fetch_document", fetch, worker.DefinedBy(defs...))
}
