package kv_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// What docs/protocol.md says of answers, headers and reading, tried with plain requests of core NATS.
func TestWhatTheProtocolSaysOfPlainRequests(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	setupOn(t, srv, kv.Config{})
	nc := natstest.Connect(t, srv)
	ask := func(subject string, h nats.Header, body string) *nats.Msg {
		m, err := nc.RequestMsg(&nats.Msg{Subject: subject, Header: h, Data: []byte(body)}, 2*time.Minute)
		require.NoError(t, err)
		return m
	}
	type ack struct {
		Stream string `json:"stream"`
		Seq    *uint64
		Error  *struct {
			Code int `json:"err_code"`
		} `json:"error"`
	}
	puback := func(m *nats.Msg) (a ack) {
		require.NoError(t, json.Unmarshal(m.Data, &a), "%s", m.Data)
		return a
	}
	plan := subjects.Submit("acme", "r")
	first := puback(ask(plan, nil, `{}`))
	require.Nil(t, first.Error)
	require.Positive(t, *first.Seq)

	second := puback(ask(plan, nil, `{}`))
	require.Equal(t, 10077, second.Error.Code)
	require.NotNil(t, second.Seq, "an error has a sequence as well")
	require.Zero(t, *second.Seq, "which is 0 and means nothing")

	long := puback(ask(subjects.Submit("acme", "long"), nats.Header{"X": {strings.Repeat("x", 64<<10)}}, `{}`))
	require.Equal(t, 10097, long.Error.Code)
	fits := puback(ask(subjects.Submit("acme", "fits"), nats.Header{"X": {strings.Repeat("x", 63<<10)}}, `{}`))
	require.Nil(t, fits.Error)

	record := subjects.PlanRecord(subjects.NewRun("acme", "r"), 1)
	there := ask("$JS.API.DIRECT.GET.KV_runs_0."+record, nil, "")
	require.Empty(t, there.Header.Get("Status"))
	require.Equal(t, `{}`, string(there.Data))
	require.Equal(t, record, there.Header.Get("Nats-Subject"))
	require.NotEmpty(t, there.Header.Get("Nats-Sequence"))
	absent := ask("$JS.API.DIRECT.GET.KV_history.$KV.history.acme.r", nil, "")
	require.Equal(t, "404", absent.Header.Get("Status"))

	for version, known := range map[string]bool{"": true, "1": true, "1.9": true, "0": true, "2": false, "junk": false, "-1": false, "1x": false} {
		require.Equal(t, known, wire.KindEvent.Known(nats.Header{subjects.HeaderVersion: {version}}), version)
	}
}
