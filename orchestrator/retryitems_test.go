package orchestrator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// till takes payments, and refuses those of some customers.
type till struct {
	mu      sync.Mutex
	refused map[string]bool
	infos   map[string][]worker.Info // by customer, one for each call
	list    string                   // what "customers" returns; "" fails
}

func (x *till) set(list string, refused ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list, x.refused, x.infos = list, map[string]bool{}, map[string][]worker.Info{}
	for _, who := range refused {
		x.refused[who] = true
	}
}

// called returns who was charged since the last set, in order of their names.
func (x *till) called() (all []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for who, infos := range x.infos {
		for range infos {
			all = append(all, who)
		}
	}
	slices.Sort(all)
	return all
}

func (x *till) info(t *testing.T, who string) worker.Info {
	x.mu.Lock()
	defer x.mu.Unlock()
	require.Len(t, x.infos[who], 1, who)
	return x.infos[who][0]
}

// charging starts a worker whose tools charge a customer: "pay" item by item whatever the others do, "pay-all" all or
// none.
func (s *system) charging() *till {
	s.t.Helper()
	x := &till{}
	w, err := worker.New(natstest.Connect(s.t, s.srv), worker.Config{Name: "till", Logger: logger(s.t)})
	require.NoError(s.t, err)
	charge := func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		var in struct{ Who string }
		if err := json.Unmarshal(args, &in); err != nil {
			return worker.Output{}, err
		}
		info, _ := worker.InfoFrom(ctx)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.infos[in.Who] = append(x.infos[in.Who], info)
		if x.refused[in.Who] {
			return worker.Output{}, worker.Terminal(fmt.Errorf("%s is out of money", in.Who))
		}
		return worker.Output{Body: fmt.Appendf(nil, `{"paid":%q}`, in.Who)}, nil
	}
	for name, contract := range map[string]tool.Orchestration{
		"pay":     {ErrorPropagation: tool.PartialSuccess},
		"pay-all": {ErrorPropagation: tool.FailFast, Mode: tool.SequentialOnly}, // so who comes before a failure has paid
	} {
		require.NoError(s.t, w.HandleRaw(&tool.Definition{Name: name, Orchestration: &contract}, charge))
	}
	require.NoError(s.t, w.HandleRaw(&tool.Definition{Name: "customers"}, func(context.Context, json.RawMessage) (worker.Output, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.list == "" {
			return worker.Output{}, worker.Terminal(fmt.Errorf("the list can't be read"))
		}
		return worker.Output{Body: []byte(x.list)}, nil
	}))
	s.background(w.Run, w.Ready())
	return x
}

func (s *system) retry(run string) (*outcome.Outcome, *outcome.Run) {
	s.t.Helper()
	r, err := s.client.Retry(ctx(s.t), run, client.RetryOptions{})
	require.NoError(s.t, err)
	out := s.wait(r)
	doc, err := s.client.Get(ctx(s.t), r.ID())
	require.NoError(s.t, err)
	return out, doc
}

const payEach = `{"steps":[{"id":"p","tool":"pay","for_each":{"in":["ann","bob","cy","dee"],"as":"c"},"arguments":{"who":"$ref:c"}},
	{"id":"sum","tool":"echo","arguments":{"all":"$ref:p"}},{"id":"other","tool":"echo","arguments":{}}]}`

func TestRetryChargesNobodyTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orchestrator()
	x := s.charging()
	x.set("", "bob", "dee")
	require.Equal(t, outcome.Succeeded, s.run(payEach, "r").Status, "partial-success")
	require.Equal(t, []string{"ann", "bob", "cy", "dee"}, x.called())
	bob, dee := x.info(t, "bob"), x.info(t, "dee")
	require.Empty(t, bob.RetriedKey)
	echoed := s.tools.total()

	x.set("", "dee")
	out, doc := s.retry("r")
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Equal(t, []string{"bob", "dee"}, x.called(), "those who have paid are left alone")
	require.Equal(t, bob.Key, x.info(t, "bob").RetriedKey)
	require.NotEqual(t, bob.Key, x.info(t, "bob").Key)
	require.Equal(t, echoed+1, s.tools.total(), "what depends on the entries is executed again, and nothing else")
	again, _ := out.Results.Get("sum")
	require.Contains(t, string(again), `{"index":0,"status":"ok","data":{"paid":"ann"}},{"index":1,"status":"ok","data":{"paid":"bob"}}`)
	require.Equal(t, []bool{true, false, true, false}, []bool{doc.Steps[0].Items[0].Reused, doc.Steps[0].Items[1].Reused, doc.Steps[0].Items[2].Reused, doc.Steps[0].Items[3].Reused})
	require.True(t, doc.Steps[2].Reused)
	require.Len(t, doc.Steps[0].List, 64)
	e, err := s.store.Ledger.Read(ctx(t), subjects.StartRecord(subjects.NewRun("default", "r.2"), doc.Generation, 1))
	require.NoError(t, err)
	require.Equal(t, subjects.StartVersion, e.Header.Get(subjects.HeaderVersion), "an older orchestrator would charge everybody again")

	second := x.info(t, "dee")
	require.Equal(t, dee.Key, second.RetriedKey)
	x.set("")
	out, _ = s.retry("r.2")
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Equal(t, []string{"dee"}, x.called())
	require.Equal(t, second.Key, x.info(t, "dee").RetriedKey, "the key of the last time")
	_, err = s.client.Retry(ctx(t), "r.3", client.RetryOptions{})
	require.Equal(t, fault.AlreadyFinished, fault.CodeOf(err), "nothing is left: %v", err)

	// All or none: the step failed, and yet some have paid.
	x.set("", "dee")
	const all = `{"steps":[{"id":"first","tool":"pay-all","for_each":{"in":["ann","bob","cy"],"as":"c"},"arguments":{"who":"$ref:c"}},
		{"id":"p","tool":"pay-all","for_each":{"in":["ann","dee"],"as":"c"},"arguments":{"who":"$ref:c"},"depends_on":["first"]}]}`
	out = s.run(all, "all")
	require.Equal(t, outcome.Partial, out.Status)
	doc, err = s.client.Get(ctx(t), "all")
	require.NoError(t, err)
	x.set("")
	out, _ = s.retry("all")
	require.Equal(t, outcome.Succeeded, out.Status)
	require.JSONEq(t, `{"paid":"ann"}`, string(doc.Steps[1].Items[0].Result), "what an item came to is kept without its step's result")
	require.Equal(t, []string{"dee"}, x.called())
}

// TestAPlaceInAnotherListIsAnotherCall: the list comes from a step that failed, and then doesn't.
func TestAPlaceInAnotherListIsAnotherCall(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.charging()
	const body = `{"steps":[{"id":"who","tool":"customers","optional":true},
		{"id":"p","tool":"pay","for_each":{"in":"$ref:who || $ref:few.list","as":"c"},"arguments":{"who":"$ref:c"}},
		{"id":"few","tool":"echo","arguments":{"list":["ann","bob"]}}]}`
	x.set("", "bob")
	require.Equal(t, outcome.Succeeded, s.run(body, "r").Status)
	require.Equal(t, []string{"ann", "bob"}, x.called())

	x.set(`["zoe","ann"]`)
	out, doc := s.retry("r")
	require.Equal(t, outcome.Succeeded, out.Status)
	require.Equal(t, []string{"ann", "zoe"}, x.called(), "nothing is taken over by its place")
	require.Empty(t, x.info(t, "ann").RetriedKey)
	require.False(t, doc.Steps[1].Items[0].Reused)

	x.set("", "bob") // and the same list once more
	require.Equal(t, outcome.Succeeded, s.run(body, "same").Status)
	x.set(`["ann","bob"]`)
	_, doc = s.retry("same")
	require.Equal(t, []string{"bob"}, x.called(), "by its bytes, wherever it comes from")
	require.True(t, doc.Steps[1].Items[0].Reused)
}

