package orchestrator_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// atOnce sends the same request by several clients at once, and returns what they are told.
func (s *system) atOnce(run, verb, body string) (told []*nats.Msg) {
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
		told = append(told, <-answers)
	}
	return told
}

// counted sends the same request by several clients at once, and returns how many were told that it stood before theirs.
func (s *system) counted(run, verb, body string) (already int) {
	s.t.Helper()
	for _, m := range s.atOnce(run, verb, body) {
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
		counts := 0
		for _, m := range s.atOnce(id, subjects.VerbCancel, `{"by":"ann"}`) {
			if err := wire.ParseRefusal(m.Header, m.Data); err != nil { // it was over so soon
				require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err))
				continue
			}
			var told wire.Cancelled
			require.NoError(t, json.Unmarshal(m.Data, &told), "%s", m.Data)
			require.Equal(t, wire.Cancelled{Run: id, Status: outcome.Cancelled, By: "ann", Already: told.Already}, told)
			if !told.Already {
				counts++
			}
		}
		require.Equal(t, 1, counts, "of cancels")
		require.Equal(t, outcome.Cancelled, s.wait(r).Status)
	}
}

// TestGoCallersAreToldWhatStoodBefore: of a run that goes on, and of one that is over. That theirs counted they are told too,
// unless nobody answered for so long that they asked again.
func TestGoCallersAreToldWhatStoodBefore(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.submit(`{"steps":[{"id":"q","tool":"ask","arguments":{"question":"Well?"}},{"id":"p","tool":"echo","approval":true},{"id":"n","tool":"echo","approval":true,"arguments":{"n":1}},{"id":"last","tool":"ask","arguments":{"question":"Last?"}}]}`, "told")
	q, p, n := s.asked("told", "q"), s.asked("told", "p"), s.asked("told", "n")
	all := func() (already int) {
		t.Helper()
		for decision, ask := range map[string]func(client.Answer) (*client.Answered, error){
			outcome.DecisionAnswered: func(a client.Answer) (*client.Answered, error) {
				return s.client.Answer(ctx(t), q, json.RawMessage(`"yes"`), a)
			},
			outcome.DecisionApproved: func(a client.Answer) (*client.Answered, error) { return s.client.Approve(ctx(t), p, a) },
			outcome.DecisionRejected: func(a client.Answer) (*client.Answered, error) { return s.client.Reject(ctx(t), n, a) },
		} {
			stands, err := ask(client.Answer{By: "ann"})
			require.NoError(t, err, decision)
			require.Equal(t, decision, stands.Decision)
			require.Equal(t, "ann", stands.By)
			if stands.Already {
				already++
			}
		}
		return already
	}
	all()
	require.Equal(t, 3, all())
	stopped, err := r.Cancel(ctx(t), "bob")
	require.NoError(t, err)
	require.Equal(t, &client.Stopped{Status: outcome.Cancelled, By: "bob", Already: stopped.Already}, stopped)
	require.Equal(t, outcome.Cancelled, s.wait(r).Status)
	require.Equal(t, 3, all())
	_, err = s.client.Cancel(ctx(t), "told", "ann")
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err))
}
