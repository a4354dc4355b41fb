package agentbench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/bench"
	"github.com/stepjet/stepjet/internal/lab/chaos"
)

// olderCommit is what the other version is built from: one that runs agents, and decides what has come since otherwise or not
// at all.
const olderCommit = "6ca29d86"

// measureUpgrades has orchestrators of an older version and of this one go on with the same agents, in turns.
func measureUpgrades(ctx context.Context, env Env, scale float64, stamp bench.Stamp) (any, error) {
	dir, err := os.MkdirTemp(env.Dir, "older-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := chaos.BuildOrchestrator(ctx, dir, olderCommit)
	if err != nil {
		return nil, err
	}
	return upgrades(ctx, env, scale, stamp, program)
}

// upgrades kills the one orchestrator that there is as soon as there is one of the other version beside it, which goes on with
// its agents: this version with all, the older one with those whose run needs nothing that came since. program is the other
// version; empty for this one.
func upgrades(ctx context.Context, env Env, scale float64, stamp bench.Stamp, program string) (any, error) {
	s, err := newSiege(env)
	if err != nil {
		return nil, err
	}
	defer s.close()
	s.rounds, s.pause = 30, 20*time.Millisecond
	owner, err := s.version(ctx, program)
	if err != nil {
		return nil, err
	}
	defer func() { s.replace(owner, "the end") }()
	workers, err := s.plain(ctx, 0, 2)
	defer func() { s.kill(workers, "the end") }()
	if err == nil {
		err = s.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	var over atomic.Bool
	c := &Calls{Stamp: stamp}
	working, within := errgroup.WithContext(ctx)
	working.Go(func() (err error) {
		c.Agents, err = s.agents(within, 24, func(int) bool { return over.Load() })
		return err
	})
	turns := atLeast(40*scale, 4) | 1 // the last is of this version: the older one leaves alone what this one has begun
	for i := range turns {
		select {
		case <-time.After(300 * time.Millisecond): // so that it decides something
		case <-within.Done():
			return nil, working.Wait()
		}
		next := program
		if i%2 == 0 {
			next = ""
		}
		other, err := s.version(ctx, next)
		if err != nil {
			return nil, err
		}
		s.replace(owner, map[bool]string{true: "the older version", false: "this version"}[i%2 == 0])
		owner = other
	}
	over.Store(true)
	if err := working.Wait(); err != nil {
		return nil, err
	}
	return c, s.judge(c)
}

// owner is the orchestrator of some version that is there.
type owner struct {
	name string
	kill func()
}

func (s *siege) replace(o owner, moment string) {
	o.kill()
	s.died(o.name, moment)
}

// version starts an orchestrator that is this program, or another one.
func (s *siege) version(ctx context.Context, program string) (owner, error) {
	if program == "" {
		p, err := s.start(ctx, false, nil)
		if err != nil {
			return owner{}, err
		}
		return owner{p.name, p.Kill}, nil
	}
	name := s.role(false).Name
	logs, err := os.Create(filepath.Join(s.dir, name+".log"))
	if err != nil {
		return owner{}, err
	}
	defer func() { _ = logs.Close() }()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "NATS_URL="+s.srv.URL(), "STEPJET_NAME="+name)
	cmd.Stdout, cmd.Stderr = logs, logs
	if err := cmd.Start(); err != nil {
		return owner{}, err
	}
	o := owner{name, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }}
	for look := time.Tick(20 * time.Millisecond); ; {
		if text, err := os.ReadFile(logs.Name()); err != nil || bytes.Contains(text, []byte("msg=ready")) {
			return o, err
		}
		select {
		case <-look:
		case <-ctx.Done():
			o.kill()
			return o, fault.Wrap(fault.Timeout, context.Cause(ctx), fmt.Sprintf("%s was not ready: see %s", program, logs.Name()))
		}
	}
}
