package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestWhatTheAnswerToACreateMeans(t *testing.T) {
	t.Parallel()
	code := func(c jetstream.ErrorCode) ack { return ack{code: c} }
	for _, c := range []struct {
		what          string
		a             ack
		plain, fenced verdict
		unsure        verdict // without a fence, after an answer was lost
	}{
		{"stored", ack{seq: 7}, isWritten, isWritten, isWritten},
		{"duplicate", ack{seq: 7, duplicate: true}, isThere, isThere, isThere},
		{"wrong last sequence", code(10071), isDecided, isGone, isThere},
		{"in flight elsewhere", code(10164), isUnknown, isUnknown, isUnknown},
		{"not ready", code(10163), isUnknown, isUnknown, isUnknown},
		{"same message id in flight", code(10158), isUnknown, isUnknown, isUnknown},
		{"too many requests", code(10167), isUnknown, isUnknown, isUnknown},
		{"no leader", code(10008), isUnknown, isUnknown, isUnknown},
		{"stream or subject full", code(10077), isFull, isFull, isFull},
		{"account full", code(10002), isFull, isFull, isFull},
		{"server full", code(10047), isFull, isFull, isFull},
		{"no answer", ack{err: errNoAnswer}, isUnknown, isUnknown, isUnknown},
		{"connection lost", ack{err: errDisconnected}, isUnknown, isUnknown, isUnknown},
		{"nobody there", ack{err: nats.ErrNoResponders}, isUnknown, isUnknown, isUnknown},
		{"buffer full while reconnecting", ack{err: nats.ErrReconnectBufExceeded}, isUnknown, isUnknown, isUnknown},
		{"broken under the write", ack{err: &net.OpError{Op: "write", Err: syscall.EPIPE}}, isUnknown, isUnknown, isUnknown},
		{"pipe closed under the write", ack{err: io.ErrClosedPipe}, isUnknown, isUnknown, isUnknown},
		{"closed", ack{err: nats.ErrConnectionClosed}, isRefused, isRefused, isRefused},
		{"store closed", ack{err: errClosed()}, isRefused, isRefused, isRefused},
		{"too large", ack{err: nats.ErrMaxPayload}, isRefused, isRefused, isRefused},
		{"too large for the stream", code(10054), isRefused, isRefused, isRefused},
		{"forbidden", ack{err: permissionFault("publish", "a", nil)}, isRefused, isRefused, isRefused},
		{"never heard of", code(19999), isRefused, isRefused, isRefused},
	} {
		require.Equal(t, c.plain, verdictOf(c.a, false, false), c.what)
		require.Equal(t, c.fenced, verdictOf(c.a, true, false), c.what)
		require.Equal(t, c.fenced, verdictOf(c.a, true, true), c.what)
		require.Equal(t, c.unsure, verdictOf(c.a, false, true), c.what)
	}
}

func TestParseAck(t *testing.T) {
	t.Parallel()
	read := func(data string) ack { return parseAck(&nats.Msg{Data: []byte(data)}) }
	for in, want := range map[string]ack{
		`{"stream":"KV_runs_0", "seq":12}`:          {seq: 12},
		`{"stream":"KV_runs_0","seq":1}`:            {seq: 1},
		`{"stream":"S","seq": 18446744073709551}`:   {seq: 18446744073709551},
		`{"stream":"S", "seq":4,"duplicate": true}`: {seq: 4, duplicate: true},
		`{"stream":"S","domain":"hub", "seq":4}`:    {seq: 4},
		`{"stream":"S","seq":0}`:                    {err: errNoAnswer},
		`{"stream":"S"}`:                            {err: errNoAnswer},
		`{"stream":"S","seq":`:                      {err: errNoAnswer},
		`{"stream":"`:                               {err: errNoAnswer},
		`nonsense`:                                  {err: errNoAnswer},
		``:                                          {err: errNoAnswer},
		`{"error":{"code":500,"description":"x"},"stream":""}`: {code: 500, text: "x"},
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 7"},"stream":"S","seq":0}`: {
			code: 10071, text: "wrong last sequence: 7"},
	} {
		require.Equal(t, want, read(in), in)
	}
	require.ErrorIs(t, parseAck(&nats.Msg{Header: nats.Header{"Status": {"503"}}}).err, nats.ErrNoResponders)
	require.EqualValues(t, 7, lastSequence("wrong last sequence: 7"))
	require.Zero(t, lastSequence("wrong last sequence"))
	require.Zero(t, lastSequence(""))
}

func FuzzParseAck(f *testing.F) {
	f.Add(`{"stream":"S", "seq":12}`)
	f.Add(`{"error":{"code":400,"err_code":10071}}`)
	f.Fuzz(func(t *testing.T, in string) {
		a := parseAck(&nats.Msg{Data: []byte(in)})
		if a.err == nil && a.code == 0 && a.seq == 0 {
			t.Errorf("success without a sequence: %q", in)
		}
		if seq, ok := plainAck([]byte(in)); ok && (strings.Contains(in, `"error"`) || seq == 0) {
			t.Errorf("an error read as success: %q", in)
		}
	})
}

