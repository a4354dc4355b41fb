package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// byHand keeps jobs until they are run by hand.
type byHand struct{ jobs []func(context.Context) }

func (h *byHand) add(do func(context.Context)) { h.jobs = append(h.jobs, do) }

func (h *byHand) together(n int) (done, wait func()) {
	var wg sync.WaitGroup
	wg.Add(n)
	return wg.Done, wg.Wait
}

func (h *byHand) close(time.Duration) {}

// refusing is a ledger that creates nothing.
type refusing struct {
	storage
	asked []string
}

func (s *refusing) Shards() int { return 1 }

func (s *refusing) CreateAsync(_ context.Context, subject string, _ nats.Header, _ []byte, _ *kv.Fence, done func(kv.Decision, uint64, error)) {
	s.asked = append(s.asked, subject)
	done(0, 0, errors.New("no answer"))
}

// A sweep asks again and again for what is still undecided. Where the server is too slow to have stored it by then, it is
// not asked for once more, until it is known that nothing came of it.
func TestWhatIsBeingDecidedIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	p, report := plan.Parse([]byte(`{"on_failure":"stop","steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"c","tool":"t"},{"id":"d","tool":"t"}]}`), nil)
	require.NotNil(t, p, "%v", report)
	at := time.Unix(1000, 0)
	r := &run{progress: progress{plan: p, machine: machine.New(p, machine.Start{Key: "t/r/1", Submitted: at, Started: at, Contracts: map[string]*tool.Contract{"t": {MaxAttempts: 1, Limit: 9}}})}}
	jobs, ledger := &byHand{}, &refusing{}
	e := &env{ctx: t.Context(), clock: wall{}, jobs: jobs, store: ledger, mail: newMailbox(), log: slog.New(slog.DiscardHandler)}
	d := newDecider(e, newLedgerTime(e))
	r.start = &wire.Start{}
	r.time.Heard(at, e.clock.Mono())
	var out machine.Effects
	r.machine.Begin(&out)
	var all []machine.Decide
	for _, x := range out.Dispatch {
		all = append(all, machine.Decide{Call: x.Call, Attempt: 1, Error: fault.New(fault.Cancelled, "no")})
	}
	require.Len(t, all, 4)

	d.decide(r, all[:3])
	d.decide(r, all[:2])
	require.Len(t, jobs.jobs, 1, "nothing is new")
	d.decide(r, all)
	require.Len(t, jobs.jobs, 2)
	jobs.jobs[1](t.Context())
	require.Len(t, ledger.asked, 1, "the fourth alone")
	jobs.jobs[0](t.Context())
	require.Len(t, ledger.asked, 4)
	for _, x := range e.mail.take(nil) {
		x.do()
	}

	d.decide(r, all)
	require.Len(t, jobs.jobs, 3)
	jobs.jobs[2](t.Context())
	require.Len(t, ledger.asked, 8, "of all nothing had come")
}
