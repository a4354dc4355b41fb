package cli

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// writing is "run --stream -" while its plan is being written.
type writing struct {
	text      *io.PipeWriter
	out, errs strings.Builder
	code      chan int
}

func write(ctx context.Context, t *testing.T, url string, args ...string) *writing {
	t.Helper()
	text, stdin := io.Pipe()
	w := &writing{text: stdin, code: make(chan int, 1)}
	env := Env{
		Args: append([]string{"run", "--stream", "-", "--server", url}, args...), Stdin: text, Stdout: &w.out, Stderr: &w.errs, Getenv: nowhere(t),
	}
	go func() {
		w.code <- Main(ctx, env)
		_ = text.Close()
	}()
	t.Cleanup(func() { _ = stdin.Close() })
	return w
}

func (w *writing) write(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(w.text, text)
	require.NoError(t, err)
}

// succeeded waits until a step of a run has.
func (w *writing) succeeded(t *testing.T, c *client.Client, run, step string) {
	t.Helper()
	require.Eventually(t, func() bool {
		require.Empty(t, w.code, "it ended")
		doc, err := c.Get(t.Context(), run)
		if err != nil {
			return false
		}
		for _, s := range doc.Steps {
			if s.ID == step {
				return s.Status == outcome.StepSucceeded
			}
		}
		return false
	}, patience, 10e6)
}

