package chaos

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stepjet/stepjet/internal/config"
)

// diskSize is room for what a scenario writes. Images have holes: they take what is written to them.
const diskSize = 1 << 30

// powerCut takes the power from a server's machine: process and disk stand still, the disk in the middle of whatever it
// was about to write, and it is copied as it is. The process never goes on, or it would tell others of writes that
// failed; the server starts again on the copy, whose journal the kernel replays.
func (h *Harm) powerCut(ctx context.Context, node string) error {
	r, p := h.role(node), h.part(node)
	pid, copied := p.cmd.Process.Pid, fmt.Sprintf("%s.disk.%d", r.Server.Dir, h.injections)
	h.hit("power cut", "*")
	p.halt()
	for {
		if still, err := standsStill(pid); err != nil {
			return err
		} else if still {
			break
		}
		if err := sleep(ctx, 100*time.Microsecond); err != nil {
			return err
		}
	}
	if err := cutPower(within(pid, r.Server.Dir)); err != nil {
		return err
	}
	if err := copyDisk(r.Disk, copied); err != nil {
		return err
	}
	p.kill()
	if err := os.Remove(r.Disk); err != nil {
		return err
	}
	r.Disk = copied
	h.recast(node, r)
	if err := h.again(ctx, node); err != nil {
		return err
	}
	h.fault("power back")
	return nil
}

// flushed lets the kernel write back some of what a server has written, file by file, as it does when it finds the
// time.
func (h *Harm) flushed(node string) error {
	root := within(h.part(node).cmd.Process.Pid, h.role(node).Server.Dir)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || h.Intn(2) == 0 {
			return nil // a file that was there a moment ago
		}
		f, err := os.Open(path)
		if err != nil {
			return nil
		}
		defer f.Close()
		return f.Sync()
	})
}

// flushedAll has everything written back.
func (h *Harm) flushedAll(node string) error {
	return syncDisk(within(h.part(node).cmd.Process.Pid, h.role(node).Server.Dir))
}

// cuts cuts the power again and again. Beforehand some files are written back and others are not, so that what one
// stream has is not what another one has.
func cuts(ctx context.Context, h *Harm) error {
	// A system that was set up long ago: NATS and the kernel have written its streams back.
	if err := h.flushedAll("n1"); err != nil {
		return err
	}
	return loop(2*time.Second, 4*time.Second, func(ctx context.Context, h *Harm, _ int) error {
		if err := h.flushed("n1"); err != nil {
			return err
		}
		if err := sleep(ctx, h.between(500*time.Millisecond, 3*time.Second)); err != nil {
			return err
		}
		return h.powerCut(ctx, "n1")
	})(ctx, h)
}

var powerCutDefault = Scenario{
	Name:      "power-cut-default",
	Fault:     "power cut under NATS with sync_interval at its default",
	Correct:   "loss is seen, and all that is left or sent again comes to its end",
	Shape:     Shape{Disk: diskSize, Whole: true, Insist: true},
	Unbroken:  true,
	Inject:    cuts,
	Sometimes: []string{sometimesPowerLoss},
	Relax:     forgive,
	Figures: figures(losses, resumed("power back",
		fmt.Sprintf("first step after the power was back (lost runs are sent again after %v)", insistAfter))),
}

var (
	powerCutAlways    = flushedPowerCut("power-cut-always", 8)
	powerCutAlwaysOne = flushedPowerCut("power-cut-always-1", 1)
)

// flushedPowerCut is a power cut under a server that flushes before it acknowledges.
func flushedPowerCut(name string, shards int) Scenario {
	many := "s"
	if shards == 1 {
		many = ""
	}
	return Scenario{
		Name:    name,
		Fault:   fmt.Sprintf("power cut under NATS with sync_interval: always, %d ledger shard%s", shards, many),
		Correct: "nothing acknowledged is lost",
		Shape: Shape{Disk: diskSize, Whole: true,
			Durability: config.Store{Durability: config.DurabilityAlways, Shards: shards}},
		Unbroken:  true,
		Inject:    cuts,
		Sometimes: []string{sometimesReplayed},
		Figures:   figures(losses, resumed("power back", "first step after the power was back"), attempts),
	}
}
