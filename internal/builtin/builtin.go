// Package builtin holds the tools that come with Stepjet: arithmetic, text and JSON; and, where they are asked for, two
// for demonstrations and those of the NESTFUL data set.
//
// Each is a definition and a function of its arguments. They know nothing of NATS, keep no state, and are bounded: a
// plan can't make one compute or return more than the limits below, whatever it sends. What can't be helped by trying
// again is a *fault.Error of code tool_terminal, invalid_arguments or too_large.
//
// All but echo return an object with the one key "result", so that a plan refers to it as $ref:step.result.
package builtin

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// MaxSize is the most that the arguments or the output of a built-in tool may have, in bytes. More is the error
// too_large.
const MaxSize = 16 << 20

// Call is what a tool is told besides its arguments.
type Call struct {
	// Args are the arguments: one JSON object. They are neither changed nor kept.
	Args json.RawMessage
	// Attempt is the number of the attempt, from 1; 0 is read as 1.
	Attempt int
}

// Tool is one built-in tool.
type Tool struct {
	// Group is the name under which a tools file asks for it and its like: arithmetic, text, json, demo or nestful.
	Group string
	// Definition is what is registered. It is shared: copy it before changing it.
	Definition *tool.Definition
	// Run executes the tool and gives one JSON value. It may be called from many goroutines.
	Run func(ctx context.Context, c Call) ([]byte, error)
}

// all is built once; the order is that of the groups, then of their tables. Behind it come the tools that are hosted
// only where a tools file asks for them: those for demonstrations, and a data set's, whose names are not what people
// expect.
var (
	all   = slices.Concat(arithmeticTools(), textTools(), jsonTools())
	asked = slices.Concat(demoTools(), nestfulTools())
)

// All returns the built-in tools that are hosted where nothing else is said, group by group.
func All() []Tool { return slices.Clone(all) }

// Groups returns the names of the groups in order. The last two are hosted only where a tools file names them or one of
// their tools.
func Groups() []string { return []string{"arithmetic", "text", "json", "demo", "nestful"} }

// Group returns the tools of a group; nil where there is no such group.
func Group(name string) []Tool {
	var out []Tool
	for _, t := range slices.Concat(all, asked) {
		if t.Group == name {
			out = append(out, t)
		}
	}
	return out
}

// Lookup returns the tool of a name, and whether there is one. Of a name in several groups it is the first one's.
func Lookup(name string) (Tool, bool) {
	for _, t := range slices.Concat(all, asked) {
		if t.Definition.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// define puts a pure tool together: read-only, idempotent, closed world.
func define(group, name, description, input, output string, run func(c Call) ([]byte, error)) Tool {
	return Tool{
		Group: group,
		Definition: &tool.Definition{
			Name: name, Description: description,
			InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output),
			Annotations: pure(),
		},
		Run: func(_ context.Context, c Call) ([]byte, error) {
			if len(c.Args) > MaxSize {
				return nil, fault.New(fault.TooLarge, "the arguments are over the limit of %d bytes", MaxSize).
					WithHint("pass on only the part that is needed, with a path in the reference")
			}
			return bounded(run(c))
		},
	}
}

func pure() *tool.Annotations {
	yes, no := true, false
	return &tool.Annotations{ReadOnlyHint: &yes, IdempotentHint: &yes, DestructiveHint: &no, OpenWorldHint: &no}
}

func bounded(out []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if len(out) > MaxSize {
		return nil, outputTooLarge()
	}
	return out, nil
}

func outputTooLarge() error {
	return fault.New(fault.TooLarge, "the output is over the limit of %d bytes", MaxSize).
		WithHint("split the work over several steps, or return less")
}

// result writes {"result": v}. Strings are written as they are, without the escapes that HTML would need.
func result(v any) ([]byte, error) {
	b, err := jsontape.Marshal(struct {
		Result any `json:"result"`
	}{v})
	if err != nil {
		return nil, fault.Wrap(fault.ToolTerminal, err, "writing the result")
	}
	return b, nil
}

// decode reads the arguments into a struct. The caller has checked them against the input schema already, so an error
// here means that it did not.
func decode(args json.RawMessage, into any) error {
	if err := json.Unmarshal(args, into); err != nil {
		return fault.Wrap(fault.InvalidArguments, err, "reading the arguments")
	}
	return nil
}

func required(name string) error {
	return fault.New(fault.InvalidArguments, "the argument %q is missing", name)
}
