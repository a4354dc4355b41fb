// Package bridge makes workers of Stepjet out of MCP servers: their tools take steps of plans, with queues, limits,
// retries and results like any other tool. docs/mcp.md says how it is used.
//
//	b, err := bridge.Open(ctx, bridge.Options{File: ".mcp.json"})
//	err = b.Register(w)
//	err = w.Run(ctx)
//	b.Close()
//
// # Safety
//
// What a server says is what strangers say. A tool is hosted under the definition that somebody agreed to (lock.go);
// one that changes is held: its steps stay in their queue. Texts that a person would not see are taken out of
// definitions, and a definition that speaks to the model waits for somebody to look at it. A program gets none of the
// worker's variables but a few; an address that is not public has to be allowed. Of the run's context a server gets
// what the file names, and the credentials of one caller go by no connection of another's.
//
// A result is what the server sent, byte for byte (capture.go).
//
// # Liveness
//
// A server that crashes is started again; meanwhile its tools' steps are left to others. One that can't be reached when
// the bridge opens is tried until it can. The end of a step's context is passed on to the server.
//
// # Failure
//
// A call whose connection ended is worth another attempt, unless the tool must not be called twice: then its outcome is
// unknown. When this process dies, so do the programs that it started.
package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// Options say which servers are bridged, and what of them is trusted.
type Options struct {
	// File lists the servers.
	File string
	// Lock is the file of definitions that were agreed to; empty: mcp.lock beside File.
	Lock string
	// Allow are the programs that the file may start, as they stand in "command"; empty: any.
	Allow []string
	// TrustFirstUse agrees to tools that the lock doesn't know, unless their texts look as if they spoke to the model.
	TrustFirstUse bool
	// Logger takes warnings and what servers come and go; nil: none.
	Logger *slog.Logger
	// Lookup finds variables for the file; nil: os.LookupEnv.
	Lookup func(string) (string, bool)
}

