package wire

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// MaxDemandTools bounds the tools that are asked for at once, so that no answer is too large.
const MaxDemandTools = 500

// QueuesRequest is the body of a request for what lies in the streams of some tools.
type QueuesRequest struct {
	Tools map[string]int `json:"tools"` // the shard of each, by name; at most MaxDemandTools
}

// Body writes the request.
func (r QueuesRequest) Body() []byte {
	body, _ := json.Marshal(r) // strings and numbers: it can't fail
	return body
}

// ParseQueuesRequest reads the request. Errors: InvalidValue; LimitExceeded for too many tools.
func ParseQueuesRequest(body []byte) (r QueuesRequest, err error) {
	err = readDemand(body, &r, func() int { return len(r.Tools) }, `{"tools": {"search": 0}}`)
	return r, err
}

func readDemand(body []byte, into any, tools func() int, example string) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fault.New(fault.InvalidValue, "the request can't be read: %v", err).WithHint("write %s", example)
	}
	if n := tools(); n > MaxDemandTools {
		return fault.New(fault.LimitExceeded, "the request names %d tools, at most %d are allowed", n, MaxDemandTools).
			WithHint("ask for them in several requests")
	}
	return nil
}

// QueuesAnswer is what lies in the streams of the tools that were asked for. One without a consumer is left out.
type QueuesAnswer struct {
	Tools map[string]Queue `json:"tools"`
}

// Queue is what lies in a tool's stream.
type Queue struct {
	Limit  int    `json:"limit"`  // of steps that workers may have
	Leased int    `json:"leased"` // how many they have
	Behind uint64 `json:"behind"` // how many steps have been given to no worker
	Given  uint64 `json:"given"`  // the sequence up to which steps have been given to workers
}

// Body writes the answer.
func (a QueuesAnswer) Body() []byte {
	body, _ := json.Marshal(a) // strings and numbers: it can't fail
	return body
}

// DemandRequest is the body of a request for what orchestrators hold back of some tools. How far the consumers of those
// are tells an orchestrator which of the steps that it has out wait.
type DemandRequest struct {
	Tools map[string]DemandSince `json:"tools"` // by name; at most MaxDemandTools
	// OverMS is for how long a run that is told of waits at least. It counts where runs are asked for (subjects.WaitingSubject).
	OverMS int64 `json:"over_ms,omitempty"`
}

// DemandSince are numbers of a tool's Queue.
type DemandSince struct {
	Given  uint64 `json:"given,omitempty"`
	Behind uint64 `json:"behind,omitempty"`
	// Leased counts where runs are asked for: of a step of which it isn't known whether a worker has it, none has it where
	// none has any.
	Leased int `json:"leased,omitempty"`
}

// Body writes the request.
func (r DemandRequest) Body() []byte {
	body, _ := json.Marshal(r) // strings and numbers: it can't fail
	return body
}

// ParseDemandRequest reads the request. Errors: InvalidValue; LimitExceeded for too many tools.
func ParseDemandRequest(body []byte) (r DemandRequest, err error) {
	err = readDemand(body, &r, func() int { return len(r.Tools) }, `{"tools": {"search": {"given": 17, "behind": 3}}}`)
	return r, err
}

// DemandAnswer is what one orchestrator, or one loop of it, has of the tools that it was asked for.
type DemandAnswer struct {
	Serves uint64               // a bit for each partition of which it knows all that is out and held back
	Unsure uint64               // a bit for each that it has, and of which it does not know that yet: nothing of it is counted
	Tools  map[string]DemandNow // those it has something of
	Runs   []WaitingRun         // where they were asked for: those that wait longest, at most MaxWaitingRuns
	More   int                  // how many others wait as long as was asked for
}

// MaxWaitingRuns bounds the runs of an answer.
const MaxWaitingRuns = 100

// WaitingRun is a run that waits for a worker: the step of it that has waited longest.
type WaitingRun struct {
	Run  string `json:"run"` // its key in the history
	Step string `json:"step"`
	Tool string `json:"tool"`
	MS   int64  `json:"ms"` // for how long
}

// LongestFirst orders runs that wait.
func LongestFirst(a, b WaitingRun) int {
	return cmp.Or(cmp.Compare(b.MS, a.MS), cmp.Compare(a.Run, b.Run))
}

// DemandNow is what is held back of a tool.
type DemandNow struct {
	Held     int   `json:"held"`                // steps that wait for room
	OldestMS int64 `json:"oldest_ms,omitempty"` // for how long the oldest has been ready that no worker has
}

// Plus returns what is held back here and there together.
func (n DemandNow) Plus(more DemandNow) DemandNow {
	return DemandNow{Held: n.Held + more.Held, OldestMS: max(n.OldestMS, more.OldestMS)}
}

// DemandOf puts together what is wanted of a tool: what is held back of it, and what lies in its stream; nil where that has
// no consumer. limit is the registry's: of the queue one hears what was so a moment ago.
func DemandOf(name string, limit int, held DemandNow, q *Queue) tool.Demand {
	d := tool.Demand{Tool: name, Limit: limit, Held: held.Held, OldestMS: held.OldestMS, NoConsumer: q == nil}
	if q != nil {
		d.Queued, d.Leased = int(q.Behind), q.Leased
	}
	d.Steps = d.Held + d.Queued + d.Leased
	return d
}

// demandAnswer is a DemandAnswer as JSON.
type demandAnswer struct {
	Serves string               `json:"serves"` // in hex: numbers of 64 bits are none in JSON
	Unsure string               `json:"unsure,omitempty"`
	Tools  map[string]DemandNow `json:"tools,omitempty"`
	Runs   []WaitingRun         `json:"runs,omitempty"`
	More   int                  `json:"more,omitempty"`
}

// Body writes the answer.
func (a DemandAnswer) Body() []byte {
	b := demandAnswer{Serves: strconv.FormatUint(a.Serves, 16), Tools: a.Tools, Runs: a.Runs, More: a.More}
	if a.Unsure != 0 {
		b.Unsure = strconv.FormatUint(a.Unsure, 16)
	}
	body, _ := json.Marshal(b) // strings and numbers: it can't fail
	return body
}

// ParseDemandAnswer reads the answer. One that can't be read is that of nobody: it serves nothing.
func ParseDemandAnswer(body []byte) DemandAnswer {
	var b demandAnswer
	if json.Unmarshal(body, &b) != nil {
		return DemandAnswer{}
	}
	serves, err := strconv.ParseUint(b.Serves, 16, 64)
	if err != nil {
		return DemandAnswer{}
	}
	unsure, _ := strconv.ParseUint(b.Unsure, 16, 64) // none: who asks waits for the answer of somebody else
	return DemandAnswer{serves, unsure, b.Tools, b.Runs, b.More}
}
