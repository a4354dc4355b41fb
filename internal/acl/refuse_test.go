package acl_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

var (
	theirs = subjects.NewRun("other", "r")
	ours   = subjects.NewRun("acme", "r")
)

func attempt(r subjects.Run, tool string) subjects.Attempt {
	return subjects.Attempt{Run: r, Generation: 1, Tool: tool, Step: "a", Number: 1}
}

// nobody returns what no role but those of the streams' own account may publish.
func nobody() []string {
	var all []string
	for _, stream := range []string{"KV_runs_0", "KV_history", "KV_tools", "KV_dead", "KV_questions", "KV_members", "KV_gather", "KV_rates", "OBJ_blobs", "STEPS_0"} {
		for _, verb := range []string{"MSG.GET", "MSG.DELETE", "CREATE", "UPDATE", "DELETE", "PURGE", "SNAPSHOT", "LEADER.STEPDOWN"} {
			all = append(all, subjects.StreamRequest(verb, stream))
		}
		all = append(all, subjects.ConsumersRequest("CREATE", stream), subjects.ConsumersRequest("LIST", stream), subjects.ConsumersRequest("NAMES", stream))
		for _, verb := range []string{"CREATE", "DURABLE.CREATE", "DELETE", "PAUSE", "RESET", "UNPIN"} {
			all = append(all, subjects.ConsumerRequest(verb, stream, "search"))
		}
		all = append(all, subjects.ConsumerRequest("CREATE", stream, "mine.$KV.>"), subjects.ConsumerRequest("INFO", stream, "fetch"))
		if stream != "OBJ_blobs" {
			all = append(all, subjects.DirectRead(stream))
		}
	}
	for _, r := range []subjects.Run{ours, theirs} {
		all = append(all,
			subjects.PlanRecord(r, 1), subjects.StartRecord(r, 1, 1), subjects.StopRecord(r, 1, 1),
			subjects.BucketSubject(subjects.HistoryBucket, r.Key()), subjects.Event(r, subjects.EventEnd), subjects.Notify(r, "c"),
			subjects.Step(attempt(r, "search"), 0), subjects.Scheduled(attempt(r, "search"), 0), subjects.Cancel(attempt(r, "search")),
			subjects.StepRecord(attempt(r, "fetch"), 1)+".more",
			subjects.AnswerRecord(r, 1, "a", 1, 1), subjects.BucketSubject(subjects.QuestionsBucket, subjects.QuestionKey(r, 1, "a")))
	}
	return append(all,
		subjects.BucketSubject(subjects.ToolsBucket, subjects.ToolKey("search")), subjects.BucketSubject(subjects.ToolsBucket, subjects.OverrideKey("search")),
		subjects.BucketSubject(subjects.MembersBucket, "x"), subjects.Sentinel(0), subjects.AccountRequest, subjects.StreamNames, "$SYS.REQ.SERVER.PING", "anything",
		subjects.ConsumerRequest("MSG.NEXT", "STEPS_0", "fetch"), "$JS.ACK.STEPS_0.fetch.1.1.1.1.0", "$JS.ACK.d.a.STEPS_0.fetch.1.1.1.1.0",
		subjects.Gather("fetch"), subjects.DirectGet("KV_gather", subjects.Gather("fetch")),
		subjects.Rate("fetch", "large"), subjects.Rate("search", "large")+".x", subjects.DirectGet("KV_rates", subjects.Rate("fetch", "large")),
		subjects.Stream(attempt(ours, "fetch")), subjects.Stream(attempt(theirs, "fetch")), subjects.Register("fetch")+".x", "_INBOX.someone.x",
		subjects.Beat("_INBOX.worker-crm_2Fget-fetch", "w"), subjects.Beat("", "w"), "beat.worker-search.w.x", subjects.AskBeats)
}

// forTools returns what only those may publish who administer tools.
func forTools() []string {
	return []string{subjects.Register("fetch"), subjects.ApplyTemplate("search"), subjects.Override("search"), subjects.Remove("search"), subjects.TenantOverride("other", "fetch")}
}

