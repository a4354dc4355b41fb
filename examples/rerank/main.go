// Rerank searches for several questions at once and reranks what was found, one call at a time.
package main

import (
	"embed"

	"github.com/stepjet/stepjet/internal/example"
)

var (
	//go:embed plan.json
	plans embed.FS
	//go:embed tools.json
	toolsJSON []byte
)

func main() { example.Main(byHand()) }

// byHand is what "go run" shows.
func byHand() example.Example {
	return example.Example{
		Name:  "rerank",
		About: "Three questions: all searches may run at once, the reranker only ever once.",
		Files: plans,
		World: example.Options{Host: new(reranker).host(example.MustTools(toolsJSON))},
	}
}
