package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

func toolError(ctx context.Context, s *stage, v *verdict) {
	const why = "no such city: Ōsaka"
	p := s.step(ctx, "error", `{"fail":"`+why+`"}`)
	r, ok := p.await(ctx, s.o.Patience)
	for _, x := range s.witness.about(p.seq) {
		if x.Kind == kv.Naked {
			v.must("answer with an error, which is what the orchestrator sends the next attempt for; -NAK only spends deliveries", "it gave the failed step back with -NAK")
			return
		}
	}
	switch {
	case !ok:
		v.must("catch what the tool throws and publish it as the result, with "+subjects.HeaderStatus+": error",
			"a failed tool leaves no record: the step never ends%s", s.ended())
		return
	case r.Error == nil:
		v.must("set "+subjects.HeaderStatus+": error where the tool failed; an error is never data",
			"the failure was recorded as a success: %s", text.Clip(string(r.Body), 120))
		return
	case !strings.Contains(r.Error.Message, why):
		v.must("put what the tool said into message", "the message %q doesn't hold the tool's own",
			text.Clip(r.Error.Message, 120))
	}
	if offers := s.witness.offered(p.record()); len(offers) > 0 {
		envelope(v, offers[0].Data)
	}
	if !p.settled(ctx, s.o.Patience) {
		v.must("acknowledge a failed step too, once its record stands: the orchestrator sends the next attempt",
			"the failed step was not acknowledged")
	}
}

// envelope checks the form of an error.
func envelope(v *verdict, body []byte) {
	var e struct {
		Code      *string `json:"code"`
		Message   *string `json:"message"`
		Retryable *bool   `json:"retryable"`
	}
	const form = `write {"code":"tool_failed","message":"…","retryable":true}`
	switch {
	case json.Unmarshal(body, &e) != nil:
		v.should(form, "the error is %s and no envelope; it is taken for the message", text.Clip(string(body), 120))
	case e.Code == nil || e.Message == nil:
		v.should(form, "the envelope lacks code or message: %s", text.Clip(string(body), 120))
	case !fault.Code(*e.Code).OfStep():
		v.should("use one of the codes that a worker has, tool_failed and tool_terminal above all",
			"the code %q is none of them and becomes part of the message", *e.Code)
	}
}

func largeResult(ctx context.Context, s *stage, v *verdict) {
	s.bigResult(ctx, v, "large", wire.InlineLimit+40_000)
}

func hugeResult(ctx context.Context, s *stage, v *verdict) {
	s.bigResult(ctx, v, "huge", int(s.nc.MaxPayload())+100_000)
	s.alive(ctx, v, "a result over max_payload")
}

const storeBlob = "put it into the object store " + subjects.BlobsBucket + " and publish the record with " +
	subjects.HeaderHandle +
	", or answer with the error too_large, which is never tried again"

// bigResult has the tool return a string that is too large for the ledger.
func (s *stage) bigResult(ctx context.Context, v *verdict, check string, size int) {
	p := s.step(ctx, check, fmt.Sprintf(`{"bytes":%d}`, size))
	r, ok := p.await(ctx, s.o.Patience)
	switch {
	case !ok:
		v.must(storeBlob, "a result of %d bytes leaves no record: the step never ends%s", size, s.ended())
		return
	case r.Error != nil && r.Error.Code == fault.TooLarge:
		v.should("use the object store, so that results up to 64 MiB are possible",
			"results over 256 KiB are refused with too_large")
	case r.Error != nil:
		v.must(storeBlob, "a result of %d bytes became the error %s", size, said(r.Error))
	case r.Handle == nil:
		v.must(storeBlob, "a result of %d bytes lies in the ledger itself", len(r.Body))
	default:
		s.blob(ctx, v, p, r, size)
	}
	if !p.settled(ctx, s.o.Patience) {
		v.must("acknowledge the step once its record stands", "the step with the large result was not acknowledged")
	}
}

