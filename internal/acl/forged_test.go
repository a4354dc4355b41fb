package acl_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestAWorkerCanNotFreezeARunOfOthers tries, with the rights of a worker, every form of record that it may write below
// a run that doesn't use its tool, and below ids that nobody has submitted. The run goes on, and what is of no run is
// removed.
func TestAWorkerCanNotFreezeARunOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t, shape{})
	r := s.busy("theirs")
	id := subjects.NewRun("other", "theirs")
	doc, err := s.client("agent-other", "other").Get(s.ctx(), "theirs")
	require.NoError(t, err)
	g := strconv.FormatUint(doc.Generation, 10)
	later := strconv.FormatUint(1<<50, 10)
	nc := s.trespass("worker-crm_2Fget-fetch")
	place := func(run subjects.Run, p int) string {
		return subjects.LedgerPrefix(0) + strconv.Itoa(p) + "." + run.Tenant + "." + run.ID + "."
	}
	own, other := place(id, id.Partition()), place(id, (id.Partition()+1)%subjects.Partitions)
	nobody, odd := subjects.NewRun("nobody", "nothing"), subjects.Run{Tenant: "t%", ID: "=41"}
	var orphans []string
	for _, where := range []string{own + g, own + later, own + "1", own + "0", own + "x", other + g, other + later, place(nobody, nobody.Partition()) + "3",
		place(nobody, nobody.Partition()) + later, place(odd, odd.Partition()) + "3", place(nobody, 99) + "3", place(nobody, 0) + "0"} {
		for _, what := range []string{".step.fetch.zz.1", ".step.fetch.zz.1.claim", ".step.fetch.zz.0", ".step.fetch.zz.abc", ".step.fetch.a.99999999999999999999", ".step.fetch.a.01"} {
			for _, version := range []string{"9", "junk"} {
				subject := where + what
				_, err := nc.RequestMsg(&nats.Msg{Subject: subject, Header: nats.Header{subjects.HeaderVersion: {version}}, Data: []byte(`{}`)}, 2*time.Minute)
				require.NoError(t, err, subject) // stored, or refused
			}
			if where != own+g {
				orphans = append(orphans, where+what)
			}
		}
	}
	close(s.let)
	o, err := r.Wait(s.ctx())
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, o.Status)
	var left []string
	require.Eventually(t, func() bool {
		left = nil
		there := s.holds()
		for _, x := range orphans {
			if there[x] > 0 {
				left = append(left, x)
			}
		}
		return len(left) == 0
	}, 2*time.Minute, 500*time.Millisecond, "left: %v", &left)
	require.Equal(t, fault.NotFound, fault.CodeOf(cancelled(s.client("agent-other", "other").Cancel(s.ctx(), "nothing", "me"))))
}

// TestTheDoctorRemovesWhatNoOwnerReads: an orchestrator reads the partitions that it owns. What a worker writes beside
// them is counted, and removed under the printed role. One in a partition that does not exist is read, and removed
// within a second or so, where an orchestrator owns all of a shard, as here; so it may be counted too or not.
func TestTheDoctorRemovesWhatNoOwnerReads(t *testing.T) {
	t.Parallel()
	s := start(t, shape{shards: 4})
	s.staff()
	nc := s.trespass("worker-search")
	run := subjects.NewRun("other", "theirs")
	own := strconv.Itoa(run.Partition())
	for _, place := range []string{own + ".other.theirs.3.step.search.a.1", own + ".other.theirs.3.step.search.a.2", "99.other.theirs.3.step.search.a.1"} {
		subject := subjects.LedgerPrefix((subjects.LedgerShard(run.Partition(), 4)+1)%4) + place
		m, err := nc.Request(subject, []byte(`{}`), 2*time.Minute)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), `"seq"`, "the server stores it")
	}
	said, code := s.types("doctor", t.TempDir(), "doctor")
	require.Zero(t, code, said)
	require.Regexp(t, "[23] records where no run has any", said)
	said, code = s.types("doctor", t.TempDir(), "doctor --fix")
	require.Zero(t, code, said)
	said, code = s.types("doctor", t.TempDir(), "doctor")
	require.Zero(t, code, said)
	require.NotContains(t, said, "where no run has any")
}

// TestAWorkerRegistersItsOwnToolsAlone: the subject is what it has permission for, and the definition's name is its own
// word.
func TestAWorkerRegistersItsOwnToolsAlone(t *testing.T) {
	t.Parallel()
	s := start(t, shape{})
	s.orchestrate(1)
	s.host("worker-search", "search")
	before, err := s.client("agent-other", "other").Tools(s.ctx())
	require.NoError(t, err)
	nc := s.trespass("worker-crm_2Fget-fetch")
	for _, body := range []string{
		`{"name":"search","inputSchema":{"type":"object"},"tenants":["nobody"],"x-orchestration":{"mode":"sequential-only","timeout_ms":1}}`,
		`{"name":"brandnew","inputSchema":{"type":"object"}}`,
		`{"type":"function","function":{"name":"search","parameters":{"type":"object"}}}`,
	} {
		m, err := nc.Request(subjects.Register("fetch"), []byte(body), time.Minute)
		require.NoError(t, err)
		require.Contains(t, string(m.Data), string(fault.InvalidTool), "%s", body)
	}
	after, err := s.client("agent-other", "other").Tools(s.ctx())
	require.NoError(t, err)
	require.Equal(t, before, after)
}
