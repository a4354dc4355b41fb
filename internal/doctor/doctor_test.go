package doctor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// patient is an account that is well: set up, with an orchestrator that answers and a tool that a worker asks for.
type patient struct {
	*kv.Store
	t   *testing.T
	js  jetstream.JetStream
	srv *embedded.Server
	tool.Registered
}

func admit(t *testing.T, cfg kv.Config) *patient {
	t.Helper()
	srv := natstest.Start(t)
	p := &patient{t: t, srv: srv, Store: setupOn(t, srv, cfg)}
	var err error
	p.js, err = jetstream.New(p.Conn())
	require.NoError(t, err)
	p.Registered = register(t, p.Store, "echo", 8)
	told, _ := join(t, p.Store, "one")
	until(t, told, "one")
	answer(t, p.Conn())
	puller, _ := pull(t, p.Store, p.Registered, 1)
	t.Cleanup(func() { puller.Drain(context.Background()) })
	require.Eventually(t, func() bool { return waitingPulls(t, p.Store, p.Registered) > 0 }, 2*time.Minute, 5*time.Millisecond)
	return p
}

// answer plays an orchestrator that is asked who it is, and what it holds back.
func answer(t *testing.T, nc *nats.Conn) {
	t.Helper()
	_, err := nc.Subscribe(subjects.PingSubject, func(m *nats.Msg) {
		body, _ := json.Marshal(map[string]any{"name": "one", "version": "v1", "time": time.Now()})
		_ = m.Respond(body)
	})
	require.NoError(t, err)
	hold(t, nc, 0, nil)
	require.NoError(t, nc.Flush())
}

// hold plays an orchestrator that holds steps of tools back, of which some lie in their streams.
func hold(t *testing.T, nc *nats.Conn, queued uint64, tools map[string]wire.DemandNow) {
	t.Helper()
	_, err := nc.Subscribe(subjects.DemandSubject, func(m *nats.Msg) {
		_ = m.Respond(wire.DemandAnswer{Serves: ^uint64(0), Tools: tools}.Body())
	})
	require.NoError(t, err)
	_, err = nc.Subscribe(subjects.QueuesSubject, func(m *nats.Msg) {
		asked, _ := wire.ParseQueuesRequest(m.Data)
		all := map[string]wire.Queue{}
		for name := range asked.Tools {
			all[name] = wire.Queue{Limit: 2, Behind: queued}
		}
		_ = m.Respond(wire.QueuesAnswer{Tools: all}.Body())
	})
	require.NoError(t, err)
}

func (p *patient) examine(o doctor.Options) *doctor.Report {
	p.t.Helper()
	r, err := doctor.Examine(within(p.t, 2*time.Minute), natstest.Connect(p.t, p.srv), o)
	require.NoError(p.t, err)
	return r
}

// finding returns the one finding of a check about something that is not healthy.
func finding(t *testing.T, r *doctor.Report, check, about string) doctor.Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.Check == check && strings.Contains(f.About, about) && f.Health != doctor.Healthy {
			return f
		}
	}
	require.Fail(t, "no finding", "%s %s in %+v", check, about, r.Findings)
	return doctor.Finding{}
}

// unwell returns "check: about" of all that is not healthy.
func unwell(r *doctor.Report) (all []string) {
	for _, f := range r.Findings {
		if f.Health != doctor.Healthy {
			all = append(all, strings.TrimSpace(f.Check+": "+f.About+" "+string(f.Health)))
		}
	}
	return all
}

func TestAHealthyAccount(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{})
	r := p.examine(doctor.Options{})
	require.Empty(t, unwell(r), "%+v", r.Findings)
	require.Empty(t, r.Problems())
	seen := map[string]bool{}
	for _, f := range r.Findings {
		require.NotEmpty(t, f.Found, f.Check)
		seen[f.Check] = true
	}
	require.Len(t, seen, 27, "every check says something")
	before := streams(t, p.js)
	p.examine(doctor.Options{Mend: true})
	require.Equal(t, before, streams(t, p.js), "there was nothing to mend")
}

