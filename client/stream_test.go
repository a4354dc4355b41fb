package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// TestStream: steps run while the plan is being written, forward references wait, and the outcome is that of the whole.
func TestStream(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	who, err := client.NewContext(map[string]string{"user": "Ada"}, "user")
	require.NoError(t, err)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "live", Context: client.RunContext{All: who}}})
	a.write("Here it is, {as asked}:\n```json\n" + `{"timeout":"90s","output":{"last":"$ref:z.was","who":"$ref:a.who"},"steps":[` + keep("a", "") + `,`)
	require.False(t, (<-a.begun).Attached())
	a.sees("a")
	a.write(keep("early", "late") + `,` + keep("b", "a"))
	doc := a.sees("b")
	require.Empty(t, statusOf(doc, "early"), "it is no part of the plan before what it refers to is")
	a.write(`,` + keep("late", "b"))
	a.sees("late", "early")
	a.write(`,` + keep("z", "early") + `]}` + "\n```\n")
	doc = a.sees("z")
	require.Equal(t, outcome.Running, doc.Status, "it is not over before its text is")
	o := a.outcome()
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.JSONEq(t, `{"last":"early","who":"Ada"}`, string(o.Output))
	require.ElementsMatch(t, []string{"a", "b", "late", "early", "z"}, d.all())
	doc, err = c.Get(ctx, "live")
	require.NoError(t, err)
	require.Equal(t, 4, doc.Revision)
}

// TestDestructiveStepsWait for the end of the text, and with them what refers to them, be they called by a template or in
// a plan of a step's own.
func TestDestructiveStepsWait(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "drops"}})
	a.write(`{"steps":[{"id":"x","tool":"drop"},` + keep("a", "") + `,` + keep("after", "x") + `,{"id":"t","tool":"clean"},{"id":"p","plan":{"steps":[{"id":"in","tool":"keep"},{"id":"out","tool":"drop"}]}},` + keep("b", "a") + `],"output_steps":["after","b"]}`)
	a.sees("a", "b")
	require.ElementsMatch(t, []string{"a", "b"}, d.all())
	o := a.outcome()
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	require.Len(t, o.Results, 2)
	require.JSONEq(t, `{"step":"after","who":"","was":"x"}`, resultOf(t, o, "after"))
	require.ElementsMatch(t, []string{"a", "b", "x", "after", "t/in", "t/out", "p/in", "p/out"}, d.all())
}

// TestWhatCantGrow is submitted when it is complete, as it is written.
func TestWhatCantGrow(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	for name, form := range map[string][2]string{
		"waves":    {`{"schedule":"waves","concurrency":2,"steps":[` + keep("a", ""), `]}`},
		"stop":     {`{"on_failure":"stop","steps":[` + keep("a", ""), `]}`},
		"dialect":  {`{"calls":[{"_tool":"keep","_outputPath":"†state.x"}`, `],"output":"†state"}`},
		"template": {`{"template":"clean","input":{`, `}}`},
		"fast":     {``, "```\n" + `{"steps":[` + keep("a", "") + `,` + keep("b", "a") + `]}` + "\n```"},
		"drops":    {`{"steps":[{"id":"x","tool":"drop"}`, `]}`},
		"forward":  {`{"steps":[` + keep("a", "b"), `,` + keep("b", "") + `]}`},
		"opens":    {`{"steps":[` + keep("a", "b"), `],"concurrency":1,"open":false}`},
		"wrong":    {`{"timeout":"soon","steps":[` + keep("a", ""), `,{"id":"b","tool":"nobody"}]}`},
		"wrapped":  {`{"plan":{"steps":[` + keep("a", ""), `]}}`},
		"empty":    {`{"steps":[`, `]}`},
	} {
		a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: name}})
		before := len(d.all())
		a.write(form[0])
		_, err := c.Get(ctx, name)
		require.Equal(t, fault.NotFound, fault.CodeOf(err), name)
		a.write(form[1])
		o := a.outcome()
		doc, err := c.Get(ctx, name)
		require.NoError(t, err)
		require.Equal(t, strings.Trim(form[0]+form[1], "`\n"), string(doc.Plan), name)
		require.Equal(t, 0, doc.Revision, name)
		if rejected := map[string]int{"wrong": 2, "wrapped": 1, "empty": 1, "opens": 1}[name]; rejected > 0 {
			require.Equal(t, outcome.Rejected, o.Status, name)
			require.Len(t, o.Problems, rejected, name)
			require.Len(t, d.all(), before, name)
			continue
		}
		require.Equal(t, outcome.Succeeded, o.Status, "%s: %s", name, o.JSON())
	}
}

