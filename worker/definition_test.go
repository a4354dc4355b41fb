package worker

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// other registers another definition of a tool, which the worker's own then takes the place of.
func (w *world) other(def *tool.Definition) func(*wire.Step) {
	w.t.Helper()
	raw, err := json.Marshal(def)
	require.NoError(w.t, err)
	t, err := w.store.Registry.Register(w.ctx(), raw)
	require.NoError(w.t, err)
	return func(s *wire.Step) { s.Definition = t.Digest }
}

func returning(name, body string) func(*Worker) {
	return func(worker *Worker) {
		_ = worker.HandleRaw(&tool.Definition{Name: name}, func(context.Context, json.RawMessage) (Output, error) {
			return Output{Body: []byte(body)}, nil
		})
	}
}

// A definition that can't be read promises nothing: the step is executed as one of the worker's own. It is read once.
func TestDefinitionsThatCantBeRead(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	strict := w.other(&tool.Definition{Name: "five", OutputSchema: json.RawMessage(`{"type":"string"}`)})
	w.worker(Config{}, returning("five", `5`))
	r := w.run("five", `{}`, strict)
	require.Equal(t, fault.ToolTerminal, r.Error.Code)
	require.Contains(t, r.Error.Message, "must be")
	for _, c := range []struct {
		digest, version, body string
	}{
		{digest: "00000000000000000000000000000000000000000000000000000000000000aa"},
		{"00000000000000000000000000000000000000000000000000000000000000bb", "9", `{}`},
		{"00000000000000000000000000000000000000000000000000000000000000cc", "1", `not JSON`},
		{digest: "no digest"},
	} {
		if c.body != "" {
			_, err := w.js.PublishMsg(&nats.Msg{
				Subject: subjects.BucketSubject(subjects.ToolsBucket, subjects.DefinitionKey(c.digest)),
				Header:  nats.Header{subjects.HeaderVersion: {c.version}}, Data: []byte(c.body),
			})
			require.NoError(t, err)
		}
		said := w.logs.count("can't be read")
		for range 3 {
			r := w.run("five", `{}`, func(s *wire.Step) { s.Definition = c.digest })
			require.Nil(t, r.Error, "%s: %v", c.digest, r.Error)
		}
		if c.body != "" {
			require.Equal(t, said+1, w.logs.count("can't be read"), "%s: asked for again and again", c.digest)
		}
	}
	w.settled("five")
}

// Steps of several definitions may go into one batch. An array that one definition calls otherwise is no item of the
// other.
func TestBatchesOfSeveralDefinitions(t *testing.T) {
	t.Parallel()
	w := start(t, kv.Config{})
	w.registrar()
	define := func(argument, output string) func(*wire.Step) {
		return w.other(&tool.Definition{
			Name: create, InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(output),
			Orchestration: &tool.Orchestration{MaxConcurrency: 100, Batch: &tool.Batch{Argument: argument, MaxItems: 3}},
		})
	}
	same := define("contacts", `{"type":"object","required":["results"]}`)
	more := define("contacts", `{"type":"object","required":["results","total"]}`)
	rows := define("rows", ``)
	var b batched
	w.worker(Config{}, b.tools(2, time.Minute))
	one, two := w.person("r", "a", same), w.attempt(create, "r", "b")
	w.dispatch(two, `{"contacts":[{"email":"x"}]}`, same)
	require.Nil(t, w.result(one).Error, "what the schema says of the whole answer is not asked of one item")
	require.Nil(t, w.result(two).Error)
	require.Equal(t, []int{2}, b.sizes())

	one, two = w.person("r", "c", more), w.attempt(create, "r", "d")
	w.dispatch(two, `{"contacts":[{"email":"x"}]}`, more)
	require.Nil(t, w.result(one).Error)
	require.Equal(t, fault.ToolTerminal, w.result(two).Error.Code)
	require.Contains(t, w.result(two).Error.Message, "total")

	for _, args := range []string{`{"rows":[{"email":"x"}]}`, `{"contacts":[{"email":"x"}]}`} {
		r := w.run(create, args, rows)
		require.NotNil(t, r.Error, args)
		require.Equal(t, fault.InvalidArguments, r.Error.Code)
		require.Contains(t, r.Error.Message, "the run started with definition")
	}
	require.Equal(t, []int{2, 2}, b.sizes())
	w.settled(create)
}
