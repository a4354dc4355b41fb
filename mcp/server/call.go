package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/mcp/task"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/tool"
)

// call is one tools/call that is about a run.
type call struct {
	*shared
	req    *mcp.CallToolRequest
	caller Principal
	kind   task.Kind
	run    string // the run's id
	// named says that the caller named the run: it goes on when the caller leaves.
	named bool
	// refused counts the times that answers to what the call asked were refused.
	refused int
	mode    taskMode
	hold    time.Duration
}

// taskMode is when a call answers with a task instead of its result, to a client that knows tasks.
type taskMode string

// The modes, as a tool's x-orchestration.task says them.
const (
	taskLate     taskMode = "" // after Config.TaskAfter
	taskNever    taskMode = "never"
	taskAlways   taskMode = "always"
	taskRequired taskMode = "required"
)

// taskModeOf reads the mode of a tool's contract.
func taskModeOf(d *tool.Definition) taskMode {
	if d == nil || d.Orchestration == nil {
		return taskLate
	}
	var mode taskMode
	_ = json.Unmarshal(d.Orchestration.Extra["task"], &mode) // anything else says nothing
	return mode
}

func (s *shared) newCall(req *mcp.CallToolRequest, kind task.Kind) *call {
	return &call{shared: s, req: req, caller: s.who(req.Extra), kind: kind, hold: s.cfg.Hold}
}

// digest names what is called: answers are for the same call again.
func (c *call) digest() string {
	sum := sha256.Sum256(append([]byte(c.req.Params.Name+"\x00"), c.req.Params.Arguments...))
	return hex.EncodeToString(sum[:16])
}

// leave cancels the run of a caller who is gone and did not name it. When the server stops, runs go on.
func (c *call) leave() {
	if c.named || c.life.closing.Load() {
		return
	}
	c.life.working.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), submitWithin)
		defer cancel()
		_, err := c.runs.client.Cancel(ctx, c.run, c.caller.by())
		if code := fault.CodeOf(err); err != nil && code != fault.AlreadyFinished && code != fault.NotFound {
			c.cfg.Logger.Warn("the run of a client that left could not be cancelled", "tenant", c.caller.Tenant, "run", c.run, "error", err)
		}
	})
}

// mine returns what the run asks that this caller may answer and whose client can ask its user.
func (c *call) mine(ctx context.Context) ([]*outcome.Question, error) {
	if !canElicit(c.req) {
		return nil, nil
	}
	return c.runs.asked(ctx, c.caller, c.run)
}

// stateFor is how long the answers to what a call asked are taken.
const stateFor = 10 * time.Minute

// inputRequired answers a call with what its run asks, and why answers were refused; the client calls again with the
// answers.
func (c *call) inputRequired(asked []*outcome.Question, why map[string]error) *mcp.CallToolResult {
	state := c.states.Seal(task.State{
		Run: c.run, Kind: c.kind, Arguments: c.digest(), Until: time.Now().Add(stateFor), Named: c.named, Refused: c.refused,
	}, c.caller.owner())
	return &mcp.CallToolResult{InputRequests: requests(asked, why), RequestState: state}
}
