package orchestrator_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// A worker that speaks NATS by itself writes whatever it likes, on a server that takes large messages: each step comes
// to a typed error, and what the ledger does not take the orchestrator never sees.
func TestRecordsWrittenByHandCanNotBloatTheOrchestrator(t *testing.T) {
	t.Parallel()
	s := startOn(t, natstest.Start(t, func(o *embedded.Options) { o.MaxPayload = 8 << 20 }))
	_, err := s.store.Requests.RequestRegister(ctx(t), []byte(`{"name":"raw"}`))
	require.NoError(t, err)
	secret, err := s.store.Archive.PutBlob(ctx(t), "", "acme/secret/1/a/1/x", []byte(`{"password":"hunter2"}`))
	require.NoError(t, err)
	records := map[string]nats.Msg{
		"bytes":  {Data: bytes.Repeat([]byte{0xff}, 900<<10)},
		"depth":  {Data: []byte(strings.Repeat("[", 400<<10) + strings.Repeat("]", 400<<10))},
		"keys":   {Data: []byte(`{"a":1,"a":2}`)},
		"handle": {Header: nats.Header{subjects.HeaderHandle: {fmt.Sprintf(`{"name":"default/raw/1/handle/1/x","size":%d,"sha256":"00"}`, kv.MaxBlob+1)}}},
		"stolen": {Header: nats.Header{subjects.HeaderHandle: {fmt.Sprintf(`{"name":"acme/secret/1/a/1/x","size":%d,"sha256":%q,"checked":true}`, secret.Size, secret.SHA256)}}},
		"gone":   {Header: nats.Header{subjects.HeaderHandle: {`{"name":"default/raw/1/gone/1/x","size":10,"sha256":"00"}`}}},
		"fine":   {Data: []byte(`{"v":1}`)},
	}
	steps := []string{`{"id":"reader","tool":"echo","arguments":{"v":["$ref:handle.v","$ref:gone.v"]}}`}
	for id := range records {
		steps = append(steps, fmt.Sprintf(`{"id":%q,"tool":"raw"}`, id))
	}
	run, err := s.client.Submit(ctx(t), []byte(`{"steps":[`+strings.Join(steps, ",")+`]}`), client.SubmitOptions{Run: "raw"})
	require.NoError(t, err)
	js, err := s.nc.JetStream()
	require.NoError(t, err)
	queue, err := js.PullSubscribe(subjects.ToolFilter("raw", 0), "raw", nats.Bind(subjects.StepsStream(0), "raw"))
	require.NoError(t, err)
	for range records {
		one, err := queue.Fetch(1, nats.MaxWait(patience)) // of several it gives those that have come
		require.NoError(t, err)
		m := one[0]
		place := m.Header.Get(subjects.HeaderResult)
		_, err = js.PublishMsg(&nats.Msg{Subject: place, Data: make([]byte, 2<<20)})
		require.ErrorContains(t, err, "message size exceeds maximum allowed", "the ledger takes no giants")
		a, _, ok := subjects.ParseStep(m.Subject)
		require.True(t, ok)
		record := records[a.Step]
		record.Subject = place
		_, err = js.PublishMsg(&record)
		require.NoError(t, err)
		require.NoError(t, m.Ack())
	}
	o, err := run.Wait(ctx(t))
	require.NoError(t, err)
	codes := map[string]fault.Code{}
	for _, e := range o.Errors {
		codes[e.Step] = e.Code
		if e.Code == fault.TooLarge {
			require.NotEmpty(t, e.Hint)
		}
	}
	require.Equal(t, outcome.Partial, o.Status)
	require.Equal(t, map[string]fault.Code{
		"bytes": fault.ToolTerminal, "depth": fault.ToolTerminal, "keys": fault.ToolTerminal,
		"handle": fault.TooLarge, "gone": fault.ToolTerminal, "stolen": fault.ToolTerminal, "reader": fault.Skipped,
	}, codes)
	fine, ok := o.Results.Get("fine")
	require.True(t, ok)
	require.Equal(t, `{"v":1}`, string(fine))
}
