//go:build !race

// It publishes some ten thousand messages, which the race detector makes eight times as long and which race with
// nothing: "make test-pure" runs it without.

package acl_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/acl"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// A permission is about subjects. What a message does can depend on its headers as well: remove what lies beside it,
// come out elsewhere, come back later. So every header that the server or Stepjet knows is tried on every subject that
// a role may publish to.

// goals are where whoever sets a header wants something to come out, or to go away.
func goals() []string {
	return []string{
		subjects.Submit("other", "smuggled"), subjects.PlanRecord(subjects.NewRun("other", "smuggled"), 1),
		subjects.BucketSubject(subjects.HistoryBucket, "other.done"), subjects.BucketSubject(subjects.ToolsBucket, "fetch"),
		subjects.Remove("fetch"), subjects.Sentinel(0), subjects.Step(attempt(theirs, "fetch"), 0), "$KV.>",
		subjects.API(subjects.NewRun("acme", "asked"), subjects.VerbApprove), subjects.AnswerRecord(subjects.NewRun("other", "asked"), 1, "a", 1, 1),
	}
}

// harmful returns headers with values that could do harm, one message each. Some work together only.
func harmful() (all []nats.Header) {
	set := func(name string, values ...string) {
		for _, v := range values {
			all = append(all, nats.Header{name: {v}})
		}
	}
	set("Nats-Rollup", "all", "sub")
	set("Nats-TTL", "1s", "never", "1")
	set("Nats-Incr", "+5", "-5")
	set("Nats-Marker-Reason", "Remove", "Purge", "MaxAge")
	set("KV-Operation", "DEL", "PURGE")
	set("Nats-Msg-Id", "x")
	for _, name := range []string{"Nats-Expected-Last-Sequence", "Nats-Expected-Last-Subject-Sequence", "Nats-UpTo-Sequence", "Nats-Sequence", "Nats-Last-Sequence"} {
		set(name, "0", "1", "18446744073709551615", "x")
	}
	for _, stream := range []string{"KV_runs_0", "KV_tools", "OBJ_blobs", "STEPS_0"} {
		set("Nats-Expected-Stream", stream)
		set("Nats-Stream", stream)
		set("Nats-Stream-Source", stream+" 1 > >", stream+":1:>:>:>")
	}
	for _, goal := range goals() {
		for _, name := range []string{"Nats-Trace-Dest", "Nats-Schedule-Target", "Nats-Schedule-Source", "Nats-Scheduler", "Nats-Subject", "Nats-Consumer-Stalled"} {
			set(name, goal)
		}
		all = append(all,
			nats.Header{"Nats-Trace-Dest": {goal}, "Nats-Trace-Only": {"true"}},
			nats.Header{"Nats-Trace-Dest": {goal}, "Nats-Trace-Hop": {"1"}, "Nats-Trace-Origin-Account": {acl.Home}},
			nats.Header{"traceparent": {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, "Nats-Trace-Dest": {goal}},
			nats.Header{"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {goal}, "Nats-Schedule-TTL": {"1s"}, "Nats-Schedule-Rollup": {"sub"}},
			nats.Header{"Nats-Schedule": {"@at 2020-01-01T00:00:00Z"}, "Nats-Schedule-Target": {goal}, "Nats-Schedule-Source": {goal}},
			nats.Header{"Nats-Schedule": {"* * * * * *"}, "Nats-Schedule-Time-Zone": {"Europe/Rome"}, "Nats-Schedule-Target": {goal}},
			nats.Header{"Nats-Scheduler": {goal}, "Nats-Schedule-Next": {"purge"}, "Nats-Rollup": {"sub"}},
			nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}, "Nats-Expected-Last-Subject-Sequence-Subject": {goal}},
		)
	}
	for i, commit := range []string{"1", "eob", ""} {
		h := nats.Header{"Nats-Batch-Id": {fmt.Sprint("b", i)}, "Nats-Batch-Sequence": {"1"}, "Nats-Rollup": {"all"}}
		if commit != "" {
			h["Nats-Batch-Commit"] = []string{commit}
		}
		all = append(all, h)
	}
	for _, name := range known() {
		set(name, "1", "all", "true", `{"acc":"STEPJET","user":"orchestrator"}`)
	}
	set(subjects.HeaderVersion, "9", "junk", "-1", "")
	set(subjects.HeaderResult, goals()...)
	set(subjects.HeaderClaim, goals()...)
	set(subjects.HeaderRetryOf, "done", "../other/done", "*")
	set(subjects.HeaderHandle, `{"name":"other/done/1/a/1/x","size":1,"sha256":"","nuid":"*","chunks":1}`)
	return all
}

var (
	knownOnce sync.Once
	knownAll  []string
)

