package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

// demandOf asks how much of tools is wanted now. nil, and a line that says why, where that can't be seen: all else of
// them can be shown.
func demandOf(ctx context.Context, a *app, store *kv.Store, tools []tool.Registered) *tool.Demands {
	d, err := store.Requests.Demand(ctx, tools)
	if err != nil {
		a.say("how much of them is wanted can't be seen: %s", fault.As(kv.Fault(err)).Message)
		return nil
	}
	if len(d.Unsure) > 0 {
		a.say("what orchestrators hold back is not known for the runs in %s of 64: no orchestrator, or two, answered for them",
			text.Count(len(d.Unsure), "partition"))
	}
	return d
}

// demandCells are the columns of a tool's demand: how many steps, how many of the limit workers have, and for how long
// the oldest waits.
func demandCells(d *tool.Demand, limit int) (wanted, leased, oldest cell) {
	wanted, leased, oldest = cell{text: "?", right: true}, cell{text: strconv.Itoa(limit), right: true}, cell{right: true}
	if d == nil {
		return wanted, leased, oldest
	}
	if !d.NoConsumer {
		wanted.text, leased.text = strconv.Itoa(d.Steps), fmt.Sprintf("%d of %d", d.Leased, d.Limit)
	}
	if d.OldestMS > 0 {
		oldest.text = took(d.Oldest())
	}
	return wanted, leased, oldest
}

// demand says of one tool where the steps are that are wanted.
func (rows *table) demand(st style, d *tool.Demand) {
	if d == nil {
		return
	}
	row := func(name, value string) { rows.add(cell{text: name, paint: st.dim}, plain(value)) }
	if d.NoConsumer {
		row("wanted", "not known: the consumer of the tool is gone (stepjet doctor)")
		return
	}
	row("wanted", fmt.Sprintf("%s: %d leased of %d, %d queued, %d held back", text.Count(d.Steps, "step"), d.Leased, d.Limit, d.Queued, d.Held))
	if d.OldestMS > 0 {
		row("oldest waits", took(d.Oldest()))
	}
}
