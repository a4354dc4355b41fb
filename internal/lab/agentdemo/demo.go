// Package agentdemo is "make demo-agent": one agent at work, from its first request to its output, with all that may go
// wrong on the way. Its planner is a script, so it needs no key; its tools read and write real files.
//
// The task takes four rounds. In the first, the planner asks for a file that is not there, and goes around that in the
// second. While it thinks about the third, the only orchestrator is killed with kill -9, and another one is started. What
// it asks for then waits for an approval, which the demonstration gives. The report counts what of it was done twice.
package agentdemo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/agent/parts"
	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

const (
	task = "Which customer ordered most in the last year that is known? Write to them."
	run  = "letter"
	// killRound is the round during whose planner's call the orchestrator is killed.
	killRound = 2
	// The budget is a little more than what the task takes.
	budgetSteps, budgetTokens, budgetUSD = 20, 50_000, 0.10
)

// definition is the agent.
var definition = fmt.Sprintf(`{"name": "clerk", "description": "Finds things out about orders, and writes letters.",
	"inputSchema": {"type": "object", "properties": {"task": {"type": "string"}, "year": {"type": "integer"}}, "required": ["task", "year"]},
	"agent": {
		"planner": {"tool": "planner", "model": "scripted", "mode": "plan", "max_output_tokens": 500},
		"instructions": "${input.task} It is ${input.year}.",
		"tools": ["read_orders", "total_by_customer", {"tool": "write_letter", "needs": {"all": ["total_by_customer"]}}],
		"max_rounds": 8,
		"budget": {"steps": %d, "tokens": %d, "cost_usd": %g, "time": "5m"}}}`, budgetSteps, budgetTokens, budgetUSD)

// show is one demonstration at work.
type show struct {
	dir     string
	srv     *embedded.Server
	nc      *nats.Conn
	client  *client.Client
	desk    *desk
	planner *planner
	first   *chaos.Alone
	second  *chaos.Alone
	worker  <-chan error
	stop    context.CancelFunc
}

// Run has the agent do its task, and reports what came of it.
func Run(ctx context.Context) (_ *Report, err error) {
	ctx, stop := context.WithCancel(ctx)
	s := &show{stop: stop}
	defer func() {
		if ended := s.close(); err == nil {
			err = ended
		}
	}()
	began := time.Now()
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	up := time.Since(began)
	submitted := time.Now()
	r, err := s.client.Submit(ctx, fmt.Appendf(nil, `{"steps":[{"id":"agent","tool":"clerk","arguments":{"task":%q,"year":%d}}]}`,
		task, thisYear), client.SubmitOptions{Run: run})
	if err != nil {
		return nil, err
	}
	var out *outcome.Outcome
	over := make(chan error, 1)
	going, ended := context.WithCancelCause(ctx) // as long as the run is not over
	go func() {
		var err error
		out, err = r.Wait(ctx)
		ended(early(out, err))
		over <- err
	}()
	killed, err := s.kill(going)
	if err != nil {
		return nil, err
	}
	approved, err := s.approve(going)
	if err != nil {
		return nil, err
	}
	if err := <-over; err != nil {
		return nil, err
	}
	took := time.Since(submitted)
	doc, err := s.client.Get(ctx, run)
	if err != nil {
		return nil, err
	}
	return s.report(doc, out, times{up: up, took: took, away: approved.Sub(killed)})
}

// early says why nothing is waited for any more.
func early(out *outcome.Outcome, err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("the run was over before: %s", out.JSON())
}

// start brings up a server on disk, one orchestrator as a process of its own, the tools, the planner and the agent.
func (s *show) start(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "stepjet-demo-agent-"); err != nil {
		return err
	}
	if s.srv, err = embedded.Start(embedded.Options{Dir: filepath.Join(s.dir, "store"), Listen: "127.0.0.1:0"}); err != nil {
		return err
	}
	if s.first, err = s.orchestrator(ctx, "first"); err != nil {
		return err
	}
	if s.nc, err = nats.Connect("", nats.InProcessServer(s.srv.InProcess())); err != nil {
		return err
	}
	if s.desk, err = newDesk(filepath.Join(s.dir, "desk")); err != nil {
		return err
	}
	s.planner = &planner{parts: parts.NewKeeper(parts.DefaultKept), thinks: make(chan struct{}), goesOn: make(chan struct{})}
	w, err := worker.New(s.nc, worker.Config{Name: "demo"})
	if err != nil {
		return err
	}
	s.desk.host(w)
	worker.Handle(w, "planner", s.planner.answer, worker.Description("Answers as a language model would, from a script."),
		worker.Contract(tool.Orchestration{PartContent: true})) // parts.Keeper finds the last part of a request there, too
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	s.worker = ended
	select {
	case <-w.Ready():
	case err := <-ended:
		ended <- nil
		return fmt.Errorf("the worker ended: %w", err)
	}
	if s.client, err = client.New(ctx, s.nc, client.Config{}); err != nil {
		return err
	}
	_, err = s.client.ApplyTemplate(ctx, []byte(definition))
	return err
}

func (s *show) orchestrator(ctx context.Context, name string) (*chaos.Alone, error) {
	return chaos.StartOrchestrator(ctx, s.srv.URL(), name, filepath.Join(s.dir, name+".log"), nil)
}

