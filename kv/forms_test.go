package kv

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/internal/version"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// world is a store with the raw messages that it keeps.
type world struct {
	t *testing.T
	s *Store
}

func newForms(t *testing.T) world {
	t.Parallel()
	s, err := Setup(context.Background(), natstest.Connect(t, natstest.Start(t)), Config{})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return world{t, s}
}

func (w world) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

// stored returns what lies on a subject, without what depends on when it was written.
func (w world) stored(subject string) nats.Msg {
	w.t.Helper()
	e, err := w.s.Ledger.Read(w.ctx(), subject)
	require.NoError(w.t, err)
	for name := range e.Header {
		if strings.HasPrefix(name, "Nats-") {
			delete(e.Header, name)
		}
	}
	return nats.Msg{Header: e.Header, Data: e.Data}
}

// put writes what a Stepjet of another version might have written.
func (w world) put(subject string, m nats.Msg) {
	w.t.Helper()
	_, err := w.s.js.PublishMsg(w.ctx(), &nats.Msg{Subject: subject, Header: m.Header, Data: m.Data})
	require.NoError(w.t, err)
}

const (
	formsTool     = "get_weather"
	formsOverride = `{"x-orchestration":{"max_concurrency":8},"context":{"filter":"none"},"tenants":["acme"],"by":"ann"}`
	formsDef      = `{"name":"get_weather","description":"Weather.","inputSchema":{"type":"object"},"_meta":{"icon": 1.0}}`
)

// register returns the registry's entry of an overridden tool.
func (w world) register() tool.Registered {
	w.t.Helper()
	_, err := w.s.Registry.Register(w.ctx(), []byte(formsDef))
	require.NoError(w.t, err)
	o, err := w.s.Registry.Override(w.ctx(), formsTool, []byte(formsOverride))
	require.NoError(w.t, err)
	return *o.Tool
}

func TestRegistryForms(t *testing.T) {
	w := newForms(t)
	entry := w.register()
	asTool := func(m nats.Msg) nats.Msg {
		parsed, err := parseTool(wire.Ours(), Entry{Header: m.Header, Data: m.Data}, formsTool)
		require.NoError(t, err)
		parsed.Revision = 0
		b, err := json.Marshal(parsed)
		require.NoError(t, err)
		return nats.Msg{Header: wire.Versioned(), Data: b}
	}
	wiretest.RoundTrip(t, *update, "tool", w.stored(toolSubject(formsTool)), wiretest.Kept, asTool)
	wiretest.RoundTrip(t, *update, "override", w.stored(overrideSubject(formsTool)), wiretest.Kept, func(m nats.Msg) nats.Msg {
		o, err := tool.ReadOverride(m.Data)
		require.NoError(t, err)
		b, err := json.Marshal(o)
		require.NoError(t, err)
		return nats.Msg{Header: wire.Versioned(), Data: b}
	})
	wiretest.RoundTrip(t, *update, "definition", w.stored(definitionSubject(entry.Digest)), wiretest.Kept, func(m nats.Msg) nats.Msg {
		d, err := tool.ParseDefinition(m.Data)
		require.NoError(t, err)
		b, err := json.Marshal(d)
		require.NoError(t, err)
		return nats.Msg{Header: wire.Versioned(), Data: b}
	})
	_, err := w.s.Registry.Override(w.ctx(), formsTool, nil)
	require.NoError(t, err)
	wiretest.RoundTrip(t, *update, "cleared_override", w.stored(overrideSubject(formsTool)), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		require.NotEmpty(t, operation(m.Header))
		return nats.Msg{Header: deletion()}
	})
	_, err = w.s.Registry.RemoveTool(w.ctx(), formsTool, false)
	require.NoError(t, err)
	wiretest.RoundTrip(t, *update, "removed_tool", w.stored(toolSubject(formsTool)), wiretest.Ignored, func(m nats.Msg) nats.Msg {
		mark := tombstone(Entry{Header: m.Header, Data: m.Data})
		require.True(t, mark.removed)
		b, err := json.Marshal(tombstoneJSON{mark.Shard})
		require.NoError(t, err)
		return nats.Msg{Header: deletion(), Data: b}
	})
}

