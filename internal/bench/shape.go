package bench

import (
	"fmt"
	"strings"
)

// Tool is the tool that shapes call: it returns its arguments.
const Tool = "noop"

// toolLimit is how many executions of Tool there may be at a time.
const toolLimit = 4096

// Shape is a kind of load: one plan, many times.
type Shape struct {
	Name string
	// Runs a round, and how many of them are under way at a time.
	Runs, InFlight int
	// Steps of a run; Depth is how many of them wait for each other.
	Steps, Depth int
	// Plan is the document that is submitted.
	Plan []byte
}

// Chain is a run of steps that wait for each other, one run at a time.
func Chain(length, runs int) Shape {
	return Shape{
		Name:     fmt.Sprintf("chain of %d", length),
		Runs:     runs,
		InFlight: 1,
		Steps:    length,
		Depth:    length,
		Plan:     ChainPlan(length),
	}
}

// FanOut is a run of steps that are ready at once and one that waits for them all, one run at a time.
func FanOut(width, runs int) Shape {
	return Shape{
		Name: fmt.Sprintf("fan-out of %d with join", width), Runs: runs, InFlight: 1, Steps: width + 1, Depth: 2,
		Plan: FanOutPlan(width, Tool, ""),
	}
}

// Diamonds are small runs, many at a time.
func Diamonds(inFlight, runs int) Shape {
	return Shape{
		Name: fmt.Sprintf("diamonds of %d, %d in flight", DiamondSteps, inFlight), Runs: runs, InFlight: inFlight,
		Steps: DiamondSteps, Depth: diamondDepth, Plan: diamond,
	}
}

// ChainPlan is a plan of steps that wait for each other.
func ChainPlan(length int) []byte {
	var b strings.Builder
	b.WriteString(`{"steps":[{"id":"s0","tool":"` + Tool + `","arguments":{"x":1}}`)
	for i := 1; i < length; i++ {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"%s","arguments":{"x":"$ref:s%d.x"}}`, i, Tool, i-1)
	}
	fmt.Fprintf(&b, `],"output_steps":["s%d"]}`, length-1)
	return []byte(b.String())
}

// FanOutPlan has steps that are ready at once, and one that waits for them all. Empty arguments: a number for each.
func FanOutPlan(width int, tool, arguments string) []byte {
	var b strings.Builder
	b.WriteString(`{"steps":[`)
	for i := range width {
		own := arguments
		if own == "" {
			own = fmt.Sprintf(`{"x":%d}`, i)
		}
		fmt.Fprintf(&b, `{"id":"s%d","tool":"%s","arguments":%s},`, i, tool, own)
	}
	b.WriteString(`{"id":"join","tool":"` + Tool + `","depends_on":[`)
	for i := range width {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"s%d"`, i)
	}
	b.WriteString(`]}],"output_steps":["join"]}`)
	return []byte(b.String())
}

// diamond has seven steps in five waves: one, two, one, two, one.
var diamond = []byte(`{"steps":[
{"id":"a","tool":"noop","arguments":{"x":1}},
{"id":"b","tool":"noop","arguments":{"x":"$ref:a.x"}},{"id":"c","tool":"noop","arguments":{"x":"$ref:a.x"}},
{"id":"d","tool":"noop","arguments":{"x":"$ref:b.x","y":"$ref:c.x"}},
{"id":"e","tool":"noop","arguments":{"x":"$ref:d.x"}},{"id":"f","tool":"noop","arguments":{"x":"$ref:d.x"}},
{"id":"g","tool":"noop","arguments":{"x":"$ref:e.x","y":"$ref:f.x"}}],"output_steps":["g"]}`)

const (
	// DiamondSteps is the number of steps of a run of Diamonds.
	DiamondSteps = 7
	diamondDepth = 5
)
