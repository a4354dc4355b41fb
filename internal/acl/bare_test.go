package acl_test

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// bare is an agent of the tenant acme that somebody wrote with a stock client and docs/protocol.md: what it asks and
// how it reads the answers stands here, and nothing of it comes from a package of Stepjet's.
type bare struct {
	t  *testing.T
	nc *nats.Conn
}

// bare connects as the agent, to one of the servers.
func (s *system) bare(url string) *bare {
	s.t.Helper()
	key, err := nats.NkeyOptionFromSeed(s.seeds["agent-acme"])
	require.NoError(s.t, err)
	nc, err := nats.Connect(url, key, nats.CustomInboxPrefix(s.grants["agent-acme"].Inbox),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.t.Errorf("the server complains: %v", err) }))
	require.NoError(s.t, err)
	s.t.Cleanup(nc.Close)
	return &bare{s.t, nc}
}

// encoded returns a name as it stands in subjects.
func encoded(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func partition(run string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(encoded(run))) // it never fails
	return h.Sum32() % 64
}

// pubAck is the answer to what is published through JetStream.
type pubAck struct {
	Stream string
	Seq    uint64
	Error  *struct {
		Code int `json:"err_code"`
	}
}

func (b *bare) publish(subject string, h nats.Header, body string) (ack pubAck) {
	b.t.Helper()
	m, err := b.nc.RequestMsg(&nats.Msg{Subject: subject, Header: h, Data: []byte(body)}, time.Minute)
	require.NoError(b.t, err, subject)
	require.NoError(b.t, json.Unmarshal(m.Data, &ack), "%s", m.Data)
	return ack
}

func (b *bare) submit(run, plan string, h nats.Header) pubAck {
	b.t.Helper()
	return b.publish("plan.submit.acme."+encoded(run), h, plan)
}

// last reads the last message of a subject, as those may who may not read whole streams; nil for none.
func (b *bare) last(stream, subject string) *nats.Msg {
	b.t.Helper()
	m, err := b.nc.Request("$JS.API.DIRECT.GET."+stream+"."+subject, nil, time.Minute)
	require.NoError(b.t, err, subject)
	if m.Header.Get("Status") == "404" {
		return nil
	}
	require.Empty(b.t, m.Header.Get("Status"), "%s: %s", subject, m.Header.Get("Description"))
	require.Equal(b.t, subject, m.Header.Get("Nats-Subject"))
	return m
}

// surely reads a last message where something follows from its absence: it reads again for a second before it believes
// that.
func (b *bare) surely(stream, subject string) (m *nats.Msg, looks int) {
	b.t.Helper()
	for end := time.Now().Add(time.Second); ; {
		m = b.last(stream, subject)
		looks++
		if m != nil || time.Now().After(end) {
			return m, looks
		}
	}
}

// document is what the test reads of a run document.
type document struct {
	Status     string
	Generation uint64
	Plan       json.RawMessage
	Outcome    struct {
		Results map[string]json.RawMessage
	}
	Steps []struct {
		ID     string
		Status string
		Reused bool
		Items  []struct{ Status string }
	}
}

// await waits for the outcome of a run: it subscribes, reads the history, and reads it again whenever it hears
// something, or hears nothing for too long.
func (b *bare) await(run string, accepted uint64) (doc document) {
	b.t.Helper()
	ends, err := b.nc.SubscribeSync("event.acme." + encoded(run) + ".end")
	require.NoError(b.t, err)
	defer func() { _ = ends.Unsubscribe() }()
	require.NoError(b.t, b.nc.FlushTimeout(time.Minute))
	for wait, end := 250*time.Millisecond, time.Now().Add(2*time.Minute); time.Now().Before(end); wait = min(2*wait, 5*time.Second) {
		if m := b.last("KV_history", "$KV.history.acme."+encoded(run)); m != nil {
			doc = document{}
			require.NoError(b.t, json.Unmarshal(m.Data, &doc))
			if doc.Status != "rejected" || doc.Generation >= accepted {
				return doc
			}
		}
		_, _ = ends.NextMsg(wait) // one that doesn't come may have been lost
	}
	require.Fail(b.t, "no outcome of run "+run)
	return doc
}

