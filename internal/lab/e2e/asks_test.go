package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// desk is the tool "seat", which asks a person in the middle of its work, and notes each call.
type desk struct {
	mu      sync.Mutex
	asked   int
	replies []string

	reached, goOn chan struct{} // a call that has not asked yet says where it is, and waits; nil: it does not
}

const (
	seatForm  = `{"type":"object","properties":{"row":{"type":"integer"}},"required":["row"]}`
	seatState = "hold 7"
	seatTaken = `{"row":12}`
)

// asks notes a call that is to ask.
func (d *desk) asks() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	if d.reached != nil {
		close(d.reached)
		<-d.goOn
	}
}

// told notes a call that was answered, and returns what comes of it.
func (d *desk) told(answer json.RawMessage, state any) map[string]any {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replies = append(d.replies, string(answer))
	return map[string]any{"seat": answer, "state": state}
}

func (d *desk) seat(ctx context.Context, _ json.RawMessage) (worker.Output, error) {
	if r, ok := worker.Answered(ctx); ok {
		if r.Attempt != 1 {
			return worker.Output{}, worker.Terminal(fmt.Errorf("attempt %d is said to have asked", r.Attempt))
		}
		body, err := json.Marshal(d.told(r.Answer, r.State))
		return worker.Output{Body: body}, err
	}
	d.asks()
	return worker.Output{}, worker.Ask(ctx, worker.Question{
		Text: "Which seat?", Schema: json.RawMessage(seatForm), State: json.RawMessage(`"` + seatState + `"`),
	})
}