func TestDocumentForms(t *testing.T) {
	w := newForms(t)
	at := time.Date(2026, 11, 20, 12, 0, 0, 1500, time.UTC)
	r := subjects.NewRun("acme", "order #42")
	doc := &outcome.Run{
		Version: 1, Run: r.Plain(), Tenant: r.Tenant, Generation: 7, Digest: "ab", Status: outcome.Partial, Submitted: at, Started: at, Finished: at,
		StoppedBy: "ann", RetryOf: "order-41", RetryFrom: "a", Stats: outcome.Stats{Steps: 2, Succeeded: 1, Failed: 1},
		Outcome: &outcome.Outcome{Run: r.Plain(), Status: outcome.Partial, Results: outcome.Results{{Step: "a", JSON: []byte(`{"t": 1.0}`)}}, Errors: []outcome.StepError{{Step: "b", Code: fault.Timeout, Message: "late"}}},
		Plan:    []byte(`{"steps": []}`),
		Steps: []outcome.Step{
			{ID: "a", Tool: formsTool, Status: outcome.StepSucceeded, Attempts: 1, Ready: at, Started: at, Ended: at, Decided: at, Worker: "w1", Bytes: 10, Reused: true},
			{ID: "b", Tool: formsTool, Status: outcome.StepFailed, Error: fault.New(fault.Timeout, "late"), Items: []outcome.Step{{ID: "b=0", Tool: formsTool, Status: outcome.StepSkipped}}},
		},
	}
	_, err := w.s.Archive.CreateHistory(w.ctx(), r, "", doc)
	require.NoError(t, err)
	whole := func(m nats.Msg) nats.Msg {
		read, err := parseHistory(m.Data)
		require.NoError(t, err)
		header := wire.Versioned()
		if _, there := wire.ParseHead(m.Header); there {
			header = wire.Documented(read, nil)
		}
		return nats.Msg{Header: header, Data: read.JSON()}
	}
	wiretest.RoundTrip(t, *update, "history", w.stored(historySubject(r)), wiretest.Kept, whole)
	doc.Blob = &outcome.Handle{Name: "acme/order=20=2342/7/history/X", Size: 600_000, SHA256: "cd"}
	wiretest.RoundTrip(t, *update, "history_head", nats.Msg{Header: wire.Versioned(), Data: doc.Head()}, wiretest.Kept, whole)

	letter := &outcome.DeadLetter{
		Run: r.Plain(), Tenant: r.Tenant, Generation: 7, Step: "b=0", Tool: formsTool, Attempts: 3, Error: fault.New(fault.Timeout, "late"),
		Approval: true, Key: "k", Worker: "w1", Failed: at, Arguments: []byte(`{"x": 1.0}`),
	}
	_, err = w.s.Archive.CreateDead(w.ctx(), r, "", letter)
	require.NoError(t, err)
	wiretest.Golden(t, *update, "dead_letter", w.stored(deadSubject(r, letter)))
	member := &Membership{s: w.s.Members, id: "m1", subject: memberPrefix + "m1", own: Member{ID: "m1", Serves: 6, Leaving: true}}
	require.NoError(t, member.renew(w.ctx()))
	key := w.stored(member.subject)
	own, err := json.Marshal(version.Stepjet())
	require.NoError(t, err)
	before, after, said := bytes.Cut(key.Data, fmt.Appendf(nil, `,"version":%s`, own)) // which is another with each build
	require.True(t, said, "%s", key.Data)
	key.Data = slices.Concat(before, after)
	wiretest.Golden(t, *update, "member", key)
	same := func(nats.Msg) nats.Msg { return nats.Msg{Header: wire.Versioned()} } // its subject says all
	h, err := w.s.Archive.PutBlob(w.ctx(), "", "acme/order/7/a/1/X", []byte("bytes"))
	require.NoError(t, err)
	info, err := w.s.Archive.blobInfo(w.ctx(), "", h.Name)
	require.NoError(t, err)
	wiretest.RoundTrip(t, *update, "blob", nats.Msg{Header: info.Headers}, wiretest.Ignored, same)
	chunk, err := w.s.readDirect(w.ctx(), subjects.BlobsStream(""), subjects.BlobChunksOf("", h.NUID))
	require.NoError(t, err)
	delete(chunk.Header, headerExpect)
	wiretest.RoundTrip(t, *update, "blob", nats.Msg{Header: chunk.Header}, wiretest.Ignored, same)
	sentinel := w.stored(subjects.Sentinel(0))
	require.True(t, wire.KindEvent.Known(sentinel.Header))
}

