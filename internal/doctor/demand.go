package doctor

import (
	"fmt"
	"time"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/tool"
)

// waitsLong is for how long a step may wait for a worker before somebody who looks wants to know it.
const waitsLong = 5 * time.Minute

// heldBack returns how many steps of a tool lie in no stream yet, as far as that is known.
func heldBack(wanted *tool.Demands, name string) int {
	if wanted == nil || wanted.Of(name) == nil {
		return 0
	}
	return wanted.Of(name).Held
}

func waitsForLong(x *tool.Demand) Finding {
	f := Finding{
		About: x.Tool, Health: Notable, Expected: "steps that are taken soon",
		Found: fmt.Sprintf("%s wanted, of which %d are leased of %d; the oldest has waited for %v", text.Count(x.Steps, "step"),
			x.Leased, x.Limit, x.Oldest().Round(time.Second)),
		Means: "their runs wait", Fix: "start more workers of " + x.Tool,
	}
	if x.Leased >= x.Limit {
		f.Fix = "the limit is reached, so more workers don't help: stepjet tools override " + x.Tool + " --set max_concurrency=N"
	}
	return f
}
