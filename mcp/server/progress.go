package server

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/internal/text"
)

// quietest is the longest that a client which wants progress hears nothing.
const quietest = 15 * time.Second

// progress tells a client how far its call is, if it wants to know. It is told by the goroutine that returns the call's
// result, so nothing comes after that.
type progress struct {
	session *mcp.ServerSession
	token   any // nil: nobody wants to know

	total, over int
	now         string  // what goes on
	value       float64 // told last; it only rises
	told        string  // what was said last
	last        time.Time
}

// leastRise is by how much progress rises where nothing else does.
const leastRise = 0.001

func newProgress(req *mcp.CallToolRequest) progress {
	return progress{session: req.Session, token: req.Params.GetProgressToken()}
}

// beat tells what is new, or that it goes on.
func (p *progress) beat(ctx context.Context) {
	if p.message() != p.told || time.Since(p.last) >= quietest {
		p.tell(ctx)
	}
}

func (p *progress) tell(ctx context.Context) {
	if p.token == nil {
		return
	}
	if value := float64(p.over); value > p.value {
		p.value = value
	} else if p.told != "" {
		p.value += leastRise
	}
	p.told, p.last = p.message(), time.Now()
	_ = p.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // a client that is gone is noticed elsewhere
		ProgressToken: p.token, Progress: p.value, Total: float64(p.total), Message: p.told,
	})
}

// message says how far the run is.
func (p *progress) message() string {
	if p.total == 0 {
		return "submitted"
	}
	said := fmt.Sprintf("%d of %s", p.over, text.Count(p.total, "step"))
	if p.now != "" {
		said += ": " + p.now
	}
	return said
}
