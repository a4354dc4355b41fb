package agents

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/vt"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func plainLook() Look {
	same := func(s string) string { return s }
	return Look{
		Bold: same, Dim: same, Status: func(_ outcome.StepStatus, s string) string { return s },
		Mark:  func(s outcome.StepStatus) string { return fmt.Sprintf("%.1s", string(s)+".") },
		Words: func(s outcome.StepStatus) string { return string(s) }, Took: time.Duration.String,
	}
}

func told(step, tool string, status outcome.StepStatus) client.Event {
	return client.Event{Kind: subjects.EventStep, Step: step, Tool: tool, Status: status}
}

// Rounds are drawn as events and the document tell of them, in the order of the planner's answer.
func TestViewOfRounds(t *testing.T) {
	t.Parallel()
	v := NewView("r", "a", noon)
	require.Equal(t, []string{"r  waits for its planner  1s"}, v.Lines(plainLook(), 24, noon.Add(time.Second)))
	require.True(t, v.Apply(told("a/=0/=plan", "model", outcome.StepSucceeded), noon), "what it answered is in the document")
	require.False(t, v.Apply(told("a/=0/second", "add", outcome.StepRunning), noon))
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "a", Steps: []outcome.Step{
		{ID: "a/=0/=plan", Tool: "model", Status: outcome.StepSucceeded, Attempts: 1, Result: json.RawMessage(`{"usage":{"input_tokens":7,"output_tokens":2,"cost_usd":0.5}}`)},
		{ID: "a/=0/first", Tool: "add", Status: outcome.StepWaiting, Waiting: "second"},
		{ID: "a/=0/second", Tool: "add", Status: outcome.StepReady},
	}}}}
	require.False(t, v.Merge(doc, NoBlob, noon))
	failed := told("a/=0/second", "add", outcome.StepFailed)
	failed.Error = fault.New(fault.ToolFailed, "\x1b[2J\u009b1Ano\x07 %s", strings.Repeat("long", 100))
	v.Apply(failed, noon)
	v.Apply(told("a/=0/first/=0/x", "add", outcome.StepSucceeded), noon)
	require.True(t, v.Apply(told("a/=1/=plan", "model", outcome.StepSucceeded), noon))
	require.True(t, v.Merge(doc, NoBlob, noon), "the document is of before that answer")

	lines := v.Lines(plainLook(), 24, noon.Add(time.Second))
	require.Len(t, lines, 5)
	require.Equal(t, "r  round 1  0 of 0 calls over  7 tokens in, 2 out  $0.5  1s", lines[0])
	require.Equal(t, "  round 0  s planner  7 tokens in, 2 out, $0.5", lines[1])
	require.Equal(t, "    r  first   add  running  1s  1 step within it over  second", lines[2])
	require.True(t, strings.HasPrefix(lines[3], "    f  second  add  failed  tool_failed:  [2J 1Ano  long"), lines[3])
	require.Less(t, len(lines[3]), 300)
	require.Equal(t, "  round 1  s planner", lines[4])
	on := vt.New(80)
	_, _ = on.Write([]byte(strings.Join(lines, "\n"))) // it never fails
	require.Empty(t, on.Odd())

	require.False(t, v.Apply(client.Event{Kind: subjects.EventEnd}, noon.Add(time.Minute)))
	require.Contains(t, v.Lines(plainLook(), 24, noon.Add(time.Hour))[0], "  1m0s")
}

// What a planner writes is seen by its end as long as it writes, harmless, and is forgotten with a new attempt.
func TestViewOfWriting(t *testing.T) {
	t.Parallel()
	v := NewView("r", "a", noon)
	write := func(attempt int, text string) {
		require.False(t, v.Apply(client.Event{Kind: subjects.EventToken, Step: "a/=0/=plan", Tool: "model", Attempt: attempt, Text: text}, noon))
	}
	write(1, "gone")
	write(2, `{"steps": [`)
	write(2, "\x1b[2J\n{\"id\"")
	require.Equal(t, `  round 0  r planner  running  1s  attempt 2  {"steps": [ [2J {"id"`, v.Lines(plainLook(), 24, noon.Add(time.Second))[1])
	write(2, strings.Repeat("é", 1000))
	require.Less(t, len(v.Lines(plainLook(), 24, noon)[1]), 200)
	v.Apply(told("a/=0/=plan", "model", outcome.StepSucceeded), noon)
	write(2, "late")
	require.Equal(t, "  round 0  s planner  attempt 2", v.Lines(plainLook(), 24, noon)[1])
}

