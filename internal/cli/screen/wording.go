package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

const (
	// mostText bounds what is shown of a text, and of a JSON value, in bytes, and mostLines of a value in lines.
	mostText  = 4 << 10
	mostLines = 40
)

func prompt(q *outcome.Question) string {
	if q.Kind == outcome.Approval {
		return "approve? y or n; Enter leaves it open: "
	}
	return "answer; Enter leaves it open: "
}

// wording is what a person reads who is asked, in lines. more questions wait behind it.
func (p *Asker) wording(q *outcome.Question, more, width int) []string {
	what := q.Tool
	switch {
	case q.Revision > 0:
		what = fmt.Sprintf("amendment %d", q.Revision)
	case q.Round != nil:
		what = fmt.Sprintf("%s, round %d", q.Tool, *q.Round)
	case q.Step == subjects.RootScope:
		what = ""
	}
	step := q.Step
	if step == subjects.RootScope {
		step = "the plan"
	}
	head := p.Bold("asks") + "  " + text.OneLine(step)
	if what != "" {
		head += "  " + p.Dim(text.OneLine(what))
	}
	if more > 0 {
		head += "  " + p.Dim(fmt.Sprintf("(%d more after it)", more))
	}
	lines := []string{head}
	if q.Text != "" {
		lines = append(lines, text.Wrap("  "+text.OneLine(text.Clip(q.Text, mostText)), width-1, "  ")...)
	}
	if q.By != "" {
		lines = append(lines, "  asked for by "+text.OneLine(text.Clip(q.By, mostText))+map[bool]string{false: " (unverified)"}[q.Verified])
	}
	if q.Reason != "" {
		lines = append(lines, "  because "+text.OneLine(text.Clip(q.Reason, mostText)))
	}
	if q.Items > 0 {
		lines = append(lines, "  "+text.Count(q.Items, "item"))
	}
	lines = append(lines, p.part(q, "choices", q.Choices)...)
	if q.Kind == outcome.Ask {
		return append(lines, p.part(q, "schema", q.Schema)...)
	}
	lines = append(lines, p.part(q, "change", q.Change)...)
	lines = append(lines, p.part(q, "what would run", q.Plan)...)
	return append(lines, p.part(q, "arguments", q.Arguments)...)
}

// part is a JSON value below its name, no more of it than a person reads.
func (p *Asker) part(q *outcome.Question, what string, raw json.RawMessage) []string {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) == nil && b.Len() <= 60 {
		return []string{"  " + p.Dim(what) + "  " + text.OneLine(b.String())}
	}
	lines, size := []string{"  " + p.Dim(what)}, 0
	for line := range strings.Lines(Readable(raw)) {
		line = text.OneLine(text.Clip(strings.TrimSuffix(line, "\n"), max(mostText-size, 0)))
		if size += len(line); size < mostText && len(lines) <= mostLines {
			lines = append(lines, "    "+line)
			continue
		}
		show := "stepjet questions show " + q.Run + " " + q.Step
		return append(lines, "    "+line, "    … the whole of it: "+text.OneLine(show))
	}
	return lines
}

// Readable writes a JSON value over several lines, without anything that steers a terminal; so too what is no JSON.
func Readable(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return text.OneLine(string(raw))
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = text.OneLine(lines[i])
	}
	return strings.Join(lines, "\n")
}
