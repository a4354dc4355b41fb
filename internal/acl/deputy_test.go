package acl_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// A server publishes the answer to a request on the subject that the asker named, with the rights of whoever answers:
// of JetStream itself, or of an orchestrator. So an asker may try to have published for it what it may not publish.
// Worst is a read of something that it wrote itself: then every byte of the answer is its own.

// ownRecord is a plan of acme's that would also do as a result record, or as a plan of somebody else.
const ownRecord = `{"steps":[{"id":"a","tool":"search","arguments":{"text":"smuggled"}}]}`

// targets are where the tenant acme, or a worker of search, wants an answer to come out.
func targets(victim subjects.Run, generation uint64) map[string]string {
	at := subjects.Attempt{Run: victim, Generation: generation, Tool: "fetch", Step: "slow", Number: 1}
	fresh := subjects.NewRun("other", "smuggled")
	return map[string]string{
		"a plan of another tenant": subjects.Submit(fresh.Tenant, fresh.ID), "a plan record": subjects.PlanRecord(fresh, 1),
		"a forged result": subjects.StepRecord(at, 1), "a stop": subjects.StopRecord(victim, generation, 1),
		"another tenant's history": subjects.BucketSubject(subjects.HistoryBucket, victim.Key()), "a cancel": subjects.API(victim, subjects.VerbCancel),
		"a step": subjects.Step(at, 0) + "x", "the registry": subjects.BucketSubject(subjects.ToolsBucket, "fetch"),
		"the removal of a tool": subjects.Remove("fetch"), "another tenant's override": subjects.TenantOverride("other", "fetch"), "a member": subjects.BucketSubject(subjects.MembersBucket, "ghost"),
		"an end": subjects.Event(victim, subjects.EventEnd), "an order to stop": subjects.Cancel(at),
	}
}

// requests are all that a user may ask, each one such that there is an answer where there can be one.
func requests(g *acl.Grant, own subjects.Run) map[string]string {
	all := map[string]string{}
	for _, r := range g.Requests {
		body := "{}"
		switch r.Subject {
		case subjects.DirectRead("OBJ_blobs"):
			body = `{"seq":1}`
		case subjects.TenantSubmitFilter(own.Tenant):
			all[subjects.Submit(own.Tenant, "another")] = ownRecord
			continue
		case subjects.DirectGet("KV_runs_0", subjects.ActiveFilter(0, own.Tenant)):
			all[subjects.DirectGet("KV_runs_0", subjects.PlanRecord(own, 1))] = ""
			continue
		case subjects.TenantAPIFilter(own.Tenant, subjects.VerbGet):
			all[subjects.API(own, subjects.VerbGet)] = ""
			continue
		case subjects.ConsumerRequest("MSG.NEXT", "*", "search"):
			all[subjects.ConsumerRequest("MSG.NEXT", "STEPS_0", "search")] = `{"batch":1,"no_wait":true}`
			continue
		}
		all[r.Subject] = body
	}
	return all
}

// victim is a run of another tenant, in the middle of a step.
func (s *system) victim() (*client.Run, subjects.Run, uint64) {
	s.t.Helper()
	c := s.client("agent-other", "other")
	r, err := c.Submit(s.ctx(), []byte(`{"steps":[{"id":"slow","tool":"fetch","arguments":{"hold":true,"text":"genuine"}}]}`), client.SubmitOptions{Run: "victim"})
	require.NoError(s.t, err)
	<-s.held
	doc, err := c.Get(s.ctx(), "victim")
	require.NoError(s.t, err)
	return r, subjects.NewRun("other", "victim"), doc.Generation
}

// attack has every request of a user answered on every target, then asks all once more with an inbox of its own, so
// that the server is through with what came before.
func (s *system) attack(user string, own, victim subjects.Run, generation uint64) {
	s.t.Helper()
	nc := s.trespass(user)
	asked := requests(s.grants[user], own)
	for _, target := range targets(victim, generation) {
		for subject, body := range asked {
			require.NoError(s.t, nc.PublishRequest(subject, target, []byte(body)))
		}
	}
	for subject, body := range asked {
		_, _ = nc.Request(subject, []byte(body), 100*time.Millisecond) // not everything is answered
	}
}