// What begins while a planner writes is drawn as the calls that it becomes, also where the document alone tells of it; what was
// dropped of an attempt may be anything in the answer of the next.
func TestViewOfWhatBeganWhileAPlannerWrote(t *testing.T) {
	t.Parallel()
	plain := plainLook()
	v := NewView("r", "a", noon)
	v.Apply(told("a/=0/=plan", "model", outcome.StepRunning), noon)
	v.Apply(told("a/=0/=stream", "", outcome.StepRunning), noon)
	x := told("a/=0/=stream/x", "add", outcome.StepSucceeded)
	x.MS = 7
	v.Apply(x, noon)
	v.Apply(told("a/=0/=stream/y", "add", outcome.StepRunning), noon)
	v.Apply(told("a/=0/=stream/z", "add", outcome.StepSkipped), noon)
	drawn := func() string { return strings.Join(v.Lines(plain, 24, noon), "\n") }
	require.Contains(t, drawn(), "2 of 3 calls over")
	require.NotContains(t, drawn(), "=stream")
	early := []outcome.Step{{ID: "a/=0/=stream/x", Tool: "add", Status: outcome.StepSucceeded}, {ID: "a/=0/=stream/y", Tool: "add", Status: outcome.StepSucceeded},
		{ID: "a/=0/=stream/z", Tool: "add", Status: outcome.StepSkipped}, {ID: "a/=0/=stream/w", Tool: "add", Status: outcome.StepRunning}}
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "a", Steps: []outcome.Step{{ID: "a/=0/=plan", Tool: "model", Status: outcome.StepRunning},
		{ID: "a/=0/=stream", Status: outcome.StepRunning, Steps: early}}}}}
	v.Merge(doc, NoBlob, noon)
	require.Contains(t, drawn(), "3 of 4 calls over")
	v.Apply(told("a/=0/=plan", "model", outcome.StepSucceeded), noon)
	v.Apply(told("a/=0/x", "add", outcome.StepSucceeded), noon)
	v.Apply(told("a/=0/z", "multiply", outcome.StepRunning), noon)
	doc.Steps[0].Steps = append(doc.Steps[0].Steps, outcome.Step{ID: "a/=0/z", Tool: "multiply", Status: outcome.StepRunning}, outcome.Step{ID: "a/=0/x", Tool: "add", Status: outcome.StepSucceeded})
	v.Merge(doc, NoBlob, noon)
	v.Merge(doc, NoBlob, noon)
	lines := v.Lines(plain, 24, noon)
	require.Contains(t, lines[2], "z  multiply  running", "in the order of the answer")
	require.Equal(t, "    s  x  add  7ms", lines[3], "it took what it took")
	require.Len(t, lines, 6)
}

// However many rounds and calls there are, no more lines are drawn than there is room for, and the last round is seen.
func TestViewOfManyRounds(t *testing.T) {
	t.Parallel()
	v := NewView("r", "a", noon)
	for round := range 12 {
		v.Apply(told(fmt.Sprintf("a/=%d/=plan", round), "model", outcome.StepSucceeded), noon)
		for call := range 7 {
			v.Apply(told(fmt.Sprintf("a/=%d/c%d", round, call), "add", outcome.StepRunning), noon)
		}
	}
	for rows := 3; rows < 120; rows++ {
		lines := v.Lines(plainLook(), rows, noon)
		require.LessOrEqual(t, len(lines), rows-1, rows)
		if rows > 3 {
			require.Contains(t, strings.Join(lines, "\n"), "round 11", rows)
		}
	}
	require.Contains(t, strings.Join(v.Lines(plainLook(), 14, noon), "\n"), "rounds before")
	require.Nil(t, v.round(1<<40), "a peer that counts otherwise")
}

// hostile would steer a terminal.
const hostile = "\x1b[2J\u009b1Aall\x07 paid"