// TestUnknownFieldsOutliveAnOlderVersion: what a newer orchestrator has put into an entry and an override stays there
// when this one registers a tool or sets something else.
func TestUnknownFieldsOutliveAnOlderVersion(t *testing.T) {
	w := newForms(t)
	w.register()
	add := func(subject string) {
		m := w.stored(subject)
		m.Data = append([]byte("{"+wiretest.Later+","), m.Data[1:]...)
		w.put(subject, m)
	}
	add(toolSubject(formsTool))
	add(overrideSubject(formsTool))
	last := w.lastOfTools()
	_, err := w.s.Registry.Register(w.ctx(), []byte(formsDef))
	require.NoError(t, err)
	require.Contains(t, string(w.stored(toolSubject(formsTool)).Data), wiretest.Later)
	_, err = w.s.Registry.Register(w.ctx(), []byte(formsDef))
	require.NoError(t, err)
	require.LessOrEqual(t, w.lastOfTools(), last+1, "the override's field comes into the entry once, and then all is as it should be")
	_, err = w.s.Registry.Register(w.ctx(), []byte(strings.Replace(formsDef, "Weather.", "The weather.", 1)))
	require.NoError(t, err)
	text := string(w.stored(toolSubject(formsTool)).Data)
	require.Equal(t, 2, strings.Count(text, wiretest.Later), "its own, and that of the override: %s", text)
	require.Contains(t, text, `"_meta":{"icon":1.0}`)
	require.Contains(t, string(w.stored(overrideSubject(formsTool)).Data), wiretest.Later)
	o, err := w.s.Registry.Override(w.ctx(), formsTool, []byte(`{"by":"bob"}`))
	require.NoError(t, err)
	require.Contains(t, string(w.stored(toolSubject(formsTool)).Data), wiretest.Later)
	require.Equal(t, "bob", o.Tool.Override.By)
	_, err = w.s.Registry.Override(w.ctx(), formsTool, []byte(`{"later_field":1}`))
	require.Equal(t, fault.InvalidTool, fault.CodeOf(err), "an operator means what is written")
}

func (w world) lastOfTools() uint64 {
	w.t.Helper()
	info, err := w.s.streamInfo(w.ctx(), subjects.BucketStream(subjects.ToolsBucket), "")
	require.NoError(w.t, err)
	return info.State.LastSeq
}

// TestANewerVersionIsLeftAlone: nothing that has a higher version is read, and nothing of it is written over.
func TestANewerVersionIsLeftAlone(t *testing.T) {
	w := newForms(t)
	entry := w.register()
	r := subjects.NewRun("acme", "r")
	_, err := w.s.Archive.CreateHistory(w.ctx(), r, "", &outcome.Run{Version: 1, Run: "r", Tenant: "acme"})
	require.NoError(t, err)
	other := subjects.NewRun("acme", "other")
	newer := nats.Msg{Header: nats.Header{subjects.HeaderVersion: {"2"}}, Data: []byte(`{"entirely":"different"}`)}
	letter := deadSubject(other, &outcome.DeadLetter{Generation: 7, Step: "s"})
	for _, subject := range []string{historySubject(other), letter} {
		w.put(subject, newer)
	}
	refused := func(err error) {
		t.Helper()
		require.Equal(t, fault.NewerVersion, fault.CodeOf(err), "%v", err)
		require.NotEmpty(t, fault.As(err).Hint)
	}
	refused(second(w.s.Archive.History(w.ctx(), other)))
	refused(second(w.s.Archive.Dead(w.ctx(), other, 7, "s")))
	require.NoError(t, w.s.Archive.DeadLetters(w.ctx(), subjects.Run{Tenant: "acme"}, func(*outcome.DeadLetter) { require.Fail(t, "it was read") }))
	created, err := w.s.Archive.CreateHistory(w.ctx(), other, "", &outcome.Run{Run: "other"})
	require.NoError(t, err)
	require.False(t, created)

	w.put(overrideSubject(formsTool), newer)
	refused(second(w.s.Registry.OverrideOf(w.ctx(), formsTool)))
	refused(second(w.s.Registry.Register(w.ctx(), []byte(strings.Replace(formsDef, "Weather.", "Rain.", 1)))))
	w.put(overrideSubject(formsTool), nats.Msg{Header: deletion()})
	w.put(toolSubject(formsTool), newer)
	refused(second(w.s.Registry.Tool(w.ctx(), formsTool)))
	refused(second(w.s.Registry.Register(w.ctx(), []byte(formsDef))))
	refused(second(w.s.Registry.Override(w.ctx(), formsTool, []byte(`{"by":"ann"}`))))
	restored, err := w.s.Registry.Restore(w.ctx(), entry.Definition, 0, 0)
	require.False(t, restored)
	refused(err)
	require.Equal(t, string(newer.Data), string(w.stored(toolSubject(formsTool)).Data))
	tools, err := w.s.Registry.Tools(w.ctx())
	require.NoError(t, err)
	require.Empty(t, tools)
}

func second[T any](_ T, err error) error { return err }
