package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
)

// DeadOptions say which dead letters to list. The zero value lists the newest 100.
type DeadOptions struct {
	// Tool and Run keep the letters of one tool, of one run; empty: of all.
	Tool, Run string
	// Limit is the most letters to give; 0: 100, negative: no limit.
	Limit int
}

// DeadLetters lists the tenant's dead letters, newest first, without their arguments. A letter that the retry of
// another one left is not listed beside that one. All letters of the tenant, or of the run, are read for it. Errors:
// InvalidID, and those of reading.
func (c *Client) DeadLetters(ctx context.Context, o DeadOptions) ([]*outcome.DeadLetter, error) {
	of := subjects.Run{Tenant: c.tenant}
	if o.Run != "" {
		name, err := c.name(o.Run)
		if err != nil {
			return nil, err
		}
		of = name
	}
	var found []*outcome.DeadLetter
	retries := map[string]bool{} // what the ids of the letters' own retries begin with
	err := c.store.Archive.DeadLetters(ctx, of, func(d *outcome.DeadLetter) {
		d.Arguments = nil
		if o.Tool == "" || d.Tool == o.Tool {
			found = append(found, d)
			retries[deadRetries(d)] = true
		}
	})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(d *outcome.DeadLetter) bool {
		base, _, ok := cutLast(d.Run, "/")
		return ok && retries[base+"/"]
	})
	slices.SortStableFunc(found, func(a, b *outcome.DeadLetter) int { return b.Failed.Compare(a.Failed) })
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	if o.Limit > 0 && len(found) > o.Limit {
		found = found[:o.Limit]
	}
	return found, nil
}

// DeadLetter returns the dead letter of a step, with its arguments; step is its token: "S", "S=i" for an item of a
// for_each, and all that stands above it in a sub-plan ("map=3/fetch").
// Arguments that are no longer kept are left out. Errors: NotFound, InvalidID, and those of reading.
func (c *Client) DeadLetter(ctx context.Context, run, step string) (*outcome.DeadLetter, error) {
	name, err := c.name(run)
	if err != nil {
		return nil, err
	}
	if !subjects.ValidStepToken(step) {
		return nil, fault.New(fault.InvalidID, "%q is no step", text.Clip(step, 80)).WithHint(`a step's id, or "id=3" for an item of a for_each`)
	}
	d, err := c.store.Archive.Dead(ctx, name, 0, step)
	if err != nil {
		return nil, err
	}
	return d, c.addDeadArguments(ctx, d)
}

func (c *Client) addDeadArguments(ctx context.Context, d *outcome.DeadLetter) error {
	if d.Blob == nil || len(d.Arguments) > 0 {
		return nil
	}
	raw, err := c.store.Archive.Blob(ctx, d.Blob)
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	d.Arguments = raw
	return err
}

// RemoveDead removes a dead letter for good. Errors: NotFound, and those of reading.
func (c *Client) RemoveDead(ctx context.Context, d *outcome.DeadLetter) error {
	return c.store.Archive.RemoveDead(ctx, subjects.NewRun(c.tenant, d.Run), d.Generation, d.Step)
}

// RetryDeadOptions say how the call of a dead letter is made again.
type RetryDeadOptions struct {
	// Context is out-of-band context for the call. The values of that of the run that failed are not kept anywhere, its
	// keys are: RetryDead refuses to leave one out.
	Context RunContext
	// LessContext allows keys to be left out that the call had.
	LessContext bool
	// Permissions are what the run may use; nil: what the run that failed might.
	Permissions []string
	// Header travels with the plan, as with SubmitOptions.
	Header nats.Header
}

// RetryDead makes the call of a dead letter again: it submits a plan of one step, with the same id and tool and exactly
// the arguments that the letter holds. Where the plan had a person approve of the call, so has the retry. Hand the run to
// SettleDead.
//
// The id of the run follows from the letter: while a retry is under way, and after it succeeded, asking again attaches
// to it; only after one that did not succeed is another begun. The tool gets a new idempotency key, since its last
// attempt under the old one is decided. Errors: NotFound where the arguments are no longer kept, TooLarge where they
// don't fit into a plan, InvalidConfig for context that is missing, and those of Submit.
func (c *Client) RetryDead(ctx context.Context, d *outcome.DeadLetter, o RetryDeadOptions) (*Run, error) {
	letter, err := c.wholeDead(ctx, d)
	if err != nil {
		return nil, err
	}
	if err := sameKeys(letter.Context, o.Context, o.LessContext); err != nil {
		return nil, err
	}
	body, err := deadPlan(letter)
	if err != nil {
		return nil, err
	}
	if o.Permissions == nil {
		o.Permissions = letter.Permissions
	}
	for n := 1; ; n++ {
		id := deadRetries(d) + strconv.Itoa(n)
		name := subjects.NewRun(c.tenant, id)
		head, err := c.store.Archive.HistoryHead(ctx, name)
		switch {
		case fault.CodeOf(err) == fault.NotFound, err == nil && head.Status == outcome.Rejected: // a rejected one leaves its id free
			return c.Submit(ctx, body, SubmitOptions{Run: id, Header: o.Header, Context: o.Context, Permissions: o.Permissions})
		case err != nil:
			return nil, err
		case head.Status == outcome.Succeeded:
			return c.attach(name, id, head.Digest, 0), nil
		}
		if err := c.forgetDead(ctx, name, d.Step); err != nil {
			return nil, err
		}
	}
}

