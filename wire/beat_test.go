package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/lab/wiretest"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

func TestBeatForms(t *testing.T) {
	t.Parallel()
	form := func(b wire.Beat) nats.Msg { return nats.Msg{Header: wire.Versioned(), Data: b.Body()} }
	recode := func(m nats.Msg) nats.Msg { return form(wire.ParseBeat(m.Header, m.Data)) }
	full := wire.Beat{
		Up: 61_250 * time.Millisecond,
		Worker: tool.Worker{
			Version: "v0.3.0 0123456789ab", Host: "pod-7", PID: 17, Leaving: true, Busy: 3, Done: 1204, Failed: 7, More: 2744,
			Tools:   []tool.WorkerTool{{Tool: "fetch", Slots: 64, Busy: 3, Done: 1204, Failed: 7}, {Tool: "search", Slots: 8, Held: true, Why: "nobody has agreed to its new definition"}},
			Tenants: []string{"acme"},
		},
	}
	for name, b := range map[string]wire.Beat{
		"beat":      {Up: time.Second, Worker: tool.Worker{Version: "v0.3.0", Host: "h", PID: 1, Tools: []tool.WorkerTool{{Tool: "search", Slots: 64}}}},
		"beat_full": full, "beat_gone": {Up: time.Hour, Gone: true, Worker: tool.Worker{Tools: []tool.WorkerTool{}}},
	} {
		m := form(b)
		golden(t, name, m.Header, m.Data, wiretest.Ignored, recode)
		require.Equal(t, b, wire.ParseBeat(m.Header, m.Data), name)
	}
}

// A worker of thousands of tools names those first that somebody asks about, and is read as it was written.
func TestABeatIsBounded(t *testing.T) {
	t.Parallel()
	var w tool.Worker
	for i := range 3000 {
		x := tool.WorkerTool{Tool: fmt.Sprintf("%0*d", subjects.MaxToolName, i), Slots: 65536, Done: 1 << 53, Failed: 1 << 53}
		switch {
		case i%100 == 99:
			x.Busy = 65536
		case i%1000 == 0:
			x.Held, x.Why = true, strings.Repeat("away", 100)
		}
		w.Tools = append(w.Tools, x)
	}
	body := wire.Beat{Worker: w}.Body()
	require.LessOrEqual(t, len(body), wire.MaxBeat)
	read := wire.ParseBeat(wire.Versioned(), body).Worker
	require.Len(t, read.Tools, wire.MaxBeatTools)
	require.Equal(t, 3000-wire.MaxBeatTools, read.More)
	busy, held := 0, 0
	for _, x := range read.Tools {
		if x.Busy > 0 {
			busy++
		}
		if x.Held {
			held++
			require.Len(t, x.Why, wire.MaxBeatWhy)
		}
	}
	require.Equal(t, []int{30, 3}, []int{busy, held})
	require.Equal(t, w.Tools[2999], *read.Of(w.Tools[2999].Tool), "it is at work")
	require.Nil(t, read.Of(w.Tools[2998].Tool))

	for i := range w.Tools {
		w.Tools[i].Held, w.Tools[i].Why = true, strings.Repeat("<", wire.MaxBeatWhy)
	}
	body = wire.Beat{Worker: w}.Body()
	require.LessOrEqual(t, len(body), wire.MaxBeat)
	require.Len(t, wire.ParseBeat(wire.Versioned(), body).Worker.Tools, wire.MaxBeatTools, "reasons are left out before tools are")
}

// That a beat came says that its worker lives, whatever it says.
func TestHostileBeats(t *testing.T) {
	t.Parallel()
	silent := wire.Beat{Worker: tool.Worker{Tools: []tool.WorkerTool{}}}
	for _, body := range []string{
		"", "{", "[]", `"x"`, `{"tools":7}`, `{"done":1e400}`, `{"busy":"many"}`, `{"host":"` + strings.Repeat("x", wire.MaxBeat) + `"}`,
	} {
		require.Equal(t, silent, wire.ParseBeat(wire.Versioned(), []byte(body)), "%.40s", body)
	}
	newer := nats.Header{subjects.HeaderVersion: {"7"}}
	require.Equal(t, silent, wire.ParseBeat(newer, []byte(`{"host":"h"}`)))
	var tools []map[string]any
	for i := range 400 {
		tools = append(tools, map[string]any{"tool": fmt.Sprint("t", i%300), "slots": -1, "busy": 1 << 40, "done": -5})
	}
	tools[0]["tool"] = "a b"
	tools[1]["why"] = "\x1b[2J" + strings.Repeat("x", 500)
	body, err := json.Marshal(map[string]any{
		"version": strings.Repeat("v", 500), "host": "\x1b[31m\u202eh\n", "pid": -3, "up_ms": int64(1) << 62, "busy": -1, "done": int64(1) << 62,
		"failed": -9, "more": -1, "tools": tools, "tenants": []string{"acme", "a.>", ""},
	})
	require.NoError(t, err)
	b := wire.ParseBeat(wire.Versioned(), body)
	require.Len(t, b.Worker.Version, 64)
	require.Equal(t, "_[31m_h_", b.Worker.Host)
	require.Equal(t, 10*365*24*time.Hour, b.Up)
	require.Equal(t, []int64{0, 0, 1 << 53, 0, 0}, []int64{int64(b.Worker.PID), int64(b.Worker.Busy), b.Worker.Done, b.Worker.Failed, int64(b.Worker.More)})
	require.Len(t, b.Worker.Tools, wire.MaxBeatTools)
	require.Equal(t, "_[2J"+strings.Repeat("x", wire.MaxBeatWhy-4), b.Worker.Tools[0].Why)
	b.Worker.Tools[0].Why = ""
	require.Equal(t, tool.WorkerTool{Tool: "t1", Busy: 1 << 16}, b.Worker.Tools[0])
	require.Equal(t, []string{"acme"}, b.Worker.Tenants)
}
