package bridge

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/mcp/session"
	"github.com/stepjet/stepjet/wire"
)

// Difference is a tool that is not as the lock has it.
type Difference struct {
	// Tool is the name under which it is hosted, and Server that of its server.
	Tool   string `json:"tool"`
	Server string `json:"server"`
	// Kind is "new", "changed" or "gone", or "unfit" for a tool that can't be hosted whatever the lock says.
	Kind string `json:"kind"`
	// Changes are the parts of a changed definition that are others than before.
	Changes []servers.Change `json:"changes,omitempty"`
	// Suspicions say why somebody should read its definition before models do; for an unfit tool, why it is that.
	Suspicions []string `json:"suspicions,omitempty"`
}

// Survey is what the servers of a file list now, held against the lock.
type Survey struct {
	// Unreachable says of servers why they could not be asked.
	Unreachable map[string]error

	pins   *servers.Lock
	judged []*servers.Judgement
}

// Look asks all servers of a file for their tools, and ends those that it started. credentials are what servers with
// ${context:KEY} in their headers are asked with. Errors have code invalid_config.
func Look(ctx context.Context, o Options, credentials wire.Context) (*Survey, error) {
	o = o.withDefaults()
	c, pins, err := o.files()
	if err != nil {
		return nil, err
	}
	found := make([]servers.Listing, len(c.Servers))
	var all sync.WaitGroup
	for i, e := range c.Servers {
		all.Go(func() { found[i].Tools, found[i].Err = look(ctx, e, credentials) })
	}
	all.Wait()
	s := &Survey{Unreachable: map[string]error{}, pins: pins, judged: servers.Judge(c.Servers, found, pins)}
	for i, e := range c.Servers {
		if found[i].Err != nil {
			s.Unreachable[e.Name] = found[i].Err
		}
	}
	return s, nil
}

// look asks one server.
func look(ctx context.Context, e *servers.Entry, credentials wire.Context) ([]servers.Remote, error) {
	own, err := e.HeadersFor(credentials)
	if err != nil {
		f := *fault.As(err)
		f.Hint = "hand it over: --secret " + strings.Join(e.Keys(), " --secret ")
		return nil, &f
	}
	s, err := session.Open(ctx, e, own, nil)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	s.Keep(own)
	return s.List(ctx)
}

// Differences returns all tools that are not as the lock has them, by name.
func (s *Survey) Differences() []Difference {
	var all []Difference
	for _, j := range s.judged {
		if kind := j.Kind(); kind != "" {
			all = append(all, Difference{servers.Name(j.Server, j.Tool), j.Server, kind, j.Changes(), j.Suspicions})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return strings.Compare(a.Tool, b.Tool) })
	return all
}

// Pin agrees to all new tools whose texts hold nothing suspicious, and writes the lock. It returns their names.
func (s *Survey) Pin() ([]string, error) {
	return s.agree(func(j *servers.Judgement) bool { return j.State == servers.New && len(j.Suspicions) == 0 })
}

// Accept agrees to what tools are now, whatever their texts hold, and writes the lock: tools by the name that they are
// hosted under, servers with all their tools. One that is gone is taken out of the lock. It returns the names of the
// tools that it changed. Errors: not_found for a name that is none of a difference; nothing is written then.
func (s *Survey) Accept(names ...string) ([]string, error) {
	open := map[string]bool{}
	for _, name := range names {
		open[name] = true
	}
	for _, d := range s.Differences() {
		delete(open, d.Tool)
		delete(open, d.Server)
	}
	if len(open) > 0 {
		missing := slices.Sorted(maps.Keys(open))
		return nil, fault.New(fault.NotFound, "there is nothing to agree to about %s", strings.Join(missing, ", ")).
			WithHint("stepjet mcp diff lists what differs from the lock")
	}
	return s.agree(func(j *servers.Judgement) bool {
		return slices.Contains(names, servers.Name(j.Server, j.Tool)) || slices.Contains(names, j.Server)
	})
}

func (s *Survey) agree(which func(*servers.Judgement) bool) (names []string, err error) {
	for _, j := range s.judged {
		if j.Kind() == "" || j.State == servers.Unfit || !which(j) {
			continue
		}
		names = append(names, servers.Name(j.Server, j.Tool))
		if j.State == servers.Gone {
			s.pins.Remove(j.Server, j.Tool)
		} else {
			s.pins.Set(j.Server, j.Tool, j.Now)
		}
	}
	slices.Sort(names)
	return names, s.pins.Write()
}