// TestAnAnswerLeadsOutOfNoAccount: between accounts an answer comes out where the question was asked, and from there
// only what the account may do anyway can be reached.
func TestAnAnswerLeadsOutOfNoAccount(t *testing.T) {
	t.Parallel()
	s := start(t, shape{})
	s.orchestrate(1)
	s.host("worker-search", "search")
	s.host("worker-crm_2Fget-fetch", "crm/get", "fetch")
	agent := s.client("agent-acme", "acme")
	_, err := agent.Run(s.ctx(), []byte(ownRecord), client.SubmitOptions{Run: "own", Header: nats.Header{"X": {"y"}}})
	require.NoError(t, err)
	run, victim, generation := s.victim()
	before := s.holds()
	for _, user := range []string{"agent-acme", "viewer-acme", "approver-acme", "operator-acme", "operator", "worker-search"} {
		s.attack(user, subjects.NewRun("acme", "own"), victim, generation)
	}
	for subject, n := range s.holds() {
		if strings.Contains(subject, "*") {
			continue // a record of its own, where no run ever looks
		}
		require.Equal(t, before[subject], n, "%s was written by way of a reply", subject)
	}
	close(s.let)
	o, err := run.Wait(s.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	got, _ := o.Results.Get("slow")
	require.JSONEq(t, `{"text":"genuine"}`, string(got))
	tools, err := agent.Tools(s.ctx())
	require.NoError(t, err)
	require.Len(t, tools, 3)
}

// holds returns how many messages each subject of the streams holds, without those of acme.
func (s *system) holds() map[string]uint64 {
	s.t.Helper()
	nc := s.trespass("doctor")
	all := map[string]uint64{}
	for _, stream := range []string{"KV_runs_0", "KV_history", "KV_tools", "KV_members", "STEPS_0"} {
		m, err := nc.Request(subjects.StreamRequest("INFO", stream), []byte(`{"subjects_filter":">"}`), 2*time.Minute)
		require.NoError(s.t, err)
		var info struct {
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		require.NoError(s.t, json.Unmarshal(m.Data, &info))
		for subject, n := range info.State.Subjects {
			if !strings.Contains(subject, ".acme.") { // what it may write itself
				all[subject] = n
			}
		}
	}
	return all
}

// TestInOneAccountAnAnswerLeadsAnywhere is the damage without accounts, and why "stepjet acl system" makes them: an
// agent reads its own plan with another tenant's intake as the reply, and so submits for that tenant.
func TestInOneAccountAnAnswerLeadsAnywhere(t *testing.T) {
	t.Parallel()
	s := start(t, shape{oneAccount: true})
	s.orchestrate(1)
	s.host("worker-search", "search") // a plan that is rejected would not stay
	agent := s.client("agent-acme", "acme")
	_, err := agent.Submit(s.ctx(), []byte(ownRecord), client.SubmitOptions{Run: "own"})
	require.NoError(t, err)
	nc := s.trespass("agent-acme")
	smuggled := subjects.NewRun("other", "smuggled")
	read := subjects.DirectGet("KV_runs_0", subjects.PlanRecord(subjects.NewRun("acme", "own"), 1))
	require.NoError(t, nc.PublishRequest(read, subjects.Submit(smuggled.Tenant, smuggled.ID), nil))
	require.Eventually(t, func() bool { return s.holds()[subjects.PlanRecord(smuggled, 1)] == 1 }, 2*time.Minute, 10*time.Millisecond)
}

// TestAnOrchestratorAnswersOnInboxesAlone: what an orchestrator itself answers leads nowhere else, in one account as
// well.
func TestAnOrchestratorAnswersOnInboxesAlone(t *testing.T) {
	t.Parallel()
	s := start(t, shape{oneAccount: true})
	s.orchestrate(1)
	nc := s.trespass("agent-acme")
	own := subjects.NewRun("acme", "none")
	for i, subject := range []string{subjects.PingSubject, subjects.DemandSubject, subjects.QueuesSubject, subjects.API(own, subjects.VerbGet), subjects.API(own, subjects.VerbCancel)} {
		run := subjects.NewRun("other", fmt.Sprint("smuggled-", i))
		require.NoError(t, nc.PublishRequest(subject, subjects.PlanRecord(run, 1), nil)) // which an orchestrator may publish
		_, err := nc.Request(subject, nil, 2*time.Minute)                                // the orchestrator takes requests in their order
		require.NoError(t, err)
		require.Zero(t, s.holds()[subjects.PlanRecord(run, 1)], subject)
	}
}
