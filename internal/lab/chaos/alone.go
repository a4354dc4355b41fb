package chaos

import (
	"context"
	"os"
	"time"
)

// Alone is a part of a system in a process of its own, without a world around it. Whoever starts it kills it.
type Alone struct{ process *process }

// OrchestratorRole is an orchestrator on the server at url.
func OrchestratorRole(url, name string) Role {
	return Role{Kind: roleOrchestrator, Name: name, URL: url}
}

// LoopRole is a worker that hosts the planner and the tool of LoopDefinition, and notes their calls in the file log.
func LoopRole(url, name, log string) Role {
	return Role{Kind: roleLoop, Name: name, URL: url, Log: log, MaxDeliveries: quick.MaxDeliveries}
}

// Quick is the role under settings that let a short run meet many repairs.
func (r Role) Quick() Role {
	s := Shape{}.withDefaults()
	r.Store, r.Grace, r.SweepEvery = s.store(), time.Second, s.SweepEvery
	return r
}

// StartOrchestrator starts an orchestrator with the programs' own settings; see StartAlone. With die it kills itself at
// that moment.
func StartOrchestrator(ctx context.Context, url, name, stderr string, die *Point) (*Alone, error) {
	r := OrchestratorRole(url, name)
	r.Die = die
	return StartAlone(ctx, r, stderr)
}

// StartAlone starts this program once more, with a role, and returns once it does its work; the program's main function,
// or that of its tests, has to call Main. What it logs goes to the file stderr.
func StartAlone(ctx context.Context, r Role, stderr string) (*Alone, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := begin(loopback{}, "", []string{self}, r, stderr)
	if err != nil {
		return nil, err
	}
	o := &Alone{p}
	if err := p.awaitReady(ctx, time.Minute); err != nil {
		o.Kill()
		return nil, err
	}
	return o, nil
}

// Kill is kill -9; it returns when the process is gone.
func (o *Alone) Kill() { o.process.kill() }

// Gone is closed when the process has ended.
func (o *Alone) Gone() <-chan struct{} { return o.process.gone }
