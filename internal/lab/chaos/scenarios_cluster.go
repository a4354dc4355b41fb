package chaos

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/subjects"
)

// three is a cluster of three servers that keep everything three times.
var three = Shape{Servers: 3, Orchestrators: 3, Bare: 6, Heal: 90 * time.Second}

// agreement bounds how long the servers may take until all of them have everything again. It is long because of TCP: a
// connection over which nothing came for 30 s is tried again only after as long.
const agreement = 2 * time.Minute

// agreed waits until each stream and each tool's consumer has a leader and is up to date on all servers. Only then is
// the next fault one fault: of three servers one may be away.
func (h *Harm) agreed(ctx context.Context) error {
	js, err := jetstream.New(h.nc)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, agreement)
	defer cancel()
	for !h.current(limited, js) {
		if err := sleep(limited, 250*time.Millisecond); err != nil {
			if ctx.Err() == nil {
				h.say("the servers did not agree within %v", agreement)
			}
			return context.Cause(ctx)
		}
	}
	return nil
}

func (h *Harm) current(ctx context.Context, js jetstream.JetStream) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	streams := js.ListStreams(ctx)
	var names []string
	for info := range streams.Info() {
		if !whole(info.Cluster, h.opts.Servers) {
			return false
		}
		names = append(names, info.Config.Name)
	}
	if streams.Err() != nil {
		return false
	}
	for _, name := range names {
		s, err := js.Stream(ctx, name)
		if err != nil {
			return false
		}
		consumers := s.ListConsumers(ctx)
		for info := range consumers.Info() {
			if info.Config.Durable != "" && !whole(info.Cluster, h.opts.Servers) {
				return false
			}
		}
		if consumers.Err() != nil {
			return false
		}
	}
	return true
}

// whole reports whether something has a leader and all its replicas are up to date.
func whole(c *jetstream.ClusterInfo, servers int) bool {
	if c == nil || c.Leader == "" || len(c.Replicas) != servers-1 {
		return false
	}
	for _, r := range c.Replicas {
		if !r.Current || r.Offline {
			return false
		}
	}
	return true
}

// leader returns the node of the server that leads a stream.
func (h *Harm) leader(ctx context.Context, stream string) (string, error) {
	js, err := jetstream.New(h.nc)
	if err != nil {
		return "", err
	}
	for {
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		s, err := js.Stream(asking, stream)
		cancel()
		if err == nil && s.CachedInfo().Cluster != nil && s.CachedInfo().Cluster.Leader != "" {
			return s.CachedInfo().Cluster.Leader, nil
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return "", err
		}
	}
}

var leaderKill = Scenario{
	Name:    "leader-kill",
	Fault:   "NATS kill -9, each R3 leader",
	Correct: "0 acked lost, I1",
	Shape:   three,
	Inject: func(ctx context.Context, h *Harm) error {
		for i := 0; ; i++ {
			streams := []string{subjects.LedgerStream(0), subjects.StepsStream(0), subjects.BucketStream(subjects.HistoryBucket)}
			n, err := h.leader(ctx, streams[i%len(streams)])
			if err == nil {
				err = h.killed(ctx, leaderKilled, n, h.between(500*time.Millisecond, 4*time.Second), "*")
			}
			if err == nil {
				err = h.agreed(ctx)
			}
			if err == nil {
				err = sleep(ctx, h.between(2*time.Second, 4*time.Second))
			}
			if err != nil {
				return err
			}
		}
	},
	Sometimes: []string{sometimesReplayed, sometimesAsked},
	Seconds:   60,
	Figures:   figures(lost, compared(leaderKilled, ""), attempts),
}