// known returns the names of all headers that the server's and Stepjet's sources name.
func known() []string {
	knownOnce.Do(func() {
		dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/nats-io/nats-server/v2").Output()
		if err != nil {
			panic(err)
		}
		sources, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "server", "*.go"))
		own, _ := filepath.Glob("../../subjects/*.go")
		name := regexp.MustCompile(`"((?:Nats|Stepjet|KV)-[A-Za-z-]*[a-z])"`)
		for _, file := range append(sources, own...) {
			text, err := os.ReadFile(file)
			if err != nil {
				panic(err)
			}
			if !strings.HasSuffix(file, "_test.go") {
				for _, m := range name.FindAllStringSubmatch(string(text), -1) {
					knownAll = append(knownAll, m[1])
				}
			}
		}
		slices.Sort(knownAll)
		knownAll = slices.Compact(knownAll)
	})
	return knownAll
}

// TestEveryHeaderOfTheServerIsTried has the list be that of the server that is built in.
func TestEveryHeaderOfTheServerIsTried(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Nats-Rollup", "Nats-Schedule-Target", "Nats-Batch-Commit", "Nats-Trace-Dest", "Stepjet-Version", "Stepjet-Handle", "KV-Operation"} {
		require.Contains(t, known(), name)
	}
	require.Greater(t, len(known()), 60)
}

// may reports whether a user may publish what lies at a subject: also plans, which come to lie under another.
func may(g *acl.Grant, subject string) bool {
	return slices.ContainsFunc(g.Publishes(), func(filter string) bool { return matches(filter, subject) }) ||
		g.Role == acl.Agent && matches(subjects.ActiveFilter(0, "acme"), subject)
}

func matches(filter, subject string) bool {
	f, t := strings.Split(filter, "."), strings.Split(subject, ".")
	for i, token := range f {
		if token == ">" {
			return len(t) > i
		}
		if i >= len(t) || token != "*" && token != t[i] {
			return false
		}
	}
	return len(f) == len(t)
}

// places returns subjects of stored messages that each filter of a grant matches, at most three.
func places(g *acl.Grant, there map[stored]bool) map[string][]string {
	all := map[string][]string{}
	for _, filter := range g.Publishes() {
		for m := range there {
			if len(all[filter]) < 3 && matches(filter, m.subject) {
				all[filter] = append(all[filter], m.subject)
			}
		}
	}
	return all
}

// fresh returns a subject that a filter matches and that nothing lies at.
func fresh(filter string, number int) string {
	tokens := strings.Split(filter, ".")
	for i, token := range tokens {
		if token == "*" || token == ">" {
			tokens[i] = fmt.Sprint("x", number)
		}
	}
	return strings.Join(tokens, ".")
}

// throw publishes every header on every subject that a user may publish to.
func (s *system) throw(user string, there map[stored]bool) {
	s.t.Helper()
	nc := s.trespass(user)
	inbox := nc.NewInbox()
	_, err := nc.Subscribe(inbox, func(*nats.Msg) {})
	require.NoError(s.t, err)
	stand := places(s.grants[user], there)
	number := 0
	for _, h := range harmful() {
		if s.shape.oneAccount && h.Get("Nats-Trace-Dest") != "" {
			continue // there, like an answer, it leads anywhere: TestInOneAccountAnAnswerLeadsAnywhere
		}
		for _, filter := range s.grants[user].Publishes() {
			number++
			for _, subject := range append(stand[filter], fresh(filter, number)) {
				require.NoError(s.t, nc.PublishMsg(&nats.Msg{Subject: subject, Reply: inbox, Header: h, Data: []byte(ownRecord)}))
			}
		}
		// Now and then, and again where the connection was lost meanwhile: on a busy machine one that has thousands of
		// refusals to read may miss its pings.
		require.Eventually(s.t, func() bool { return nc.FlushTimeout(30*time.Second) == nil }, 2*time.Minute, 10*time.Millisecond, "%v", nc.LastError())
	}
}

// listener hears all that is published in the account of the streams.
type listener struct {
	other *nats.Conn // by which it marks: its own does not hear what it says itself
	mu    sync.Mutex
	heard map[string]bool
	marks chan string
}

// mark is what a listener sends itself: whoever hears it has heard all that was published before.
const mark = "mark.of.the.listener."

