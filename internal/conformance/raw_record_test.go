package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/outcome"
)

// work is the tool's, which may go on after its step has been given up.
type work struct {
	returned chan struct{} // nil: it wasn't called
	latest   time.Time     // when it need not be waited for any more
}

// wait waits for the tool to return, but not for ever.
func (x *work) wait(w *raw) {
	if x.returned == nil || w.has("runs on", "acks at once") {
		return
	}
	late := time.After(time.Until(x.latest))
	if w.has("holds for ever") {
		late = nil
	}
	select {
	case <-x.returned:
	case <-late:
	}
}

// execute runs the tool. An empty status means that nothing is to be recorded.
func (w *raw) execute(ctx context.Context, m jetstream.Msg, h nats.Header, name string, x *work) (status string, body []byte, handle string) {
	args := json.RawMessage(m.Data())
	if given := h.Get("Stepjet-Handle"); given != "" && !w.has("no handle") {
		var o outcome.Handle
		_ = json.Unmarshal([]byte(given), &o)
		args, _ = w.blobs.GetBytes(ctx, o.Name)
	} else if len(args) == 0 {
		args = json.RawMessage(`{"echo":"nothing"}`)
	}
	if ms := h.Get("Stepjet-Timeout-Ms"); ms != "" && !w.has("no timeout") {
		d, _ := time.ParseDuration(ms + "ms")
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
		x.latest = time.Now().Add(d + time.Duration(w.reg.AckWaitMS)*time.Millisecond)
	}
	if at, err := time.Parse(time.RFC3339Nano, h.Get("Stepjet-Deadline")); err == nil && !w.has("no deadline") {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, at.Add(2*time.Second))
		defer cancel()
	}
	if w.has("shares state") {
		shared := args
		w.last.Store(&shared)
		time.Sleep(20 * time.Millisecond)
		args = *w.last.Load()
	}
	out, err := w.call(ctx, args, x)
	if err != nil && !w.has("tells secrets") {
		err = redacted(err, h)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		status, body = failure("timeout", "too slow")
		return status, body, ""
	case err != nil && w.has("ignores errors"):
		return "", nil, ""
	case err != nil && w.has("errors are data"):
		_, body = failure("tool_failed", err.Error())
		return "ok", body, ""
	case err != nil && w.has("text errors"):
		return "error", []byte(err.Error()), ""
	case err != nil && w.has("nak"):
		_ = m.Nak()
		return "", nil, ""
	case err != nil:
		status, body = failure("tool_failed", err.Error())
		return status, body, ""
	}
	return w.output(ctx, out, name, h.Get("Stepjet-Bucket"))
}

// call runs the tool until it returns or is given up. With a bug it isn't told of that.
func (w *raw) call(ctx context.Context, args json.RawMessage, x *work) ([]byte, error) {
	type answer struct {
		out []byte
		err error
	}
	told := ctx
	if w.has("runs on") {
		told = context.Background()
	}
	x.returned = make(chan struct{})
	done := make(chan answer, 1)
	go func() {
		defer close(x.returned)
		out, err := execute(told, w.nc, args)
		done <- answer{out, err}
	}()
	givenUp := ctx.Done()
	if w.has("waits for tools") {
		givenUp = nil
	}
	select {
	case a := <-done:
		return a.out, a.err
	case <-givenUp:
		return nil, context.Cause(ctx)
	}
}

// redacted removes the secrets of a step from an error.
func redacted(err error, h nats.Header) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	bag := map[string]string{}
	_ = json.Unmarshal([]byte(h.Get("Stepjet-Context")), &bag)
	text := err.Error()
	for _, key := range strings.Split(h.Get("Stepjet-Context-Secrets"), ",") {
		if len(bag[key]) >= 4 {
			text = strings.ReplaceAll(text, bag[key], "[secret]")
		}
	}
	return errors.New(text)
}

