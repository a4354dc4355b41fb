package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// reranker scores passages one after the other against the question that it has in mind. That, and what it has seen of
// words so far, is state: a second call in the middle of a first would change the question under it.
type reranker struct {
	busy  atomic.Bool
	asked map[string]bool // the words of the question in mind
	seen  map[string]int  // in how many passages each word was, which makes a rare one count more
}

// Ranking is what rerank returns.
type Ranking struct {
	Query string   `json:"query"`
	Best  string   `json:"best,omitempty"`
	Order []string `json:"order"`
}

var errOverlap = errors.New("two calls of the reranker overlap, which would corrupt its cache")

func (r *reranker) rerank(_ context.Context, in struct {
	Query string    `json:"query"`
	Hits  []Passage `json:"hits"`
}) (Ranking, error) {
	if r.busy.Swap(true) {
		return Ranking{}, worker.Terminal(errOverlap)
	}
	defer r.busy.Store(false)
	r.think(in.Query, in.Hits)
	out := Ranking{Query: in.Query, Order: []string{}}
	slices.SortStableFunc(in.Hits, func(a, b Passage) int { return cmp.Compare(r.score(b.Text), r.score(a.Text)) })
	for _, h := range in.Hits {
		out.Order = append(out.Order, h.ID)
	}
	if len(out.Order) > 0 {
		out.Best = out.Order[0]
	}
	return out, nil
}

// think puts a question and its passages into the cache.
func (r *reranker) think(query string, hits []Passage) {
	r.asked, r.seen = map[string]bool{}, map[string]int{}
	for _, w := range words(query) {
		r.asked[w] = true
	}
	for _, h := range hits {
		for _, w := range words(h.Text) {
			r.seen[w]++
		}
	}
}

// score weighs the words that a passage shares with the question in mind.
func (r *reranker) score(text string) (sum float64) {
	for _, w := range words(text) {
		if r.asked[w] {
			sum += 1 / float64(r.seen[w])
		}
	}
	return sum / float64(len(words(text)))
}

// host adds the tools to a worker, under their definitions.
func (r *reranker) host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "vector_search", search, worker.DefinedBy(defs...))
	worker.Handle(w, "rerank", r.rerank, worker.DefinedBy(defs...))
}
