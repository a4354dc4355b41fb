package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// counted sends the same request by several clients at once, and returns how many were told that it stood before theirs.
func (s *system) counted(run, verb, body string) (already int) {
	s.t.Helper()
	const clients = 8
	answers, together := make(chan *nats.Msg, clients), make(chan struct{})
	for range clients {
		nc := natstest.Connect(s.t, s.srv)
		go func() {
			<-together
			m, err := nc.Request(subjects.API(subjects.NewRun("default", run), verb), []byte(body), patience)
			if err != nil {
				m = &nats.Msg{Data: []byte(err.Error())}
			}
			answers <- m
		}()
	}
	close(together)
	for range clients {
		m := <-answers
		require.NoError(s.t, wire.ParseRefusal(m.Header, m.Data), "%s", verb)
		var told struct{ Already bool }
		require.NoError(s.t, json.Unmarshal(m.Data, &told), "%s: %s", verb, m.Data)
		if told.Already {
			already++
		}
	}
	return already
}

// TestOfSeveralSameRequestsOneCounts: whoever asks for the same as others at the same moment is told whether his request is the one
// that counted, whatever is asked for: all but one stood already.
func TestOfSeveralSameRequestsOneCounts(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.plays("planner", `{"steps":[{"id":"g","tool":"gate"}]}`, `{"steps":[{"id":"g","tool":"gate"}]}`, `{"output":"done"}`)
	s.agent("desk", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo"]}`)
	s.agent("careful", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":["gate","echo"],"approval":"plan"}`)
	for n := range 3 {
		id := fmt.Sprint("all", n)
		r := s.submit(`{"steps":[{"id":"q","tool":"ask","arguments":{"question":"Well?"}},{"id":"p","tool":"echo","approval":true,"arguments":{"n":1}},{"id":"a","tool":"desk"},{"id":"c","tool":"careful"},{"id":"g","tool":"gate"}]}`, id)
		digest := func(step string) string { return s.asked(id, step).Digest }
		<-s.tools.begun
		<-s.tools.begun
		for verb, body := range map[string]string{
			subjects.VerbAnswer:  fmt.Sprintf(`{"step":"q","digest":%q,"value":"yes"}`, digest("q")),
			subjects.VerbApprove: fmt.Sprintf(`{"step":"p","digest":%q,"decision":"approve"}`, digest("p")),
			subjects.VerbAmend:   `{"revision":0,"add":[{"id":"more","tool":"echo","arguments":{"n":2}}]}`,
			subjects.VerbSay:     `{"agent":"a","id":"word","content":"With my dog."}`,
		} {
			require.Equal(t, 7, s.counted(id, verb, body), verb)
		}
		require.Equal(t, 7, s.counted(id, subjects.VerbAmend, `{"scope":"a/=0","revision":0,"add":[{"id":"more","tool":"echo","arguments":{"n":2}}]}`), "of a round")
		require.Equal(t, 7, s.counted(id, subjects.VerbApprove, fmt.Sprintf(`{"step":"c","digest":%q,"decision":"reject"}`, digest("c"))), "of a round")
		for verb, body := range map[string]string{subjects.VerbSay: `{"agent":"a","id":"word","content":"With my dog."}`, subjects.VerbAmend: `{"revision":0,"add":[{"id":"more","tool":"echo","arguments":{"n":2}}]}`} {
			require.Equal(t, 8, s.counted(id, verb, body), "%s, later", verb)
		}
		require.NoError(t, s.client.Cancel(ctx(t), id, "test"))
		require.Equal(t, outcome.Cancelled, s.wait(r).Status)
	}
}
