package wire_test

import (
	"math"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

func TestProgressForms(t *testing.T) {
	t.Parallel()
	form := func(p outcome.Progress) nats.Msg {
		return nats.Msg{Header: wire.Versioned(), Data: wire.ProgressBody(p)}
	}
	p := outcome.Progress{Done: 3.5, Total: 12, Message: "reading page 4"}
	m := form(p)
	golden(t, "progress", m.Header, m.Data, wiretest.Ignored, func(m nats.Msg) nats.Msg {
		read, ok := wire.ParseProgress(m.Data)
		require.True(t, ok)
		require.Equal(t, p, read)
		return form(read)
	})
	event(t, "progress_event", wire.ProgressEvent{Run: "order-42", Step: "tokyo=3", Tool: "get_weather", Attempt: 1, Progress: p}, wire.ProgressEvent.Body)
}

// Who hosts a tool may say anything.
func TestHostileProgress(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "[]", `{"done":"x"}`, `{"done":1e999}`, `{"message":"` + strings.Repeat("x", 1<<16) + `"}`} {
		_, ok := wire.ParseProgress([]byte(body))
		require.False(t, ok, "%.40s", body)
	}
	p, ok := wire.ParseProgress([]byte(`{"done":-1,"total":1e300,"message":"\u001b[2J\n` + strings.Repeat("x", 600) + `"}`))
	require.True(t, ok)
	require.Equal(t, outcome.Progress{Total: 1 << 53, Message: "_[2J_" + strings.Repeat("x", wire.MaxProgressText-5)}, p)
	for _, n := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -3} {
		_, ok = wire.ParseProgress(wire.ProgressBody(outcome.Progress{Done: n, Total: n}))
		require.True(t, ok)
	}
}