func (o Options) withDefaults() Options {
	if o.Lock == "" {
		o.Lock = filepath.Join(filepath.Dir(o.File), "mcp.lock")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Lookup == nil {
		o.Lookup = os.LookupEnv
	}
	return o
}

// files reads the file of servers and the lock.
func (o Options) files() (*servers.Config, *servers.Lock, error) {
	c, err := servers.Load(o.File, o.Lookup)
	if err == nil {
		err = c.Allowed(o.Allow)
	}
	if err != nil {
		return nil, nil, err
	}
	l, err := servers.ReadLock(o.Lock)
	return c, l, err
}

// Bridge hosts the tools of MCP servers. Open it, Register its tools with a worker, and Close it when that has ended.
type Bridge struct {
	log     *slog.Logger
	end     context.CancelFunc
	tasks   sync.WaitGroup
	servers []*upstream
	tools   []*bridged
}

// Open starts and connects the servers of a file, compares what tools they have with the lock, and returns when it
// knows what it hosts. A server that can't be reached now is tried again, and its tools are those of the lock. What is
// left out is said as a warning.
//
// Errors have code invalid_config: all that is wrong with the file, names that two tools would share, no tool at all.
func Open(ctx context.Context, o Options) (*Bridge, error) {
	o = o.withDefaults()
	c, pins, err := o.files()
	if err != nil {
		return nil, err
	}
	for _, w := range c.Warnings {
		o.Logger.Warn(w, "file", o.File)
	}
	life, end := context.WithCancel(context.Background())
	b := &Bridge{log: o.Logger, end: end}
	for _, e := range c.Servers {
		b.servers = append(b.servers, newUpstream(life, e, o.Logger, b.spawn))
	}
	found := b.lists(ctx)
	if err := b.agree(found, pins, o); err != nil {
		b.Close()
		return nil, err
	}
	for i, u := range b.servers {
		u.compare = u.comparing(b.log)
		b.spawn(u.follow)
		b.spawn(u.tidy)
		if found[i].Err != nil {
			u.retryLater()
		}
		u.settle()
	}
	return b, nil
}

func (b *Bridge) spawn(f func()) {
	b.tasks.Add(1)
	go func() {
		defer b.tasks.Done()
		f()
	}()
}

// lists asks all servers at once.
func (b *Bridge) lists(ctx context.Context) []servers.Listing {
	found := make([]servers.Listing, len(b.servers))
	var all sync.WaitGroup
	for i, u := range b.servers {
		if u.entry.Lazy() {
			found[i].Lazy = true
			continue
		}
		all.Go(func() {
			s, err := u.begin()
			if err == nil {
				found[i].Tools, err = s.List(ctx)
			}
			found[i].Err = err
		})
	}
	all.Wait()
	return found
}

// agree decides which tools are hosted: those that the lock has as they are, and, where first use is trusted, those
// that it doesn't know yet.
func (b *Bridge) agree(found []servers.Listing, pins *servers.Lock, o Options) error {
	judged := servers.Judge(b.entries(), found, pins)
	news := false
	for _, j := range judged {
		if j.State == servers.New && o.TrustFirstUse && len(j.Suspicions) == 0 {
			pins.Set(j.Server, j.Tool, j.Now)
			j.State, news = servers.Same, true
		}
		b.take(j, pins)
	}
	for i, u := range b.servers {
		if err := found[i].Err; err != nil {
			b.log.Warn("an MCP server can't be reached; its tools are those of the lock until it can", "server", u.entry.Name,
				"error", err)
		}
	}
	if err := b.meeting(); err != nil {
		return err
	}
	if news {
		if err := pins.Write(); err != nil {
			return err
		}
	}
	if len(b.tools) == 0 {
		return fault.New(fault.InvalidConfig, "no tool of the MCP servers of %s can be hosted", o.File).
			WithHint("agree to their definitions with stepjet mcp pin --mcp %s, or start with --trust-first-use", o.File)
	}
	return nil
}

func (b *Bridge) entries() []*servers.Entry {
	all := make([]*servers.Entry, len(b.servers))
	for i, u := range b.servers {
		all[i] = u.entry
	}
	return all
}

// take hosts a tool that was agreed to, under the definition that was.
func (b *Bridge) take(j *servers.Judgement, pins *servers.Lock) {
	log := b.log.With("tool", servers.Name(j.Server, j.Tool))
	if j.State == servers.New {
		log.Warn("a tool of an MCP server is left out: nobody has agreed to its definition", "reason",
			strings.Join(j.Suspicions, "; "), "hint", "stepjet mcp accept "+servers.Name(j.Server, j.Tool))
		return
	}
	if j.State == servers.Unfit {
		log.Warn("a tool of an MCP server is left out", "reason", strings.Join(j.Suspicions, "; "))
		return
	}
	u := b.servers[j.At]
	p, _ := pins.Get(j.Server, j.Tool)
	def, err := u.entry.Define(j.Tool, p.Definition)
	if err != nil {
		log.Warn("a tool of an MCP server is left out: its definition can't be used", "error", err)
		return
	}
	for _, w := range def.Warnings() {
		log.Warn("a part of the definition is of no use", "place", w.Path, "problem", w.Message)
	}
	contract, err := def.Contract()
	if err != nil { // define has looked at it
		return
	}
	t := &bridged{
		up: u, name: j.Tool, def: def, once: contract.AtMostOnce, pinned: p.SHA256,
		mirrors: bytes.Contains(def.InputSchema, []byte(`"x-mcp-header"`)),
	}
	t.judged(j.State, b.log)
	u.tools, b.tools = append(u.tools, t), append(b.tools, t)
}

// meeting says which names two tools would share.
func (b *Bridge) meeting() error {
	names := map[string][]string{}
	for _, t := range b.tools {
		names[t.def.Name] = append(names[t.def.Name], t.up.entry.Name)
	}
	if clashes := servers.Meeting(names); len(clashes) > 0 {
		return fault.New(fault.InvalidConfig, "tools of different MCP servers would have one name: %s",
			strings.Join(clashes, ", ")).
			WithHint("rename one of the servers, or exclude one of the tools")
	}
	return nil
}

// Definitions returns what the tools are registered as.
func (b *Bridge) Definitions() []*tool.Definition {
	all := make([]*tool.Definition, len(b.tools))
	for i, t := range b.tools {
		all[i] = t.def
	}
	return all
}

// Register hosts the tools on a worker, which has not been started yet. Errors are those of worker.HandleRaw.
func (b *Bridge) Register(w *worker.Worker) error {
	var all []error
	for _, t := range b.tools {
		e := t.up.entry
		all = append(all, w.HandleRaw(t.def, t.call, worker.Gated(&t.gate), worker.Slots(e.Calls*e.Instances)))
	}
	return errors.Join(all...)
}

// Close ends all servers that were started and all connections, and returns when nothing of them is left. The worker
// has to have ended.
func (b *Bridge) Close() {
	b.end()
	for _, u := range b.servers {
		u.close()
	}
	b.tasks.Wait()
}

// String names the bridge's servers.
func (b *Bridge) String() string {
	names := make([]string, len(b.servers))
	for i, u := range b.servers {
		names[i] = fmt.Sprintf("%s (%s)", u.entry.Name, u.entry.Kind)
	}
	return strings.Join(names, ", ")
}
