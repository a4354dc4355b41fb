package client_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// helper is an agent, as a step defines it itself.
const helper = `"agent":{"planner":{"tool":"think","mode":"plan"},"instructions":"x","tools":["keep"],"max_rounds":2}`

// TestAgentsOfStreams: a call of an agent is among the first steps, or the plan is submitted when it is complete. One that is
// written when others had begun is a problem that says how it is done, since no amendment adds it.
func TestAgentsOfStreams(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	for _, definition := range []string{
		`{"name":"helper","inputSchema":{"type":"object"},` + helper + `}`,
		`{"name":"asks","inputSchema":{"type":"object"},"plan":{"steps":[{"id":"in","tool":"helper"}]}}`,
		`{"name":"defines","inputSchema":{"type":"object"},"plan":{"steps":[{"id":"in",` + helper + `}]}}`,
	} {
		_, err := c.ApplyTemplate(ctx, []byte(definition))
		require.NoError(t, err)
	}
	for name, does := range map[string]string{
		"registry": `"tool":"helper"`, "inline": helper, "template": `"tool":"asks"`, "inline-template": `"tool":"defines"`,
		"plan": `"plan":{"steps":[{"id":"in","tool":"helper"}]}`, "inline-plan": `"plan":{"steps":[{"id":"in",` + helper + `}]}`,
	} {
		open := func(run string) *author {
			return stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: run}})
		}
		a := open(name + "-first")
		a.write(`{"steps":[{"id":"ag",` + does + `,"arguments":{}},`)
		a.sees("ag")
		a.write(keep("b", "") + `]}`)
		require.Equal(t, outcome.Succeeded, a.outcome().Status, name)

		a, text := open(name+"-refers"), `{"steps":[{"id":"ag",`+does+`,"arguments":{"was":"$ref:a"}},`+keep("a", "")
		a.write(text)
		require.Never(t, func() bool { _, err := c.Get(ctx, a.run); return err == nil }, 50*time.Millisecond, 10*time.Millisecond, "%s waits for the end", name)
		a.write("]}")
		require.Equal(t, outcome.Succeeded, a.outcome().Status, name)
		doc, err := c.Get(ctx, a.run)
		require.NoError(t, err)
		require.Equal(t, text+"]}", string(doc.Plan), name)
		require.Zero(t, doc.Revision, name)

		a = open(name + "-late")
		a.write(`{"steps":[` + keep("a", "") + `,`)
		a.sees("a")
		a.write(`{"id":"ag",` + does + `,"arguments":{"was":"$ref:a"}}]}`)
		f, details := a.broken(fault.InvalidTool)
		require.Contains(t, f.Message, "can't run: an amendment adds no calls of agents", name)
		require.Contains(t, f.Hint, "into one that is streamed as its first step", name)
		require.NotContains(t, f.Message, `"="`, name)
		a.cancelled(details, "a")
	}
}

// TestOptionsRightBehindTheSteps: where nothing of the plan was sent yet, what an option behind the steps changes counts.
func TestOptionsRightBehindTheSteps(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	begun := 0
	for i := range 20 {
		a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: fmt.Sprint("behind", i)}})
		text := `{"steps":[` + keep("a", "")
		_, _ = io.WriteString(a.text, text)
		_, _ = io.WriteString(a.text, `],"on_failure":"stop"`)
		time.Sleep(20 * time.Millisecond) // for what must not be sent to be sent
		_, _ = io.WriteString(a.text, "}")
		if r, err := a.end(); err != nil { // it was too slow
			require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
			begun++
			continue
		} else if _, err := r.Wait(ctx); err != nil {
			require.NoError(t, err)
		}
		doc, err := c.Get(ctx, a.run)
		require.NoError(t, err)
		require.Equal(t, text+`],"on_failure":"stop"}`, string(doc.Plan))
	}
	t.Logf("%d of 20 had begun", begun)
}
