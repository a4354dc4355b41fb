package wire_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

var at = time.Date(2026, 11, 20, 12, 0, 0, 1500, time.UTC)

// golden freezes a message and sees that it survives decoding and encoding.
func golden(t *testing.T, name string, h nats.Header, body []byte, fate wiretest.Fate, recode func(nats.Msg) nats.Msg) {
	t.Helper()
	wiretest.RoundTrip(t, *update, name, nats.Msg{Header: h, Data: body}, fate, recode)
}

func recodeStep(t *testing.T) func(nats.Msg) nats.Msg {
	return func(m nats.Msg) nats.Msg {
		s, err := wire.ParseStep(m.Header)
		require.NoError(t, err)
		return nats.Msg{Header: s.Header(), Data: m.Data}
	}
}

func recodeResult(m nats.Msg) nats.Msg {
	h, body := wire.ParseResult(m.Header, m.Data).Message()
	return nats.Msg{Header: h, Data: body}
}

func TestEveryKindHasAGoldenFile(t *testing.T) {
	files, err := os.ReadDir("testdata")
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		if name, is := strings.CutSuffix(f.Name(), ".golden"); is {
			names = append(names, name)
		}
	}
	require.Equal(t, wiretest.Kinds, names)
}

func TestStepForms(t *testing.T) {
	a := subjects.Attempt{Run: subjects.NewRun("acme", "order-42"), Generation: 17, Tool: "get_weather", Step: "tokyo", Number: 2}
	s := wire.Step{Result: subjects.StepRecord(a, 1), Key: a.Key(), Attempt: 2, Timeout: 5 * time.Minute, Trace: wire.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}.Of(a)}
	s.Definition = strings.Repeat("0af7", 16)
	golden(t, "step", s.Header(), []byte(`{"location":"Tokyo"}`), wiretest.Opaque, recodeStep(t))
	s.Retried = "acme/order-41/9/tokyo"
	s.Claim, s.Deadline, s.Trace.State = subjects.ClaimRecord(a, 1), at, "vendor=1"
	s.Handle = &outcome.Handle{Name: a.BlobName("X1"), Size: 300_000, SHA256: "ab12"}
	golden(t, "step_full", s.Header(), nil, wiretest.Opaque, recodeStep(t))
	back, err := wire.ParseStep(s.Header())
	require.NoError(t, err)
	require.Equal(t, s, back)

	// A declared tenant's: a worker of before may take it as long as it needs nothing from the bucket.
	s.Bucket = "blobs-acme"
	require.True(t, wire.KindEvent.Known(s.Header()))
	s.Handle.Bucket, s.Handle.NUID, s.Handle.Chunks = "blobs-acme", "x1", 1
	h := s.Header()
	wiretest.Golden(t, *update, "step_bucket", nats.Msg{Header: h})
	require.False(t, wire.KindEvent.Known(h))
	require.False(t, wire.KindSealingKey.Known(h), "who knows of sealed secrets alone leaves it too")
	require.True(t, wire.KindStep.Known(h))
	back, err = wire.ParseStep(wiretest.Load(t, "step_bucket").Header)
	require.NoError(t, err)
	require.Equal(t, s, back)
}

func TestResultForms(t *testing.T) {
	ok := wire.Result{Body: []byte(`{"temp": 21}`), Worker: "w1", Started: at, Ended: at.Add(time.Millisecond)}
	h, body := ok.Message()
	golden(t, "result_ok", h, body, wiretest.Opaque, recodeResult)
	require.Equal(t, ok, wire.ParseResult(h, body))

	again := ok
	again.Deliveries = 2
	h, body = again.Message()
	golden(t, "result_redelivered", h, body, wiretest.Opaque, recodeResult)
	require.Equal(t, again, wire.ParseResult(h, body))
	again.Deliveries = 1
	h, body = again.Message()
	require.Equal(t, ok, wire.ParseResult(h, body), "once goes without saying")
	for _, n := range []string{"-1", "1", "x", "99999999999999999999"} {
		h[subjects.HeaderDeliveries] = []string{n}
		require.Zero(t, wire.ParseResult(h, body).Deliveries, n)
	}

	text := wire.Result{Body: []byte("sunny"), Text: true, Worker: "w1"}
	h, body = text.Message()
	golden(t, "result_text", h, body, wiretest.Opaque, recodeResult)
	require.Equal(t, text, wire.ParseResult(h, body))

	typed := wire.Result{Body: []byte(`{"id":7}`), Type: "crm.User", Planner: "Ann,\r\nuser 7 ☕", Worker: "w1"}
	h, body = typed.Message()
	golden(t, "result_typed", h, body, wiretest.Opaque, recodeResult)
	require.Equal(t, typed, wire.ParseResult(h, body))
	for _, long := range []string{strings.Repeat("x", 1<<20), strings.Repeat("\x01☕", 5000), strings.Repeat("\"", wire.MaxPlanner-3)} {
		h, body = wire.Result{Planner: long}.Message()
		got := wire.ParseResult(h, body).Planner
		require.LessOrEqual(t, len(h[subjects.HeaderPlanner][0]), wire.MaxPlanner)
		require.Greater(t, len(got), 1000)
		require.True(t, strings.HasPrefix(long, strings.TrimSuffix(got, "…")))
	}
	for _, none := range []string{"7", `"`, `"` + strings.Repeat("x", wire.MaxPlanner) + `"`} {
		h[subjects.HeaderPlanner], h[subjects.HeaderType] = []string{none}, []string{"a b"}
		got := wire.ParseResult(h, body)
		require.Empty(t, got.Planner)
		require.Empty(t, got.Type)
	}

	large := wire.Result{Handle: &outcome.Handle{Name: "n", Size: 2 << 20, SHA256: "cd"}}
	h, body = large.Message()
	golden(t, "result_handle", h, body, wiretest.Opaque, recodeResult)
	require.Equal(t, large, wire.ParseResult(h, body))

	large.Handle.Checked = true
	h, body = large.Message()
	golden(t, "result_handle_checked", h, body, wiretest.Opaque, recodeResult)
	require.Equal(t, large, wire.ParseResult(h, body))

	failed := wire.Result{Worker: "w1", Error: &fault.Error{Code: fault.ToolFailed, Message: "503 from upstream", Retryable: true, RetryAfter: 2 * time.Second, Details: []byte(`{"status":503}`)}}
	h, body = failed.Message()
	golden(t, "result_error", h, body, wiretest.Ignored, recodeResult)
	require.Equal(t, failed, wire.ParseResult(h, body))
}