// ofWorkers returns what only the worker of search may publish.
func ofWorkers() []string {
	return []string{
		subjects.Register("search"), subjects.Beat("_INBOX.worker-search", "w"), subjects.Gather("search"), subjects.Rate("search", "large"), subjects.ConsumerRequest("MSG.NEXT", "STEPS_0", "search"), "$JS.ACK.STEPS_0.search.1.1.1.1.0",
		subjects.StepRecord(attempt(ours, "search"), 1), subjects.ClaimRecord(attempt(ours, "search"), 1), subjects.NoteRecord(attempt(ours, "search"), 1), subjects.Progress(attempt(ours, "search")), subjects.Stream(attempt(ours, "search")),
		subjects.DirectGet("KV_runs_0", subjects.StepRecord(attempt(ours, "search"), 1)), "$O.blobs.C.x", "$O.blobs.M.x",
	}
}

// about returns what only those may publish who work with runs of a tenant; submitting and cancelling are among it.
func about(r subjects.Run) (look, act []string) {
	look = []string{
		subjects.API(r, subjects.VerbGet), subjects.DirectGet("KV_runs_0", subjects.PlanRecord(r, 1)),
		subjects.DirectGet("KV_history", subjects.BucketSubject(subjects.HistoryBucket, r.Key())),
		subjects.DirectGet("KV_dead", subjects.BucketSubject(subjects.DeadBucket, subjects.DeadKey(r, 1, "a"))),
		subjects.DirectGet("KV_dead", subjects.BucketSubject(subjects.DeadBucket, subjects.DeadStepFilter(r, "a"))),
		subjects.DirectGet("KV_questions", subjects.BucketSubject(subjects.QuestionsBucket, subjects.QuestionKey(r, 1, "a"))),
		subjects.DirectGet("KV_sinks", subjects.BucketSubject(subjects.SinksBucket, subjects.SinkKey(r, 1, "docs", "a"))),
	}
	act = []string{
		subjects.Submit(r.Tenant, r.ID), subjects.API(r, subjects.VerbCancel),
		subjects.BucketSubject(subjects.DeadBucket, subjects.DeadKey(r, 1, "a")),
	}
	return look, act
}

// TestWhatARoleMustNotDoIsRefused tries subject by subject, and has the refusal as an error that names it.
func TestWhatARoleMustNotDoIsRefused(t *testing.T) {
	t.Parallel()
	lookOther, actOther := about(theirs)
	lookOurs, actOurs := about(ours)
	other := append(lookOther, actOther...)
	records := []string{subjects.StepRecord(attempt(ours, "fetch"), 1), subjects.ClaimRecord(attempt(theirs, "fetch"), 1),
		subjects.DirectGet("KV_runs_0", subjects.StepRecord(attempt(ours, "fetch"), 1)), subjects.DirectGet("KV_runs_0", "$KV.runs_0.>")}
	approve, answer := []string{subjects.API(ours, subjects.VerbApprove)}, []string{subjects.API(ours, subjects.VerbAnswer), subjects.API(ours, subjects.VerbSay)}
	amend := []string{subjects.API(ours, subjects.VerbAmend)}
	other = append(other, subjects.API(theirs, subjects.VerbApprove), subjects.API(theirs, subjects.VerbAnswer), subjects.API(theirs, subjects.VerbAmend), subjects.API(theirs, subjects.VerbSay))
	must := map[string][]string{
		"worker-search": join(nobody(), forTools(), records, lookOurs, actOurs, other, approve, answer, amend),
		"agent-acme":    join(nobody(), forTools(), records, ofWorkers(), other, approve),
		"approver-acme": join(nobody(), forTools(), records, ofWorkers(), other, actOurs, answer),
		"viewer-acme":   join(nobody(), forTools(), records, ofWorkers(), other, actOurs, approve, answer, amend),
		"operator-acme": join(nobody(), forTools(), records, ofWorkers(), other, actOurs, approve, answer, amend, []string{subjects.TenantOverride("other", "search")}),
		"operator":      join(nobody(), records, ofWorkers()[1:], other, lookOurs, actOurs, approve, answer, amend, bucketOf("")),
	}
	hear := []string{
		">", "_INBOX.>", "_INBOX.orchestrator.>", "_R_.>", "$KV.>", "$JS.>", "step.>", "plan.>", "event.>", "notify.>", "cancel.>", "api.>", "stream.>",
		subjects.AllBeats, "beat.>", "beat.worker-search.*", "event.other.*.*", "notify.other.*.*", "sink.>", "sink.other.>", "cancel.fetch.>", "plan.submit.acme.*", "$SYS.>",
	}
	for name, of := range map[string]shape{"accounts": {}, "one account": {oneAccount: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, of)
			s.orchestrate(1)
			for user, list := range must {
				store, err := kv.Open(s.ctx(), s.trespass(user))
				require.NoError(t, err)
				for _, subject := range list {
					s.refuses(store, user, subject)
				}
				for _, filter := range hear {
					s.keepsFrom(store, user, filter)
				}
				store.Close()
			}
		})
	}
}

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// refuses tries a request.
func (s *system) refuses(store *kv.Store, user, subject string) {
	s.t.Helper()
	_, err := store.Requests.Request(s.ctx(), subject, []byte("{}"))
	require.Equal(s.t, fault.Permission, fault.CodeOf(err), "%s on %s: %v", user, subject, err)
	require.ErrorContains(s.t, err, subject)
}

