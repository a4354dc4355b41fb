package request

import (
	"encoding/json"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Message is what a person said to the agent while it ran.
type Message struct {
	// ID is the one it was said under, and By who said it.
	ID, By string
	// Content is a string, or a list of parts.
	Content json.RawMessage
	// Interrupt says that it ended the round before.
	Interrupt bool
}

// maxSaid is the most bytes of what is said at a time.
const maxSaid = 16 << 10

// render renders messages of one round. Where they have more than most bytes, their contents are shortened by halves;
// none of them is left out.
func render(messages []Message, round, most int) [][]byte {
	var all [][]byte
	halves(maxSaid, most, func(n int) []byte {
		all = all[:0]
		for _, m := range messages {
			all = append(all, m.json(round, n))
		}
		return jsontape.AppendArray(nil, all)
	})
	return all
}

func (m Message) json(round, most int) []byte {
	content := sound(m.Content)
	if len(content) > most+len(`""`) {
		text := string(content)
		if content[0] == '"' {
			text = jsontape.Unquoted(content)
		}
		content = jsontape.AppendQuoted(nil, clip(text, most))
	}
	var o jsontape.ObjectWriter
	o.Text("role", "user")
	o.Add("content", content)
	o.Int("round", int64(round))
	o.Text("id", m.ID)
	if m.By != "" {
		o.Text("by", m.By)
	}
	if m.Interrupt {
		o.Text("mode", "interrupt")
	}
	return o.JSON()
}
