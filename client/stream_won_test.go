package client_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/dev"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/worker"
)

var (
	tokenRate   = flag.Int("token-rate", 400, "how many tokens a second the recorded stream has")
	tokenRounds = flag.Int("token-rounds", 1, "how often it is run both ways; medians count")
)

// toolTime is how long each tool of the recorded plan takes.
const toolTime = 300 * time.Millisecond

// tokens reads a recorded stream: a plan of twelve steps as a model writes it, one token a line.
func tokens(t *testing.T) (all []string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/tokens.jsonl")
	require.NoError(t, err)
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		var token string
		require.NoError(t, json.Unmarshal(lines.Bytes(), &token))
		all = append(all, token)
	}
	return all
}

// spoken writes tokens at the rate that they were recorded at.
func spoken(tokens []string) io.Reader {
	reader, write := io.Pipe()
	go func() {
		next := time.NewTicker(time.Second / time.Duration(*tokenRate))
		defer next.Stop()
		for _, token := range tokens {
			<-next.C
			_, _ = io.WriteString(write, token)
		}
		_ = write.Close()
	}()
	return reader
}

// TestMillisecondsWon: from the first token to the outcome it takes less to run a plan while it is written than to submit
// it once it is. How much less is told in docs/performance.md.
func TestMillisecondsWon(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience)
	defer cancel()
	stack, err := dev.Start(ctx, dev.Options{Dir: t.TempDir(), More: func(w *worker.Worker) error {
		worker.Handle(w, "slow", func(ctx context.Context, in map[string]any) (map[string]any, error) {
			select {
			case <-time.After(toolTime):
				return map[string]any{"found": in["what"]}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}, worker.InputSchema(json.RawMessage(`{"type":"object"}`)))
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(stack.Stop)
	c := clientOf(ctx, t, stack)
	all := tokens(t)
	timed := func(run func(text io.Reader) (*client.Run, error)) time.Duration {
		began := time.Now()
		r, err := run(spoken(all))
		require.NoError(t, err)
		out, err := r.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
		require.Len(t, out.Results, 2)
		return time.Since(began)
	}
	var whole, live []time.Duration
	for range *tokenRounds {
		whole = append(whole, timed(func(text io.Reader) (*client.Run, error) {
			body, err := io.ReadAll(text)
			if err != nil {
				return nil, err
			}
			plan := body[bytes.IndexByte(body, '{') : bytes.LastIndexByte(body, '}')+1]
			return c.Submit(ctx, plan, client.SubmitOptions{})
		}))
		live = append(live, timed(func(text io.Reader) (*client.Run, error) { return c.Stream(ctx, text, client.StreamOptions{}) }))
	}
	slices.Sort(whole)
	slices.Sort(live)
	w, l := whole[len(whole)/2], live[len(live)/2]
	written := time.Duration(len(all)) * time.Second / time.Duration(*tokenRate)
	t.Logf("%d tokens at %d a second, %v: as a whole %v, while it is written %v: %v won, %s of what follows the last token", len(all), *tokenRate,
		written.Round(time.Millisecond), w.Round(time.Millisecond), l.Round(time.Millisecond), (w - l).Round(time.Millisecond),
		fmt.Sprintf("%.0f %%", 100*float64(w-l)/float64(w-written)))
	require.Greater(t, w-l, toolTime, "at least one tool's time is won: %v, %v", whole, live)
}
