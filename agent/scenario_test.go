package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// TestScenarios plays the files of testdata: a definition, then commands, each with what it comes to. They are the rows
// of the seed that agents come from, and what this project adds to them; and they have every text that a planner may read.
func TestScenarios(t *testing.T) {
	t.Parallel()
	golden(t, "scenarios.txt", func(in string) string {
		lines := strings.Split(in, "\n")
		s := &scenario{t: t, d: define(t, lines[0])}
		s.begin("{}")
		var out strings.Builder
		for _, line := range lines[1:] {
			fmt.Fprintf(&out, "%s\n", line)
			for l := range strings.SplitSeq(strings.TrimSpace(s.run(line)), "\n") {
				if l != "" {
					fmt.Fprintf(&out, "    %s\n", l)
				}
			}
		}
		return out.String()
	})
}

type scenario struct {
	t testing.TB
	d *Definition
	f *Facts
}

func (s *scenario) begin(input string) string {
	f, err := s.d.Begin(json.RawMessage(input), nil)
	if err != nil {
		return err.Error() + " | " + err.Hint
	}
	s.f = f
	return ""
}

// run plays one command.
func (s *scenario) run(line string) string {
	verb, rest, _ := strings.Cut(line, " ")
	name, args, _ := strings.Cut(rest, " ")
	switch verb {
	case "begin":
		return s.begin(rest)
	case "round":
		n, err := strconv.Atoi(name)
		require.NoError(s.t, err)
		s.f.BeginRound(n, json.RawMessage(args))
		return ""
	case "shown":
		return s.shown()
	case "tell":
		return s.tell(name)
	case "gate":
		return decided(s.f.Gate(name))
	case "add":
		var o Outcome
		require.NoError(s.t, json.Unmarshal([]byte(rest), &o), rest)
		s.f.Add(o)
		return ""
	case "answer":
		result, err, is := s.f.Answer(name, json.RawMessage(args), s.account())
		if !is {
			return "nothing built in"
		}
		return decided(result, err)
	case "found":
		var all []struct{ Name string }
		result, _, _ := s.f.Answer(name, json.RawMessage(args), s.account())
		require.NoError(s.t, json.Unmarshal(result, &all))
		return fmt.Sprint(len(all), " tools")
	case "alone":
		result, err, _ := s.f.Answer(name, nil, nil)
		return decided(result, err)
	case "done":
		result, note, was := s.f.Done(name, json.RawMessage(args))
		if !was {
			return "not before"
		}
		return string(result) + " | " + note
	case "bound":
		args, _, err := s.f.Ready(name, s.f)
		return decided(args, err)
	case "selected":
		entries, bad := s.f.Selected(name, json.RawMessage(args))
		var out []string
		for _, e := range entries {
			out = append(out, e.Name+": "+e.Condition())
		}
		for _, p := range bad {
			out = append(out, fmt.Sprintf("%s %s: %s | %s", p.Code, p.Path, p.Message, p.Hint))
		}
		return strings.Join(out, "\n")
	case "facts":
		raw, err := json.Marshal(s.f)
		require.NoError(s.t, err)
		return string(raw)
	case "admit":
		return s.admit(strings.Fields(rest))
	}
	require.Fail(s.t, "unknown command", line)
	return ""
}

func (s *scenario) account() *Account {
	return &Account{Run: "r1", Agent: "helper", Goal: "Help.", Milliseconds: 1500,
		Spent: Spending{
			Budget: s.f.d.Budget, Kept: 50, Shared: Budget{Steps: 2}, Models: []ModelUse{{"large", 2, 120, 0.5}},
			Used: Usage{Steps: 3, ModelCalls: 2, InputTokens: 100, OutputTokens: 20, CostUSD: 0.5},
		},
		Calls: []Called{{"a", "search", "succeeded", 20}, {"b", "search", "failed", 5}, {"c", "fetch", "succeeded", 7}}}
}

func decided(result json.RawMessage, err *fault.Error) string {
	if err != nil {
		return err.Error()
	}
	if result == nil {
		return "may run"
	}
	var text string
	if json.Unmarshal(result, &text) == nil {
		return "= " + text
	}
	return "= " + string(result)
}

func (s *scenario) shown() string {
	var names []string
	for _, x := range s.f.Shown() {
		if x.Locked != "" {
			x.Name += " (locked)"
		}
		names = append(names, x.Name)
	}
	return strings.Join(names, ", ")
}

func (s *scenario) tell(name string) string {
	for _, x := range s.f.Shown() {
		if x.Name == name {
			return x.Description + "\n" + string(x.InputSchema) + "\n" + x.Locked
		}
	}
	return "not shown"
}

// admit reads calls such as "a:search b:analyze<a c:act@b d:act* e:files={"category":"read"}", and says what becomes of
// them.
func (s *scenario) admit(words []string) string {
	calls := readCalls(words)
	a := s.f.Admit(calls)
	var out []string
	for i, c := range calls {
		line := c.ID
		if w := a.Waits[i]; len(w) > 0 {
			line += " waits for " + strings.Join(ids(calls, w), ", ")
		}
		switch settled, is := a.Settled[i]; {
		case is:
			line += ": " + decided(settled.Result, settled.Err)
		case c.Entry != "":
			line += ": may run"
		}
		if b := a.Behind(i); len(b) > 0 {
			line += " (behind " + strings.Join(ids(calls, b), ", ") + ")"
		}
		out = append(out, line)
	}
	for _, p := range a.Problems {
		out = append(out, fmt.Sprintf("%s %s: %s | %s", p.Code, p.Step, p.Message, p.Hint))
	}
	return strings.Join(out, "\n")
}

func ids(calls []Call, places []int) (all []string) {
	for _, i := range slices.Sorted(slices.Values(places)) {
		all = append(all, calls[i].ID)
	}
	return all
}

func readCalls(words []string) (calls []Call) {
	place := map[string]int{}
	for i, w := range words {
		id, _, _ := strings.Cut(w, ":")
		place[id] = i
	}
	for _, w := range words {
		id, rest, _ := strings.Cut(w, ":")
		c := Call{ID: id, Within: -1, Arguments: json.RawMessage("{}")}
		if before, args, has := strings.Cut(rest, "="); has {
			rest, c.Arguments = before, json.RawMessage(args)
		}
		rest, c.Repeated = strings.CutSuffix(rest, "*")
		if before, parent, has := strings.Cut(rest, "@"); has {
			rest, c.Within = before, place[parent]
		}
		if before, deps, has := strings.Cut(rest, "<"); has {
			rest = before
			c.Arguments = nil
			for d := range strings.SplitSeq(deps, ",") {
				c.After = append(c.After, place[d])
			}
		}
		c.Entry = rest
		calls = append(calls, c)
	}
	return calls
}
