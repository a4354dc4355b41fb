package orchestrator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/observe"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// sunk are the objects that a stream holds, by subject and step, with their message ids.
func (s *system) sunk(stream string) (all []wire.Sunk, ids []string) {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	require.NoError(s.t, err)
	st, err := js.Stream(ctx(s.t), stream)
	require.NoError(s.t, err)
	info, err := st.Info(ctx(s.t))
	require.NoError(s.t, err)
	for seq := max(info.State.FirstSeq, 1); seq <= info.State.LastSeq; seq++ {
		m, err := st.GetMsg(ctx(s.t), seq)
		require.NoError(s.t, err)
		var o wire.Sunk
		require.NoError(s.t, json.Unmarshal(m.Data, &o), "%s", m.Data)
		require.Equal(s.t, subjects.Version, m.Header.Get(subjects.HeaderVersion))
		all, ids = append(all, o), append(ids, m.Header.Get("Nats-Msg-Id"))
	}
	return all, ids
}

// sinksAreThere makes the bucket, and a stream of what goes to subjects below "kept" of a tenant.
func (s *system) sinksAreThere() jetstream.KeyValue {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	require.NoError(s.t, err)
	kv, err := js.CreateKeyValue(ctx(s.t), jetstream.KeyValueConfig{Bucket: subjects.SinksBucket})
	require.NoError(s.t, err)
	s.forgetsIDs(js, subjects.BucketStream(subjects.SinksBucket))
	_, err = js.CreateStream(ctx(s.t), jetstream.StreamConfig{Name: "KEPT", Subjects: []string{subjects.SinkSubject(subjects.DefaultTenant, "kept.>")}})
	require.NoError(s.t, err)
	return kv
}

// forgetsIDs lets a stream know message ids for so short that what it refuses behind that it refuses for another reason.
func (s *system) forgetsIDs(js jetstream.JetStream, stream string) {
	s.t.Helper()
	st, err := js.Stream(ctx(s.t), stream)
	require.NoError(s.t, err)
	c := st.CachedInfo().Config
	c.Duplicates = 100 * time.Millisecond
	_, err = js.UpdateStream(ctx(s.t), c)
	require.NoError(s.t, err)
}

// idsAreForgotten waits until a stream takes a message id again.
func (s *system) idsAreForgotten(stream string) {
	s.t.Helper()
	js, err := jetstream.New(s.nc)
	require.NoError(s.t, err)
	m := &nats.Msg{Subject: subjects.BucketSubject(subjects.SinksBucket, "other.x"), Header: nats.Header{"Nats-Msg-Id": {"probe"}}}
	for range 2 { // the first says that one is known from here on; behind it come all that were known before
		require.Eventually(s.t, func() bool {
			a, err := js.PublishMsg(ctx(s.t), m, jetstream.WithExpectStream(stream))
			return err == nil && !a.Duplicate
		}, 10*time.Second, time.Millisecond)
	}
}

// sinkNotes keeps what an observer is told of sinks.
type sinkNotes struct {
	observe.None
	mu  sync.Mutex
	all []observe.Sink
}

func (n *sinkNotes) OnSink(e observe.Sink) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

