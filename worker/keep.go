package worker

import (
	"context"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

type executionKey struct{}

// Keep stores bytes that are no JSON and no text, such as a picture, beside the result of the step whose handler was
// given ctx, and returns the handle by which they are read (client.Client.Blob). The handler puts the handle into its
// result. They are kept for as long as the run's own large values are; what an attempt stores whose result does not
// count goes with them. At most 64 MiB.
//
// Errors: too_large; tool_terminal where the worker may not write into the tenant's bucket; store_full and
// no_connection, which are worth another attempt; invalid_config outside of a handler, and in a batch.
func Keep(ctx context.Context, data []byte) (*outcome.Handle, error) {
	x, _ := ctx.Value(executionKey{}).(*execution)
	if x == nil {
		return nil, fault.New(fault.InvalidConfig, "bytes are kept for a step, and this is no handler of one")
	}
	handle, err := x.e.store.Archive.PutBlob(ctx, x.step.Bucket, x.attempt.BlobName(nuid.Next()), data)
	if fault.CodeOf(err) == fault.Permission {
		return nil, fault.New(fault.ToolTerminal, "%d bytes can't be stored: the worker may not write into the bucket %s",
			len(data), x.bucket()).WithHint("%s", x.permit())
	}
	return handle, err
}
