//go:build unix

package hosted

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// answer is a program that answers for each item with the token it got and the number of items of its call.
const answer = `n=$(cat | grep -o '"n"' | wc -l); n=$((n)); printf '{"results":['; i=0
while [ $i -lt $n ]; do
	[ $i -gt 0 ] && printf ,
	printf '{"index":%d,"status":"ok","data":{"token":"%s","items":%d,"key":"%s"}}' $i "$STEPJET_CONTEXT_TOKEN" $n "$STEPJET_KEY"
	i=$((i+1))
done
printf '],"summary":{"ok":%d,"error":0}}' $n`

// A program gets the items of many steps in one call, but only of steps whose context agrees in what it asks for.
func TestExecBatch(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	o, err := orchestrator.New(natstest.Connect(t, srv), orchestrator.Config{Name: "o"})
	require.NoError(t, err)
	w, err := worker.New(natstest.Connect(t, srv), worker.Config{Name: "w"})
	require.NoError(t, err)
	file := parse(t, `{"name":"load","inputSchema":{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object"}}},"required":["rows"]},
		"x-orchestration":{"max_concurrency":8,"error_propagation":"partial-success","batch":{"argument":"rows","max_items":4,"max_wait_ms":300}},
		"exec":{"argv":["/bin/sh","-c",`+strconv.Quote(answer)+`],"stdin":"arguments","context":["token"]}}`)
	require.NoError(t, file.Register(w))
	stop, ended := context.WithCancel(ctx)
	done := make(chan error, 2)
	go func() { done <- o.Run(stop) }()
	go func() { done <- w.Run(stop) }()
	t.Cleanup(func() {
		ended()
		require.NoError(t, <-done)
		require.NoError(t, <-done)
	})
	<-w.Ready()
	c, err := client.New(ctx, natstest.Connect(t, srv), client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)

	const plan = `{"steps":[{"id":"a","tool":"load","arguments":{"n":1}},{"id":"b","tool":"load","arguments":{"n":2}}]}`
	var runs []*client.Run
	for _, token := range []string{"one", "two"} {
		r, err := c.Submit(ctx, []byte(plan), client.SubmitOptions{Run: token, Context: wire.RunContext{
			All: contextOf(t, map[string]string{"token": token, "other": token}),
		}})
		require.NoError(t, err)
		runs = append(runs, r)
	}
	for i, token := range []string{"one", "two"} {
		out, err := runs[i].Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
		for _, r := range out.Results {
			require.Equal(t, `{"token":"`+token+`","items":2,"key":""}`, string(r.JSON), "both steps of a run in one call, no other's")
		}
	}
}
