package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Start is the record that a run begins with: the verdict on its plan, and what is frozen for it. Everybody follows the
// stored one.
type Start struct {
	// Problems, if any, mean that the plan was rejected.
	Problems []fault.Problem `json:"problems,omitempty"`
	Warnings []fault.Problem `json:"warnings,omitempty"`
	// Since is when the plan was first rejected, where it came again soon after and these problems are those of then.
	Since time.Time `json:"since,omitzero"`
	// Reuse, if not nil, is what is taken over from the run that this one tries again.
	Reuse *Reuse `json:"reuse,omitempty"`
	// Tools are the frozen contracts of the tools used, by name.
	Tools map[string]*FrozenTool `json:"tools,omitempty"`
	// Bucket is where large values of the run go; empty: where those of all tenants go that are not declared. An
	// orchestrator that doesn't know of it would look for results there; so the record has a version that it leaves
	// alone.
	Bucket string `json:"bucket,omitempty"`
	// Groups are the tools of the groups that agents of the run name, and Search what their searches for tools look
	// through, by roles, as of its start; the role of all tools is empty.
	Groups map[string][]string `json:"groups,omitempty"`
	Search map[string][]string `json:"search,omitempty"`
	// Permits say what the run may call, where it was submitted with permissions; nil for everything.
	Permits *Permits `json:"permits,omitempty"`
	// Needs are what must be known to go on with the run: who doesn't know all of them leaves it alone.
	Needs []string `json:"needs,omitempty"`

	// Later says that the run's id had a rejected run before, whose outcome is to be replaced: an orchestrator that
	// doesn't know of it must not end this one. It is told by the version alone.
	Later bool `json:"-"`
}

// Permits are what a run keeps that was submitted with permissions.
type Permits struct {
	// Permissions are what it has, and Groups the definitions, as of its start, that need some.
	Permissions []string          `json:"permissions"`
	Groups      []json.RawMessage `json:"groups,omitempty"`
}

// FrozenTool is what a run keeps of a tool for as long as it runs, whatever the registry says later.
type FrozenTool struct {
	Digest   string        `json:"digest"` // of the definition, kept in the registry under it
	Shard    int           `json:"shard"`
	AckWait  int64         `json:"ack_wait_ms"` // its lease, in milliseconds
	Contract tool.Contract `json:"contract"`
	// Plan says that the tool is a plan, which its definition holds.
	Plan bool `json:"plan,omitempty"`
	// Agent says that it is an agent, likewise.
	Agent bool `json:"agent,omitempty"`
	// Definition is that of an agent which the plan defines itself, since no registry keeps it; nil for any other tool.
	Definition json.RawMessage `json:"definition,omitempty"`

	form []byte // as JSON, where it was written before
}

// Reuse is what a run takes over from the one that it tries again. It is frozen in the start record, so that it doesn't
// matter what becomes of that run.
type Reuse struct {
	Of    string                  `json:"of"`
	From  string                  `json:"from,omitempty"`
	Steps map[string]ReusedResult `json:"steps"`
	// Items are what is taken over of for_each steps that are executed again, by step. An orchestrator that doesn't
	// know of it would execute all of their items; so the record has a version that it leaves alone.
	Items map[string]*ReusedItems `json:"items,omitempty"`
	// Rounds are the results of calls in rounds of agents, and of their planners, by token. Each counts while all before it
	// in the loop was taken over.
	Rounds map[string]ReusedResult `json:"rounds,omitempty"`
	// Told are the calls in such rounds by which agents had told people something, by token. Their owners decide them again, and
	// tell nobody anew; an orchestrator that doesn't know of it does.
	Told []string `json:"told,omitempty"`
	// Keys are the idempotency keys that steps which are executed again had in that run, or in the one before it.
	Keys map[string]string `json:"keys,omitempty"`
}