// apart cuts one server with one orchestrator, worker and agent off from the rest, again and again.
func apart(pick func(ctx context.Context, h *Harm) (server string, err error)) func(context.Context, *Harm) error {
	return func(ctx context.Context, h *Harm) error {
		for {
			server, err := pick(ctx, h)
			if err != nil {
				return err
			}
			alone := []string{server, "o1", "w1", "a1"}
			var rest []string
			for _, n := range []string{"n1", "n2", "n3", "o2", "o3", "w2", "w3", "a2", bareNode} {
				if n != server {
					rest = append(rest, n)
				}
			}
			if err := h.parted(ctx, "partition", alone, rest, h.between(4*time.Second, 8*time.Second)); err != nil {
				return err
			}
		}
	}
}

// parted cuts two sides apart for a while, then lets the system recover for a while.
func (h *Harm) parted(ctx context.Context, kind string, one, other []string, span time.Duration) error {
	h.hit(kind, "*")
	if err := h.net.cut(one, other); err != nil {
		return err
	}
	err := sleep(ctx, span)
	h.fault(kind+": healed", "*")
	if err == nil {
		err = h.net.heal()
	}
	if err == nil && h.opts.Servers > 1 {
		err = h.agreed(ctx)
	}
	if err == nil {
		err = sleep(ctx, h.between(3*time.Second, 5*time.Second))
	}
	return err
}

var partitionMinority = Scenario{
	Name:       "partition-minority",
	Fault:      "partition: a server that leads nothing, with an orchestrator, a worker and an agent",
	Correct:    "I1, I2, no split-brain effect",
	Shape:      three,
	Partitions: true,
	Inject: apart(func(ctx context.Context, h *Harm) (string, error) {
		l, err := h.leader(ctx, subjects.LedgerStream(0))
		for _, n := range []string{"n1", "n2", "n3"} {
			if n != l {
				return n, err
			}
		}
		return l, err
	}),
	Seconds: 60,
	Figures: figures(lost, compared("partition", ""), compared("partition: healed", "once it was healed, "), attempts),
}

var partitionMajority = Scenario{
	Name:       "partition-majority",
	Fault:      "partition: the ledger's leader is on the smaller side",
	Correct:    "I1, I2, no split-brain effect",
	Shape:      three,
	Partitions: true,
	Inject: apart(func(ctx context.Context, h *Harm) (string, error) {
		return h.leader(ctx, subjects.LedgerStream(0))
	}),
	Seconds: 60,
	Figures: figures(lost, compared("partition", ""), compared("partition: healed", "once it was healed, "), attempts),
}

var orchestratorCutOff = Scenario{
	Name:       "orchestrator-cut-off",
	Fault:      "one orchestrator cut off from all servers for longer than its member key lives",
	Correct:    "I1, I2; others take over, and two owners do no harm",
	Shape:      Shape{Orchestrators: 3},
	Partitions: true,
	Inject: func(ctx context.Context, h *Harm) error {
		for i := 0; ; i++ {
			if err := h.parted(ctx, "cut off", []string{node("o", i%3)}, []string{"n1"}, 6*time.Second); err != nil {
				return err
			}
		}
	},
	Figures: func(e *Evidence, r *Report) []string {
		return []string{"the slowest run went on after " + quantiles(stalls(e, "cut off")), duplicates(e, r)}
	},
}

var serverGone = Scenario{
	Name:       "server-gone",
	Fault:      "one server of three goes silent for 30 s: nobody is told, no connection is closed",
	Correct:    "I1, I2; everybody goes over to the others",
	Shape:      three,
	Partitions: true,
	Seconds:    150,
	Inject: func(ctx context.Context, h *Harm) error {
		for i := 0; ; i++ {
			server := node("n", i%3)
			var rest []string
			for _, n := range []string{"n1", "n2", "n3", "o1", "o2", "o3", "w1", "w2", "w3", "a1", "a2", bareNode} {
				if n != server {
					rest = append(rest, n)
				}
			}
			if err := h.parted(ctx, "silent", []string{server}, rest, 30*time.Second); err != nil {
				return err
			}
		}
	},
	Figures: figures(lost, compared("silent", ""), compared("silent: healed", "once it was back, "), attempts),
}