func (s *system) overhear(nc *nats.Conn) *listener {
	s.t.Helper()
	l := &listener{other: s.witness(), heard: map[string]bool{}, marks: make(chan string, 1)}
	_, err := nc.Subscribe(">", func(m *nats.Msg) {
		if strings.HasPrefix(m.Subject, mark) {
			l.marks <- m.Subject
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.heard[m.Subject] = true
	})
	require.NoError(s.t, err)
	require.NoError(s.t, nc.Flush())
	return l
}

// take returns the subjects of all that was published since the last time. A flush is not enough: it waits for what the
// connection reads, and not until the subscription has handed it over, so one user's would be put down to the next.
func (l *listener) take(s *system) []string {
	s.t.Helper()
	own := mark + nats.NewInbox()
	require.NoError(s.t, l.other.Publish(own, nil))
	select {
	case got := <-l.marks:
		require.Equal(s.t, own, got)
	case <-s.ctx().Done():
		require.Fail(s.t, "the listener's own mark did not come")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Sorted(maps.Keys(l.heard))
	clear(l.heard)
	return all
}

// TestNoHeaderDoesMoreThanItsSubject tries them all, and has what others stored stand afterwards.
func TestNoHeaderDoesMoreThanItsSubject(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts, declared tenants": {witness: true, declared: true}, "one account": {oneAccount: true, witness: true}}, func(t *testing.T, s *system) {
		waiting := s.populate()
		nc := s.witness()
		s.preserve(nc, subjects.BucketStream(subjects.GatherBucket), subjects.Gather)
		s.preserve(nc, subjects.BucketStream(subjects.RatesBucket), func(tool string) string { return subjects.Rate(tool, "large") })
		heard := s.overhear(nc)
		for user, g := range s.grants {
			if !slices.Contains([]acl.Role{acl.Agent, acl.Approver, acl.Viewer, acl.Operator, acl.Worker}, g.Role) || strings.Contains(user, "other") {
				continue
			}
			before := s.all(nc)
			heard.take(s)
			s.throw(user, before)
			time.Sleep(1200 * time.Millisecond) // what comes by a schedule comes by then; what is asserted holds at any time
			published := heard.take(s)
			s.unharmed(g, before, s.all(nc))
			s.silent(g, published)
		}
		s.staff()
		require.Len(t, s.waits(s.client("approver-acme", "acme"), "asked", 1), 1, "no header approved of anything")
		o, err := waiting.Wait(s.ctx())
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
		got, _ := o.Results.Get("a")
		require.JSONEq(t, `{"text":"genuine"}`, string(got))
		doc, err := s.client("agent-other", "other").Get(s.ctx(), "done")
		require.NoError(t, err)
		big, _ := doc.Outcome.Results.Get("a")
		require.Len(t, big, 700000+len(`{"text":""}`))
	})
}

// preserve keeps what a stream would drop for its age, so that what is gone was removed by somebody.
func (s *system) preserve(nc *nats.Conn, stream string, of func(tool string) string) {
	s.t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	st, err := js.Stream(s.ctx(), stream)
	require.NoError(s.t, err)
	cfg := st.CachedInfo().Config
	require.Positive(s.t, cfg.MaxAge)
	cfg.MaxAge = 0
	_, err = js.UpdateStream(s.ctx(), cfg)
	require.NoError(s.t, err)
	for _, tool := range []string{"search", "crm/get"} {
		_, err := js.Publish(s.ctx(), of(tool), []byte(`{"id":"x"}`))
		require.NoError(s.t, err)
	}
}

// unharmed compares what is stored: of what was there nothing is gone but what the user might remove, and nothing came
// but where it may publish.
func (s *system) unharmed(g *acl.Grant, before, after map[stored]bool) {
	s.t.Helper()
	for m := range before {
		if !after[m] && !s.replaceable(g, m) {
			require.Fail(s.t, "gone", "%s had removed or changed %s, message %d of %s", g.User, m.subject, m.sequence, m.stream)
		}
	}
	for m := range after {
		if !before[m] && !may(g, m.subject) && !strings.HasPrefix(m.subject, "step.") {
			require.Fail(s.t, "new", "%s had something stored at %s in %s", g.User, m.subject, m.stream)
		}
	}
}

// replaceable is what a user may do away with: an agent the dead letters of its tenant; and what fires by itself, the
// retry that is scheduled.
func (s *system) replaceable(g *acl.Grant, m stored) bool {
	shared := strings.HasPrefix(m.subject, subjects.BucketSubject(subjects.GatherBucket, "")) ||
		strings.HasPrefix(m.subject, subjects.BucketSubject(subjects.RatesBucket, ""))
	return g.Role == acl.Worker && may(g, m.subject) && shared ||
		g.Role == acl.Agent && strings.HasPrefix(m.subject, subjects.BucketSubject(subjects.DeadBucket, "acme.")) ||
		strings.HasPrefix(m.subject, "sched.")
}

// silent looks at what was published in the streams' account while a user tried: what it may publish, and answers.
func (s *system) silent(g *acl.Grant, heard []string) {
	s.t.Helper()
	for _, subject := range heard {
		known := may(g, subject) || strings.HasPrefix(subject, "_") || strings.HasPrefix(subject, "$JS.EVENT.") || strings.HasPrefix(subject, "step.")
		require.True(s.t, known, "%s had something published on %s", g.User, subject)
	}
}