// TestARetryThatNeverCameToItsItemsLosesNone: what had been taken over goes on to the next retry, with the keys.
func TestARetryThatNeverCameToItsItemsLosesNone(t *testing.T) {
	t.Parallel()
	s := start(t)
	x := s.charging()
	const body = `{"steps":[{"id":"g","tool":"gate","optional":true},
		{"id":"p","tool":"pay","for_each":{"in":["ann","bob"],"as":"c"},"arguments":{"who":"$ref:c"},"depends_on":["g"]},
		{"id":"q","tool":"pay","arguments":{"who":"cy"},"depends_on":["p"]}]}`
	x.set("", "bob", "cy")
	r := s.submit(body, "r")
	<-s.tools.begun
	s.tools.gate <- struct{}{}
	require.Equal(t, outcome.Partial, s.wait(r).Status)
	bob, cy := x.info(t, "bob"), x.info(t, "cy")

	// Retried from g on nothing may be taken over; so only the keys go along, which this run never comes to use.
	x.set("")
	again, err := s.client.Retry(ctx(t), "r", client.RetryOptions{From: "g"})
	require.NoError(t, err)
	<-s.tools.begun
	require.NoError(t, cancelled(s.client.Cancel(ctx(t), again.ID(), "ann")))
	require.Equal(t, outcome.Cancelled, s.wait(again).Status)
	require.Empty(t, x.called())

	third, err := s.client.Retry(ctx(t), again.ID(), client.RetryOptions{})
	require.NoError(t, err)
	<-s.tools.begun
	close(s.tools.gate) // for all: the handler of the cancelled run may be at it still
	require.Equal(t, outcome.Succeeded, s.wait(third).Status)
	require.Equal(t, bob.Key, x.info(t, "bob").RetriedKey)
	require.Equal(t, cy.Key, x.info(t, "cy").RetriedKey)
}

// What a retry takes over keeps the key that it was executed under, for a retry of that one which executes it after
// all.
func TestAKeyOutlivesARetryThatTakesTheResultOver(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orchestrator()
	x := s.charging()
	x.set("", "eve")
	require.Equal(t, outcome.Failed, s.run(`{"steps":[{"id":"one","tool":"pay","arguments":{"who":"ann"}},
		{"id":"p","tool":"pay","for_each":{"in":["bob","cy"],"as":"c"},"arguments":{"who":"$ref:c"}},
		{"id":"f","tool":"pay-all","for_each":{"in":["dee","eve"],"as":"c"},"arguments":{"who":"$ref:c"},"depends_on":["one","p"]}],"output_steps":["f"]}`, "r").Status)
	keys := map[string]string{}
	for _, who := range []string{"ann", "bob", "cy", "dee", "eve"} {
		keys[who] = x.info(t, who).Key
	}
	x.set("", "eve")
	s.retry("r")
	require.Equal(t, []string{"eve"}, x.called())
	keys["eve"] = x.info(t, "eve").Key
	x.set("")
	for _, from := range []string{"one", "p"} {
		r, err := s.client.Retry(ctx(t), "r.2", client.RetryOptions{Run: "from-" + from, From: from})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, s.wait(r).Status)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for who, key := range keys {
		require.NotEmpty(t, x.infos[who], who)
		for _, info := range x.infos[who] {
			require.Equal(t, key, info.RetriedKey, who)
		}
	}
}

// TestItemsThatWereNeverReachedDidNotFail: a list that a person rejects as a whole has items in the account of a retry,
// since these carry keys of the run before, but nothing failed in them.
func TestItemsThatWereNeverReachedDidNotFail(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.orchestrator()
	run := s.submit(`{"steps":[{"id":"a","tool":"fail","approval":{"all":true},"for_each":{"in":[1,2]},"arguments":{"n":"$ref:item"}}]}`, "r")
	_, err := s.client.Approve(ctx(t), s.asked("r", "a"), client.Answer{})
	require.NoError(t, err)
	require.Equal(t, outcome.Failed, s.wait(run).Status)
	again, err := s.client.Retry(ctx(t), "r", client.RetryOptions{})
	require.NoError(t, err)
	_, err = s.client.Reject(ctx(t), s.asked("r.2", "a"), client.Answer{})
	require.NoError(t, err)
	require.Equal(t, fault.Rejected, s.wait(again).Errors[0].Code)
	list := s.history("default", "r.2").Steps[0]
	require.Equal(t, outcome.StepFailed, list.Status)
	require.Len(t, list.Items, 2)
	for _, item := range list.Items {
		require.Equal(t, outcome.StepCancelled, item.Status)
		require.NotEmpty(t, item.RetriedKey)
	}
}
