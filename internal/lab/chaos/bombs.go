package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// bomb is a plan that is meant to cost more than it should, and what it has to come to.
type bomb struct {
	name string
	plan string
	// want is the code that one of its errors, or of its problems, has to have; empty: the run has to succeed.
	want fault.Code
	// forge is a record that a stranger writes for its step "stranger"; nil: none.
	forge *nats.Msg
}

// The tools of bombs; their worker is a process of its own.
const (
	toolEcho  = "bomb_echo"  // its arguments
	toolText  = "bomb_text"  // a string of n bytes
	toolList  = "bomb_list"  // a list of n numbers
	toolDeep  = "bomb_deep"  // n arrays, one within the other
	toolKeys  = "bomb_keys"  // an object of n keys
	toolDigit = "bomb_digit" // a number of n digits, times ten to the power of n
	toolBytes = "bomb_bytes" // n bytes that are no text
	toolFail  = "bomb_fail"  // an error with n bytes of details, and a message of 16 kB
	toolNone  = "bomb_none"  // nobody's
)

func bombOutput(name string, n int, args []byte) (worker.Output, error) {
	switch name {
	case toolEcho:
		return worker.Output{Body: args}, nil
	case toolText:
		return worker.Output{Body: []byte(`"` + strings.Repeat("x", n) + `"`)}, nil
	case toolList:
		return worker.Output{Body: []byte("[" + strings.TrimSuffix(strings.Repeat("1,", n), ",") + "]")}, nil
	case toolDeep:
		return worker.Output{Body: []byte(strings.Repeat("[", n) + strings.Repeat("]", n))}, nil
	case toolKeys:
		b := []byte("{")
		for i := range n {
			b = fmt.Appendf(b, `"k%d":%d,`, i, i)
		}
		b[len(b)-1] = '}'
		return worker.Output{Body: b}, nil
	case toolDigit:
		return worker.Output{Body: []byte(strings.Repeat("9", n) + "e" + fmt.Sprint(n))}, nil
	case toolBytes:
		return worker.Output{Body: []byte(strings.Repeat("\xff", n))}, nil
	}
	return worker.Output{}, worker.Terminal(&fault.Error{Code: fault.ToolTerminal, Message: strings.Repeat("m", 16<<10),
		Details: json.RawMessage(`"` + strings.Repeat("d", n) + `"`)})
}

func (r *Role) bomber(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	w, err := worker.New(nc, worker.Config{Name: r.Name, Logger: log})
	if err != nil {
		return err
	}
	for _, name := range []string{toolEcho, toolText, toolList, toolDeep, toolKeys, toolDigit, toolBytes, toolFail} {
		def := &tool.Definition{Name: name, Description: "Part of a bomb.",
			Orchestration: &tool.Orchestration{Mode: tool.FanOutBounded, MaxConcurrency: 256}}
		err := w.HandleRaw(def, func(_ context.Context, args json.RawMessage) (worker.Output, error) {
			var in struct {
				N int `json:"n"`
			}
			_ = json.Unmarshal(args, &in) // what echo gets may be anything
			return bombOutput(name, in.N, args)
		}, worker.Slots(2)) // it is the orchestrator's memory that is looked at
		if err != nil {
			return err
		}
	}
	go func() { <-w.Ready(); ready() }()
	return w.Run(ctx)
}

// steps writes n steps, each with its number in the place of %d.
func steps(n int, form string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(form, "%d", fmt.Sprint(i)))
	}
	return strings.Join(all, ",")
}

// planOf makes a plan of steps and the ids of its output steps.
func planOf(steps, outputs string) string {
	return `{"steps":[` + steps + `],"output_steps":[` + outputs + `]}`
}

func textStep(id string, n int) string {
	return fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":{"n":%d}}`, id, toolText, n)
}

// join is a step that gets a value n times over.
func join(id string, n int, ref string) string {
	return fmt.Sprintf(`{"id":%q,"tool":%q,"arguments":{"all":[%s]}}`, id, toolEcho,
		strings.TrimSuffix(strings.Repeat(`"$ref:`+ref+`",`, n), ","))
}

