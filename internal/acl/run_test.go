package acl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// everything has items, a retry, references, a result and arguments too large for a message, and a tool of each worker.
const everything = `{"steps":[
	{"id":"each","tool":"search","for_each":{"in":["a","b","c"],"as":"item"},"arguments":{"text":"$ref:item"}},
	{"id":"retried","tool":"crm/get","arguments":{"fail":"once"},"retry":{"max_attempts":3,"backoff":{"strategy":"constant","initial_ms":250}}},
	{"id":"noted","tool":"crm/get","arguments":{"fail":"noted"},"retry":{"max_attempts":2,"backoff":{"strategy":"constant","initial_ms":250}}},
	{"id":"big","tool":"search","arguments":{"size":700000},"depends_on":["each"]},
	{"id":"passed","tool":"fetch","arguments":{"text":"$ref:big.text"}}],
	"output_steps":["each","retried","passed"]}`

// shapes are all ways in which a system may be laid out.
var shapes = map[string]shape{"accounts": {shards: 1}, "accounts, four shards": {shards: 4}, "one account": {shards: 1, oneAccount: true},
	"accounts, three servers": {shards: 1, cluster: true}, "accounts, declared tenants": {shards: 1, declared: true},
	"one account, declared tenants": {shards: 1, oneAccount: true, declared: true}}

// TestTheWholeSystemRunsUnderItsConfiguration has every program do all that it does, without one complaint in a log.
func TestTheWholeSystemRunsUnderItsConfiguration(t *testing.T) {
	t.Parallel()
	inEach(t, shapes, func(t *testing.T, s *system) {
		s.staff()
		s.groups()
		agent := s.client("agent-acme", "acme")
		s.runsEverything(agent)
		s.looks(agent)
		s.looks(s.client("viewer-acme", "acme"))
		s.looks(s.client("operator-acme", "acme"))
		approver := s.client("approver-acme", "acme")
		s.looks(approver)
		s.shows()
		s.countsWorkers()
		s.decides(agent)
		s.asks(agent, approver)
		s.cancels(agent)
		s.buries(agent, approver)
		s.tries(agent)
		s.administers()
		s.servesStockClients()
		s.rollsOut(agent)
		s.gathers()
		s.keepsToRates()
	})
}

// runsEverything runs a plan with all there is, and has what it came to from the event, from the history and by
// watching.
func (s *system) runsEverything(c *client.Client) {
	t := s.t
	t.Helper()
	secret, err := wire.NewContext(map[string]string{"token": "s3cr3t"}, "token")
	require.NoError(t, err)
	key, err := c.SealingKey(s.ctx())
	require.NoError(t, err)
	require.Equal(t, s.keys.Newest().ID(), key, "an agent reads what secrets are sealed to")
	o, err := c.Run(s.ctx(), []byte(everything), client.SubmitOptions{Run: "all", Context: wire.RunContext{All: secret}})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%.2000s", o.JSON())
	passed, _ := o.Results.Get("passed")
	require.Len(t, passed, 700000+len(`{"text":""}`))
	again, err := c.Submit(s.ctx(), []byte(everything), client.SubmitOptions{Run: "all"})
	require.NoError(t, err)
	require.True(t, again.Attached())
	o, err = again.Wait(s.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status)
}

// decides runs a plan of language 2 whose condition reads a blob: what runs need is recorded, and what the condition
// came to.
func (s *system) decides(c *client.Client) {
	t := s.t
	t.Helper()
	o, err := c.Run(s.ctx(), []byte(`{"steps":[{"id":"big","tool":"search","arguments":{"size":700000}},
		{"id":"fetched","tool":"fetch","if":"$ref:big.text != null","arguments":{"text":"there"}},
		{"id":"not","tool":"fetch","if":"$ref:big.text == null","arguments":{"text":"there"}}],"output_steps":["fetched","not"]}`),
		client.SubmitOptions{Run: "decided"})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%.2000s", o.JSON())
	require.Equal(t, []string{"not"}, o.NotTaken)
}

