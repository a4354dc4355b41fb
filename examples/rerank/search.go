package main

import (
	"cmp"
	"context"
	"hash/fnv"
	"math"
	"slices"
	"strings"
)

// Passage is a text that questions are answered with.
type Passage struct {
	ID         string  `json:"id"`
	Text       string  `json:"text"`
	Similarity float64 `json:"similarity,omitempty"`
}

var passages = []Passage{
	{ID: "retry", Text: "A failed call may be sent again when its tool says that a second execution does no harm."},
	{ID: "limit", Text: "The contract of a tool limits its calls, over all workers and all runs."},
	{ID: "lease", Text: "A worker keeps the lease of a call alive while the tool runs."},
	{ID: "secret", Text: "Only the tools of a run may read a secret of its context; nobody may log it."},
	{ID: "batch", Text: "What many calls ask for may be sent in one."},
	{ID: "plan", Text: "A plan is a list of calls, and what each takes of the others."},
}

// Found is what vector_search returns.
type Found struct {
	Query string    `json:"query"`
	Hits  []Passage `json:"hits"`
}

// search compares vectors and changes nothing, so any number of calls may run at once.
func search(_ context.Context, in struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}) (Found, error) {
	q := embedding(in.Query)
	hits := slices.Clone(passages)
	for i := range hits {
		hits[i].Similarity = math.Round(1000*dot(q, embedding(hits[i].Text))) / 1000
	}
	slices.SortStableFunc(hits, func(a, b Passage) int { return cmp.Compare(b.Similarity, a.Similarity) })
	return Found{in.Query, hits[:min(cmp.Or(in.Limit, 4), len(hits))]}, nil
}

type vector [64]float64

// embedding hashes the words of a text into a vector of length 1.
func embedding(text string) (v vector) {
	for _, w := range words(text) {
		h := fnv.New32a()
		h.Write([]byte(w))
		v[h.Sum32()%uint32(len(v))]++
	}
	length := math.Sqrt(dot(v, v))
	for i := range v {
		v[i] /= max(length, 1)
	}
	return v
}

func dot(a, b vector) (sum float64) {
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
}