// What people are told stays with its call while the run goes on, also where there is no room for the calls of its round.
func TestViewOfMessages(t *testing.T) {
	t.Parallel()
	v := NewView("r", "a", noon)
	v.Apply(told("a/=0/=plan", "model", outcome.StepSucceeded), noon)
	v.Apply(told("a/=0/m", "communicate", outcome.StepSucceeded), noon)
	v.Apply(client.Event{Kind: subjects.EventMessage, Step: "a/=0/m", Agent: "a", Message: &outcome.Message{Step: "a/=0/m", Text: hostile}}, noon)
	require.Equal(t, "    s  m  communicate   [2J 1Aall  paid", v.Lines(plainLook(), 24, noon)[2])
	for n := range 9 {
		v.Apply(told(fmt.Sprintf("a/=0/x%d", n), "add", outcome.StepSucceeded), noon)
	}
	v.Apply(told("a/=1/=plan", "model", outcome.StepRunning), noon)
	require.Contains(t, strings.Join(v.Lines(plainLook(), 8, noon), "\n"), "[2J 1Aall  paid")

	late := NewView("r", "a", noon)
	late.Merge(&outcome.Run{Steps: []outcome.Step{{ID: "a", Messages: []outcome.Message{{Step: "a/=0/m=1", Text: "One.", Bytes: 9000}},
		Steps: []outcome.Step{{ID: "a/=0/=plan", Tool: "model", Status: outcome.StepSucceeded}, {ID: "a/=0/m", Tool: "communicate", Status: outcome.StepSucceeded}}}}}, NoBlob, noon)
	require.Contains(t, late.Lines(plainLook(), 24, noon)[2], "One. (9000 bytes, the result of a/=0/m=1)")
}

// Messages are told in one line or whole, and with a terminal nothing comes of what is in them.
func TestMessages(t *testing.T) {
	t.Parallel()
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "b"}, {ID: "a", MessagesLeftOut: 2, Messages: []outcome.Message{
		{Step: "a/=1/m", Round: 1, Text: "One\ntwo\r\n" + hostile}, {Step: "a/=2/m", Round: 2, Bytes: 7}, {Step: "a/=3/m", Round: 3, Text: "Again.", Reused: true},
	}, Steps: []outcome.Step{{ID: "a/=1/c", Messages: []outcome.Message{{Step: "a/=1/c/=0/m", Text: strings.Repeat("é", 9), Bytes: 9000}}}}}}}
	all := Messages(doc)
	require.Len(t, all, 4)
	require.Equal(t, []any{"a", 2, "a/=1/c"}, []any{all[0].Agent, all[0].LeftOut, all[3].Agent})
	require.Zero(t, all[1].LeftOut)
	require.Equal(t, "One two  [2J 1Aall  paid", Brief(all[0].Message, 100))
	require.Equal(t, "One… (26 bytes, the result of a/=1/m)", Brief(all[0].Message, 3))
	require.Equal(t, "(7 bytes, the result of a/=2/m)", Brief(all[1].Message, 100))
	require.Equal(t, "Again. (told by the run that this one tries again)", Brief(all[2].Message, 100))
	require.Equal(t, []string{"One", "two", " [2J 1Aall  paid"}, Paragraphs(all[0].Message))
	require.Equal(t, []string{"(7 bytes, the result of a/=2/m)"}, Paragraphs(all[1].Message))
	require.Equal(t, []string{strings.Repeat("é", 9), "(9000 bytes, the result of a/=1/c/=0/m)"}, Paragraphs(all[3].Message))
}

// Values, and what an agent calls for itself, are no calls that its planner asked for.
func TestViewOfValues(t *testing.T) {
	t.Parallel()
	v := NewView("r", "a", noon)
	v.Apply(told("a/=0/=plan", "model", outcome.StepSucceeded), noon)
	v.Apply(told("a/=0/x", "add", outcome.StepSucceeded), noon)
	require.True(t, v.Apply(told("a/=0/v", "", outcome.StepSucceeded), noon), "it may be a plan within the step")
	v.Apply(told("a/=0/=guard-1", "check", outcome.StepSucceeded), noon)
	require.Contains(t, v.Lines(plainLook(), 24, noon)[0], "1 of 1 call over")
	steps := []outcome.Step{
		{ID: "a/=0/=plan", Tool: "model", Status: outcome.StepSucceeded}, {ID: "a/=0/x", Tool: "add", Status: outcome.StepSucceeded}, {ID: "a/=0/v", Status: outcome.StepSucceeded},
		{ID: "a/=0/w", Status: outcome.StepWaiting}, {ID: "a/=0/p", Status: outcome.StepRunning, Steps: []outcome.Step{{ID: "a/=0/p/y", Tool: "add"}}},
	}
	doc := &outcome.Run{Steps: []outcome.Step{{ID: "a", Steps: steps}}}
	v.Merge(doc, NoBlob, noon)
	require.Contains(t, v.Lines(plainLook(), 24, noon)[0], "1 of 2 calls over")
	require.Equal(t, 2, RoundsOf(At(doc, "a"), NoBlob)[0].Steps, "as the table of rounds counts them")
	require.Contains(t, strings.Join(v.Lines(plainLook(), 6, noon), "\n"), "1 of 2 calls over", "where there is no room")
	require.Equal(t, "2 calls of round 0, 1 over", Standing(&doc.Steps[0]), "and get")
}