// TestTextThatBreaksOff cancels the run, whatever it broke off by.
func TestTextThatBreaksOff(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	broken := errors.New("the model has no more to say")
	for name, end := range map[string]func(a *author, stop context.CancelFunc){
		"its end":   func(a *author, _ context.CancelFunc) { require.NoError(t, a.text.Close()) },
		"an error":  func(a *author, _ context.CancelFunc) { require.NoError(t, a.text.CloseWithError(broken)) },
		"a context": func(_ *author, stop context.CancelFunc) { stop() },
		"no JSON":   func(a *author, _ context.CancelFunc) { _, _ = io.WriteString(a.text, `"] and so on`) },
		"a plan":    func(a *author, _ context.CancelFunc) { _, _ = io.WriteString(a.text, `"}]} No! {"steps":[`) },
		"twice":     func(a *author, _ context.CancelFunc) { _, _ = io.WriteString(a.text, `"}],"steps":[`) },
		"a number": func(a *author, _ context.CancelFunc) {
			_, _ = io.WriteString(a.text, `"},00`)
			require.NoError(t, a.text.Close())
		},
	} {
		own, stop := context.WithCancel(ctx)
		defer stop()
		a := stream(own, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: name}})
		a.ctx = ctx
		a.write(`{"steps":[` + keep("a", "") + `,{"id":"h","tool":"hold"},{"id":"n","value":1},` + keep("later", "h") + `,{"id":"b`)
		a.sees("a", "n")
		end(a, stop)
		<-a.done
		code := fault.MalformedJSON
		switch name {
		case "an error":
			code = fault.Cancelled
			require.ErrorIs(t, a.err, broken)
		case "a context":
			code = fault.Cancelled
			require.ErrorIs(t, a.err, context.Canceled)
		case "twice":
			code = fault.DuplicateKey
		}
		_, details := a.broken(code)
		a.cancelled(details, "a", "h")
	}
}

// TestNothingHadRun where the text broke off before anything was sent.
func TestNothingHadRun(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	for _, text := range []string{``, `There is no plan.`, `{"steps":[{"id":"a"`, `{"steps":[` + keep("a", "b") + `,`} {
		a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "none"}})
		a.write(text)
		a.broken(fault.MalformedJSON)
		_, err := c.Get(ctx, "none")
		require.Equal(t, fault.NotFound, fault.CodeOf(err))
	}
	require.Empty(t, d.all())
}

