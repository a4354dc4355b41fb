package conformance_test

import (
	"bytes"
	"context"
	"crypto/sha256"
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

// execute runs the tool. An empty status means that nothing is to be recorded.
func (w *raw) execute(ctx context.Context, m jetstream.Msg, h nats.Header, name string) (status string, body []byte, handle string) {
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
	}
	if w.has("shares state") {
		shared := args
		w.last.Store(&shared)
		time.Sleep(20 * time.Millisecond)
		args = *w.last.Load()
	}
	out, err := execute(ctx, args)
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
	return w.output(ctx, out, name)
}

// output spoils or stores what the tool returned.
func (w *raw) output(ctx context.Context, out []byte, name string) (status string, body []byte, handle string) {
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
	if _, err := w.blobs.PutBytes(ctx, blob, out); err != nil {
		status, body = failure("tool_failed", err.Error())
		return status, body, ""
	}
	h, _ := json.Marshal(outcome.Handle{Name: blob, Size: int64(len(out)), SHA256: hex.EncodeToString(sum[:])})
	return "ok", nil, string(h)
}

// record writes the record, however long that takes, and acknowledges.
func (w *raw) record(m jetstream.Msg, subject, status string, body []byte, handle string) error {
	h := nats.Header{"Stepjet-Version": {"1"}, "Stepjet-Status": {status}, "Stepjet-Worker": {"raw"}}
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
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := w.js.PublishMsg(context.Background(), msg, opts...)
		switch {
		case err != nil && w.has("dies of refusal"):
			return err
		case w.has("no ack"):
			return nil
		case err == nil, w.has("acks whatever"), w.read(subject) != nil && !w.has("insists"), w.nc.IsClosed():
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
