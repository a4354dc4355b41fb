// Search-fetch searches documents and fetches what was found. The plan that guesses an id is refused before anything runs.
package main

import (
	"embed"

	"github.com/stepjet/stepjet/internal/example"
)

var (
	//go:embed plan.json plan-bad.json
	plans embed.FS
	//go:embed tools.json
	toolsJSON []byte
)

func main() { example.Main(byHand()) }

// byHand is what "go run" shows.
func byHand() example.Example {
	return example.Example{
		Name:  "search-fetch",
		About: "Search documents, then fetch each hit. The first plan guesses ids and is refused; the second takes them from the search.",
		Files: plans,
		Plans: []string{"plan-bad.json", "plan.json"},
		World: example.Options{Host: host},
	}
}