// TestProblems of a later step cancel the run, and all are told, as of the plan as a whole.
func TestProblems(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	for name, later := range map[string]string{
		"a tool":    `{"id":"b","tool":"nobody"},{"id":"c","tool":"keep","arguments":{"x":"$ref:nobody"}}]}`,
		"an id":     keep("a", "") + `,{"id":"c","tool":"nobody"}]}`,
		"a cycle":   keep("b", "c") + `,` + keep("c", "b") + `],"output_steps":["nobody"]}`,
		"a lie":     keep("b", "nobody") + `,` + keep("c", "noone") + `]}`,
		"arguments": `{"id":"b","tool":"add","arguments":{"a":"x","b":1}},{"id":"c","tol":"keep"}]}`,
	} {
		a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: name}})
		before := len(d.all())
		a.write(`{"steps":[` + keep("a", "") + `,`)
		a.sees("a")
		a.write(later)
		text := `{"steps":[` + keep("a", "") + `,` + later
		dry, err := c.DryRun(ctx, []byte(text))
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(dry.Problems), 2, name)
		f, details := a.broken(dry.Problems[0].Code)
		require.Equal(t, dry.Problems, details.Problems, name)
		require.Equal(t, dry.Problems[0].Hint, f.Hint)
		a.cancelled(details, "a")
		require.Len(t, d.all(), before+1, name)
	}
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "first"}})
	a.write(`{"steps":[{"id":"a","tool":"nobody"},`)
	<-a.begun
	a.write(`{"id":"b","tool":"noone"}]}`)
	o := a.outcome()
	require.Equal(t, outcome.Rejected, o.Status, "nothing had begun, so it is as if it were submitted as a whole")
	require.Len(t, o.Problems, 2)
	require.Equal(t, "/steps/1/tool", o.Problems[1].Path)
}

// TestOptionsBehindTheSteps change what the steps mean, so the run is cancelled; what goes without saying does not.
func TestOptionsBehindTheSteps(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	for i, option := range []string{
		`"on_failure":"stop"`, `"schedule":"waves"`, `"concurrency":1`, `"approval":true`, `"on_missing":"error"`, `"timeout":"5s"`, `"open":true`, `"version":2`,
		`"output":"$ref:a","output_steps":["a"]`, `"output_steps":5`,
	} {
		a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: fmt.Sprintf("late%d", i)}})
		a.write(`{"steps":[` + keep("a", ""))
		a.sees("a")
		a.write(`],"thought":"hm",` + option + ` `)
		_, _ = io.WriteString(a.text, `}`)
		<-a.done
		require.Error(t, a.err, option)
		f, details := a.broken(fault.InvalidValue)
		require.Contains(t, f.Message, "stands behind the steps")
		a.cancelled(details, "a")
	}
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "harmless"}})
	a.write(`{"on_missing":"null","steps":[` + keep("a", "") + `,`)
	a.sees("a")
	a.write(keep("b", "a") + `],"on_failure":"continue","schedule":"dataflow","approval":null,"output":null,"note":[1],"output_steps":["b"]}`)
	o := a.outcome()
	require.Equal(t, outcome.Succeeded, o.Status)
	require.Len(t, o.Results, 1)
}

// TestRunsThatEndMeanwhile: what is written of a run that was cancelled by somebody is for nothing, and is said.
func TestRunsThatEndMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "ended"}})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	require.NoError(t, cancelled(c.Cancel(ctx, "ended", "somebody")))
	require.Eventually(t, func() bool {
		doc, err := c.Get(ctx, "ended")
		return err == nil && doc.Status == outcome.Cancelled
	}, patience, 5*time.Millisecond)
	a.write(`,` + keep("b", "a") + `]}`)
	a.text.Close()
	<-a.done
	require.Contains(t, []fault.Code{fault.AlreadyFinished, fault.NotFound}, fault.CodeOf(a.err))
	require.Contains(t, a.err.Error(), "1 step had begun: a")
	// One that has all of its steps is what it is.
	a = stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "complete"}, OpenFor: time.Second})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	require.Eventually(t, func() bool {
		doc, err := c.Get(ctx, "complete")
		return err == nil && doc.Status == outcome.Succeeded
	}, patience, 5*time.Millisecond, "nothing came for as long as it was open")
	a.write(`]}`)
	require.Equal(t, outcome.Succeeded, a.outcome().Status)
	// One that was written for longer than its run waits is told so, and what to do.
	a = stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "late"}, OpenFor: time.Second})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	require.Eventually(t, func() bool {
		doc, err := c.Get(ctx, "late")
		return err == nil && doc.Status == outcome.Succeeded
	}, patience, 5*time.Millisecond)
	a.write(`,` + keep("b", "a") + `]}`)
	f, details := a.broken(fault.AlreadyFinished)
	require.Contains(t, f.Message, "no more of the plan reached its run for 1s, so that went on with what it had and came to its end; the run late is succeeded, and 1 step had begun: a")
	require.Contains(t, f.Hint, "--open-for")
	require.Equal(t, []string{"a"}, details.Began)
}