// ReusedResult is the result of one step; a value's exact bytes survive as base64.
type ReusedResult struct {
	Value []byte          `json:"value,omitempty"`
	Blob  *outcome.Handle `json:"blob,omitempty"`
	Text  bool            `json:"text,omitempty"`
	Size  int64           `json:"size"`
	// Type and Planner are what its worker said of it for agents.
	Type    string `json:"type,omitempty"`
	Planner string `json:"planner,omitempty"`
}

// ReusedItems is what is taken over of a for_each step, if its list is the same again.
type ReusedItems struct {
	List  string `json:"list"` // SHA-256 in hex
	Count int    `json:"count"`
	// Results are those of items that succeeded, Keys the idempotency keys of all that had one; by item, from 0.
	Results map[int]ReusedResult `json:"results,omitempty"`
	Keys    map[int]string       `json:"keys,omitempty"`
}

// Round returns what is taken over of a call in a round of an agent; nil for nothing.
func (u *Reuse) Round(token string) *ReusedResult {
	if u == nil {
		return nil
	}
	x, taken := u.Rounds[token]
	if !taken {
		return nil
	}
	return &x
}

// ItemsOf returns what is taken over of a for_each step; nil for nothing.
func (u *Reuse) ItemsOf(step string) *ReusedItems {
	if u == nil {
		return nil
	}
	return u.Items[step]
}

// Frozen returns a tool as runs keep it, whose form is written once for all of them. It must not be changed any more.
func Frozen(t FrozenTool) *FrozenTool {
	t.form, _ = json.Marshal(t) // without it, Message says what is wrong
	return &t
}

// Rejected reports whether the plan was.
func (s *Start) Rejected() bool { return len(s.Problems) > 0 }

// version is that of the record's form: what only newer orchestrators do right, older ones leave alone.
func (s *Start) version() string {
	if len(s.Needs) > 0 {
		return subjects.NeedsVersion
	}
	if s.Bucket != "" {
		return subjects.BucketVersion
	}
	if s.Later || s.Reuse != nil && len(s.Reuse.Items) > 0 {
		return subjects.StartVersion
	}
	return subjects.Version
}

// Message writes a start as headers and body. A body over InlineLimit goes into a blob, and the record is Handled.
func (s *Start) Message() (nats.Header, []byte, error) {
	body, err := s.body()
	if err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "writing a start record")
	}
	return nats.Header{subjects.HeaderVersion: {s.version()}}, body, nil
}

// Handled writes a start whose body lies in a blob: headers alone, as of a result.
func (s *Start) Handled(blob *outcome.Handle) nats.Header {
	h, _ := Result{Handle: blob}.Message()
	h[subjects.HeaderVersion] = []string{s.version()}
	return h
}

// body is nearly always made of tools that were written before.
func (s *Start) body() ([]byte, error) {
	if len(s.Problems)+len(s.Warnings) > 0 || s.Reuse != nil || len(s.Needs) > 0 || len(s.Tools) == 0 {
		return json.Marshal(s)
	}
	b := []byte(`{"tools":{`)
	for i, name := range slices.Sorted(maps.Keys(s.Tools)) {
		if s.Tools[name].form == nil {
			return json.Marshal(s)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendJSON(b, name), ':'), s.Tools[name].form...)
	}
	b = append(b, '}')
	if s.Bucket != "" {
		b = appendJSON(append(b, `,"bucket":`...), s.Bucket)
	}
	return append(b, '}'), nil
}

// ParseStart reads a start whose version is known. blob, where it is not nil, holds the body: read it and parse that,
// without headers. The error is Internal, for what no orchestrator wrote.
func ParseStart(h nats.Header, body []byte) (s *Start, blob *outcome.Handle, err error) {
	if blob, err = getHandle(h); blob != nil || err != nil {
		return nil, blob, err
	}
	s = &Start{}
	if err := json.Unmarshal(body, s); err != nil {
		return nil, nil, fault.Wrap(fault.Internal, err, "reading a start record")
	}
	return s, nil, nil
}