func (n *sinkNotes) told() []observe.Sink {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

const sinking = `"tools":["fail",{"tool":"echo","as":"keep","artifact":{"type":"a.Note","path":"note","when":"$artifact.keep != false","sink":[{"subject":"kept.notes"},{"bucket":"notes"},{"subject":"heard"}]}},
	{"tool":"echo","as":"quiet","artifact":{"type":"Quiet"}},"echo"]`

// TestObjectsGoToSinks: what entries capture goes to each of their sinks, that of items too, once each however often it is sent, and
// by the time that the run is over; nothing else does.
func TestObjectsGoToSinks(t *testing.T) {
	t.Parallel()
	n := &sinkNotes{}
	s := start(t, func(c *orchestrator.Config) { c.Observer = n })
	bucket := s.sinksAreThere()
	heard := make(chan *nats.Msg, 100)
	_, err := s.nc.ChanSubscribe(subjects.TenantSinksFilter(subjects.DefaultTenant), heard)
	require.NoError(t, err)
	large := strings.Repeat("x", wire.InlineLimit)
	s.plays("planner",
		`{"steps":[{"id":"one","tool":"keep","arguments":{"note":{"n":1.50}}},{"id":"none","tool":"keep","arguments":{"other":1}},{"id":"no","tool":"keep","arguments":{"note":{"keep":false}}},
			{"id":"bad","tool":"fail"},{"id":"still","tool":"quiet","arguments":{"note":1}},{"id":"by","tool":"echo","arguments":{"note":1}},
			{"id":"in","plan":{"steps":[{"id":"deep","tool":"keep","for_each":{"in":[7,8]},"arguments":{"note":"$ref:item"}}]}}]}`,
		`{"steps":[{"id":"large","tool":"keep","arguments":{"note":"`+large+`"}}]}`,
		`{"output":"done"}`)
	put := s.agent("keeper", "", `{"planner":{"tool":"planner","mode":"plan"},`+sinking+`}`)
	require.Contains(t, put.Needs, wire.Sinks)
	o := s.run(`{"steps":[{"id":"a","tool":"keeper"}]}`, "kept")
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	require.Contains(t, s.frozen("kept").Needs, wire.Sinks)

	all, ids := s.sunk("KEPT")
	values := map[string]string{}
	for i, x := range all {
		require.Equal(t, "kept", x.Run)
		require.Equal(t, []string{"a", "echo", "a.Note"}, []string{x.Agent, x.Tool, x.Type})
		require.Equal(t, subjects.SinkID(subjects.NewRun(x.Tenant, x.Run), x.Generation, x.Step, 0), ids[i])
		values[x.Step] = string(x.Value)
		if x.Blob != nil {
			value, err := s.store.Archive.Blob(ctx(t), x.Blob)
			require.NoError(t, err)
			values[x.Step] = fmt.Sprint(len(value))
		}
	}
	require.Equal(t, map[string]string{"a/=0/one": `{"n":1.50}`, "a/=0/in/deep=0": "7", "a/=0/in/deep=1": "8", "a/=1/large": fmt.Sprint(len(large) + 2)}, values)
	require.Len(t, all, 4, "each lies there once")
	keys, err := bucket.Keys(ctx(t))
	require.NoError(t, err)
	require.Len(t, keys, 4)
	run, g := subjects.NewRun(subjects.DefaultTenant, "kept"), all[0].Generation
	e, err := bucket.Get(ctx(t), subjects.SinkKey(run, g, "notes", "a/=0/in/deep=1"))
	require.NoError(t, err)
	require.Contains(t, string(e.Value()), `"value":8`)
	require.EqualValues(t, jetstream.KeyValuePut, e.Operation())
	told := map[string]bool{}
	for range 8 { // who listens has those of the stream, too
		select {
		case m := <-heard:
			told[m.Subject+" "+m.Header.Get("Nats-Msg-Id")] = true
		case <-time.After(10 * time.Second):
			require.FailNow(t, "not all were told", "%v", told)
		}
	}
	require.Len(t, told, 8)
	require.Eventually(t, func() bool { return len(n.told()) == 12 }, 10*time.Second, time.Millisecond)
	for _, e := range n.told() {
		require.Nil(t, e.Err)
		require.Equal(t, !strings.HasPrefix(e.Subject, "sink.default.heard"), e.Kept, e.Subject)
	}
}

// TestASinkFailsNoRun: where the bucket is not there, and where a stream takes no more, the run goes on and says so.
func TestASinkFailsNoRun(t *testing.T) {
	t.Parallel()
	n := &sinkNotes{}
	s := start(t, func(c *orchestrator.Config) { c.Observer = n })
	js, err := jetstream.New(s.nc)
	require.NoError(t, err)
	_, err = js.CreateStream(ctx(t), jetstream.StreamConfig{Name: "FULL", Subjects: []string{subjects.SinkSubject(subjects.DefaultTenant, "kept.>")}, MaxMsgSize: 8})
	require.NoError(t, err)
	s.plays("planner", `{"steps":[{"id":"one","tool":"keep","arguments":{"note":{"n":1}}}]}`, `{"output":"done"}`)
	s.agent("keeper", "", `{"planner":{"tool":"planner","mode":"plan"},`+sinking+`}`)
	o := s.run(`{"steps":[{"id":"a","tool":"keeper"}]}`, "kept")
	require.Equal(t, outcome.Succeeded, o.Status)
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	require.Eventually(t, func() bool { return len(n.told()) == 3 }, 10*time.Second, time.Millisecond)
	codes := map[string]fault.Code{}
	for _, e := range n.told() {
		if e.Err != nil {
			codes[strings.Join(strings.Split(e.Subject, ".")[:4], ".")] = e.Err.Code
		}
	}
	require.Equal(t, map[string]fault.Code{"sink.default.kept.notes": fault.MessageTooLarge, "$KV.sinks.default.notes": fault.NotFound}, codes)
}

// TestObjectsAreSentByTheNextOwner: the owner that a record stands by need not be the one that sends what it says. What was
// sent already goes again, under the same id, and lies there once.
func TestObjectsAreSentByTheNextOwner(t *testing.T) {
	t.Parallel()
	s := start(t)
	bucket := s.sinksAreThere()
	s.plays("planner", `{"steps":[{"id":"one","tool":"keep","arguments":{"note":{"n":1}}},{"id":"wait","tool":"gate","depends_on":["one"]}]}`, `{"steps":[{"id":"two","tool":"keep","arguments":{"note":2}}],"output":"done"}`)
	s.agent("keeper", "", `{"planner":{"tool":"planner","mode":"plan"},`+strings.Replace(sinking, `"fail"`, `"fail","gate"`, 1)+`}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"keeper"}]}`, "kept")
	<-s.tools.begun
	require.Eventually(t, func() bool { all, _ := s.sunk("KEPT"); return len(all) == 1 }, 10*time.Second, time.Millisecond, "it goes at once")
	first, err := bucket.Keys(ctx(t))
	require.NoError(t, err)
	require.NoError(t, bucket.Delete(ctx(t), first[0]), "somebody has dealt with it")
	s.idsAreForgotten(subjects.BucketStream(subjects.SinksBucket))
	s.orchestrator()
	s.leave()
	close(s.tools.gate)
	o := s.wait(r)
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	all, _ := s.sunk("KEPT")
	require.Len(t, all, 2)
	keys, err := bucket.Keys(ctx(t))
	require.NoError(t, err)
	keys = slices.DeleteFunc(keys, func(k string) bool { return k == "other.x" })
	require.Len(t, keys, 1, "what was removed does not come back")
	require.NotEqual(t, first, keys)
}

// TestARetrySendsWhatItMade, and nothing that it took over: that was sent by the run that it tries again.
func TestARetrySendsWhatItMade(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.sinksAreThere()
	x := s.acts()
	planner := s.plays("planner", `{"steps":[{"id":"a","tool":"act","arguments":{"n":"a"}}]}`, `{"steps":[{"id":"b","tool":"act","arguments":{"n":"b"}}]}`)
	s.agent("doer", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"tool":"act","artifact":{"type":"Acted","path":"n","sink":{"subject":"kept.acts"}}}]}`)
	x.fails["b"] = true
	require.Equal(t, outcome.Failed, s.run(`{"steps":[{"id":"a","tool":"doer"}]}`, "r").Status)
	all, _ := s.sunk("KEPT")
	require.Len(t, all, 1)
	x.fails["b"] = false
	planner.answers = append(planner.answers, `{"output":"done"}`)
	out, doc := s.retry("r")
	require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
	require.NotEmpty(t, takenOver(doc, "a"))
	all, _ = s.sunk("KEPT")
	require.Len(t, all, 2)
	require.JSONEq(t, `"b"`, string(all[1].Value))
	require.Equal(t, doc.Run, all[1].Run)
}

// TestObjectsOfManyCallsGoAtOnce: in a round of so many calls that all look at the same, too, an object is at its sink while the
// round goes on, that of a call that is over behind others as well.
func TestObjectsOfManyCallsGoAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.sinksAreThere()
	const calls = 40
	steps := []string{`{"id":"s0","tool":"keep","arguments":{"note":0}}`}
	for i := 1; i < calls; i++ {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"keep","depends_on":["s%d"],"arguments":{"note":%d}}`, i, i-1, i))
	}
	steps = append(steps, fmt.Sprintf(`{"id":"wait","tool":"gate","depends_on":["s%d"]}`, calls-1))
	s.plays("planner", `{"steps":[`+strings.Join(steps, ",")+`],"output":"done"}`)
	s.agent("keeper", "", `{"planner":{"tool":"planner","mode":"plan"},`+strings.Replace(sinking, `"fail"`, `"fail","gate"`, 1)+`}`)
	r := s.submit(`{"steps":[{"id":"a","tool":"keeper"}]}`, "many")
	<-s.tools.begun
	require.Eventually(t, func() bool { all, _ := s.sunk("KEPT"); return len(all) == calls }, patience, time.Millisecond)
	close(s.tools.gate)
	require.JSONEq(t, `"done"`, result(t, s.wait(r), "a"))
	all, _ := s.sunk("KEPT")
	require.Len(t, all, calls)
}