// verbatim writes arguments so that nothing in them is read as a reference.
func verbatim(v any) any {
	switch v := v.(type) {
	case string:
		return map[string]any{"$text": v}
	case []any:
		for i := range v {
			v[i] = verbatim(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = verbatim(v[k]) // no tool here has a key with a dollar
		}
	}
	return v
}

// TestABareClientTriesAgain follows docs/protocol.md in trying a run and a dead letter again, under the printed
// permissions.
func TestABareClientTriesAgain(t *testing.T) {
	t.Parallel()
	inEach(t, shapes, func(t *testing.T, s *system) {
		s.staff()
		agent := s.bare(s.url())

		const run, plan = "order #42", `{"steps":[ {"id":"first","tool":"search","arguments":{"text":"one"}},
			{"id":"second","tool":"crm/get","arguments":{"text":"$ref:first.text"}},
			{"id":"a","tool":"fetch","for_each":{"in":[{"$text":"{{a.text}}"},{"$text":"costs $$ref:a.text"}],"as":"item"},"arguments":{"fail":"until let","text":"$ref:item"},"retry":{"max_attempts":1}} ],
			"output_steps":["second","a"]}`
		accepted := agent.submit(run, plan, nil)
		require.Nil(t, accepted.Error)
		failed := agent.await(run, accepted.Seq)
		require.Equal(t, "succeeded", failed.Status, "failed items of a step that only reads fail nothing else: %+v", failed.Steps)
		require.Equal(t, "failed", failed.Steps[2].Items[0].Status)
		require.Equal(t, accepted.Seq, failed.Generation)
		letters := agent.letters(run, failed.Generation, "a=0", "a=1")

		busy := agent.submit("busy", `{"steps":[{"id":"a","tool":"search","arguments":{"hold":true}}]}`, nil)
		<-s.held
		refused := agent.submit("busy", `{"steps":[{"id":"a","tool":"search","arguments":{"hold":true}}]}`, nil)
		require.NotNil(t, refused.Error, "a plan with this id is active")
		require.Equal(t, 10077, refused.Error.Code)
		require.Zero(t, refused.Seq, "a sequence counts only where there is no error")
		close(s.let)
		require.Equal(t, "succeeded", agent.await("busy", busy.Seq).Status)

		agent.triesRun(run, failed.Plan)
		for step, letter := range letters {
			agent.triesLetter(run, failed.Generation, step, letter)
		}
		rejected := agent.submit("of nothing", plan, nats.Header{"Stepjet-Retry-Of": {"no such run"}})
		require.Nil(t, rejected.Error)
		require.Equal(t, "rejected", agent.await("of nothing", rejected.Seq).Status)
	})
}

// triesRun tries a failed run again, once as it is and once with a step that had succeeded.
func (b *bare) triesRun(run string, plan json.RawMessage) {
	b.t.Helper()
	again := run + "/again"
	ack := b.submit(again, string(plan), nats.Header{"Stepjet-Retry-Of": {run}})
	require.Nil(b.t, ack.Error)
	doc := b.await(again, ack.Seq)
	require.Equal(b.t, "succeeded", doc.Status, "%+v", doc.Steps)
	for i, taken := range []bool{true, true, false} {
		require.Equal(b.t, taken, doc.Steps[i].Reused, "step %s", doc.Steps[i].ID)
	}
	require.JSONEq(b.t, `{"text":"one"}`, string(doc.Outcome.Results["second"]))
	require.Contains(b.t, string(doc.Outcome.Results["a"]), `{{a.text}}`)

	ack = b.submit(run+"/from", string(plan), nats.Header{"Stepjet-Retry-Of": {again}, "Stepjet-Retry-From": {"second"}})
	require.Nil(b.t, ack.Error)
	doc = b.await(run+"/from", ack.Seq)
	require.Equal(b.t, "succeeded", doc.Status, "%+v", doc.Steps)
	for i, taken := range []bool{true, false, true} {
		require.Equal(b.t, taken, doc.Steps[i].Reused, "step %s", doc.Steps[i].ID)
	}
}

// letter is what the test reads of a dead letter.
type letter struct {
	Tool      string
	Arguments json.RawMessage
}

// letters reads dead letters, which an orchestrator writes when it has told the outcome, if not before.
func (b *bare) letters(run string, generation uint64, steps ...string) map[string]letter {
	b.t.Helper()
	all := map[string]letter{}
	require.Eventually(b.t, func() bool {
		for _, step := range steps {
			m := b.last("KV_dead", fmt.Sprintf("$KV.dead.acme.%s.%d.%s", encoded(run), generation, step))
			if m == nil {
				return false
			}
			var l letter
			require.NoError(b.t, json.Unmarshal(m.Data, &l), "%s", m.Data)
			all[step] = l
		}
		return true
	}, 2*time.Minute, 20*time.Millisecond)
	return all
}

// triesLetter makes the call of a dead letter again, asking twice, and removes the letter.
func (b *bare) triesLetter(run string, generation uint64, step string, l letter) {
	b.t.Helper()
	var arguments map[string]any
	require.NoError(b.t, json.Unmarshal(l.Arguments, &arguments))
	text := arguments["text"]
	plan, err := json.Marshal(map[string]any{"steps": []any{map[string]any{"id": "a", "tool": l.Tool, "arguments": verbatim(arguments)}}})
	require.NoError(b.t, err)
	id := fmt.Sprintf("letter %s %d %s", run, generation, step)
	first := b.submit(id, string(plan), nil)
	require.Nil(b.t, first.Error)
	b.submit(id, string(plan), nil) // stored for the same run, or refused since it is active
	doc := b.await(id, first.Seq)
	require.Equal(b.t, "succeeded", doc.Status, "%+v", doc.Steps)
	require.Equal(b.t, first.Seq, doc.Generation)
	var result struct{ Text string }
	require.NoError(b.t, json.Unmarshal(doc.Outcome.Results["a"], &result))
	require.Equal(b.t, text, result.Text, "the tool got the same arguments")

	subject := fmt.Sprintf("$KV.dead.acme.%s.%d.%s", encoded(run), generation, step)
	require.Nil(b.t, b.publish(subject, nats.Header{"KV-Operation": {"DEL"}}, "").Error)
	require.Eventually(b.t, func() bool { return b.last("KV_dead", subject).Header.Get("KV-Operation") == "DEL" }, 2*time.Minute, 20*time.Millisecond)
}

// TestABareClientReadsFromEveryReplica: each server answers reads itself, and may not have yet what two others
// acknowledged. Who reads again for a second finds it.
func TestABareClientReadsFromEveryReplica(t *testing.T) {
	t.Parallel()
	s := start(t, shape{shards: 1, cluster: true})
	s.orchestrate(1)
	s.host("worker-search", "search")
	var agents []*bare
	for _, url := range s.urls {
		agents = append(agents, s.bare(url))
	}
	lagged := 0
	for i := range 150 {
		run := fmt.Sprintf("lag/%d", i)
		ack := agents[i%3].submit(run, `{"steps":[{"id":"a","tool":"search","arguments":{"text":"x"}}]}`, nil)
		require.Nil(t, ack.Error)
		for _, reader := range agents {
			m, looks := reader.surely("KV_runs_0", fmt.Sprintf("$KV.runs_0.%d.acme.%s.plan", partition(run), encoded(run)))
			require.NotNil(t, m, "run %s", run)
			require.Equal(t, fmt.Sprint(ack.Seq), m.Header.Get("Nats-Sequence"))
			lagged += looks - 1
		}
	}
	t.Logf("%d of 450 reads came too early for their replica", lagged)
	for i := range 150 {
		run := fmt.Sprintf("lag/%d", i)
		require.Equal(t, "succeeded", agents[(i+1)%3].await(run, 0).Status)
	}
}
