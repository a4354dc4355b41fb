package chaos

import (
	"context"
	"os"
	"time"
)

// Orchestrator is an orchestrator in a process of its own, without a world around it. Whoever starts it kills it.
type Orchestrator struct{ process *process }

// StartOrchestrator starts this program once more, as an orchestrator on the server at url, and returns once it serves;
// the program's main function, or that of its tests, has to call Main. What it logs goes to the file stderr. With die
// it kills itself at that moment.
func StartOrchestrator(ctx context.Context, url, name, stderr string, die *Point) (*Orchestrator, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := begin(loopback{}, "", []string{self}, Role{Kind: roleOrchestrator, Name: name, URL: url, Die: die}, stderr)
	if err != nil {
		return nil, err
	}
	o := &Orchestrator{p}
	if err := p.awaitReady(ctx, time.Minute); err != nil {
		o.Kill()
		return nil, err
	}
	return o, nil
}

// Kill is kill -9; it returns when the process is gone.
func (o *Orchestrator) Kill() { o.process.kill() }

// Gone is closed when the process has ended.
func (o *Orchestrator) Gone() <-chan struct{} { return o.process.gone }