// ServeHTTP is the tool as that of an MCP server of 2026-07-28.
func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage
		Method string
		Params struct {
			RequestState   string
			InputResponses map[string]struct{ Content json.RawMessage }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.ID == nil {
		http.Error(w, "this is no request", http.StatusMethodNotAllowed)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": request.ID}
	switch said := request.Params.InputResponses["seat"].Content; {
	case request.Method == "server/discover":
		answer["result"] = json.RawMessage(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},
			"serverInfo":{"name":"desk","version":"1"}}`)
	case request.Method == "tools/list":
		answer["result"] = json.RawMessage(`{"resultType":"complete","tools":[{"name":"seat","inputSchema":{"type":"object"}}]}`)
	case request.Method != "tools/call":
		answer["error"] = json.RawMessage(`{"code":-32601,"message":"there is no such method"}`)
	case said != nil:
		came := d.told(said, request.Params.RequestState)
		answer["result"] = map[string]any{"resultType": "complete", "content": []any{}, "structuredContent": came}
	default:
		d.asks()
		answer["result"] = json.RawMessage(`{"resultType":"input_required","requestState":"` + seatState + `","inputRequests":{"seat":
			{"method":"elicitation/create","params":{"message":"Which seat?","requestedSchema":` + seatForm + `}}}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // to a bridge that may be gone
}

// bridge has a worker of its own process call the tool of the MCP server.
func (d *desk) bridge(t *testing.T, url string) {
	t.Helper()
	srv := httptest.NewServer(d)
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	file := filepath.Join(t.TempDir(), "mcp.json")
	entry := fmt.Sprintf(`{"mcpServers":{"desk":{"url":%q,"x-stepjet":{"allow_private":true}}}}`, srv.URL)
	require.NoError(t, os.WriteFile(file, []byte(entry), 0o600))
	pinned, err := exec.Command(filepath.Join(bin, "stepjet"), "mcp", "pin", "--mcp", file).CombinedOutput()
	require.NoError(t, err, "%s", pinned)
	begin(t, url, "stepjet", "worker", "--mcp", file).says("msg=ready")
}

// host has a worker of this process host the tool.
func (d *desk) host(t *testing.T, nc *nats.Conn) {
	t.Helper()
	w, err := worker.New(nc, worker.Config{Name: "desk"})
	require.NoError(t, err)
	require.NoError(t, w.HandleRaw(&tool.Definition{Name: "seat", Orchestration: &tool.Orchestration{Asks: true}}, d.seat))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case <-w.Ready():
	case err := <-done:
		require.FailNow(t, "the worker ended", "%v", err)
	}
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
}

// booked is the run whose owner is killed.
const booked = "booked"

// TestTheOwnerIsKilledWhileAToolAsks: the owner of a run whose tool asks a person dies by kill -9 before the question's
// record stands, while it asks, right before and right after each thing that it does for it, and after the answer until
// the run is over. The next owner goes on: there is one question, with the same digest, that is answered once, the tool
// is called once to ask and once with the answer, and the run comes to the same.
func TestTheOwnerIsKilledWhileAToolAsks(t *testing.T) {
	t.Parallel()
	step := func(tool string) string {
		s := subjects.Step(subjects.Attempt{
			Run: subjects.NewRun(subjects.DefaultTenant, booked), Generation: 7, Tool: tool, Step: "a", Number: 1,
		}, 0)
		return s[:strings.LastIndex(s, ".7.")+1]
	}
	question := subjects.BucketSubject(subjects.QuestionsBucket, subjects.DefaultTenant+"."+booked)
	history := subjects.BucketSubject(subjects.HistoryBucket, subjects.DefaultTenant+"."+booked)
	two := make(chan struct{}, 2)                        // at a time: each has a server and processes of its own
	for _, tool := range []string{"seat", "desk_seat"} { // of a worker, and of an MCP server behind a bridge
		for _, k := range []struct {
			name  string
			point chaos.Point // without a text: the test kills it
		}{
			{"at the first attempt", chaos.Point{Text: step(tool), Nth: 1}},
			{name: whileWorking},
			{"at the question", chaos.Point{Text: question, Nth: 1}},
			{name: whileThinking},
			{"at the end of the question", chaos.Point{Text: question, Nth: 2}},
			{"at the second attempt", chaos.Point{Text: step(tool), Nth: 2}},
			{"at the history", chaos.Point{Text: history, Nth: 1}},
		} {
			sides := map[string]bool{"before what it sends ": false, "after what it sends ": true}
			if k.point.Text == "" {
				sides = map[string]bool{"": false}
			}
			for side, after := range sides {
				p := k.point
				p.Name, p.After = side+k.name, after
				t.Run(tool+" "+p.Name, func(t *testing.T) {
					t.Parallel()
					two <- struct{}{}
					defer func() { <-two }()
					outlives(t, tool, &p)
				})
			}
		}
	}
}

const (
	whileWorking  = "while the tool works"
	whileThinking = "while a person thinks"
)

func outlives(t *testing.T, name string, p *chaos.Point) {
	ctx, logs := within(t, 2*time.Minute), t.TempDir()
	srv, url := server(t)
	die, thinks, works := p, p.Name == whileThinking, p.Name == whileWorking
	if thinks || works {
		die = nil
	}
	first, err := chaos.StartOrchestrator(ctx, url, "first", filepath.Join(logs, "first"), die)
	require.NoError(t, err)
	t.Cleanup(first.Kill)
	nc, c := connect(t, srv)
	d := &desk{}
	if works {
		d.reached, d.goOn = make(chan struct{}), make(chan struct{})
	}
	if name == "seat" {
		d.host(t, nc)
	} else {
		d.bridge(t, url)
	}

	next := make(chan error, 1) // the next owner begins when the first is dead, whenever that is
	go func() {
		select {
		case <-first.Gone():
		case <-ctx.Done():
			next <- fmt.Errorf("its moment never came: %w", ctx.Err())
			return
		}
		second, err := chaos.StartOrchestrator(ctx, url, "second", filepath.Join(logs, "second"), nil)
		if err == nil {
			t.Cleanup(second.Kill)
		}
		next <- err
	}()
	plan := fmt.Appendf(nil, `{"steps":[{"id":"a","tool":%q,"arguments":{"flight":"LH 400"}}]}`, name)
	r, err := c.Submit(ctx, plan, client.SubmitOptions{Run: booked})
	require.NoError(t, err)
	if works {
		<-d.reached
		first.Kill()
		close(d.goOn)
	}
	q := asked(t, c, booked, 1)["a"]
	if thinks {
		first.Kill()
		require.NoError(t, <-next)
		next <- nil
		require.Equal(t, q, asked(t, c, booked, 1)["a"], "what is asked follows from the records")
	}
	require.Equal(t, 1, q.Number)
	_, err = c.Answer(ctx, q, json.RawMessage(seatTaken), client.Answer{By: "ann"})
	require.NoError(t, err)
	o, err := r.Wait(ctx)
	require.NoError(t, err)
	require.NoError(t, <-next)
	require.Equal(t, outcome.Succeeded, o.Status, "%s", o.JSON())
	got, _ := o.Results.Get("a")
	require.JSONEq(t, `{"seat":`+seatTaken+`,"state":"`+seatState+`"}`, string(got))

	var doc *outcome.Run
	require.Eventually(t, func() bool {
		doc, err = c.Get(ctx, booked)
		return err == nil && doc.Outcome != nil && len(doc.Steps) == 1
	}, time.Minute, 10*time.Millisecond)
	a := doc.Steps[0]
	require.Equal(t, 2, a.Attempts)
	require.Equal(t, []bool{true, false}, []bool{a.Tries[0].Asked, a.Tries[1].Asked})
	require.Len(t, a.Answers, 1, "it is answered once")
	require.Equal(t, q.Digest, a.Answers[0].Digest)
	require.Equal(t, "ann", a.Answers[0].By)
	asked(t, c, booked, 0)
	d.mu.Lock()
	defer d.mu.Unlock()
	require.Equal(t, 1, d.asked, "the tool asks once")
	require.Equal(t, []string{seatTaken}, d.replies, "and it is told the answer once")
}
