package worker

import (
	"context"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
)

// ReadPart reads a part of what a planner is asked, by its name, for the step whose handler was given ctx; it is what
// package agent/parts fetches with, in a planner that puts its requests together by itself:
//
//	whole, err := keeper.Whole(ctx, args, worker.ReadPart)
//
// Parts of the step's own run are read, and no others, whatever the request names: the bytes are to be held against the
// digest that the request has, as that package does.
//
// Errors: invalid_arguments for a name that is none of the run's; tool_failed for a part that is not there;
// tool_terminal where the worker may not read the tenant's bucket, or what is there is no part; no_connection, which is
// worth another attempt; invalid_config outside of a handler, and in a batch.
func ReadPart(ctx context.Context, name string) ([]byte, error) {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		return nil, fault.New(fault.InvalidConfig, "parts are read for a step, and this is no handler of one")
	}
	a := x.attempt
	own := a.Tenant + "/" + a.ID + "/" + strconv.FormatUint(a.Generation, 10) + "/=part."
	if rest, ok := strings.CutPrefix(name, own); !ok || strings.Contains(rest, "/") {
		return nil, fault.New(fault.InvalidArguments, "%q is no part of this run", text.Clip(name, 256)).
			WithHint("the parts of a request are those of the agent that sends it; their names begin with %s", own)
	}
	data, err := x.e.store.Archive.BlobNamed(ctx, x.step.Bucket, name, maxBlob)
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return nil, fault.New(fault.ToolFailed, "the part %q is not there", name).
			WithHint("it was removed, or its run is over: what an orchestrator stored stays for the run and the retention")
	case fault.Permission:
		return nil, fault.New(fault.ToolTerminal, "the part %q can't be read: the worker may not read the bucket %s",
			name, x.bucket()).WithHint("%s", x.permit())
	case fault.Internal, fault.TooLarge:
		return nil, fault.New(fault.ToolTerminal, "the part %q can't be read: %v", name, err).
			WithHint("somebody else has written under its name; nothing of it is used")
	}
	return data, err
}