// Each thing that can break is found by name, explained, mended, and then well again.
func TestWhatBreaksIsFoundAndMended(t *testing.T) {
	t.Parallel()
	steps := subjects.StepsStream(0)
	for _, c := range []struct {
		name, check, about string
		harm               func(p *patient)
	}{
		{"deleted consumer", "consumer", "echo", func(p *patient) { require.NoError(p.t, p.js.DeleteConsumer(ctx(p.t), steps, "echo")) }},
		{"changed limit", "consumer", "echo", func(p *patient) {
			p.editConsumer(func(c *jetstream.ConsumerConfig) { c.MaxAckPending = 999 })
		}},
		{"changed lease", "consumer", "echo", func(p *patient) { p.editConsumer(func(c *jetstream.ConsumerConfig) { c.AckWait = time.Hour }) }},
		{"deliveries bounded", "consumer", "echo", func(p *patient) { p.editConsumer(func(c *jetstream.ConsumerConfig) { c.MaxDeliver = 3 }) }},
		{"changed filter", "consumer", "echo", func(p *patient) {
			p.editConsumer(func(c *jetstream.ConsumerConfig) { c.FilterSubject = subjects.ToolFilter("other", 0) })
		}},
		{"another kind of consumer", "consumer", "echo", func(p *patient) {
			require.NoError(p.t, p.js.DeleteConsumer(ctx(p.t), steps, "echo"))
			_, err := p.js.CreateConsumer(ctx(p.t), steps, jetstream.ConsumerConfig{Durable: "echo", FilterSubject: subjects.ToolFilter("echo", 0), MaxAckPending: 8, AckWait: 30 * time.Second, MaxWaiting: 3})
			require.NoError(p.t, err)
		}},
		{"paused consumer", "consumer", "echo", func(p *patient) {
			_, err := p.js.PauseConsumer(ctx(p.t), steps, "echo", time.Now().Add(time.Hour))
			require.NoError(p.t, err)
		}},
		{"purged steps", "sentinel", steps, func(p *patient) {
			st, err := p.js.Stream(ctx(p.t), steps)
			require.NoError(p.t, err)
			require.NoError(p.t, st.Purge(ctx(p.t)))
		}},
		{"deleted steps", "stream", steps, func(p *patient) { p.deleteStream(steps) }},
		{"deleted history", "stream", "KV_history", func(p *patient) { p.deleteStream("KV_history") }},
		{"deleted dead letters", "stream", "KV_dead", func(p *patient) { p.deleteStream("KV_dead") }},
		{"deleted blobs", "stream", "OBJ_blobs", func(p *patient) { p.deleteStream("OBJ_blobs") }},
		{"deleted ledger", "stream", "KV_runs_0", func(p *patient) { p.deleteStream("KV_runs_0") }},
		{"ledger that takes a second record", "stream", "KV_runs_0", func(p *patient) {
			p.editStream("KV_runs_0", func(c *jetstream.StreamConfig) {
				c.DiscardNewPerSubject, c.Discard, c.MaxMsgsPerSubject = false, jetstream.DiscardOld, 5
			})
		}},
		{"ledger that expires", "stream", "KV_runs_0", func(p *patient) { p.editStream("KV_runs_0", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }) }},
		{"ledger that takes no plans", "stream", "KV_runs_0", func(p *patient) {
			p.editStream("KV_runs_0", func(c *jetstream.StreamConfig) { c.Subjects, c.SubjectTransform = c.Subjects[:1], nil })
		}},
		{"bounded steps", "stream", steps, func(p *patient) { p.editStream(steps, func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 }) }},
		{"short blobs", "stream", "OBJ_blobs", func(p *patient) { p.editStream("OBJ_blobs", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }) }},
		{"blobs that a header removes", "stream", "OBJ_blobs", func(p *patient) { p.editStream("OBJ_blobs", func(c *jetstream.StreamConfig) { c.AllowRollup = true }) }},
		{"a declared tenant's blobs that a header removes", "tenant", "OBJ_blobs-acme", func(p *patient) {
			_, err := p.Archive.Declare(ctx(p.t), "acme")
			require.NoError(p.t, err)
			p.editStream("OBJ_blobs-acme", func(c *jetstream.StreamConfig) { c.AllowRollup, c.MaxAge = true, time.Hour })
		}},
		{"dead letters that a header removes", "stream", "KV_dead", func(p *patient) { p.editStream("KV_dead", func(c *jetstream.StreamConfig) { c.AllowRollup = true }) }},
		{"a registry that a header removes", "stream", "KV_tools", func(p *patient) { p.editStream("KV_tools", func(c *jetstream.StreamConfig) { c.AllowRollup = true }) }},
		{"lost registration", "orphan-consumer", "echo", func(p *patient) {
			require.NoError(p.t, emptied(p.t, p.js, "echo"))
		}},
		{"unreadable registration", "registry", "echo", func(p *patient) {
			bucket, err := p.js.KeyValue(ctx(p.t), "tools")
			require.NoError(p.t, err)
			_, err = bucket.Put(ctx(p.t), "echo", []byte("{"))
			require.NoError(p.t, err)
		}},
		{"lost definition", "registry", "echo", func(p *patient) {
			require.NoError(p.t, emptied(p.t, p.js, "def."+p.Digest))
		}},
		{"leftover of a removal", "orphan-consumer", "gone", func(p *patient) {
			gone := register(p.t, p.Store, "gone", 2)
			_, err := p.Registry.RemoveTool(ctx(p.t), "gone", true)
			require.NoError(p.t, err)
			_, err = p.js.CreateConsumer(ctx(p.t), steps, jetstream.ConsumerConfig{Durable: "gone", FilterSubject: subjects.ToolFilter("gone", gone.Shard), AckPolicy: jetstream.AckExplicitPolicy})
			require.NoError(p.t, err)
		}},
		{"records without a plan", "orphan-records", "run r of tenant t", func(p *patient) {
			d, _ := create(p.t, p.Store, subjects.StartRecord(subjects.NewRun("t", "r"), 7, 1), "{}", nil)
			require.Equal(p.t, kv.Written, d)
		}},
		{"records in a partition that is none", "orphan-records", "KV_runs_0", func(p *patient) {
			p.forge("$KV.runs_0.99.t.r.3.step.echo.a.1", "$KV.runs_0.64.t.r.3.step.echo.a.1.claim", "$KV.runs_0.x.t.r.3.step.echo.a.1")
		}},
		{"records in another run's partition", "orphan-records", "KV_runs_0", func(p *patient) {
			r := subjects.NewRun("t", "r")
			p.forge(strings.Replace(subjects.StepRecord(subjects.Attempt{Run: r, Generation: 3, Tool: "echo", Step: "a", Number: 1}, 1),
				fmt.Sprintf(".%d.t.", r.Partition()), fmt.Sprintf(".%d.t.", (r.Partition()+1)%subjects.Partitions), 1))
		}},
		{"records of names that no run has", "orphan-records", "run =41 of tenant t%", func(p *patient) {
			p.forge(fmt.Sprintf("$KV.runs_0.%d.t%%.=41.3.step.echo.a.1", subjects.Run{Tenant: "t%", ID: "=41"}.Partition()))
		}},
		{"records of a generation that no plan has", "orphan-records", "run r of tenant t", func(p *patient) {
			r := subjects.NewRun("t", "r")
			p.forge(subjects.PlanRecord(r, 1))
			p.forge(subjects.StepRecord(subjects.Attempt{Run: r, Generation: 1 << 50, Tool: "echo", Step: "a", Number: 1}, 1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := admit(t, kv.Config{})
			c.harm(p)
			found := finding(t, p.examine(doctor.Options{}), c.check, c.about)
			require.NotEmpty(t, found.Means, "%+v", found)
			require.NotEmpty(t, found.Fix)
			require.True(t, found.Fixable, "%+v", found)
			require.False(t, found.Mended, "nobody asked for it")

			mended := p.examine(doctor.Options{Mend: true})
			f := finding(t, mended, c.check, c.about)
			require.True(t, f.Mended, "%+v", f)
			require.Empty(t, mended.Problems(), "%+v", mended.Problems())

			after := unwell(p.examine(doctor.Options{}))
			for _, left := range after { // a worker of this test does not register again
				require.Equal(t, "worker:  note", left, "%v", after)
			}
		})
	}
}

