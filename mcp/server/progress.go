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
	value       float64 // told last; it only rises
	told        int     // of over
	last        time.Time
}

// leastRise is by how much progress rises where nothing else does.
const leastRise = 0.001

func newProgress(req *mcp.CallToolRequest) progress {
	return progress{session: req.Session, token: req.Params.GetProgressToken(), told: -1}
}

// beat tells what is new, or that it goes on.
func (p *progress) beat(ctx context.Context) {
	if p.over != p.told || time.Since(p.last) >= quietest {
		p.tell(ctx)
	}
}

func (p *progress) tell(ctx context.Context) {
	if p.token == nil {
		return
	}
	if value := float64(p.over); value > p.value {
		p.value = value
	} else if p.told >= 0 {
		p.value += leastRise
	}
	message := "submitted"
	if p.total > 0 {
		message = fmt.Sprintf("%d of %s", p.over, text.Count(p.total, "step"))
	}
	p.told, p.last = p.over, time.Now()
	_ = p.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ // a client that is gone is noticed elsewhere
		ProgressToken: p.token, Progress: p.value, Total: float64(p.total), Message: message,
	})
}
