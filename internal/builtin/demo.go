package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// maxSleep is the longest that the tool sleep may sleep, in milliseconds: one hour.
const maxSleep = 3_600_000

func demoTools() []Tool {
	sleep := define("demo", "sleep", "Waits for some milliseconds. Ends early when the run is cancelled.",
		object(`"ms":{"type":"integer","minimum":0,"maximum":3600000}`, `"ms"`), countResult, nil)
	sleep.Run = runSleep
	sleep.Definition.Orchestration = &tool.Orchestration{TimeoutMS: maxSleep + 60_000}
	fail := define("demo", "fail",
		"Fails with the given message; with until_attempt, every attempt before that one fails and that one succeeds.",
		object(`"message":{"type":"string"},"terminal":{"type":"boolean","description":"true: not to be tried again"},`+
			`"until_attempt":{"type":"integer","minimum":1,"description":"number of the first attempt that succeeds"}`, ``),
		countResult, runFail)
	return []Tool{sleep, fail}
}

func runSleep(ctx context.Context, c Call) ([]byte, error) {
	var in struct {
		MS *int64 `json:"ms"`
	}
	if err := decode(c.Args, &in); err != nil {
		return nil, err
	}
	if in.MS == nil {
		return nil, required("ms")
	}
	if *in.MS < 0 || *in.MS > maxSleep {
		return nil, fault.New(fault.InvalidArguments, "the argument \"ms\" must be between 0 and %d", maxSleep)
	}
	timer := time.NewTimer(time.Duration(*in.MS) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return result(*in.MS)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func runFail(c Call) ([]byte, error) {
	in := struct {
		Message  string `json:"message"`
		Terminal bool   `json:"terminal"`
		Until    int    `json:"until_attempt"`
	}{Message: "failed as asked"}
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return nil, fault.Wrap(fault.InvalidArguments, err, "reading the arguments")
	}
	attempt := max(c.Attempt, 1)
	if in.Until > 0 && attempt >= in.Until {
		return result(attempt)
	}
	if in.Terminal {
		return nil, fault.New(fault.ToolTerminal, "%s", in.Message)
	}
	return nil, fault.New(fault.ToolFailed, "%s", in.Message)
}