// TestTextThatIsSilentKeepsNothingOpen: of a run whose text doesn't come any more no client asks that it wait, so it goes on
// with what it has. It is looked at what is asked for, so that one that waits for ever is found out at once.
func TestTextThatIsSilentKeepsNothingOpen(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "silent"}, OpenFor: time.Second})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	var doc *outcome.Run
	require.Eventually(t, func() bool {
		var err error
		doc, err = c.Get(ctx, "silent")
		return err == nil && (doc.Revision > 3 || doc.Status != outcome.Running)
	}, patience, 20*time.Millisecond)
	require.LessOrEqual(t, doc.Revision, 3, "what came at last may keep it open once, and its owner closes it")
	require.Equal(t, outcome.Succeeded, doc.Status)
}

// TestTextThatComesKeepsItsRunOpen: while a long step is written, of which nothing can be sent, the run waits for longer than
// it would by itself.
func TestTextThatComesKeepsItsRunOpen(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "kept"}, OpenFor: 2 * time.Second})
	a.write(`{"steps":[` + keep("a", "") + `,`)
	a.sees("a")
	begun := time.Now()
	require.Eventually(t, func() bool {
		a.write(" ")
		return time.Since(begun) > 5*time.Second
	}, patience, 20*time.Millisecond)
	doc, err := c.Get(ctx, "kept")
	require.NoError(t, err)
	require.Equal(t, outcome.Running, doc.Status)
	require.GreaterOrEqual(t, doc.Revision, 2, "it was kept open by nothing else")
	a.write(keep("b", "a") + `]}`)
	require.Equal(t, outcome.Succeeded, a.outcome().Status)
	require.Len(t, d.all(), 2)
	_, err = c.Amend(ctx, "kept", client.Amendment{Revision: 1, KeepOpen: true})
	require.Contains(t, []fault.Code{fault.AlreadyFinished, fault.NotFound}, fault.CodeOf(err))
}

// TestAPlanThatIsNotOpenIsNotKeptOpen: to ask for that is a mistake.
func TestAPlanThatIsNotOpenIsNotKeptOpen(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	_, err := c.Submit(ctx, []byte(`{"steps":[{"id":"a","tool":"ask","arguments":{"question":"Why?"}}]}`), client.SubmitOptions{Run: "closed"})
	require.NoError(t, err)
	_, err = c.Amend(ctx, "closed", client.Amendment{KeepOpen: true})
	require.Equal(t, fault.InvalidValue, fault.CodeOf(err))
	require.Contains(t, err.Error(), "is not open")
	require.NoError(t, cancelled(c.Cancel(ctx, "closed", "somebody")))
}

// TestOtherAmendments of a plan that is being written do no harm.
func TestOtherAmendments(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "shared"}})
	a.write(`{"steps":[` + keep("a", "") + `,`)
	a.sees("a")
	_, err := c.Amend(ctx, "shared", client.Amendment{Add: []json.RawMessage{json.RawMessage(keep("mine", "a"))}})
	require.NoError(t, err)
	a.write(keep("b", "a") + `,`)
	a.sees("b", "mine")
	a.write(keep("z", "b") + `]}`)
	require.Len(t, a.outcome().Results, 4)
	require.Len(t, d.all(), 4)
}

