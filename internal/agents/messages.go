package agents

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
)

// Telling is what an agent has told people, of a run's document.
type Telling struct {
	// Agent is the step that calls the agent, LeftOut how many messages of it before this one the document has no room for: of
	// its first one that is there.
	Agent   string
	LeftOut int
	*outcome.Message
}

// Messages returns what all agents of a run's document have told people, those of each in their order.
func Messages(doc *outcome.Run) (all []Telling) {
	var within func(steps []outcome.Step)
	within = func(steps []outcome.Step) {
		for i := range steps {
			s := &steps[i]
			for k := range s.Messages {
				x := Telling{Agent: s.ID, Message: &s.Messages[k]}
				if k == 0 {
					x.LeftOut = s.MessagesLeftOut
				}
				all = append(all, x)
			}
			within(s.Items)
			within(s.Steps)
		}
	}
	within(doc.Steps)
	return all
}

// MostOfMessage is how much of what an agent tells people stands in a line, in bytes.
const MostOfMessage = 512

// Brief returns a message in one line of at most so many bytes and a few, with where the whole is where that is more.
func Brief(m *outcome.Message, most int) string {
	said, whole := strings.Join(strings.Fields(m.Text), " "), max(m.Bytes, int64(len(m.Text)))
	said = text.OneLine(text.Clip(said, most))
	switch {
	case m.Text == "":
		said = fmt.Sprintf("(%d bytes, the result of %s)", whole, text.OneLine(m.Step))
	case m.Bytes > 0 || len(m.Text) > most:
		said += fmt.Sprintf(" (%d bytes, the result of %s)", whole, text.OneLine(m.Step))
	}
	if m.Reused {
		said += " (told by the run that this one tries again)"
	}
	return said
}

// Paragraphs returns all that a document has of a message, in its lines, each made harmless.
func Paragraphs(m *outcome.Message) (lines []string) {
	for line := range strings.Lines(m.Text) {
		lines = append(lines, text.OneLine(strings.TrimRight(line, "\r\n")))
	}
	switch {
	case m.Text == "":
		lines = []string{Brief(m, 0)}
	case m.Bytes > 0:
		lines = append(lines, fmt.Sprintf("(%d bytes, the result of %s)", m.Bytes, text.OneLine(m.Step)))
	}
	return lines
}