// forge publishes records as whoever hosts a tool may, with names of its own choice.
func (p *patient) forge(all ...string) {
	p.t.Helper()
	for _, subject := range all {
		_, err := p.js.Publish(ctx(p.t), subject, []byte("{}"))
		require.NoError(p.t, err, subject)
	}
}

func (p *patient) deleteStream(name string) {
	p.t.Helper()
	require.NoError(p.t, p.js.DeleteStream(ctx(p.t), name))
}

func (p *patient) editStream(name string, change func(*jetstream.StreamConfig)) {
	p.t.Helper()
	st, err := p.js.Stream(ctx(p.t), name)
	require.NoError(p.t, err)
	cfg := st.CachedInfo().Config
	change(&cfg)
	_, err = p.js.UpdateStream(ctx(p.t), cfg)
	require.NoError(p.t, err)
}

func (p *patient) editConsumer(change func(*jetstream.ConsumerConfig)) {
	p.t.Helper()
	c, err := p.js.Consumer(ctx(p.t), subjects.StepsStream(p.Shard), subjects.Durable(p.Name))
	require.NoError(p.t, err)
	cfg := c.CachedInfo().Config
	change(&cfg)
	_, err = p.js.UpdateConsumer(ctx(p.t), subjects.StepsStream(p.Shard), cfg)
	require.NoError(p.t, err)
}

