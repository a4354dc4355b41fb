package cli

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

// amended is a plan with what was added by each of its amendments; an empty one does nothing, as a person refused it.
type amended struct {
	adds    []string
	between map[int]func() // before a request to the revision is answered
}

func (p *amended) ask(_ context.Context, a client.Amendment) (*client.Amended, error) {
	if f := p.between[a.Revision]; f != nil {
		delete(p.between, a.Revision)
		f()
	}
	at := func(code fault.Code) error {
		err := fault.New(code, "it is at %d", len(p.adds))
		err.Details, _ = json.Marshal(wire.AmendConflict{Revision: len(p.adds)})
		return err
	}
	var asked string
	if len(a.Add) > 0 {
		asked = string(a.Add[0])
	}
	switch {
	case a.Revision > len(p.adds):
		return nil, at(fault.Conflict)
	case a.Revision == len(p.adds):
		for _, was := range p.adds {
			if was == asked {
				return nil, fault.New(fault.DuplicateStep, "it is there")
			}
		}
		p.adds = append(p.adds, asked)
		return &client.Amended{Revision: len(p.adds)}, nil
	case p.adds[a.Revision] == asked:
		return &client.Amended{Revision: a.Revision + 1, Already: true}, nil
	case p.adds[a.Revision] == "" && asked == "refused":
		return nil, at(fault.Rejected)
	}
	return nil, at(fault.Conflict)
}

// TestSameAmendmentsAtOnce: who amends the plan as it is now gets the answer of the same amendment that was quicker, whenever
// that came.
func TestSameAmendmentsAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		adds    []string
		between func(*amended) map[int]func()
		want    int
	}{
		"first":                     {nil, nil, 1},
		"the last is the same":      {[]string{"x", "q"}, nil, 2},
		"the last was refused":      {[]string{"x", ""}, nil, 3},
		"quicker, before any":       {nil, quicker(0, "q"), 1},
		"quicker, before the check": {[]string{"x"}, quicker(0, "q"), 2},
		"quicker, after the check":  {[]string{"x"}, quicker(1, "q"), 2},
		"and another behind it":     {[]string{"x"}, quicker(0, "q", "y"), 2},
		"and another before it":     {[]string{"x"}, quicker(0, "y", "q", "z"), 3},
		"others alone":              {[]string{"x"}, quicker(0, "y", "z"), 4},
	} {
		p := &amended{adds: c.adds}
		if c.between != nil {
			p.between = c.between(p)
		}
		f := amendFlags{change: client.Amendment{Add: []json.RawMessage{json.RawMessage("q")}}}
		if name == "the last was refused" {
			f.change.Add[0] = json.RawMessage("refused")
		}
		x, err := f.amend(t.Context(), p.ask)
		require.NoError(t, err, name)
		require.Equal(t, c.want, x.Revision, name)
	}
}

// quicker is amendments by others before a request to a revision is answered.
func quicker(revision int, adds ...string) func(*amended) map[int]func() {
	return func(p *amended) map[int]func() {
		return map[int]func(){revision: func() { p.adds = append(p.adds, adds...) }}
	}
}
