package main

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/exampletest"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func theScript(t *testing.T) []byte {
	t.Helper()
	config, end, err := models(nil)
	require.NoError(t, err)
	t.Cleanup(end)
	return config
}

// The letter is sorted and, since it is a complaint, answered: two calls of the model over two workers.
func TestTheLetterIsAnswered(t *testing.T) {
	t.Parallel()
	c, caller, err := asks(theScript(t))
	require.NoError(t, err)
	t.Cleanup(caller.Close)
	w := exampletest.Start(t, exampletest.Options{Tools: exampletest.ReadTools(t, definitions),
		Host: func(w *worker.Worker, defs []*tool.Definition) { require.NoError(t, host(w, defs, c, caller)) }})
	exampletest.Check(t, w.Run("plan.json", client.SubmitOptions{Run: "model"}), "outcome.json")
	require.Equal(t, 2, w.Meter.Of("model").Calls)
}

func TestByHand(t *testing.T) {
	t.Parallel()
	config := theScript(t)
	lines := exampletest.ByHand(t, func(ctx context.Context, url string, out io.Writer) error { return run(ctx, url, config, out) })
	require.Len(t, lines, 1)
	exampletest.CheckLine(t, lines[0], "outcome.json")
}

// The file for a real model is a configuration as well.
func TestTheFileOfModels(t *testing.T) {
	t.Parallel()
	config, _, err := models([]string{"models.json"})
	require.NoError(t, err)
	_, caller, err := asks(config)
	require.NoError(t, err)
	caller.Close()
	_, _, err = models([]string{"absent.json"})
	require.ErrorIs(t, err, os.ErrNotExist)
}
