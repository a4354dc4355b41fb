package bench

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The tools that the shapes call.
const (
	// Tool gives back its arguments.
	Tool = "noop"
	// flakyTool fails the first attempt of one step in ten.
	flakyTool = "flaky"
	// bulkTool gives a result of as many bytes as its argument says.
	bulkTool = "bulk"
	// gatedTool ends when the gate is opened for all.
	gatedTool = "gated"
	gate      = "bench.gate"

	toolLimit  = 4096
	gatedLimit = 64
	failOneIn  = 10
	retryPause = 250 * time.Millisecond
)

// Shape is a kind of load: one plan, many times.
type Shape struct {
	Name string
	// Runs a round, and how many of them are under way at a time.
	Runs, InFlight int
	// Steps of a run; Depth is how many of them wait for each other.
	Steps, Depth int

	plan  []byte
	graph graph
	tool  string
	bytes int // of a result of bulkTool
	blobs bool
}

// graph is what the floor knows of a plan: how many others each step waits for, and which wait for it.
type graph struct {
	waits []int32
	next  [][]int
}

// floorKind tells the floor's worker what to do with a step. Those that wait for large results have small ones.
func (s Shape) floorKind(step int) string {
	switch {
	case s.tool == bulkTool && s.graph.waits[step] > 0:
		return kindEcho
	case s.tool == flakyTool:
		return kindFlaky
	case s.tool == bulkTool && s.blobs:
		return kindBlob + strconv.Itoa(s.bytes)
	case s.tool == bulkTool:
		return kindBulk + strconv.Itoa(s.bytes)
	}
	return kindEcho
}

// sizes keeps one JSON string of each size, in bytes.
type sizes struct{ made sync.Map }

func (s *sizes) of(size int) []byte {
	if b, ok := s.made.Load(size); ok {
		return b.([]byte)
	}
	b, _ := s.made.LoadOrStore(size, []byte(`"`+strings.Repeat("x", max(size-2, 0))+`"`))
	return b.([]byte)
}

func chainShape(length, runs int) Shape {
	g := graph{waits: make([]int32, length), next: make([][]int, length)}
	for i := 1; i < length; i++ {
		g.waits[i], g.next[i-1] = 1, []int{i}
	}
	return Shape{
		Name: fmt.Sprintf("chain of %d", length), Runs: runs, InFlight: 1, Steps: length, Depth: length, tool: Tool,
		plan: chainPlan(length), graph: g,
	}
}

func fanOutShape(width, runs int) Shape {
	g := graph{waits: make([]int32, width+1), next: make([][]int, width+1)}
	for i := range width {
		g.next[i] = []int{width}
	}
	g.waits[width] = int32(width)
	return Shape{
		Name: fmt.Sprintf("fan-out of %d with join", width), Runs: runs, InFlight: 1, Steps: width + 1, Depth: 2, tool: Tool,
		plan: fanOutPlan(width, Tool, ""), graph: g,
	}
}

// bulkShape is a fan-out whose steps have large results, which the join waits for and does not read.
func bulkShape(width, runs, bytes int, text string, blobs bool) Shape {
	s := fanOutShape(width, runs)
	s.Name, s.tool, s.bytes, s.blobs = fmt.Sprintf("fan-out of %d, results of %s", width, text), bulkTool, bytes, blobs
	s.plan = fanOutPlan(width, bulkTool, fmt.Sprintf(`{"bytes":%d}`, bytes))
	return s
}

func diamondShape(inFlight, runs int) Shape {
	s := Shape{
		Name: fmt.Sprintf("diamonds of %d, %d in flight", diamondSteps, inFlight), Runs: runs, InFlight: inFlight,
		Steps: diamondSteps, Depth: diamondDepth, tool: Tool, plan: diamond,
	}
	s.graph = graph{waits: []int32{0, 1, 1, 2, 1, 1, 2}, next: [][]int{{1, 2}, {3}, {3}, {4, 5}, {6}, {6}, nil}}
	return s
}

func flakyShape(inFlight, runs int) Shape {
	s := diamondShape(inFlight, runs)
	s.Name, s.tool = fmt.Sprintf("diamonds, %d in flight, 10 %% fail once", inFlight), flakyTool
	s.plan = []byte(strings.ReplaceAll(string(diamond), `"`+Tool+`"`, `"`+flakyTool+`"`))
	return s
}

// Shapes are those of which ratios are reported. scale makes rounds shorter or longer: 1 for a second or so each.
func Shapes(scale float64) []Shape {
	n := func(runs int) int { return max(int(float64(runs)*scale), 1) }
	return []Shape{
		chainShape(20, n(100)), fanOutShape(100, n(30)), fanOutShape(2000, n(4)),
		diamondShape(16, n(1500)), diamondShape(64, n(2000)), diamondShape(256, n(2500)), flakyShape(512, n(3000)),
		bulkShape(100, n(4), 100_000, "100 kB", false),
		bulkShape(20, n(4), 1_000_000, "1 MB", false), bulkShape(20, n(4), 1_000_000, "1 MB (floor: object store)", true),
	}
}

func chainPlan(length int) []byte {
	var b strings.Builder
	b.WriteString(`{"steps":[{"id":"s0","tool":"` + Tool + `","arguments":{"x":1}}`)
	for i := 1; i < length; i++ {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"%s","arguments":{"x":"$ref:s%d.x"}}`, i, Tool, i-1)
	}
	fmt.Fprintf(&b, `],"output_steps":["s%d"]}`, length-1)
	return []byte(b.String())
}

// fanOutPlan has steps that are ready at once, and one that waits for them all. Empty arguments: a number for each.
func fanOutPlan(width int, tool, arguments string) []byte {
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
	diamondSteps = 7
	diamondDepth = 5
)