// kill waits until the planner thinks about its fateful round, kills the orchestrator, lets the planner answer into the
// void, and starts another one. It returns when the first was killed.
func (s *show) kill(ctx context.Context) (at time.Time, err error) {
	select {
	case <-s.planner.thinks:
	case <-ctx.Done():
		return at, fmt.Errorf("the planner was not asked about round %d: %w", killRound, context.Cause(ctx))
	}
	at = time.Now()
	s.first.Kill()
	close(s.planner.goesOn)
	s.second, err = s.orchestrator(ctx, "second")
	return at, err
}

// approve approves the one call that waits for it, and returns when it was asked for.
func (s *show) approve(ctx context.Context) (at time.Time, err error) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		asked, err := s.client.Questions(ctx, run)
		if err != nil {
			return at, err
		}
		if len(asked) > 0 {
			at = time.Now()
			q, err := s.client.Question(ctx, run, asked[0].Step)
			if err == nil {
				_, err = s.client.Approve(ctx, q, client.Answer{By: "the demonstration", Reason: "the letter says what is so"})
			}
			return at, err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return at, fmt.Errorf("nothing was asked of a person: %w", context.Cause(ctx))
		}
	}
}

// close ends all parts, the last one first, and removes what they kept.
func (s *show) close() (err error) {
	if s.client != nil {
		s.client.Close()
	}
	s.stop()
	if s.worker != nil {
		err = <-s.worker
	}
	if s.nc != nil {
		s.nc.Close()
	}
	for _, o := range []*chaos.Alone{s.first, s.second} {
		if o != nil {
			o.Kill()
		}
	}
	if s.srv != nil {
		s.srv.Shutdown()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir) // it is a temporary one
	}
	return err
}

// planner is the script. It reads of its requests what a model would: what its calls came to.
type planner struct {
	parts  *parts.Keeper
	mu     sync.Mutex
	asked  []int // rounds, in the order in which it was asked
	last   request
	thinks chan struct{} // closed when it is asked about killRound
	goesOn chan struct{} // closed when it may answer that
}

// request is what the script reads of a request.
type request struct {
	Round int `json:"round"`
	Input struct {
		Year int `json:"year"`
	} `json:"input"`
	Rounds []struct {
		Records []record `json:"records"`
	} `json:"rounds"`
	Budget left `json:"budget"`
}

// left is what a request says is left.
type left struct {
	Steps   int     `json:"steps"`
	Tokens  int     `json:"tokens"`
	CostUSD float64 `json:"cost_usd"`
}

type record struct {
	Tool   string          `json:"tool"`
	Status string          `json:"status"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// answer answers one request. It says what the answer would take of a model that reads four bytes a token, at 3 and 15
// dollars a million.
func (p *planner) answer(ctx context.Context, in json.RawMessage) (map[string]any, error) {
	var r request
	in, err := p.parts.Whole(ctx, in, worker.ReadPart) // a request names the rounds before by their last part
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(in, &r); err != nil {
		return nil, worker.Terminal(err)
	}
	p.mu.Lock()
	again := false
	for _, round := range p.asked {
		again = again || round == r.Round
	}
	p.asked, p.last = append(p.asked, r.Round), r
	p.mu.Unlock()
	if r.Round == killRound && !again {
		close(p.thinks)
		select {
		case <-p.goesOn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	out, err := decide(&r)
	if err != nil {
		return nil, worker.Terminal(err)
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, worker.Terminal(err)
	}
	read, written := len(in)/4, len(body)/4
	out["usage"] = map[string]any{"model": "scripted", "input_tokens": read, "output_tokens": written,
		"cost_usd": float64(3*read+15*written) / 1e6}
	return out, nil
}

type object = map[string]any

// decide is what a model would think.
func decide(r *request) (object, error) {
	look := func(year int) object {
		return object{"steps": []object{
			{"id": "orders", "tool": "read_orders", "arguments": object{"year": year}},
			{"id": "totals", "tool": "total_by_customer", "arguments": object{"orders": "$ref:orders.orders"}},
		}}
	}
	var last []record
	if n := len(r.Rounds); n > 0 {
		last = r.Rounds[n-1].Records
	}
	for _, x := range last {
		switch {
		case x.Tool == "read_orders" && x.Error != nil: // it names the years that there are
			var known, newest int
			if _, err := fmt.Sscanf(x.Error.Message, missing, &known, &newest); err != nil {
				return nil, fmt.Errorf("%q: %w", x.Error.Message, err)
			}
			return look(newest), nil
		case x.Tool == "total_by_customer" && x.Status == string(outcome.StepSucceeded):
			var best totals
			if err := json.Unmarshal(x.Result, &best); err != nil {
				return nil, err
			}
			return object{"steps": []object{{"id": "letter", "tool": "write_letter", "arguments": object{
				"customer": best.Totals[0].Customer, "text": fmt.Sprintf("Thank you for orders of %.2f euros.", best.Totals[0].Euros)}}}}, nil
		case x.Tool == "write_letter" && x.Status == string(outcome.StepSucceeded):
			return object{"output": object{"wrote": fmt.Sprintf("$ref:r%d.letter.file", r.Round-1)}}, nil
		}
	}
	return look(r.Input.Year), nil
}