// output spoils or stores what the tool returned.
func (w *raw) output(ctx context.Context, out []byte, name, bucket string) (status string, body []byte, handle string) {
	var v any
	switch {
	case w.has("floats"):
		_ = json.Unmarshal(out, &v)
		out, _ = json.Marshal(v)
	case w.has("latin1"):
		out = bytes.ReplaceAll(out, []byte("ü"), []byte{0xfc})
	case w.has("wraps"):
		out = fmt.Appendf(nil, `{"result":%s}`, out)
	}
	if len(out) <= 256<<10 || w.has("inline") {
		return "ok", out, ""
	}
	switch {
	case w.has("silent on oversize"):
		return "", nil, ""
	case w.has("refuses large"):
		status, body = failure("too_large", "at most 256 KiB")
		return status, body, ""
	}
	sum := sha256.Sum256(out)
	if w.has("wrong sum") {
		sum = sha256.Sum256(out[1:])
	}
	blob := strings.ReplaceAll(name, ".", "/") + "/" + nuid.Next()
	object := nuid.Next()
	if w.has("no bucket") {
		bucket = ""
	}
	chunks, err := w.put(ctx, cmp.Or(bucket, "blobs"), blob, object, out)
	if err != nil {
		status, body = failure("tool_failed", err.Error())
		return status, body, ""
	}
	h := outcome.Handle{Name: blob, Size: int64(len(out)), SHA256: hex.EncodeToString(sum[:]), NUID: object, Chunks: chunks, Bucket: bucket}
	if w.has("another's bucket") && bucket != "" {
		h.Bucket = "blobs-other"
	}
	if w.has("no chunks") {
		h.NUID, h.Chunks = "", 0
	}
	header, _ := json.Marshal(h)
	return "ok", nil, string(header)
}

// put stores an object: its chunks, then what is to be said of its name.
func (w *raw) put(ctx context.Context, bucket, name, object string, out []byte) (chunks int, err error) {
	for rest := out; len(rest) > 0; chunks++ {
		n := min(len(rest), 128<<10)
		if _, err := w.js.Publish(ctx, "$O."+bucket+".C."+object, rest[:n]); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	info := fmt.Sprintf(`{"name":%q,"bucket":%q,"nuid":%q,"size":%d,"chunks":%d}`, name, bucket, object, len(out), chunks)
	_, err = w.js.Publish(ctx, "$O."+bucket+".M."+base64.URLEncoding.EncodeToString([]byte(name)), []byte(info))
	return chunks, err
}

// record writes the record, however long that takes, and acknowledges.
func (w *raw) record(m jetstream.Msg, subject, status string, body []byte, handle string, x *work) error {
	h := nats.Header{"Stepjet-Version": {"1"}, "Stepjet-Status": {status}, "Stepjet-Worker": {"raw"}}
	if w.has("long name") {
		h["Stepjet-Worker"] = []string{strings.Repeat("raw", 100)}
	}
	for _, name := range []string{"traceparent", "Stepjet-Context"} {
		if v := m.Headers()[name]; v != nil && (name == "traceparent" || w.has("leaks")) {
			h[name] = v
		}
	}
	if handle != "" {
		h["Stepjet-Handle"] = []string{handle}
	}
	msg := &nats.Msg{Subject: subject, Header: h, Data: body}
	if w.has("message id") {
		h["Nats-Msg-Id"] = []string{subject}
	}
	var opts []jetstream.PublishOpt
	if !w.has("no expectation") {
		opts = append(opts, jetstream.WithExpectLastSequencePerSubject(0))
	}
	if w.has("doesn't wait") {
		h["Nats-Expected-Last-Subject-Sequence"] = []string{"0"}
		_ = w.nc.PublishMsg(msg)
		return m.Ack()
	}
	if w.has("publishes twice") {
		_, _ = w.js.PublishMsg(context.Background(), msg, opts...)
	}
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := w.js.PublishMsg(context.Background(), msg, opts...)
		switch {
		case err != nil && w.has("dies of refusal"):
			return err
		case w.has("no ack"):
			return nil
		case err == nil, w.has("acks whatever"), w.read(subject) != nil && !w.has("insists"), w.nc.IsClosed():
			x.wait(w)
			return m.Ack()
		}
		time.Sleep(wait)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
