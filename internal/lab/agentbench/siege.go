package agentbench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/internal/lab/chaos"
	"github.com/stepjet/stepjet/internal/lab/journal"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// siege is a server in this process, with orchestrators and workers in processes of their own that are killed.
type siege struct {
	dir      string
	progress func(string)
	srv      *embedded.Server
	nc       *nats.Conn
	client   *client.Client
	log      string // of the workers' calls
	rounds   int
	pause    time.Duration
	quick    bool
	ledger   jetstream.ConsumeContext

	mu      sync.Mutex
	started int
	records map[string]time.Time // of the ledger, by the run and the token of the step
	deaths  map[string]time.Time // by name of the process
	kills   map[string]int       // by the moment
}

func newSiege(env Env) (s *siege, err error) {
	s = &siege{progress: env.Progress, records: map[string]time.Time{}, deaths: map[string]time.Time{}, kills: map[string]int{}, rounds: 5}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp(env.Dir, "siege-"); err != nil {
		return nil, err
	}
	s.log = filepath.Join(s.dir, "calls.jsonl")
	if s.srv, err = embedded.Start(embedded.Options{Dir: filepath.Join(s.dir, "store"), Listen: "127.0.0.1:0"}); err != nil {
		return nil, err
	}
	s.nc, err = nats.Connect("", nats.InProcessServer(s.srv.InProcess()))
	return s, err
}

// open applies the agent once orchestrator and worker are there, and begins to read the ledger.
func (s *siege) open(ctx context.Context) (err error) {
	if s.client, err = client.New(ctx, s.nc, client.Config{}); err != nil {
		return err
	}
	if _, err = s.client.ApplyTemplate(ctx, chaos.LoopDefinition("looker", s.rounds)); err != nil {
		return err
	}
	js, err := jetstream.New(s.nc)
	if err != nil {
		return err
	}
	c, err := js.OrderedConsumer(ctx, subjects.LedgerStream(0), jetstream.OrderedConsumerConfig{})
	if err != nil {
		return err
	}
	s.ledger, err = c.Consume(func(m jetstream.Msg) {
		rec, ok := subjects.ParseRecord(m.Subject())
		about, err := m.Metadata()
		if !ok || rec.Kind != subjects.StepKind || err != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.records[callKey(rec.Run.Plain(), rec.Attempt.Step, rec.Attempt.Number)] = about.Timestamp
	})
	return err
}

func callKey(run, step string, attempt int) string {
	return fmt.Sprintf("%s %s %d", run, step, attempt)
}

// role returns the next process of a kind.
func (s *siege) role(worker bool) chaos.Role {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started++
	name := fmt.Sprintf("o%d", s.started)
	r := chaos.OrchestratorRole(s.srv.URL(), name)
	if worker {
		r = chaos.LoopRole(s.srv.URL(), fmt.Sprintf("w%d", s.started), s.log)
		r.Pause = s.pause
	}
	if s.quick {
		r = r.Quick()
	}
	return r
}

// start starts a process; with die it kills itself at that moment.
func (s *siege) start(ctx context.Context, worker bool, die *chaos.Point) (*part, error) {
	r := s.role(worker)
	r.Die = die
	p, err := chaos.StartAlone(ctx, r, filepath.Join(s.dir, r.Name+".log"))
	return &part{p, r.Name}, err
}

type part struct {
	*chaos.Alone
	name string
}

// died notes the death of a process.
func (s *siege) died(name, moment string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaths[name] = time.Now()
	s.kills[moment]++
}

// killed is how many processes were killed.
func (s *siege) killed() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kills {
		n += k
	}
	return n
}

// slot keeps one process there until ctx ends. Each kills itself at the moment that next returns; nil is none.
func (s *siege) slot(ctx context.Context, worker bool, next func() *chaos.Point) error {
	for ctx.Err() == nil {
		die := next()
		p, err := s.start(ctx, worker, die)
		switch {
		case ctx.Err() != nil:
		case err != nil && die == nil:
			return err
		case err != nil: // its moment came while it was starting
			s.died(p.name, die.Name)
			continue
		}
		if err != nil {
			return nil
		}
		select {
		case <-p.Gone():
			if die == nil {
				return fault.New(fault.Internal, "%s ended by itself", p.name)
			}
			s.died(p.name, die.Name)
		case <-ctx.Done():
			p.Kill()
		}
	}
	return nil
}

