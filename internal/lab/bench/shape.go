package bench

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stepjet/stepjet/internal/bench"
)

// The tools that the shapes call beside bench.Tool.
const (
	// flakyTool fails the first attempt of one step in ten.
	flakyTool = "flaky"
	// bulkTool returns a result of as many bytes as its argument says.
	bulkTool = "bulk"
	// gatedTool ends when the gate is opened for all.
	gatedTool = "gated"
	gate      = "bench.gate"

	toolLimit  = 4096
	gatedLimit = 64
	failOneIn  = 10
	retryPause = 250 * time.Millisecond
)

// Shape is one that the floor can run, too.
type Shape struct {
	bench.Shape
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
	return Shape{Shape: bench.Chain(length, runs), tool: bench.Tool, graph: g}
}

func fanOutShape(width, runs int) Shape {
	g := graph{waits: make([]int32, width+1), next: make([][]int, width+1)}
	for i := range width {
		g.next[i] = []int{width}
	}
	g.waits[width] = int32(width)
	return Shape{Shape: bench.FanOut(width, runs), tool: bench.Tool, graph: g}
}

// bulkShape is a fan-out whose steps have large results, which the join waits for and does not read.
func bulkShape(width, runs, bytes int, text string, blobs bool) Shape {
	s := fanOutShape(width, runs)
	s.Name, s.tool, s.bytes, s.blobs = fmt.Sprintf("fan-out of %d, results of %s", width, text), bulkTool, bytes, blobs
	s.Plan = bench.FanOutPlan(width, bulkTool, fmt.Sprintf(`{"bytes":%d}`, bytes))
	return s
}

func diamondShape(inFlight, runs int) Shape {
	return Shape{Shape: bench.Diamonds(inFlight, runs), tool: bench.Tool, graph: graph{
		waits: []int32{0, 1, 1, 2, 1, 1, 2}, next: [][]int{{1, 2}, {3}, {3}, {4, 5}, {6}, {6}, nil},
	}}
}

func flakyShape(inFlight, runs int) Shape {
	s := diamondShape(inFlight, runs)
	s.Name, s.tool = fmt.Sprintf("diamonds, %d in flight, 10 %% fail once", inFlight), flakyTool
	s.Plan = []byte(strings.ReplaceAll(string(s.Plan), `"`+bench.Tool+`"`, `"`+flakyTool+`"`))
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