// keepsFrom tries a subscription.
func (s *system) keepsFrom(store *kv.Store, user, filter string) {
	s.t.Helper()
	_, err := store.Conn().Subscribe(filter, func(*nats.Msg) {})
	require.NoError(s.t, err)
	err = store.Heard(s.ctx(), filter)
	require.Equal(s.t, fault.Permission, fault.CodeOf(err), "%s listens to %s: %v", user, filter, err)
	require.ErrorContains(s.t, err, filter)
}

// TestARefusalReachesTheCallerAsAPermission goes the way of programs, with Stepjet's own packages.
func TestARefusalReachesTheCallerAsAPermission(t *testing.T) {
	t.Parallel()
	s := start(t, shape{witness: true})
	s.orchestrate(1)
	permission := func(err error, subject string) {
		t.Helper()
		require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
		require.ErrorContains(t, err, subject)
	}
	_, err := client.New(s.ctx(), s.trespass("agent-acme"), client.Config{Tenant: "other"})
	permission(err, "notify.other.")

	viewer, err := client.New(s.ctx(), s.trespass("viewer-acme"), client.Config{Tenant: "acme"})
	require.NoError(t, err)
	defer viewer.Close()
	_, err = viewer.Submit(s.ctx(), []byte(`{"steps":[]}`), client.SubmitOptions{Run: "r"})
	permission(err, "plan.submit.acme.r")
	permission(cancelled(viewer.Cancel(s.ctx(), "r", "")), ".cancel.acme.r")
	permission(viewer.RemoveDead(s.ctx(), s.bury(ours)), "$KV.dead.acme.r.1.a")

	store, err := kv.Open(s.ctx(), s.trespass("worker-search"))
	require.NoError(t, err)
	defer store.Close()
	_, err = store.Requests.RequestRegister(s.ctx(), []byte(`{"name":"fetch","description":"d","inputSchema":{"type":"object"}}`))
	permission(err, "api.tools.register.fetch")
	_, _, err = store.Ledger.Create(s.ctx(), subjects.StepRecord(attempt(ours, "fetch"), 1), nil, []byte(`"forged"`), nil)
	permission(err, ".step.fetch.a.1")
	_, err = store.Ledger.Read(s.ctx(), subjects.PlanRecord(theirs, 1))
	permission(err, ".other.r.plan")
}

// bury keeps a dead letter of a run.
func (s *system) bury(r subjects.Run) *outcome.DeadLetter {
	s.t.Helper()
	store, err := kv.Open(s.ctx(), s.witness())
	require.NoError(s.t, err)
	defer store.Close()
	d := &outcome.DeadLetter{Run: r.Plain(), Tenant: r.Tenant, Generation: 1, Step: "a", Tool: "search", Error: fault.New(fault.ToolFailed, "503")}
	_, err = store.Archive.CreateDead(s.ctx(), r, "", d)
	require.NoError(s.t, err)
	return d
}

