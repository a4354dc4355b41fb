package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

const (
	// BeatEvery is how often a worker says that it lives.
	BeatEvery = 5 * time.Second
	// MissedBeats is how many in a row were not heard of a worker that is gone.
	MissedBeats = 3

	// MaxBeatTools bounds the tools that a beat names, so that a worker of thousands costs no more than one of hundreds.
	MaxBeatTools = 256
	// MaxBeatTenants bounds the tenants that it names.
	MaxBeatTenants = 32
	// MaxBeatWhy bounds why a tool is held, in bytes.
	MaxBeatWhy = 200
	// MaxBeat bounds its body, in bytes: what is larger is not looked into.
	MaxBeat = 128 << 10
)

// Beat is a worker's word that it lives. Whoever reads it believes nothing of it but that: names, numbers and their sum
// are bounded, and shown as what the worker says.
type Beat struct {
	Worker tool.Worker   // without its name, user and times, which the body doesn't tell
	Up     time.Duration // for how long it has run: no clock but its own is needed for that
	Gone   bool          // it is the last one
}

// beatBody is a beat as JSON.
type beatBody struct {
	Version string            `json:"version,omitempty"`
	Host    string            `json:"host,omitempty"`
	PID     int               `json:"pid,omitempty"`
	UpMS    int64             `json:"up_ms"`
	Leaving bool              `json:"leaving,omitempty"`
	Gone    bool              `json:"gone,omitempty"`
	Busy    int               `json:"busy"`
	Done    int64             `json:"done"`
	Failed  int64             `json:"failed"`
	Tools   []tool.WorkerTool `json:"tools,omitempty"`
	More    int               `json:"more,omitempty"`
	Tenants []string          `json:"tenants,omitempty"`
}

// Body writes the beat, with as many of the tools as it may name: those at work first, then those that are held.
func (b Beat) Body() []byte {
	w := b.Worker
	tools := slices.Clone(w.Tools)
	byName := func(a, b tool.WorkerTool) int { return strings.Compare(a.Tool, b.Tool) }
	if len(tools) > MaxBeatTools {
		slices.SortFunc(tools, func(a, b tool.WorkerTool) int {
			return cmp.Or(cmp.Compare(rank(a), rank(b)), byName(a, b))
		})
		w.More += len(tools) - MaxBeatTools
		tools = tools[:MaxBeatTools]
	}
	slices.SortFunc(tools, byName)
	for i := range tools {
		tools[i].Why = text.Clip(tools[i].Why, MaxBeatWhy)
	}
	form := beatBody{
		Version: w.Version, Host: w.Host, PID: w.PID, UpMS: b.Up.Milliseconds(), Leaving: w.Leaving, Gone: b.Gone,
		Busy: w.Busy, Done: w.Done, Failed: w.Failed, Tools: tools, More: w.More,
		Tenants: w.Tenants[:min(len(w.Tenants), MaxBeatTenants)],
	}
	body, _ := json.Marshal(form) // strings and numbers: it can't fail
	if len(body) > MaxBeat {      // long reasons, of many tools, that JSON writes longer still
		for i := range tools {
			tools[i].Why = ""
		}
		body, _ = json.Marshal(form)
	}
	return body
}

// rank says which tools are named first.
func rank(t tool.WorkerTool) int {
	switch {
	case t.Busy > 0:
		return 0
	case t.Held:
		return 1
	}
	return 2
}

// ParseBeat reads a beat. It never fails, since that it came says that the worker lives: of one that can't be read, or
// that a newer version wrote, nothing else is known.
func ParseBeat(h nats.Header, body []byte) Beat {
	var b beatBody
	if len(body) > MaxBeat || !KindBeat.Known(h) || json.Unmarshal(body, &b) != nil {
		return Beat{Worker: tool.Worker{Tools: []tool.WorkerTool{}}}
	}
	out := Beat{Up: time.Duration(within(b.UpMS, longestUp.Milliseconds())) * time.Millisecond, Gone: b.Gone}
	w := &out.Worker
	w.Version, w.Host = shown(b.Version, 64), shown(b.Host, subjects.MaxWorker)
	w.PID, w.Leaving = int(within(int64(b.PID), 1<<31)), b.Leaving
	w.Busy, w.Done, w.Failed = int(within(int64(b.Busy), 1<<31)), within(b.Done, exact), within(b.Failed, exact)
	w.More = int(within(int64(b.More), 1<<31))
	named := map[string]bool{}
	w.Tools = []tool.WorkerTool{}
	for _, t := range b.Tools {
		if len(w.Tools) == MaxBeatTools {
			break
		}
		if named[t.Tool] || !subjects.ValidTool(t.Tool) {
			continue
		}
		named[t.Tool] = true
		t.Slots, t.Busy = int(within(int64(t.Slots), 1<<16)), int(within(int64(t.Busy), 1<<16))
		t.Done, t.Failed, t.Why = within(t.Done, exact), within(t.Failed, exact), shown(t.Why, MaxBeatWhy)
		w.Tools = append(w.Tools, t)
	}
	for _, tenant := range b.Tenants[:min(len(b.Tenants), MaxBeatTenants)] {
		if subjects.ValidTenant(tenant) {
			w.Tenants = append(w.Tenants, tenant)
		}
	}
	return out
}

const (
	// longestUp is longer than any worker runs.
	longestUp = 10 * 365 * 24 * time.Hour
	// exact bounds numbers that a browser is told.
	exact = 1 << 53
)

func within(n, most int64) int64 { return min(max(n, 0), most) }

// shown makes a text of a stranger one that can be shown in a line.
func shown(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return '_'
		}
		return r
	}, s)
}