// bombs returns all of them; brief ones do the same with less.
func bombs(brief bool) []bomb {
	times := func(full, short int) int {
		if brief {
			return short
		}
		return full
	}
	one := func(name, id string, n int, want fault.Code) bomb {
		return bomb{name: name, plan: planOf(fmt.Sprintf(`{"id":"a","tool":%q,"arguments":{"n":%d}}`, id, n), `"a"`),
			want: want}
	}
	doubling := textStep("s0", 64<<10)
	for i := range 24 {
		doubling += "," + join(fmt.Sprint("s", i+1), 2, fmt.Sprint("s", i))
	}
	joins := func(n, value, times int) string {
		s := textStep("a", value)
		for i := range n {
			s += "," + join(fmt.Sprint("j", i), times, "a")
		}
		return planOf(s+fmt.Sprintf(`,{"id":"end","tool":%q,"depends_on":["j0"]}`, toolEcho), `"end"`)
	}
	wide := times(9_999, 1_500)
	var ids, refs []string
	for i := range wide {
		ids = append(ids, fmt.Sprintf(`"s%d"`, i))
	}
	for i := range max(wide, plan.MaxRefs+1) {
		refs = append(refs, fmt.Sprintf(`"$ref:s%d"`, i%wide))
	}
	kilobytes := steps(wide, `{"id":"s%d","tool":"`+toolText+`","arguments":{"n":2000}}`)
	megabytes := steps(100, `{"id":"s%d","tool":"`+toolText+`","arguments":{"n":1000000}}`)
	outputs := strings.Join(ids[:times(100, 70)], ",")
	return []bomb{
		{name: "doubling", plan: planOf(doubling, `"s24"`), want: fault.TooLarge},
		{name: "wide-join", plan: planOf(kilobytes+`,{"id":"end","tool":"`+toolEcho+`","depends_on":[`+strings.Join(ids, ",")+
			`]}`, `"end"`)},
		{name: "wide-references",
			plan: planOf(kilobytes+`,{"id":"end","tool":"`+toolEcho+`","arguments":{"all":[`+strings.Join(refs, ",")+`]}}`,
				`"end"`), want: fault.LimitExceeded},
		{name: "most-references", plan: planOf(textStep("a", 12_000)+","+join("end", plan.MaxRefs, "a"), `"end"`)},
		{name: "megabytes-joined", plan: joins(times(8, 2), 1_000_000, 60)},
		{name: "kilobytes-joined", plan: joins(times(96, 16), 200_000, 40)},
		{name: "too-many-megabytes",
			plan: planOf(megabytes+`,{"id":"end","tool":"`+toolEcho+`","arguments":{"all":[`+strings.Join(refs[:100], ",")+`]}}`,
				`"end"`), want: fault.TooLarge},
		{name: "giant-list", plan: planOf(`{"id":"l","tool":"`+toolList+`","arguments":{"n":5000000}},{"id":"e","tool":"`+
			toolEcho+`","for_each":{"in":"$ref:l"},"arguments":{"x":"$ref:item"}}`, `"e"`), want: fault.InvalidArguments},
		{name: "deep-plan", plan: planOf(`{"id":"a","tool":"`+toolEcho+`","arguments":{"x":`+strings.Repeat("[", 200_000)+
			strings.Repeat("]", 200_000)+`}}`, `"a"`), want: fault.MalformedJSON},
		one("deep-result", toolDeep, 1_000_000, fault.ToolTerminal),
		{name: "million-keys", plan: planOf(`{"id":"k","tool":"`+toolKeys+`","arguments":{"n":1000000}},{"id":"a","tool":"`+
			toolEcho+`","arguments":{"x":"$ref:k.k999999","y":"$ref:k.k0"}}`, `"a"`)},
		one("huge-number", toolDigit, 1_000_000, ""),
		one("no-text", toolBytes, 1_000_000, fault.ToolTerminal),
		{name: "many-results", plan: planOf(steps(times(400, 300),
			`{"id":"s%d","tool":"`+toolText+`","arguments":{"n":250000}}`), `"s0"`)},
		{name: "long-errors", plan: planOf(steps(times(600, 60),
			`{"id":"s%d","tool":"`+toolFail+`","arguments":{"n":200000}}`), `"s0"`), want: fault.ToolTerminal},
		{name: "huge-outcome", plan: planOf(megabytes, outputs), want: fault.TooLarge},
		byStranger("stranger-no-text", nil, "\xff\xfe not JSON", fault.ToolTerminal),
		byStranger("stranger-error", nats.Header{subjects.HeaderStatus: {subjects.StatusError}}, "{\"code\":17,",
			fault.ToolFailed),
		byStranger("stranger-handle", nats.Header{subjects.HeaderHandle: {"{\"name\":"}}, "", fault.ToolTerminal),
	}
}

// byStranger is a run whose one step is decided by somebody who knows nothing of the protocol.
func byStranger(name string, h nats.Header, body string, want fault.Code) bomb {
	plan := planOf(`{"id":"stranger","tool":"`+toolNone+`"}`, `"stranger"`)
	return bomb{name: name, plan: plan, want: want, forge: &nats.Msg{Header: h, Data: []byte(body)}}
}