// A registry that was emptied is no empty registry: plans wait for it.
func TestTheDoctorSeesThatTheRegistryWasEmptied(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{})
	tools, err := p.js.Stream(within(t, 2*time.Minute), "KV_tools")
	require.NoError(t, err)
	require.NoError(t, tools.Purge(within(t, 2*time.Minute)))
	f := finding(t, p.examine(doctor.Options{}), "registry", "KV_tools")
	require.Equal(t, doctor.Broken, f.Health)
	require.Contains(t, f.Found, "emptied")
	require.Contains(t, f.Fix, "stepjet tools apply")
}

// A template has no workers and no queue, which is nothing to be told of; that it calls what is gone is.
func TestTheDoctorSeesATemplateThatCantRun(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{Knows: wire.Ours()})
	register(t, p.Store, "second", 2)
	def, err := tool.ParseDefinition([]byte(`{"name":"both","plan":{"steps":[{"id":"a","tool":"echo"},{"id":"b","tool":"second"}]}}`))
	require.NoError(t, err)
	_, err = p.Registry.ApplyTemplate(within(t, 2*time.Minute), def)
	require.NoError(t, err)
	for _, f := range p.examine(doctor.Options{}).Findings {
		require.NotEqual(t, "both", f.About, "%+v", f)
	}
	_, err = p.Registry.RemoveTool(within(t, 2*time.Minute), "second", true)
	require.NoError(t, err)
	f := finding(t, p.examine(doctor.Options{}), "registry", "both")
	require.Equal(t, doctor.Notable, f.Health)
	require.Contains(t, f.Found, `/steps/1/tool: there is no tool "second"`)
}

// The key that secrets are sealed to is an entry of a version of its own, and well; one of a later version is left as
// it is.
func TestAPublishedKeyOfANewerVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{})
	key := wire.SealingKey{ID: "k", Public: "p", Created: time.Now()}
	_, err := p.Registry.PublishSealingKey(within(t, 2*time.Minute), key)
	require.NoError(t, err)
	require.Empty(t, unwell(p.examine(doctor.Options{})))

	later := &nats.Msg{Subject: "$KV.tools.=secrets", Header: nats.Header{subjects.HeaderVersion: {"9"}}, Data: []byte(`{"id":"l","public":"of another form"}`)}
	_, err = p.js.PublishMsg(within(t, 2*time.Minute), later)
	require.NoError(t, err)
	found := finding(t, p.examine(doctor.Options{Mend: true}), "secrets", "")
	require.Equal(t, doctor.Notable, found.Health)
	require.Contains(t, found.Found, "newer version")
	_, err = p.Registry.SealingKey(within(t, 2*time.Minute))
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%v", err)
	_, err = p.Registry.PublishSealingKey(within(t, 2*time.Minute), key)
	require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "nothing is written over it: %v", err)
}

// A record may lie in a shard where its run's owner never looks, and on a subject that stands for others: that is
// said, and nobody else's record is purged for it.
func TestRecordsThatNobodyReads(t *testing.T) {
	t.Parallel()
	p := admit(t, kv.Config{Shards: 4})
	r := subjects.NewRun("t", "r")
	of := func(shard int) string {
		return fmt.Sprintf("$KV.runs_%d.%d.t.r.3.step.echo.a.1", shard, r.Partition())
	}
	p.forge(subjects.PlanRecord(r, 4))
	own := subjects.LedgerShard(r.Partition(), 4)
	wrong, other := (own+1)%4, (own+2)%4
	p.forge(of(wrong), fmt.Sprintf("$KV.runs_%d.99.t.r.3.step.echo.a.1", wrong))
	star := fmt.Sprintf("$KV.runs_%d.*.*.*.3.step.echo.a.1", other)
	p.forge(star)

	found := finding(t, p.examine(doctor.Options{Mend: true}), "orphan-records", subjects.LedgerStream(wrong))
	require.Contains(t, found.Found, "2 records")
	require.True(t, found.Mended, "%+v", found)
	after := p.examine(doctor.Options{})
	require.NotContains(t, unwell(after), "orphan-records: "+subjects.LedgerStream(wrong))
	left := finding(t, after, "orphan-records", subjects.LedgerStream(other))
	require.Contains(t, left.Found, star)
	require.False(t, left.Fixable)
	_, err := p.Ledger.Read(ctx(t), subjects.PlanRecord(r, 4))
	require.NoError(t, err)
}
