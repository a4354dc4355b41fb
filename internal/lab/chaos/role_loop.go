package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// The tools of a worker of loops.
const (
	LoopPlanner = "planner"
	LoopTool    = "look"
)

// LoopCalls are those of each round, side by side.
const LoopCalls = 2

// LoopDefinition is an agent of so many rounds that call LoopTool, and one more with the output.
func LoopDefinition(name string, rounds int) []byte {
	return fmt.Appendf(nil, `{"name":%q,"description":"Looks.","agent":{"planner":{"tool":%q,"mode":"plan"},"tools":[%q],"max_rounds":%d}}`,
		name, LoopPlanner, LoopTool, rounds+1)
}

// LoopOutput is what such an agent comes to.
func LoopOutput(rounds int) string {
	return fmt.Sprintf(`{"first":1,"last":%d}`, 10*(rounds-1)+LoopCalls)
}

// LoopPoints are moments in each phase of a round: of orchestrators and of workers of loops.
func LoopPoints() (orchestrators, workers []Point) {
	dispatch := func(tool string) string { return strings.TrimSuffix(subjects.ToolFilter(tool, 0), ">") }
	orchestrators = bothSides(
		Point{Name: "the planner's call", Text: dispatch(LoopPlanner)},
		Point{Name: "the round's record", Text: ".round."},
		Point{Name: "a call", Text: dispatch(LoopTool)},
		Point{Name: "a part", Text: strings.TrimSuffix(subjects.BlobsSubjects("")[0], ">")},
		Point{Name: "any record", Text: ledger},
		Point{Name: "history", Text: subjects.BucketSubject(subjects.HistoryBucket, "")},
	)
	return orchestrators, workerPoints
}

// loop hosts a planner and a tool, which note their calls.
func (r *Role) loop(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	events, err := journal.Open(r.Log, r.Name)
	if err != nil {
		return err
	}
	events.Unflushed = true // only processes are killed here, and the machine keeps what they wrote
	w, err := worker.New(nc, worker.Config{Name: r.Name, MaxDeliveries: r.MaxDeliveries, Logger: log})
	if err != nil {
		return err
	}
	h := &host{events: events, die: r.Die}
	for name, answer := range map[string]worker.Handler{LoopPlanner: planLoop, LoopTool: look} {
		pause := time.Duration(0)
		if name == LoopPlanner {
			pause = r.Pause
		}
		def := &tool.Definition{Name: name, Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 1024}}
		if err := w.HandleRaw(def, h.noted(answer, pause)); err != nil {
			return err
		}
	}
	go func() { <-w.Ready(); ready() }()
	return w.Run(ctx)
}

// noted notes when a call begins and when it ends, and may be the end of the process before and after what it does.
func (h *host) noted(next worker.Handler, pause time.Duration) worker.Handler {
	return func(ctx context.Context, args json.RawMessage) (worker.Output, error) {
		info, _ := worker.InfoFrom(ctx)
		e := journal.Event{Kind: journal.Begin, Run: info.Run, Step: info.Step, Tool: info.Tool, Attempt: info.Attempt, Delivery: info.Delivery, Key: info.Key}
		h.events.Add(e)
		h.mayDie(false)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return worker.Output{}, context.Cause(ctx)
		}
		out, err := next(ctx, args)
		h.mayDie(true)
		e.Kind = journal.End
		h.events.Add(e)
		return out, err
	}
}

// planLoop answers with calls whose arguments follow from the round, and in the last one with the output.
func planLoop(_ context.Context, args json.RawMessage) (worker.Output, error) {
	var in struct {
		Round     int `json:"round"`
		MaxRounds int `json:"max_rounds"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return worker.Output{}, worker.Terminal(err)
	}
	if last := in.MaxRounds - 1; in.Round == last {
		return worker.Output{Body: fmt.Appendf(nil, `{"output":{"first":"$ref:r0.c0.n","last":"$ref:r%d.c%d.n"}}`, last-1, LoopCalls-1)}, nil
	}
	body := []byte(`{"steps":[`)
	for i := range LoopCalls {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"id":"c%d","tool":%q,"arguments":{"n":%d}}`, i, LoopTool, 10*in.Round+i)
	}
	return worker.Output{Body: append(body, "]}"...)}, nil
}

// look returns the next number.
func look(_ context.Context, args json.RawMessage) (worker.Output, error) {
	var in struct{ N int }
	if err := json.Unmarshal(args, &in); err != nil {
		return worker.Output{}, worker.Terminal(err)
	}
	return worker.Output{Body: fmt.Appendf(nil, `{"n":%d}`, in.N+1)}, nil
}