// blob checks what a handle stands for.
func (s *stage) blob(ctx context.Context, v *verdict, p *probe, r wire.Result, size int) {
	prefix := p.attempt.BlobName("")
	if unique, is := strings.CutPrefix(r.Handle.Name, prefix); !is || strings.Contains(unique, "/") {
		v.must("name it <T>/<R>/<G>/<S>/<A>/<anything unique without a slash>: only so may others read it",
			"the blob is called %q instead of %s…", r.Handle.Name, prefix)
	}
	if r.Handle.NUID == "" {
		v.should("say in the handle under which nuid its chunks lie, and how many they are",
			"%s names no chunks: whoever may write blobs may say something else of this one's name", subjects.HeaderHandle)
	}
	body, err := s.store.Archive.Blob(ctx, r.Handle)
	if err != nil {
		v.must("upload it completely before you publish the record; size and sha256 (in hex) are those of the blob's bytes",
			"the blob of %s can't be read: %v", subjects.HeaderHandle, fault.As(err).Message)
		return
	}
	var x string
	if json.Unmarshal(body, &x) != nil || len(body) != size {
		v.must("the blob is the tool's output as JSON", "the blob is no JSON string of %d bytes, but %d bytes beginning %s",
			size, len(body), text.Clip(string(body), 40))
	}
}

// bucket sends a step of a tenant that has a bucket of its own.
func bucket(ctx context.Context, s *stage, v *verdict) {
	made, err := s.store.Archive.Declare(ctx, tenant)
	if err != nil {
		s.note(err)
		return
	}
	if made {
		defer func() { s.note(s.store.Archive.Undeclare(context.WithoutCancel(ctx), tenant)) }()
	}
	const size = wire.InlineLimit + 50_000
	own := subjects.BlobsOf(tenant)
	p := s.step(ctx, "bucket", fmt.Sprintf(`{"bytes":%d}`, size), func(w *wire.Step) { w.Bucket = own })
	const advice = "put it into the bucket that " + subjects.HeaderBucket + " names, and say so in the handle"
	switch r, ok := p.await(ctx, s.o.Patience); {
	case !ok:
		v.must(storeBlob, "a result of %d bytes leaves no record: the step never ends%s", size, s.ended())
		return
	case r.Handle == nil: // a check of its own says what that means
	case r.Handle.Bucket == "":
		v.should(advice, "the large result of a tenant with a bucket of its own lies in %s, where all tenants may read",
			subjects.BlobsBucket)
	case r.Handle.Bucket != own:
		v.must(advice, "the handle names the bucket %q, which fails the step", text.Clip(r.Handle.Bucket, 80))
	default:
		s.blob(ctx, v, p, r, size)
	}
	if !p.settled(ctx, s.o.Patience) {
		v.must("acknowledge the step once its record stands", "the step with the large result was not acknowledged")
	}
}

func largeArguments(ctx context.Context, s *stage, v *verdict) {
	p := s.probe(s.newRun(ctx, "arguments"), "s1")
	args := `{"echo":"read","unused":"` + strings.Repeat("x", wire.InlineLimit) + `"}`
	handle, err := s.store.Archive.PutBlob(ctx, "", p.attempt.BlobName(nuid.Next()), []byte(args))
	if err != nil {
		s.note(err)
		return
	}
	p.send(ctx, p.header(func(w *wire.Step) { w.Handle = handle }), nil)
	const advice = "where " + subjects.HeaderHandle + " is there, read the arguments from the object store " +
		subjects.BlobsBucket
	switch r, ok := p.await(ctx, s.o.Patience); {
	case !ok:
		v.must(advice, "a step with an empty body and a handle leaves no record%s", s.ended())
	case r.Error != nil:
		v.should(advice, "arguments over 256 KiB are refused: %s", said(r.Error))
	case !sameJSON(r.Body, []byte(`"read"`)):
		v.must(advice, "the tool was called with other arguments than those in the object store; it returned %s",
			text.Clip(string(r.Body), 80))
	}
}