// wholeDead returns a letter with its arguments, which one from a list lacks.
func (c *Client) wholeDead(ctx context.Context, d *outcome.DeadLetter) (*outcome.DeadLetter, error) {
	whole := *d
	if len(d.Arguments) == 0 && d.Blob == nil {
		read, err := c.store.Archive.Dead(ctx, subjects.NewRun(c.tenant, d.Run), d.Generation, d.Step)
		if err != nil {
			return nil, err
		}
		whole = *read
	}
	return &whole, c.addDeadArguments(ctx, &whole)
}

// SettleDead waits for the run of RetryDead. If it succeeded, it removes the letter; otherwise it removes the letter
// that the run itself left, so that one stands for the call. A process that dies before leaves no more than work for
// the next RetryDead of the letter, which finds what the run came to. Errors: those of Wait, and of removing.
func (c *Client) SettleDead(ctx context.Context, d *outcome.DeadLetter, r *Run) (*outcome.Outcome, error) {
	out, err := r.Wait(ctx)
	if err != nil {
		return nil, err
	}
	if out.Status != outcome.Succeeded {
		return out, c.forgetDead(ctx, subjects.NewRun(c.tenant, r.id), d.Step)
	}
	err = c.RemoveDead(ctx, d)
	if fault.CodeOf(err) == fault.NotFound { // somebody else did
		err = nil
	}
	return out, err
}

// forgetDead removes the letter that the retry of a letter of step left.
func (c *Client) forgetDead(ctx context.Context, retry subjects.Run, step string) error {
	id := calledAgain(step)
	d, err := c.store.Archive.Dead(ctx, retry, 0, id)
	if err == nil {
		err = c.store.Archive.RemoveDead(ctx, retry, d.Generation, id)
	}
	if fault.CodeOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// calledAgain returns the id of the one step of a letter's retry: that of the last segment of the letter's step.
func calledAgain(step string) string {
	segments, _ := subjects.ParseStepToken(step)
	if n := len(segments); n > 0 && segments[n-1].Name != "" {
		return segments[n-1].Name
	}
	return "call" // it names nothing that is called
}

// deadRetries returns what the run ids of a letter's retries begin with; their number follows. Of what stands between
// slashes there only the run's own id may hold some: else two letters could have one retry.
func deadRetries(d *outcome.DeadLetter) string {
	id := fmt.Sprintf("dead/%s/%s/%d/", d.Run, strings.ReplaceAll(d.Step, "/", ","), d.Generation)
	if len(id) > subjects.MaxRunID-len("1000000") {
		sum := sha256.Sum256([]byte(id))
		id = "dead/" + hex.EncodeToString(sum[:16]) + "/"
	}
	return id
}

// deadPlan returns the plan that makes a letter's call again.
func deadPlan(d *outcome.DeadLetter) ([]byte, error) {
	if len(d.Arguments) == 0 {
		return nil, fault.New(fault.NotFound, "the arguments of step %s of run %q are no longer kept", d.Step, d.Run).
			WithHint("run it again as a whole: stepjet retry")
	}
	arguments, err := plan.Escape(d.Arguments)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "reading the arguments of a dead letter")
	}
	id := calledAgain(d.Step)
	tool, _ := json.Marshal(d.Tool) // strings can't fail
	asks := ""
	if d.Approval { // what a person said of the call was about that run
		asks = `"approval":true,`
	}
	body := fmt.Appendf(nil, `{"steps":[{"id":"%s","tool":%s,%s"arguments":%s}]}`, id, tool, asks, arguments)
	if len(body) > plan.MaxBytes {
		return nil, fault.New(fault.TooLarge, "the arguments of step %s of run %q have %d bytes, more than a plan may have", d.Step, d.Run, len(d.Arguments)).
			WithHint("run what failed of the run again instead: stepjet retry")
	}
	return body, nil
}