// TestNoTwoUsersOfASystemMayDoTheSame reads the grants: what a role may publish, no role of another tenant or tool may.
func TestNoTwoUsersOfASystemMayDoTheSame(t *testing.T) {
	t.Parallel()
	grant := func(s acl.Spec) *acl.Grant {
		g, err := acl.New(s)
		require.NoError(t, err)
		return g
	}
	pairs := [][2]*acl.Grant{
		{grant(acl.Spec{Role: acl.Agent, Tenant: "a"}), grant(acl.Spec{Role: acl.Agent, Tenant: "b"})},
		{grant(acl.Spec{Role: acl.Approver, Tenant: "a"}), grant(acl.Spec{Role: acl.Approver, Tenant: "b"})},
		{grant(acl.Spec{Role: acl.Worker, Tools: []string{"a"}}), grant(acl.Spec{Role: acl.Worker, Tools: []string{"b"}})},
		{grant(acl.Spec{Role: acl.Agent, Tenant: "a", Declared: []string{"a", "b"}}), grant(acl.Spec{Role: acl.Agent, Tenant: "b", Declared: []string{"b"}})},
		{grant(acl.Spec{Role: acl.Viewer, Tenant: "a", Declared: []string{"a"}}), grant(acl.Spec{Role: acl.Operator, Tenant: "b", Declared: []string{"b"}})},
		{grant(acl.Spec{Role: acl.Agent, Tenant: "a", Declared: []string{"a"}}), grant(acl.Spec{Role: acl.Agent, Tenant: "b"})},
		{grant(acl.Spec{Role: acl.Worker, Tools: []string{"a"}, Declared: []string{"a"}}), grant(acl.Spec{Role: acl.Worker, Tools: []string{"b"}, Declared: []string{"b"}})},
	}
	const declaredPairs = 3    // from here on one of the two has a bucket of its own
	shared := map[string]bool{ // what everybody may ask: docs/security.md says what that shows
		subjects.UserInfo: true, subjects.PingSubject: true, subjects.DirectRead("OBJ_blobs"): true,
		subjects.DirectGet("OBJ_blobs", subjects.BlobMetas("")): true, subjects.DirectGet("KV_tools", "$KV.tools.*"): true,
		subjects.DirectGet("KV_tools", "$KV.tools.def.*"): true, subjects.DemandSubject: true, subjects.QueuesSubject: true,
		subjects.BlobChunks(""): true, subjects.BlobMetas(""): true, subjects.DirectGet("KV_groups", "$KV.groups.*.*"): true,
	}
	for _, stream := range []string{"KV_runs_0", "KV_history", "KV_dead", "KV_questions", "KV_tools", "KV_groups", "OBJ_blobs"} {
		shared[subjects.StreamRequest("INFO", stream)] = true
	}
	for i, p := range pairs {
		for _, one := range p[0].Publishes() {
			if blob := strings.Contains(one, "blobs"); !shared[one] || blob && i >= declaredPairs {
				require.NotContains(t, p[1].Publishes(), one)
			}
		}
		require.NotEqual(t, p[0].Inbox, p[1].Inbox)
	}
}

func TestWhatIsNoGrant(t *testing.T) {
	t.Parallel()
	for _, s := range []acl.Spec{
		{Role: "king"}, {Role: acl.Worker}, {Role: acl.Worker, Tools: []string{"a b"}}, {Role: acl.Agent, Tenant: "a.>"}, {Role: acl.Agent},
		{Role: acl.Viewer, Tenant: "*"}, {Role: acl.Orchestrator, Shards: 3},
	} {
		_, err := acl.New(s)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), fmt.Sprint(s))
	}
}

// TestWhoMayApprove: an approver approves and answers nothing else, an agent the other way round, and the server says
// who approves.
func TestWhoMayApprove(t *testing.T) {
	t.Parallel()
	grants := map[acl.Role]*acl.Grant{}
	for _, role := range []acl.Role{acl.Agent, acl.Approver, acl.Viewer, acl.Operator} {
		g, err := acl.New(acl.Spec{Role: role, Tenant: "acme"})
		require.NoError(t, err)
		grants[role] = g
	}
	approve, answer := subjects.TenantAPIFilter("acme", subjects.VerbApprove), subjects.TenantAPIFilter("acme", subjects.VerbAnswer)
	for role, g := range grants {
		require.Equal(t, role == acl.Approver, slices.Contains(g.Publishes(), approve), role)
		require.Equal(t, role == acl.Agent, slices.Contains(g.Publishes(), answer), role)
		require.Equal(t, role == acl.Agent, slices.Contains(g.Publishes(), subjects.TenantAPIFilter("acme", subjects.VerbSay)), role)
		amends := slices.Contains(g.Publishes(), subjects.TenantAPIFilter("acme", subjects.VerbAmend))
		require.Equal(t, role == acl.Agent || role == acl.Approver, amends, role)
		approved := subjects.TenantAPIFilter("acme", subjects.VerbAmendApproved)
		require.Equal(t, role == acl.Approver, slices.Contains(g.Publishes(), approved), role)
		for _, subject := range []string{approve, approved} {
			shares := `subject: "` + subject + `" }, share: true }`
			require.Equal(t, role == acl.Approver, strings.Contains(acl.System{Grants: []*acl.Grant{g}}.Accounts(), shares), role)
		}
	}
}
