package bridge

import (
	"context"
	"log/slog"
	"time"

	"github.com/stepjet/stepjet/internal/backoff"
	"github.com/stepjet/stepjet/mcp/servers"
	"github.com/stepjet/stepjet/mcp/session"
)

// judged holds a hosted tool's steps, or takes them.
func (t *bridged) judged(v servers.Verdict, log *slog.Logger) {
	why := ""
	switch v {
	case servers.Changed:
		why = "its MCP server has changed its definition, and nobody has agreed to that (stepjet mcp diff)"
	case servers.Gone:
		why = "its MCP server doesn't list it any more"
	case servers.Same, servers.New, servers.Unseen, servers.Unfit: // as it was agreed to, or never hosted
	}
	before := t.held()
	t.holds.Store(&why)
	if why != before {
		log.Warn("a tool of an MCP server "+map[bool]string{true: "is held", false: "is no longer held"}[why != ""], "tool",
			t.def.Name, "reason", why)
	}
}

// comparing returns what looks at a connection's tools: each hosted tool whose definition is not the one that was
// agreed to is held until it is again.
func (u *upstream) comparing(log *slog.Logger) func(context.Context, *session.Session) error {
	return func(ctx context.Context, s *session.Session) error {
		list, err := s.List(ctx)
		if err != nil {
			return err
		}
		now := map[string]servers.Remote{}
		for _, t := range list {
			now[t.Name] = t
		}
		for _, t := range u.tools {
			v := servers.Gone
			if r, there := now[t.name]; there {
				v = servers.Same
				if form, err := r.Pinned(); err != nil || servers.Digest(form) != t.pinned {
					v = servers.Changed
				}
			}
			t.judged(v, log)
		}
		u.settle()
		return nil
	}
}

// settling is how long the changes of a list are gathered: servers tell of each tool by itself. A look that failed is had
// again after such a pause, which doubles up to mostBetween.
const settling, mostBetween = time.Second, 30 * time.Second

// gather looks once for all news that come within settling of the first, until ctx ends. It waits no longer however many
// come: a tool that has changed is to be held within 2 s. A look that failed is had again, since nobody tells twice.
func gather(ctx context.Context, news <-chan struct{}, look func() (ok bool)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		}
		pauses := backoff.Between(settling, mostBetween)
		for pause := settling; ; pause = pauses.Next() {
			if !backoff.Pause(ctx, pause) {
				return
			}
			select { // what came meanwhile is looked at now
			case <-news:
			default:
			}
			if look() {
				break
			}
		}
	}
}