func TestParseMeta(t *testing.T) {
	t.Parallel()
	want := meta{delivered: 2, streamSeq: 30, consumerSeq: 4, time: 1700000000123456789, pending: 5}
	for _, reply := range []string{
		"$JS.ACK.STEPS_0.math=2Eadd.2.30.4.1700000000123456789.5",
		"$JS.ACK._.ACCHASH.STEPS_0.tool.2.30.4.1700000000123456789.5",
		"$JS.ACK.hub.ACCHASH.STEPS_0.tool.2.30.4.1700000000123456789.5.token",
	} {
		got, ok := parseMeta(reply)
		require.True(t, ok, reply)
		require.Equal(t, want, got, reply)
	}
	for _, reply := range []string{
		"", "_INBOX.x", "$JS.ACK.", "$JS.ACK.S.c", "$JS.ACK.S.c.1.2.3.4", "$JS.ACK.S.c.1.2.x.4.5", "$JS.ACK.S.c.1.-2.3.4.5",
		"$JS.ACK.S.c.1.2.3.99999999999999999999.5", "$JS.FC.S.c.x",
	} {
		_, ok := parseMeta(reply)
		require.False(t, ok, reply)
	}
}

func TestFaultNamesEveryErrorOfNATS(t *testing.T) {
	t.Parallel()
	api := func(code jetstream.ErrorCode) error {
		return fmt.Errorf("doing: %w", &jetstream.APIError{Code: 400, ErrorCode: code, Description: "why"})
	}
	for want, errs := range map[fault.Code][]error{
		fault.NoConnection: {nats.ErrNoServers, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrConnectionReconnecting,
			&net.OpError{Op: "dial", Err: errors.New("refused")}, io.EOF, nats.ErrReconnectBufExceeded},
		fault.Permission: {nats.ErrAuthorization, nats.ErrAuthExpired,
			fmt.Errorf(`%w: Permissions Violation for Publish to "plan.submit.a.b"`, nats.ErrPermissionViolation)},
		fault.NoJetStream:     {jetstream.ErrJetStreamNotEnabled, jetstream.ErrJetStreamNotEnabledForAccount, api(10039), api(10076)},
		fault.MessageTooLarge: {nats.ErrMaxPayload, api(10054), api(10097)},
		fault.StoreFull:       {api(10077), api(10002), api(10023), api(10028), api(10047)},
		fault.NotReady:        {nats.ErrNoResponders, jetstream.ErrStreamNotFound, jetstream.ErrBucketNotFound, api(10059), api(10014), api(10008)},
		fault.NotFound:        {jetstream.ErrKeyNotFound, jetstream.ErrMsgNotFound, jetstream.ErrObjectNotFound, api(10037)},
		fault.Timeout:         {nats.ErrTimeout, context.DeadlineExceeded},
		fault.Cancelled:       {context.Canceled},
		fault.Internal:        {errors.New("what"), api(1), nats.ErrBadSubject},
		fault.Conflict:        {fmt.Errorf("wrapped: %w", fault.New(fault.Conflict, "as it is"))},
	} {
		for _, err := range errs {
			got := Fault(err)
			require.Equal(t, want, got.Code, "%v", err)
			require.NotEmpty(t, got.Message)
			require.True(t, errors.Is(got, err) || errors.Is(err, got), "%v", err)
		}
	}
	require.Nil(t, Fault(nil))
	f := Fault(fmt.Errorf(`%w: Permissions Violation for Subscription to "a.>" using queue "q"`, nats.ErrPermissionViolation))
	require.Equal(t, "this account may not subscribe to a.>", f.Message)
	require.Equal(t, "this account may not publish to plan.submit.Ä.b",
		Fault(fmt.Errorf(`%w: Permissions Violation for Publish to "plan.submit.Ä.b"`, nats.ErrPermissionViolation)).Message)
}

func TestAQueueKeepsItsOrder(t *testing.T) {
	t.Parallel()
	var q queue
	in, out := 0, 0
	for round := range 5000 {
		for range round % 7 {
			q.push(queued{msg: &nats.Msg{Subject: fmt.Sprint(in)}})
			in++
		}
		for range round % 6 {
			x, ok := q.pop()
			require.Equal(t, in > out, ok)
			if ok {
				require.Equal(t, fmt.Sprint(out), x.msg.Subject)
				out++
			}
		}
		require.Equal(t, in-out, q.len())
	}
}

func TestAStoredMessageThatCannotBeReadIsNoRecord(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, `{}`, `[]`, `{"message":{}}`, `{"message":{"subject":"s","seq":1,"time":"x"}}`,
		`{"message":{"subject":"s","seq":1,"time":"2026-01-01T00:00:00Z","data":"%"}}`,
		`{"message":{"subject":"s","seq":1,"time":"2026-01-01T00:00:00Z","hdrs":"%"}}`,
		`{"message":{"subject":"s","seq":1,"time":"2026-01-01T00:00:00Z","hdrs":"eHl6"}}`,
	} {
		_, err := parseStored([]byte(in))
		require.ErrorIs(t, err, errStored, in)
	}
	e, err := parseStored([]byte(`{"message":{"subject":"s\u003c","seq":1,"time":"2026-01-01T00:00:00.5Z"}}`))
	require.NoError(t, err)
	require.Equal(t, "s<", e.Subject)
	_, err = parseStored([]byte(`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`))
	require.Equal(t, fault.NotFound, Fault(err).Code)
}
