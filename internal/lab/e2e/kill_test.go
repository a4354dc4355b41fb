package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// work takes a while, branches, joins and has one step that fails.
const work = `{"steps":[
	{"id":"a","tool":"sleep","arguments":{"ms":%d}},
	{"id":"b","tool":"add","arguments":{"a":2,"b":3},"depends_on":["a"]},
	{"id":"c","tool":"multiply","arguments":{"a":"$ref:b.result","b":%d},"depends_on":["a"]},
	{"id":"d","tool":"divide","arguments":{"a":"$ref:c.result","b":0}},
	{"id":"e","tool":"add","arguments":{"a":"$ref:d.result","b":1}},
	{"id":"f","tool":"sleep","arguments":{"ms":20},"depends_on":["c"]},
	{"id":"g","tool":"subtract","arguments":{"a":"$ref:c.result","b":"$ref:b.result"},"depends_on":["f"]}],
	"output_steps":["g","e"]}`

func submitWork(t *testing.T, c *client.Client, n int) []*client.Run {
	var runs []*client.Run
	for i := range n {
		r, err := c.Submit(within(t, 2*time.Minute), fmt.Appendf(nil, work, 20+i%50, i), client.SubmitOptions{Run: fmt.Sprint("run-", i)})
		require.NoError(t, err)
		runs = append(runs, r)
	}
	return runs
}

// checkWork compares every outcome with what the run comes to when nobody is killed.
func checkWork(t *testing.T, c *client.Client, runs []*client.Run) {
	t.Helper()
	for i, r := range runs {
		o, err := r.Wait(within(t, 5*time.Minute))
		require.NoError(t, err)
		require.Equal(t, outcome.Partial, o.Status, "%s", o.JSON())
		got, _ := o.Results.Get("g")
		require.JSONEq(t, fmt.Sprintf(`{"result":%d}`, 5*i-5), string(got))
		require.Len(t, o.Errors, 2)
		require.Equal(t, "d", o.Errors[0].Step)
		require.Equal(t, "Skipped because dependency 'd' failed", o.Errors[1].Message)
		doc, err := c.Get(within(t, 2*time.Minute), r.ID())
		require.NoError(t, err)
		for _, s := range doc.Steps {
			require.LessOrEqual(t, s.Attempts, 1, "step %s of %s: a redelivery is not an attempt", s.ID, r.ID())
		}
	}
}

func TestAnOrchestratorIsKilled(t *testing.T) {
	t.Parallel()
	srv, url := server(t)
	first := begin(t, url, "orchestrator", "--name", "first")
	first.says("orchestrator started")
	begin(t, url, "orchestrator", "--name", "second").says("orchestrator started")
	begin(t, url, "toolworker").says("ready")
	_, c := connect(t, srv)
	runs := submitWork(t, c, 200)
	first.kill()
	checkWork(t, c, runs)
}

func TestTheOnlyOrchestratorIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	srv, url := server(t)
	first := begin(t, url, "orchestrator", "--name", "first")
	first.says("orchestrator started")
	begin(t, url, "toolworker").says("ready")
	_, c := connect(t, srv)
	runs := submitWork(t, c, 100)
	first.kill()
	begin(t, url, "orchestrator", "--name", "again").says("orchestrator started")
	checkWork(t, c, runs)
}

func TestAWorkerIsKilled(t *testing.T) {
	t.Parallel()
	srv, url := server(t)
	begin(t, url, "orchestrator", "--ack-wait", "5s").says("orchestrator started")
	first := begin(t, url, "toolworker", "--name", "first")
	first.says("ready")
	begin(t, url, "toolworker", "--name", "second").says("ready")
	_, c := connect(t, srv)
	runs := submitWork(t, c, 200)
	first.kill()
	checkWork(t, c, runs)
}

func TestAWorkerDrainsOnSIGTERM(t *testing.T) {
	t.Parallel()
	srv, url := server(t)
	begin(t, url, "orchestrator").says("orchestrator started")
	first := begin(t, url, "toolworker", "--name", "first")
	first.says("ready")
	nc, c := connect(t, srv)
	r, err := c.Submit(within(t, 2*time.Minute), []byte(`{"steps":[{"id":"a","tool":"sleep","arguments":{"ms":1500}}]}`), client.SubmitOptions{Run: "slow"})
	require.NoError(t, err)
	js, err := nc.JetStream()
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := js.ConsumerInfo(subjects.StepsStream(0), subjects.Durable("sleep"))
		return err == nil && info.NumAckPending == 1
	}, 2*time.Minute, 10*time.Millisecond, "the worker did not take the step")
	require.Zero(t, first.stop())
	o, err := r.Wait(within(t, 2*time.Minute))
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status)
	doc, err := c.Get(within(t, 2*time.Minute), "slow")
	require.NoError(t, err)
	require.Equal(t, 1, doc.Steps[0].Attempts)
	require.Equal(t, "first", doc.Steps[0].Worker)
}