// whole starts a whole Stepjet, with a client of it.
func whole(t *testing.T) (*dev.Stack, *client.Client) {
	stack, err := dev.Start(t.Context(), dev.Options{Dir: folder(t), Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	nc, err := stack.Connect(t.Context(), "test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	c, err := client.New(t.Context(), nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return stack, c
}

const firstStep = "```json\n" + `{"steps":[{"id":"half","tool":"divide","arguments":{"a":9,"b":2}},`

func TestRunOfAPlanThatIsBeingWritten(t *testing.T) {
	t.Parallel()
	stack, c := whole(t)

	w := write(t.Context(), t, stack.URL(), "--run", "written")
	w.write(t, firstStep)
	w.succeeded(t, c, "written", "half")
	w.write(t, `{"id":"text","tool":"text_concat","arguments":{"parts":["It is $ref:half.result."]}}],"output_steps":["text"]}`+"\n```\n")
	require.NoError(t, w.text.Close())
	require.Zero(t, <-w.code, w.errs.String())
	result, _ := decode(t, w.out.String()).Results.Get("text")
	require.JSONEq(t, `{"result":"It is 4.5."}`, string(result))
	require.Contains(t, w.errs.String(), "half  divide")

	w = write(t.Context(), t, stack.URL(), "--run", "broken")
	w.write(t, firstStep)
	w.succeeded(t, c, "broken", "half")
	require.NoError(t, w.text.Close())
	require.Equal(t, exitInvalid, <-w.code, w.errs.String())
	require.Contains(t, w.errs.String(), "the run broken is cancelled, and 1 step had begun: half")

	w = write(t.Context(), t, stack.URL(), "--run", "wrong")
	w.write(t, firstStep)
	w.succeeded(t, c, "wrong", "half")
	w.write(t, `{"id":"a","tool":"nobody"},{"id":"b","tool":"add"}]}`)
	require.NoError(t, w.text.Close())
	require.Equal(t, exitInvalid, <-w.code, w.errs.String())
	require.Contains(t, w.errs.String(), "unknown_tool")
	require.Contains(t, w.errs.String(), "/steps/2/arguments")

	w = write(t.Context(), t, stack.URL(), "--run", "untyped")
	w.write(t, firstStep)
	w.succeeded(t, c, "untyped", "half")
	w.write(t, `{"id":"a","tool":"divide","arguments":{"a":"$ref:half","b":2}}]}`)
	require.NoError(t, w.text.Close())
	require.Equal(t, exitInvalid, <-w.code, w.errs.String())
	require.Contains(t, w.errs.String(), "impossible_ref")
	require.Contains(t, w.errs.String(), "$ref:half.result")

	ctx, interrupt := context.WithCancelCause(t.Context())
	w = write(ctx, t, stack.URL(), "--run", "interrupted")
	w.write(t, firstStep)
	w.succeeded(t, c, "interrupted", "half")
	interrupt(errInterrupt)
	require.Equal(t, ExitInterrupt, <-w.code, w.errs.String())
	require.Contains(t, w.errs.String(), "interrupted before the plan was complete; the run interrupted is cancelled, and 1 step had begun: half")

	w = write(t.Context(), t, stack.URL(), "--run", "rejected")
	w.write(t, `{"steps":[{"id":"a","tool":"nobody"}]}`)
	require.NoError(t, w.text.Close())
	require.Equal(t, exitInvalid, <-w.code, w.errs.String())
	require.Contains(t, w.errs.String(), "rejected: 1 problem, nothing ran")

	file := filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"steps":[{"id":"half","tool":"divide","arguments":{"a":9,"b":2}}]}`), 0o600))
	stdout, stderr, code := command(t, "", "run", "--stream", file, "--server", stack.URL())
	require.Zero(t, code, stderr)
	require.Equal(t, outcome.Succeeded, decode(t, stdout).Status)
	_, stderr, code = command(t, "", "run", "--stream", file+"?", "--server", stack.URL())
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, "can't be read")
	_, stderr, code = command(t, "", "run", "--stream", t.TempDir(), "--server", stack.URL())
	require.Equal(t, exitInvalid, code, stderr)
	require.Contains(t, stderr, "can't be read")
	require.Contains(t, stderr, "is a directory")
	require.NotContains(t, stderr, "another run id", "no run was made")
	_, stderr, code = command(t, "", "run", "--stream", "--dry-run", file)
	require.Equal(t, exitInvalid, code)
	require.Contains(t, stderr, "leave one of them out")
}

// TestEndOfAStreamedRun: what an interrupt and --wait cancel is said to programs and under -q too, whatever else ends the
// text at the same time.
func TestEndOfAStreamedRun(t *testing.T) {
	t.Parallel()
	stack, c := whole(t)
	type said struct {
		Code    string             `json:"code"`
		Message string             `json:"message"`
		Details wire.StreamDetails `json:"details"`
		Exit    int                `json:"exit_code"`
	}
	for run, by := range map[string]struct {
		args []string
		end  func(w *writing, interrupt context.CancelCauseFunc)
		code string
		exit int
	}{
		"signal": {nil, func(_ *writing, interrupt context.CancelCauseFunc) { interrupt(errInterrupt) }, "interrupted", ExitInterrupt},
		"both": {nil, func(w *writing, interrupt context.CancelCauseFunc) {
			interrupt(errInterrupt)
			_ = w.text.Close()
		}, "interrupted", ExitInterrupt},
		"wait": {[]string{"--wait", "6s"}, func(*writing, context.CancelCauseFunc) {}, "wait_ran_out", exitWait},
	} {
		ctx, interrupt := context.WithCancelCause(t.Context())
		w := write(ctx, t, stack.URL(), append([]string{"--run", run, "-q", "-o", "json"}, by.args...)...)
		w.write(t, firstStep)
		w.succeeded(t, c, run, "half")
		by.end(w, interrupt)
		require.Equal(t, by.exit, <-w.code, w.errs.String())
		interrupt(nil)
		var e said
		require.NoError(t, json.Unmarshal([]byte(w.errs.String()), &e), w.errs.String())
		require.Equal(t, said{by.code, e.Message, wire.StreamDetails{Run: run, Status: outcome.Cancelled, Began: []string{"half"}}, by.exit}, e)
		require.Contains(t, e.Message, "the run "+run+" is cancelled")
		require.NotContains(t, e.Message, "broke off")
	}
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errInterrupt)
	broke := &settled{fault.New(fault.MalformedJSON, "the run x is cancelled")}
	require.Equal(t, broke, why(ctx, broke), "a signal while the command tidies up takes nothing of what is known")
}