// asks has an agent answer what a plan asks, and an approver let the next step begin, whose arguments lie in a blob. The
// server says who approved, where agents and approvers have accounts of their own.
func (s *system) asks(agent, approver *client.Client) {
	t := s.t
	t.Helper()
	r, err := agent.Submit(s.ctx(), []byte(`{"steps":[{"id":"asked","tool":"ask","arguments":{"question":"Which one?"}},
		{"id":"big","tool":"search","arguments":{"size":700000},"depends_on":["asked"]},
		{"id":"approved","tool":"fetch","approval":true,"arguments":{"text":"$ref:big.text"}}]}`),
		client.SubmitOptions{Run: "asks"})
	require.NoError(t, err)
	question := func(of *client.Client, step string) (q *outcome.Question) {
		require.Eventually(t, func() bool {
			q, err = of.Question(s.ctx(), "asks", step)
			return err == nil
		}, 2*time.Minute, 10*time.Millisecond, step)
		return q
	}
	_, err = agent.Answer(s.ctx(), question(agent, "asked"), []byte(`"this one"`), client.Answer{By: "ann"})
	require.NoError(t, err)
	q := question(approver, "approved")
	require.Greater(t, len(q.Arguments), 700000)
	all, err := approver.Questions(s.ctx(), "")
	require.NoError(t, err)
	require.Len(t, all, 1)
	account, err := approver.Approve(s.ctx(), q, client.Answer{By: "bob"})
	require.NoError(t, err)
	require.Equal(t, !s.shape.oneAccount, account.Verified, "%+v", account)
	require.NoError(t, approver.Watch(s.ctx(), "asks", func(client.Event) {}))
	o, err := r.Wait(s.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%.2000s", o.JSON())
}

// groups applies and removes groups of tools as the operator, who alone may, and has a plan with permissions refused.
func (s *system) groups() {
	t := s.t
	t.Helper()
	store, err := kv.Open(s.ctx(), s.connect("operator"))
	require.NoError(t, err)
	defer store.Close()
	for _, role := range []string{"crm", "web"} {
		_, err = store.Requests.RequestGroup(s.ctx(), []byte(`{"role":"`+role+`","tools":["crm/get"],"permissions":["customers"]}`))
		require.NoError(t, err)
	}
	require.NoError(t, store.Requests.RequestRemoveGroup(s.ctx(), "web", "default"))
	all, err := store.Groups.AllGroups(s.ctx())
	require.NoError(t, err)
	require.Len(t, all.All(), 1)
	o, err := s.client("agent-other", "other").Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"crm/get"}]}`),
		client.SubmitOptions{Run: "bound", Permissions: []string{"internet"}})
	require.NoError(t, err)
	require.Equal(t, fault.NotPermitted, o.Problems[0].Code)
}

// looks reads what there is of the run.
func (s *system) looks(c *client.Client) {
	t := s.t
	t.Helper()
	doc, err := c.Get(s.ctx(), "all")
	require.NoError(t, err)
	require.Len(t, doc.Steps, 5)
	require.Len(t, doc.Steps[4].Arguments, 700000+len(`{"text":""}`), "arguments computed from a result that lies in the object store")
	runs, err := c.List(s.ctx(), client.ListOptions{})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	tools, err := c.Tools(s.ctx())
	require.NoError(t, err)
	require.Len(t, tools, 3)
	groups, err := client.GroupsOf(c).All(s.ctx())
	require.NoError(t, err)
	require.Equal(t, []string{"crm"}, groups.Roles())
	_, err = c.Ping(s.ctx())
	require.NoError(t, err)
	demand, err := c.Demand(s.ctx())
	require.NoError(t, err)
	require.Len(t, demand.Tools, 3)
	require.Empty(t, demand.Unsure, "each orchestrator has answered")
	var last client.Event
	require.NoError(t, c.Watch(s.ctx(), "all", func(e client.Event) { last = e }))
	require.Equal(t, subjects.EventEnd, last.Kind)
}

// countsWorkers hears which workers live, as who looks after the whole.
func (s *system) countsWorkers() {
	t := s.t
	t.Helper()
	for _, user := range []string{"observer", "doctor"} {
		store, err := kv.Open(s.ctx(), s.connect(user))
		require.NoError(t, err)
		heard, err := store.Beats().Hear(s.ctx())
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			all, _ := heard.List()
			return len(all) == 2 && all[0].User == all[0].Name && all[1].User == all[1].Name
		}, 2*time.Minute, 10*time.Millisecond, "each under its own user")
		heard.Stop()
		store.Close()
	}
}

// cancels stops a run while it is looked at and watched.
func (s *system) cancels(c *client.Client) {
	t := s.t
	t.Helper()
	r, err := c.Submit(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"search","arguments":{"hold":true}}]}`), client.SubmitOptions{Run: "long"})
	require.NoError(t, err)
	<-s.held
	enough := errors.New("it was told how far the step is")
	watched, stop := context.WithCancelCause(s.ctx())
	err = c.Watch(watched, "long", func(e client.Event) {
		if e.Kind == subjects.EventProgress && e.Progress.Message == "on hold" {
			stop(enough)
		}
	})
	require.ErrorIs(t, err, enough)
	doc, err := c.Get(s.ctx(), "long")
	require.NoError(t, err)
	require.Equal(t, outcome.Running, doc.Status)
	require.NoError(t, cancelled(c.Cancel(s.ctx(), "long", "me")))
	o, err := r.Wait(s.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Cancelled, o.Status)
	waiting, err := c.Attach("long")
	require.NoError(t, err)
	_, err = waiting.Wait(s.ctx())
	require.NoError(t, err)
}