// TestLargeStream: what is too large for one amendment goes in several.
func TestLargeStream(t *testing.T) {
	t.Parallel()
	ctx, c, _ := streams(t)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "large"}})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	big := strings.Repeat("x", 100<<10)
	for i := range 8 {
		a.write(fmt.Sprintf(`,{"id":"v%d","tool":"drop","arguments":{"n":"$ref:a","big":%q}}`, i, big))
	}
	a.write(`],"output_steps":["v7"]}`)
	require.Equal(t, outcome.Succeeded, a.outcome().Status)
	doc, err := c.Get(ctx, "large")
	require.NoError(t, err)
	require.Equal(t, 8, doc.Revision)
	a = stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "just"}})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	a.write(fmt.Sprintf(`,{"id":"v","value":%q}],"output":[%q,"$ref:a.step"]}`, strings.Repeat("x", 255_000), big))
	require.Equal(t, outcome.Succeeded, a.outcome().Status, "what an amendment has no room for goes in the next")
	a = stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "larger"}})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	a.write(fmt.Sprintf(`,{"id":"v","value":%q}]}`, strings.Repeat(big, 3)))
	_, details := a.broken(fault.TooLarge)
	a.cancelled(details, "a")
	a = stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "largest"}})
	a.write(`{"steps":[` + keep("a", ""))
	a.sees("a")
	_, _ = io.WriteString(a.text, `,{"id":"v","value":"`+strings.Repeat(big, 11))
	_, details = a.broken(fault.LimitExceeded)
	a.cancelled(details, "a")
}

// TestStreamedAgain: the same text under the same id is the same run, wherever the first stands.
func TestStreamedAgain(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	text := []string{`{"timeout":"90s","approval":null,"steps":[` + keep("a", "") + `,`, keep("b", "a") + `,`, keep("z", "b") + `],"output_steps":["z"]}`}
	o := client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "again"}}
	first := stream(ctx, t, c, o)
	first.write(text[0])
	first.sees("a")
	second := stream(ctx, t, c, o)
	second.write(text[0])
	second.write(text[1])
	first.write(text[1])
	first.sees("b")
	require.Equal(t, 1, first.sees().Revision, "who joins adds nothing before its text is over")
	second.write(text[2])
	out := second.outcome()
	require.Equal(t, outcome.Succeeded, out.Status, "it had all that the first had not written yet")
	require.True(t, (<-second.begun).Attached())
	first.write(text[2])
	require.Equal(t, string(out.JSON()), string(first.outcome().JSON()), "its last step was added by another, and it lacks nothing")
	third := stream(ctx, t, c, o)
	third.write(strings.Join(text, ""))
	require.Equal(t, string(out.JSON()), string(third.outcome().JSON()), "also once it is over")
	require.ElementsMatch(t, []string{"a", "b", "z"}, d.all())

	for name, other := range map[string][]string{
		"a step":    {text[0], keep("b", "") + `,`, text[2]},
		"an option": {`{"timeout":"80s","steps":[` + keep("a", "") + `,`, text[1], text[2]},
		"one more":  {`{"on_missing":"error",` + text[0][1:], text[1], text[2]},
		"one less":  {`{"steps":[` + keep("a", "") + `,`, text[1], text[2]},
		"fewer":     {text[0], text[2]},
		"whole":     {`{"on_failure":"stop",` + text[0][1:], text[1], text[2]},
		"calls":     {`{"calls":[{"_tool":"keep"}]}`},
	} {
		x := stream(ctx, t, c, o)
		for _, part := range other {
			x.write(part)
		}
		x.text.Close()
		<-x.done
		require.Equal(t, fault.Conflict, fault.CodeOf(x.err), "%s: %v", name, x.err)
	}
	more := stream(ctx, t, c, o)
	more.write(text[0] + text[1] + keep("c", "") + `,` + text[2])
	_, err := more.end()
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "%v", err)

	_, err = c.Submit(ctx, []byte(strings.Join(text, "")), client.SubmitOptions{Run: "again"})
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "a plan that was streamed has no bytes of its own")
}

