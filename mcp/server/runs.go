package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// runs are those of a tenant, as far as they are looked at, and what came of them.
type runs struct {
	client   *client.Client
	approver *client.Client // gives and refuses approvals
	most     int            // of a result, before its largest values are replaced by links, in bytes
}

// runOf finds a run by the name that its caller gave it, or by its id. Errors: NotFound.
func (r *runs) runOf(ctx context.Context, who Principal, name string) (*client.Run, error) {
	if name == "" {
		return nil, fault.New(fault.InvalidArguments, `"run" is missing`).WithHint(`{"run": "…"}: the id that a result names, or the name that you gave the run`)
	}
	ids := []string{namedRun(who, name), name}
	if _, err := uuid.Parse(name); err == nil || strings.HasPrefix(name, namePrefix) {
		ids = ids[1:] // an id of ours
	}
	for _, id := range ids {
		err := r.exists(ctx, id)
		if err == nil {
			return r.client.Attach(id)
		}
		if code := fault.CodeOf(err); code != fault.NotFound && code != fault.InvalidID {
			return nil, err
		}
	}
	return nil, fault.New(fault.NotFound, "there is no run %q, or it is no longer kept", name).
		WithHint("the id is in the result of execute_tool_plan, as \"run\"")
}

// exists returns an error where there is no run of an id. One whose owner is silent just now is there.
func (r *runs) exists(ctx context.Context, id string) error {
	_, err := r.client.Get(ctx, id)
	if fault.CodeOf(err) == fault.NotReady {
		return nil
	}
	return err
}

// askWithin is how long a run's owner has to answer before it counts as silent.
const askWithin = 2 * time.Second

// document reads a run's document. Errors: those of client.Get; NotReady also where its owner takes too long.
func (r *runs) document(ctx context.Context, run string) (*outcome.Run, error) {
	soon, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	doc, err := r.client.Get(soon, run)
	if err != nil && soon.Err() != nil && ctx.Err() == nil {
		return nil, fault.New(fault.NotReady, "the owner of run %q is silent", run)
	}
	return doc, err
}

// namePrefix is what the ids of named runs begin with.
const namePrefix = "mcp-"

// namedRun is the id of a run that a caller named. Callers don't meet each other's names, nor runs that were not
// submitted here.
func namedRun(who Principal, name string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(who.Name), who.Name, name))
	return namePrefix + base64.RawURLEncoding.EncodeToString(sum[:18])
}