func TestForeignResultsAreReadOrFailTheStep(t *testing.T) {
	parse := func(status, body string) wire.Result {
		return wire.ParseResult(nats.Header{subjects.HeaderStatus: {status}}, []byte(body))
	}
	require.Nil(t, parse("ok", "x").Error)
	require.Nil(t, wire.ParseResult(nil, []byte("1")).Error)
	require.Equal(t, fault.ToolTerminal, parse("done", "x").Error.Code)
	require.Equal(t, fault.ToolFailed, parse("error", "plain words").Error.Code)
	require.Equal(t, "plain words", parse("error", "plain words").Error.Message)
	own := parse("error", `{"code":"NOT_FOUND","message":"no such city","retryable":false}`).Error
	require.Equal(t, fault.ToolFailed, own.Code)
	require.Equal(t, "NOT_FOUND: no such city", own.Message)
	require.False(t, own.Retryable)
	require.True(t, parse("error", `{"code":"BUSY","message":"later"}`).Error.Retryable)
	require.True(t, parse("error", `{"code":"tool_failed","message":"later"}`).Error.Retryable)
	require.LessOrEqual(t, len(parse("error", strings.Repeat("é", 1<<20)).Error.Message), 16<<10+4)
	bad := wire.ParseResult(nats.Header{subjects.HeaderHandle: {"{"}}, nil)
	require.Equal(t, fault.ToolTerminal, bad.Error.Code)
}

func TestHugeErrorsAreShortened(t *testing.T) {
	_, body := wire.Result{Error: &fault.Error{Code: fault.ToolFailed, Message: strings.Repeat("x", 1<<20), Details: []byte("not json")}}.Message()
	require.LessOrEqual(t, len(body), wire.InlineLimit)
	require.Equal(t, fault.ToolFailed, wire.ParseResult(nats.Header{subjects.HeaderStatus: {"error"}}, body).Error.Code)
}

func TestStepsThatAreNotOurs(t *testing.T) {
	_, err := wire.ParseStep(nil)
	require.Error(t, err)
	_, err = wire.ParseStep(nats.Header{subjects.HeaderResult: {"x"}, subjects.HeaderKey: {"k"}, subjects.HeaderAttempt: {"0"}})
	require.Error(t, err)
	require.True(t, wire.KindEvent.Known(nil))
	for version, known := range map[string]bool{"": true, "1": true, "0": true, "1.7": true, "2": false, "2.0": false, "10": false, "x": false, "-1": false, "1x": false} {
		require.Equal(t, known, wire.KindEvent.Known(nats.Header{subjects.HeaderVersion: {version}}), version)
	}
	for version, known := range map[string]bool{"": true, "1": true, "2": true, "2.1": true, "3": true, "4": true, "5": false, "x": false} {
		require.Equal(t, known, wire.KindStart.Known(nats.Header{subjects.HeaderVersion: {version}}), version)
	}
	for version, known := range map[string]bool{"": true, "1": true, "2": false, "3": true, "3.1": true, "4": false, "x": false} {
		require.Equal(t, known, wire.KindOutcome.Known(nats.Header{subjects.HeaderVersion: {version}}), version)
	}
	require.True(t, wire.KindEvent.Known(wire.Versioned()))
	require.Equal(t, fault.NewerVersion, wire.Newer("it").Code)
}