// TestStreamOfASubmittedRun joins it, and leaves one alone that breaks off.
func TestStreamOfASubmittedRun(t *testing.T) {
	t.Parallel()
	ctx, c, d := streams(t)
	text := `{"steps":[` + keep("a", "") + `,` + keep("b", "a") + `]}`
	r, err := c.Submit(ctx, []byte(text), client.SubmitOptions{Run: "sent"})
	require.NoError(t, err)
	out, err := r.Wait(ctx)
	require.NoError(t, err)
	for _, cut := range []int{len(text), 36} {
		a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "sent"}})
		a.write(text[:cut])
		if cut < len(text) {
			a.write(text[cut:])
		}
		require.Equal(t, string(out.JSON()), string(a.outcome().JSON()))
	}
	require.Len(t, d.all(), 2)
	held := `{"steps":[` + keep("a", "") + `,{"id":"h","tool":"hold"}]}`
	_, err = c.Submit(ctx, []byte(held), client.SubmitOptions{Run: "held"})
	require.NoError(t, err)
	a := stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "held"}})
	a.write(held[:40])
	a.sees("a")
	a.broken(fault.MalformedJSON)
	doc, err := c.Get(ctx, "held")
	require.NoError(t, err)
	require.Equal(t, outcome.Running, doc.Status, "it is another's")
	a = stream(ctx, t, c, client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "held"}})
	a.write(held[:60])
	a.write(" " + held[60:])
	joined, err := a.end()
	require.NoError(t, err)
	require.True(t, joined.Attached())
	require.NoError(t, cancelled(c.Cancel(ctx, "held", "test")))

	o := client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: "theirs"}}
	first := stream(ctx, t, c, o)
	first.write(`{"steps":[` + keep("a", ""))
	first.sees("a")
	for _, end := range []string{"", `]]`} {
		second := stream(ctx, t, c, o)
		second.write(`{"steps":[` + keep("a", ""))
		require.True(t, (<-second.begun).Attached())
		_, _ = io.WriteString(second.text, end)
		f, details := second.broken(fault.MalformedJSON)
		require.Equal(t, wire.StreamDetails{Run: "theirs", Status: outcome.Running, Began: []string{"a"}}, details)
		require.Contains(t, f.Message, "the run theirs was begun by somebody else and is left alone: it is running")
	}
	first.write(`]}`)
	require.Equal(t, outcome.Succeeded, first.outcome().Status)
}

// TestKilledInMidStream: nobody cancels for who is dead, and the run goes on with what it has, unless somebody comes with
// the same text.
func TestKilledInMidStream(t *testing.T) {
	t.Parallel()
	ctx, stack, d := stackWithTools(t)
	alive := clientOf(ctx, t, stack)
	text := []string{`{"steps":[` + keep("a", "") + `,`, keep("b", "a") + `]}`}
	for run, steps := range map[string]int{"dead": 1, "risen": 2} {
		o := client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: run}, OpenFor: 3 * time.Second}
		nc, err := stack.Connect(ctx, "mortal")
		require.NoError(t, err)
		mortal, err := client.New(ctx, nc, client.Config{})
		require.NoError(t, err)
		a := stream(ctx, t, mortal, o)
		a.write(text[0])
		<-a.begun
		nc.Close()
		mortal.Close()
		_ = a.text.CloseWithError(errors.New("killed"))
		f, details := a.broken(fault.Cancelled)
		require.Contains(t, f.Message, "it isn't known what became of the run")
		require.Contains(t, f.Message, "1 step may have begun: a")
		require.Equal(t, wire.StreamDetails{Run: run, Began: []string{"a"}}, details)
		before := len(d.all())
		b := stream(ctx, t, alive, o)
		if run == "risen" {
			b.write(text[0])
			b.write(text[1])
			require.Len(t, b.outcome().Results, steps)
			continue
		}
		r, err := alive.Attach(run)
		require.NoError(t, err)
		out, err := r.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status)
		require.Len(t, out.Results, steps)
		require.LessOrEqual(t, len(d.all()), before+1)
		b.write(text[0] + text[1])
		_, err = b.end()
		require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err))
	}
}