// plain starts so many processes of either kind without a moment to die at.
func (s *siege) plain(ctx context.Context, orchestrators, workers int) (all []*part, err error) {
	for i := range orchestrators + workers {
		p, err := s.start(ctx, i >= orchestrators, nil)
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
	return all, nil
}

// kill kills processes, all at the same time.
func (s *siege) kill(parts []*part, moment string) {
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(p.Kill)
	}
	all.Wait()
	for _, p := range parts {
		s.died(p.name, moment)
	}
}

// agent runs one, and says what is wrong with what it came to.
func (s *siege) agent(ctx context.Context) error {
	r, err := client.AgentOf(s.client, "looker").Submit(ctx, nil, client.SubmitOptions{})
	if err != nil {
		return err
	}
	out, err := r.Wait(ctx)
	if err != nil {
		return err
	}
	got, _ := out.Results.Get(client.AgentStep)
	if want := chaos.LoopOutput(s.rounds); out.Status != outcome.Succeeded || string(got) != want {
		return fault.New(fault.Internal, "an agent came to %s and %s, not to %s: %.400s", out.Status, got, want, out.JSON())
	}
	return nil
}

// agents keeps so many agents under way until enough says so; it returns how many there were.
func (s *siege) agents(ctx context.Context, parallel int, enough func(begun int) bool) (n int, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for ctx.Err() == nil && !enough(n) {
		n++
		g.Go(func() error { return s.agent(ctx) })
	}
	return n, g.Wait()
}

// Calls is what became of the calls: a file of bench/ has it.
type Calls struct {
	bench.Stamp
	Agents int `json:"agents"`
	// Kills are kills -9 by the moment, and All of them.
	Kills map[string]int `json:"kills"`
	All   int            `json:"all_kills"`
	// Planner and Tool are the calls that were recorded.
	Planner int `json:"planner_calls"`
	Tool    int `json:"tool_calls"`
	// Repeated are calls that began although their record stood; of these there must be none.
	Repeated int `json:"repeated_although_recorded"`
	// Unexplained are calls that began once more although no process had died that was at them.
	Unexplained int `json:"repeated_without_a_death"`
	// Again are calls that began once more since the process died that was at them, and Most how often one did.
	Again int `json:"in_flight_again"`
	Most  int `json:"most_again"`
	// GoOn is how long the agent that waited longest for its next call waited after each kill of an orchestrator, in ms.
	GoOnP50 float64 `json:"go_on_p50_ms,omitempty"`
	GoOnP99 float64 `json:"go_on_p99_ms,omitempty"`
}

// judge reads the log and the ledger.
func (s *siege) judge(c *Calls) error {
	events, err := journal.Read(s.log)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	begun := map[string][]journal.Event{}
	for _, e := range events {
		if e.Begins() {
			key := callKey(e.Run, e.Step, e.Attempt)
			if begun[key] = append(begun[key], e); len(begun[key]) == 1 {
				if e.Tool == chaos.LoopPlanner {
					c.Planner++
				} else {
					c.Tool++
				}
			}
		}
	}
	for key, all := range begun {
		c.Most = max(c.Most, len(all)-1)
		for i, e := range all[1:] {
			at, before := time.Unix(0, e.At), all[i]
			death, dead := s.deaths[before.Who]
			switch recorded, stands := s.records[key]; {
			case stands && recorded.Before(at):
				c.Repeated++
				s.progress(fmt.Sprintf("%s began again in %s (delivery %d), %v after its record; it was with %s (delivery %d) for %v", key,
					e.Who, e.Delivery, at.Sub(recorded), before.Who, before.Delivery, at.Sub(time.Unix(0, before.At))))
			case !dead || at.Before(death.Add(-time.Second)): // a death is noted a moment after it
				c.Unexplained++
				s.progress(fmt.Sprintf("%s began again in %s, and nobody had died (it was with %s)", key, e.Who, before.Who))
			default:
				c.Again++
			}
		}
	}
	c.Kills = s.kills
	for _, n := range s.kills {
		c.All += n
	}
	s.progress(fmt.Sprintf("%d agents, %d kills: of %d planner's calls and %d others %d began again although recorded, %d without a death, %d that were in flight (one at most %d times)",
		c.Agents, c.All, c.Planner, c.Tool, c.Repeated, c.Unexplained, c.Again, c.Most))
	if c.Repeated+c.Unexplained > 0 {
		return fault.New(fault.Internal, "%d calls were repeated", c.Repeated+c.Unexplained)
	}
	return nil
}

func (s *siege) close() {
	if s.ledger != nil {
		s.ledger.Stop()
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.nc != nil {
		s.nc.Close()
	}
	if s.srv != nil {
		s.srv.Shutdown()
	}
}
