// Package search finds tools by words: BM25 over their names, titles, descriptions and arguments. It is for models that
// have more tools than fit into a prompt. It is pure: the same tools and words always come to the same order.
package search

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/stepjet/stepjet/tool"
)

// The weights of what a word stands in: a tool's name says more than the description of an argument.
const (
	nameWeight        = 3
	titleWeight       = 2
	descriptionWeight = 1
	argumentWeight    = 0.5
)

// The usual parameters of BM25: how soon a word that comes again counts no more, and how much a long text is held back.
const (
	saturation = 1.2
	lengthBias = 0.75
)

// Index is a set of tools to search in. It may be used from many goroutines.
type Index struct {
	tools   []*tool.Definition
	lengths []float64
	average float64
	found   map[string][]posting // by word
}

// posting says how much a word counts in a tool.
type posting struct {
	tool   int
	weight float64
}

// New makes an index of tools, which must not be changed any more.
func New(tools []*tool.Definition) *Index {
	x := &Index{tools: tools, lengths: make([]float64, len(tools)), found: map[string][]posting{}}
	for i, d := range tools {
		counts := countWords(d)
		for word, weight := range counts {
			x.found[word] = append(x.found[word], posting{i, weight})
			x.lengths[i] += weight
		}
		x.average += x.lengths[i] / float64(len(tools))
	}
	return x
}

// Search returns the tools that fit a query best, at most so many, the best first. Those that have none of its words
// are not among them; equally good ones come by name.
func (x *Index) Search(query string, most int) []*tool.Definition {
	return x.SearchAmong(query, most, func(*tool.Definition) bool { return true })
}

// SearchAmong is Search among the tools that are meant. How rare a word is counts among all.
func (x *Index) SearchAmong(query string, most int, meant func(*tool.Definition) bool) []*tool.Definition {
	scores := map[int]float64{}
	for _, word := range unique(words(query)) {
		there := x.found[word]
		rarity := math.Log(1 + (float64(len(x.tools)-len(there))+0.5)/(float64(len(there))+0.5))
		for _, p := range there {
			norm := 1 - lengthBias + lengthBias*x.lengths[p.tool]/x.average
			scores[p.tool] += rarity * p.weight * (saturation + 1) / (p.weight + saturation*norm)
		}
	}
	hits := make([]int, 0, len(scores))
	for i := range scores {
		if meant(x.tools[i]) {
			hits = append(hits, i)
		}
	}
	slices.SortFunc(hits, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(x.tools[a].Name, x.tools[b].Name))
	})
	found := make([]*tool.Definition, 0, min(most, len(hits)))
	for _, i := range hits[:min(most, len(hits))] {
		found = append(found, x.tools[i])
	}
	return found
}

// countWords returns how much each word counts in a tool.
func countWords(d *tool.Definition) map[string]float64 {
	counts := map[string]float64{}
	add := func(text string, weight float64) {
		for _, w := range words(text) {
			counts[w] += weight
		}
	}
	add(d.Name, nameWeight)
	add(d.Title, titleWeight)
	add(d.Description, descriptionWeight)
	var schema struct {
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(d.InputSchema, &schema) // what can't be read has no words
	for name, p := range schema.Properties {
		add(name, argumentWeight)
		add(p.Description, argumentWeight)
	}
	return counts
}

func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}
