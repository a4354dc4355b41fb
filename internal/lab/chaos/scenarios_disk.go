package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/lab/journal"
)

// filler is the file that takes the room on a server's disk.
const filler = "filler"

// fill takes all room that is left on a server's disk, and gives the way to make room again.
func (h *Harm) fill(node string) (room func() error, err error) {
	path := filepath.Join(within(h.part(node).cmd.Process.Pid, h.role(node).Server.Dir), filler)
	if err := fillDisk(path); err != nil {
		return nil, err
	}
	return func() error { return os.Remove(path) }, nil
}

// probe submits a run as somebody does who can't wait long, and notes what he is told.
func (h *Harm) probe(ctx context.Context, n int) error {
	events, err := journal.Open(filepath.Join(h.dir, "probe.jsonl"), "probe")
	if err != nil {
		return err
	}
	defer events.Close()
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	c, err := client.New(ctx, h.nc, client.Config{Tenant: h.tenants()[0]})
	if err == nil {
		defer c.Close()
		run := fmt.Sprintf("%s-probe-%d", kindChain, n)
		_, err = (&agent{c: c, events: events}).submit(ctx, run, WorkOf(run).Plan)
	}
	if err != nil {
		h.fault(probed + string(fault.CodeOf(err)))
		return nil
	}
	h.fault(probed + "nothing wrong")
	return nil
}

const (
	probePatience = 2 * time.Second
	probed        = "probe: "
	endPatience   = 20 * time.Second
	didNotEnd     = "nats did not end"
)

var diskFull = Scenario{
	Name:     "disk-full",
	Fault:    "the disk under NATS is full for some seconds, then there is room again and NATS is started anew",
	Correct:  "backpressure or a typed error, nothing dropped, all goes on without a restart of ours",
	Shape:    Shape{Disk: diskSize, Whole: true, MaxStore: 1 << 40},
	Unbroken: true,
	Inject: loop(2*time.Second, 4*time.Second, func(ctx context.Context, h *Harm, i int) error {
		h.hit("disk full", "*")
		room, err := h.fill("n1")
		if err != nil {
			return err
		}
		err = errors.Join(sleep(ctx, h.between(time.Second, 3*time.Second)), h.probe(context.WithoutCancel(ctx), i))
		h.fault("room", "*")
		if err := errors.Join(room(), err); err != nil {
			return err
		}
		// Whether NATS takes writes again by itself, is what this pause is for.
		waited := sleep(ctx, 3*time.Second)
		h.fault(natsRestarted, "*")
		if i%2 == 0 {
			h.part("n1").kill()
		} else if h.part("n1").term(endPatience) != nil {
			h.fault(didNotEnd) // killed, as whoever runs it would
		}
		if err := h.again(context.WithoutCancel(ctx), "n1"); err != nil {
			return err
		}
		h.fault(natsRestarted+isBack, "*")
		return waited
	}),
	Sometimes: []string{sometimesReplayed},
	Figures: figures(losses, byItself, told, ended,
		resumed(natsRestarted+isBack, "first step after NATS was started anew"), attempts),
}

// byItself counts the times that steps went on once there was room, before NATS was started anew.
func byItself(e *Evidence, _ *Report) string {
	times, went := 0, 0
	for i, f := range e.Faults {
		if f.Kind != "room" || i+1 == len(e.Faults) {
			continue
		}
		times++
		from, to := f.At.Add(settling).UnixNano(), e.Faults[i+1].At.UnixNano()
		if slices.ContainsFunc(e.Events, func(x journal.Event) bool { return x.Kind == journal.Accept && from < x.At && x.At < to }) {
			went++
		}
	}
	return fmt.Sprintf("NATS took plans again by itself %d of %d times", went, times)
}

// ended counts the times that NATS did not end when it was asked to.
func ended(e *Evidence, _ *Report) string {
	return fmt.Sprintf("asked to end with SIGTERM, NATS had not %d times after %v and was killed",
		faultKinds(e)[didNotEnd], endPatience)
}

// faultKinds counts the faults of each kind.
func faultKinds(e *Evidence) map[string]int {
	n := map[string]int{}
	for _, f := range e.Faults {
		n[f.Kind]++
	}
	return n
}

// told counts what probes were told while the disk was full.
func told(e *Evidence, _ *Report) string {
	n := faultKinds(e)
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		if code, ok := strings.CutPrefix(kind, probed); ok {
			kinds = append(kinds, fmt.Sprintf("%s (%d)", code, n[kind]))
		}
	}
	return fmt.Sprintf("a submit that waits %v was told %s", probePatience, strings.Join(kinds, ", "))
}