// buries leaves a dead letter, which another looks at too, and deals with it.
func (s *system) buries(c, other *client.Client) {
	t := s.t
	t.Helper()
	plan := `{"steps":[{"id":"a","tool":"fetch","arguments":{"fail":"always","text":"` + strings.Repeat("x", 300<<10) + `"},"retry":{"max_attempts":1}}]}`
	o, err := c.Run(s.ctx(), []byte(plan), client.SubmitOptions{Run: "fails"})
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, o.Status, "%s", o.JSON())
	var letters []*outcome.DeadLetter
	require.Eventually(t, func() bool {
		letters, err = c.DeadLetters(s.ctx(), client.DeadOptions{})
		return err == nil && len(letters) == 1
	}, 2*time.Minute, 10*time.Millisecond)
	_, err = other.DeadLetter(s.ctx(), "fails", "a")
	require.NoError(t, err)
	letter, err := c.DeadLetter(s.ctx(), "fails", "a")
	require.NoError(t, err)
	require.Greater(t, len(letter.Arguments), 300<<10)
	r, err := c.RetryDead(s.ctx(), letter, client.RetryDeadOptions{})
	require.NoError(t, err)
	o, err = c.SettleDead(s.ctx(), letter, r)
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, o.Status)
	require.NoError(t, c.RemoveDead(s.ctx(), letter))
}

// tries runs a failed run again.
func (s *system) tries(c *client.Client) {
	s.t.Helper()
	r, err := c.Retry(s.ctx(), "fails", client.RetryOptions{})
	require.NoError(s.t, err)
	o, err := r.Wait(s.ctx())
	require.NoError(s.t, err)
	require.Equal(s.t, outcome.Failed, o.Status)
}

// administers registers, overrides and removes a tool.
func (s *system) administers() {
	t := s.t
	t.Helper()
	own, err := kv.Open(s.ctx(), s.connect("operator-acme"))
	require.NoError(t, err)
	defer own.Close()
	_, err = own.Requests.RequestTenantOverride(s.ctx(), "acme", "search", []byte(`{"x-orchestration":{"timeout_ms":60000}}`))
	require.NoError(t, err)
	all, err := own.Registry.TenantOverrides(s.ctx(), "acme")
	require.NoError(t, err)
	require.Len(t, all, 1)
	store, err := kv.Open(s.ctx(), s.connect("operator"))
	require.NoError(t, err)
	defer store.Close()
	all, err = store.Registry.TenantOverrides(s.ctx(), "acme")
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = store.Requests.RequestRegister(s.ctx(), []byte(`{"name":"mine","description":"d","inputSchema":{"type":"object"}}`))
	require.NoError(t, err)
	_, err = store.Requests.RequestTemplate(s.ctx(), []byte(`{"name":"called","plan":{"steps":[{"id":"a","tool":"mine"}]}}`))
	require.NoError(t, err)
	_, err = store.Requests.RequestOverride(s.ctx(), "mine", []byte(`{"x-orchestration":{"max_concurrency":2}}`))
	require.NoError(t, err)
	for _, name := range []string{"called", "mine"} {
		_, err = store.Requests.RequestRemove(s.ctx(), name, false)
		require.NoError(t, err)
	}
	tools, err := store.Registry.Tools(s.ctx())
	require.NoError(t, err)
	require.Len(t, tools, 3)
	demand, err := store.Requests.Demand(s.ctx(), tools)
	require.NoError(t, err)
	require.Empty(t, demand.Unsure)
	// A worker that hosts a tool notices that it is gone, and registers it again.
	before, err := store.Registry.Tool(s.ctx(), "search")
	require.NoError(t, err)
	_, err = store.Requests.RequestRemove(s.ctx(), "search", true)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		now, err := store.Registry.Tool(s.ctx(), "search")
		return err == nil && now.Revision > before.Revision
	}, 2*time.Minute, 20*time.Millisecond)
}

// servesStockClients has clients without any code of Stepjet's do what docs/protocol.md says.
func (s *system) servesStockClients() {
	t := s.t
	t.Helper()
	agent, err := jetstream.New(s.connect("agent-acme"))
	require.NoError(t, err)
	ack, err := agent.Publish(s.ctx(), subjects.Submit("acme", "stock"), []byte(`{"steps":[{"id":"a","tool":"search","arguments":{"text":"hi"}}]}`))
	require.NoError(t, err)
	require.NotZero(t, ack.Sequence)
	history, err := agent.KeyValue(s.ctx(), subjects.HistoryBucket)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		e, err := history.Get(s.ctx(), "acme.stock")
		return err == nil && strings.Contains(string(e.Value()), `"succeeded"`)
	}, 2*time.Minute, 10*time.Millisecond)
	worker, err := jetstream.New(s.connect("worker-search"))
	require.NoError(t, err)
	consumer, err := worker.Consumer(s.ctx(), subjects.StepsStream(0), subjects.Durable("search"))
	require.NoError(t, err)
	_, err = consumer.FetchNoWait(1)
	require.NoError(t, err)
}