// TestObjectsOfStreamedCallsWaitForTheirRound: what begins while a planner writes goes to sinks once the record of the round stands, as
// what the step of the round returned, and not before; where no such record comes to stand, it goes nowhere.
func TestObjectsOfStreamedCallsWaitForTheirRound(t *testing.T) {
	t.Parallel()
	s := start(t)
	bucket := s.sinksAreThere()
	called, _ := s.tells("find", nil, false)
	s.writes("planner", nil, func(_ context.Context, n int, out *worker.Stream) (string, error) {
		switch n {
		case 1, 3:
			out.Step(json.RawMessage(`{"id":"a","tool":"find","arguments":{"n":1}}`))
			out.Step(json.RawMessage(`{"id":"b","tool":"find","arguments":{"n":"$ref:a.n"}}`))
			<-called
			<-called // so the owner has read what the first came to
			if n == 3 {
				return "", worker.Terminal(errors.New("the stream broke off"))
			}
			return `{"steps":[{"id":"a","tool":"find","arguments":{"n":1}},{"id":"c","tool":"find","arguments":{"n":3}}]}`, nil
		}
		return `{"output":"done"}`, nil
	})
	s.agent("finder", "", `{"planner":{"tool":"planner","mode":"plan"},"tools":[{"tool":"find","artifact":{"type":"Found","path":"n","sink":[{"subject":"kept.found"},{"bucket":"found"}]}}],"stream_plan":true}`)
	o := s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "streams")
	require.JSONEq(t, `"done"`, result(t, o, "a"), "%s", o.JSON())
	all, _ := s.sunk("KEPT")
	values := map[string]string{}
	for _, x := range all {
		values[x.Step] = string(x.Value)
	}
	require.Equal(t, map[string]string{"a/=0/a": "1", "a/=0/b": "1", "a/=0/c": "3"}, values)
	require.Len(t, all, 3)
	require.Equal(t, outcome.Failed, s.run(`{"steps":[{"id":"a","tool":"finder"}]}`, "breaks").Status)
	all, _ = s.sunk("KEPT")
	require.Len(t, all, 3, "the round was never decided")
	keys, err := bucket.Keys(ctx(t))
	require.NoError(t, err)
	require.Len(t, keys, 3)
}

// TestSinksOfOtherNamesAreRefused when an agent is applied, and when a plan defines one, with the place and what to write.
func TestSinksOfOtherNamesAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, bad := range []string{`{"subject":"a.>"}`, `{"subject":"$KV.tools.x"}`, `{"bucket":"a.b"}`, `{"bucket":"other/tenant"}`, `[{"subject":"a"},{"subject":"a"}]`} {
		definition := `{"planner":{"tool":"gate"},"tools":["echo",{"tool":"fail","artifact":{"type":"T","sink":` + bad + `}}]}`
		_, err := s.client.ApplyTemplate(context.Background(), fmt.Appendf(nil, `{"name":"bad","agent":%s}`, definition))
		flaws := tool.FlawsOf(err)
		require.NotEmpty(t, flaws, "%s: %v", bad, err)
		require.Equal(t, "/agent/tools/1/artifact/sink", flaws[0].Path)
		require.NotEmpty(t, flaws[0].Hint)
		o := s.run(`{"steps":[{"id":"a","agent":`+definition+`}]}`, fmt.Sprint("bad-", i))
		require.Equal(t, outcome.Rejected, o.Status)
		require.Equal(t, "/steps/0/agent/tools/1/artifact/sink", o.Problems[0].Path)
	}
}
