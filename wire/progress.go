package wire

import (
	"encoding/json"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

// MaxProgressText bounds what a worker says of how far a step is, in bytes.
const MaxProgressText = 512

// ProgressBody writes what a worker says of how far a step is.
func ProgressBody(p outcome.Progress) []byte {
	bound(&p)
	p.Message = text.Clip(p.Message, MaxProgressText)
	b, _ := json.Marshal(p) // finite numbers and a text: it can't fail
	return b
}

// ParseProgress reads what a worker says: numbers within bounds, and a text that can be shown in a line. ok is false
// for what is none.
func ParseProgress(body []byte) (p outcome.Progress, ok bool) {
	if len(body) > 8*MaxProgressText || json.Unmarshal(body, &p) != nil {
		return outcome.Progress{}, false
	}
	bound(&p)
	p.Message = shown(p.Message, MaxProgressText)
	return p, true
}

// bound makes numbers of them that everybody can read.
func bound(p *outcome.Progress) {
	for _, n := range []*float64{&p.Done, &p.Total} {
		if !(*n > 0) { // or no number
			*n = 0
		}
		*n = min(*n, exact)
	}
}
