package cli

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// handingOver hosts a planner that hands over three steps of its first answer while it writes, and goes on once it is told to.
func handingOver(t *testing.T, url string, began chan<- bool, goesOn <-chan struct{}) {
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	w, err := worker.New(nc, worker.Config{})
	require.NoError(t, err)
	pieces := []string{`{"steps":[{"id":"s1","tool":"divide","arguments":{"a":12,"b":2}},`, `{"id":"s2","tool":"divide","arguments":{"a":1,"b":0}},`,
		`{"id":"s3","tool":"add","arguments":{"a":1,"b":1}}`, `,{"id":"v","value":{"x":1}}]}`}
	require.NoError(t, w.HandleRaw(&tool.Definition{Name: "planner", Orchestration: &tool.Orchestration{Request: tool.WholeRequest}},
		func(ctx context.Context, sent json.RawMessage) (worker.Output, error) {
			var request struct{ Round int }
			if json.Unmarshal(sent, &request) != nil || request.Round > 0 {
				return worker.Output{Body: []byte(`{"output":"done"}`)}, nil
			}
			steps, answer := worker.NewStream(ctx), ""
			for i, piece := range pieces {
				if i == len(pieces)-1 {
					began <- steps.Began()
					<-goesOn
				}
				answer += piece
				steps.Text(piece)
			}
			return worker.Output{Body: []byte(answer)}, nil
		}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-w.Ready()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		nc.Close()
	})
}

// What begins while a planner writes is seen as the calls that it becomes, in the redrawn view, in lines and in the table of
// rounds, and counts once.
func TestAStreamedRound(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	began, goesOn := make(chan bool, 2), make(chan struct{})
	handingOver(t, url, began, goesOn)
	_, stderr, code := execute(t, data, `{"name":"writer","description":"Writes.","inputSchema":{"type":"object"},
		"agent":{"planner":{"tool":"planner","mode":"plan"},"stream_plan":true,"instructions":"Write.","tools":["divide","add"],"max_rounds":5}}`, "agents", "apply", "-")
	require.Zero(t, code, stderr)
	s := sit(t, data, []string{"TERM=xterm-256color"}, "agents", "run", "writer", "--run", "seen")
	require.True(t, <-began)
	s.seesRow(`^seen  round 0  3 of 3 calls over  `)
	s.seesRow(`^    ✓  s1  divide  `)
	s.seesRow(`^    ✗  s2  divide  failed  tool_terminal`)
	stdout, stderr, code := execute(t, data, "", "get", "seen")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "1 round, 0 calls of the planner, 3 calls that it asked for")
	require.Regexp(t, `agent/=0/=stream +calls while it writes +running`, stdout)
	close(goesOn)
	require.Zero(t, s.ends())
	s.seesRow(`^0 +succeeded .* 3 \(1 did not succeed\)$`)

	stdout, stderr, code = execute(t, data, "", "agents", "run", "writer", "--run", "told")
	require.Zero(t, code, stderr+stdout)
	require.Equal(t, 1, strings.Count(stderr, "s1  divide"), stderr)
	require.NotContains(t, stderr, "=stream")
	require.Contains(t, stderr, "2 rounds, 2 calls of the planner, 3 calls that it asked for")
	stdout, stderr, code = execute(t, data, "", "get", "told")
	require.Zero(t, code, stderr)
	require.Regexp(t, `agent/=0/=plan .* 3 calls$`, regexp.MustCompile(`(?m)^.*=0/=plan.*$`).FindString(stdout), "a value is none")
	require.NotContains(t, stdout, "/=1/=stream", "nothing began there")
}
