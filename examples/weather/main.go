// Weather looks up ten cities at once. One station never answers; its call times out and nothing else does.
package main

import (
	"embed"
	"time"

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
	s := stations{silent: "Reykjavik", latency: 100 * time.Millisecond}
	return example.Example{
		Name:  "weather",
		About: "Ten cities by one for_each step. The station of Reykjavik never answers.",
		Files: plans,
		World: example.Options{Host: s.host(example.MustTools(toolsJSON))},
	}
}
