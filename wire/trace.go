package wire

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// Trace is W3C Trace Context, carried from a plan to its steps, and from a step to its result. It holds only what the
// specification allows: a header that does not, which could be as long as the server takes headers, would be copied to
// each of 10,000 steps and break whatever tool hands it on.
type Trace struct{ Parent, State string }

// Limits of W3C Trace Context, version 00.
const (
	traceparentSize  = 55
	maxTraceparent   = 128 // of a later version, which may have more behind the 55 bytes
	maxTracestate    = 512
	maxTraceMembers  = 32
	maxTraceValue    = 256
	maxTraceKey      = 256
	maxTraceTenant   = 241
	maxTraceSystem   = 14
	lowerHex         = "0123456789abcdef"
	traceKeyAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789_-*/"
)

func (t Trace) set(h *header) {
	if t = t.Valid(); t.Parent == "" {
		return
	}
	h.set(subjects.HeaderTraceparent, t.Parent)
	if t.State != "" {
		h.set(subjects.HeaderTracestate, t.State)
	}
}

// Set replaces the trace context in a plan's headers; the zero Trace removes it.
func (t Trace) Set(h nats.Header) {
	delete(h, subjects.HeaderTraceparent)
	delete(h, subjects.HeaderTracestate)
	t.set(&header{Header: h})
}

// Clone returns the same trace without keeping the headers alive from which it was read.
func (t Trace) Clone() Trace { return Trace{strings.Clone(t.Parent), strings.Clone(t.State)} }

// Of returns the trace context of an attempt: in the trace of t, with the attempt's own span as the parent of what is
// done for it (see subjects.Attempt.Span). It is of version 00, which is all that is known here; the zero Trace stays
// zero.
func (t Trace) Of(a subjects.Attempt) Trace {
	if len(t.Parent) < traceparentSize {
		return Trace{}
	}
	version, trace, flags := t.Parent[:2], t.Parent[3:35], t.Parent[53:55]
	if version != "00" { // of its flags only the first is known to be kept
		flags = []string{"00", "01"}[strings.IndexByte(lowerHex, flags[1])&1]
	}
	b := make([]byte, 0, traceparentSize)
	b = append(append(append(b, "00-"...), trace...), '-')
	b = hex.AppendEncode(b, binary.BigEndian.AppendUint64(make([]byte, 0, 8), a.Span()))
	return Trace{string(append(append(b, '-'), flags...)), t.State}
}

// SampledID returns the id of the trace, 32 hexadecimal digits, where it is sampled, and "" where nobody keeps it.
func (t Trace) SampledID() string {
	if len(t.Parent) < traceparentSize || strings.IndexByte(lowerHex, t.Parent[54])&1 == 0 {
		return ""
	}
	return t.Parent[3:35]
}

// TraceOfRun returns the trace of a run whose plan came without one: one of its own, that the share of runs has which is
// kept, and the zero Trace for the others. Every owner of the run comes to the same, by its name alone. Its parent is
// the run's own span.
func TraceOfRun(r subjects.Run, generation uint64, share float64) Trace {
	const parts = 1 << 20
	span := r.Span(generation)
	if share <= 0 || float64(span%parts) >= share*parts {
		return Trace{}
	}
	id := r.Trace(generation)
	b := append(hex.AppendEncode([]byte("00-"), id[:]), '-')
	return Trace{Parent: string(append(hex.AppendEncode(b, binary.BigEndian.AppendUint64(nil, span)), "-01"...))}
}

// TraceOf reads the trace context of a message, without what is not valid.
func TraceOf(h nats.Header) Trace {
	parent := get(h, subjects.HeaderTraceparent)
	if parent == "" || len(h[subjects.HeaderTraceparent]) > 1 { // two of them name no one parent
		return Trace{}
	}
	state := h[subjects.HeaderTracestate]
	if len(state) > maxTraceMembers {
		state = nil
	}
	return Trace{parent, strings.Join(state, ",")}.Valid()
}

// Valid returns the trace without what W3C Trace Context does not allow: nothing without a valid traceparent, and no
// tracestate of more than 512 bytes or of another form.
func (t Trace) Valid() Trace {
	switch {
	case !validTraceparent(t.Parent):
		return Trace{}
	case !validTracestate(t.State):
		return Trace{Parent: t.Parent}
	}
	return t
}

// validTraceparent reports whether s is version-trace_id-parent_id-flags. Of a version above 00 more may follow, behind
// a dash.
func validTraceparent(s string) bool {
	if len(s) < traceparentSize || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	for _, field := range []string{s[:2], s[3:35], s[36:52], s[53:55]} {
		if strings.Trim(field, lowerHex) != "" {
			return false
		}
	}
	if s[:2] == "ff" || strings.Trim(s[3:35], "0") == "" || strings.Trim(s[36:52], "0") == "" {
		return false
	}
	rest := s[traceparentSize:]
	return rest == "" || s[:2] != "00" && len(s) <= maxTraceparent && rest[0] == '-' && visible(rest)
}

// visible reports whether s is printable ASCII without blanks.
func visible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// validTracestate reports whether s is a list of at most 32 members key=value, each key once. Members may be empty.
func validTracestate(s string) bool {
	if len(s) > maxTracestate {
		return false
	}
	seen := map[string]bool{}
	for member := range strings.SplitSeq(s, ",") {
		member = strings.Trim(member, " \t")
		if member == "" {
			continue
		}
		key, value, ok := strings.Cut(member, "=")
		if !ok || seen[key] || !validTraceKey(key) || !validTraceValue(value) {
			return false
		}
		seen[key] = true
	}
	return len(seen) <= maxTraceMembers
}

// validTraceKey reports whether key is one of a vendor, or tenant@vendor.
func validTraceKey(key string) bool {
	tenant, system, multi := strings.Cut(key, "@")
	if !multi {
		return len(key) <= maxTraceKey && begins(key, "abcdefghijklmnopqrstuvwxyz") && strings.Trim(key, traceKeyAlphabet) == ""
	}
	return len(tenant) <= maxTraceTenant && begins(tenant, "abcdefghijklmnopqrstuvwxyz0123456789") && strings.Trim(tenant, traceKeyAlphabet) == "" &&
		len(system) <= maxTraceSystem && begins(system, "abcdefghijklmnopqrstuvwxyz") && strings.Trim(system, traceKeyAlphabet) == ""
}

func begins(s, alphabet string) bool { return s != "" && strings.IndexByte(alphabet, s[0]) >= 0 }

// validTraceValue reports whether v is 1 to 256 bytes of printable ASCII but comma and equals sign, with no blank at
// its end.
func validTraceValue(v string) bool {
	return v != "" && len(v) <= maxTraceValue && !strings.HasSuffix(v, " ") &&
		strings.IndexFunc(v, func(r rune) bool { return r < ' ' || r > '~' || r == ',' || r == '=' }) < 0
}
