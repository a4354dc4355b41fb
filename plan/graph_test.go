package plan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

func TestGraph(t *testing.T) {
	t.Parallel()
	p := parsed(t, diamond)
	deps := [][]int{nil, {0}, {0}, {0}, {1, 2}, {2, 3}, {3, 4, 5}}
	dependents := [][]int{{1, 2, 3}, {4}, {4, 5}, {5, 6}, {6}, {6}, {}}
	for i := range p.Steps {
		require.ElementsMatch(t, deps[i], p.Steps[i].Deps)
		require.Equal(t, dependents[i], p.Dependents(i))
	}
	require.Equal(t, 4, p.Depth)
	require.Equal(t, [][]int{{0}, {1, 2, 3}, {4, 5}, {6}}, p.Waves())
	require.Equal(t, []int{6}, p.Outputs)
}

// graph is a random set of steps and who waits for whom.
type graph struct {
	n     int
	edges map[[2]int]bool
	body  string
}

// randomGraph makes a graph; forward keeps it free of cycles.
func randomGraph(r *rand.Rand, forward bool) graph {
	g := graph{n: 1 + r.IntN(12), edges: map[[2]int]bool{}}
	order := r.Perm(g.n)
	var list []string
	for i := range g.n {
		var refs, ids []string
		for range r.IntN(4) {
			j := r.IntN(g.n)
			if forward && order[j] >= order[i] {
				continue
			}
			g.edges[[2]int{i, j}] = true
			if r.IntN(2) == 0 {
				ids = append(ids, fmt.Sprintf(`"s%d"`, j))
			} else {
				refs = append(refs, []string{`"$ref:s%d.x"`, `"t ${ref:s%d}"`, `{"$ref":"s%d"}`, `"$ref:s%d || 1"`}[r.IntN(4)])
				refs[len(refs)-1] = fmt.Sprintf(refs[len(refs)-1], j)
			}
		}
		list = append(list, fmt.Sprintf(`{"id":"s%d","tool":"t","depends_on":[%s],"arguments":{"l":[%s]}}`, i, strings.Join(ids, ","), strings.Join(refs, ",")))
	}
	g.body = steps(strings.Join(list, ","))
	return g
}

// depth is the longest way down, the dumb way.
func (g graph) depth(i int) int {
	d := 0
	for e := range g.edges {
		if e[0] == i {
			d = max(d, 1+g.depth(e[1]))
		}
	}
	return d
}

func TestRandomGraphsWithoutCycles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 1)), true)
		p := parsed(t, g.body)
		deepest := 0
		for i := range p.Steps {
			require.Equal(t, g.depth(i), p.Steps[i].Depth, g.body)
			deepest = max(deepest, p.Steps[i].Depth)
			require.IsIncreasing(t, append([]int{-1}, p.Steps[i].Deps...))
			require.IsIncreasing(t, append([]int{-1}, p.Dependents(i)...))
			for j := range p.Steps {
				require.Equal(t, g.edges[[2]int{i, j}], contains(p.Steps[i].Deps, j), g.body)
				require.Equal(t, g.edges[[2]int{j, i}], contains(p.Dependents(i), j), g.body)
			}
		}
		require.Equal(t, deepest+1, p.Depth)
		seen := 0
		for d, wave := range p.Waves() {
			for _, s := range wave {
				require.Equal(t, d, p.Steps[s].Depth)
				seen++
			}
		}
		require.Equal(t, g.n, seen)
	}
}

func contains(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// Each set of steps that wait for each other is reported once, by a cycle that is there, and each step that waits for
// itself once.
func TestRandomCycles(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 2)), false)
		reach := map[[2]int]bool{}
		for e := range g.edges {
			reach[e] = true
		}
		for k := range g.n {
			for i := range g.n {
				for j := range g.n {
					if reach[[2]int{i, k}] && reach[[2]int{k, j}] {
						reach[[2]int{i, j}] = true
					}
				}
			}
		}
		want := 0
		for i := range g.n {
			if g.edges[[2]int{i, i}] {
				want++
			}
			first := true // of its set
			larger := false
			for j := range g.n {
				if j != i && reach[[2]int{i, j}] && reach[[2]int{j, i}] {
					larger = true
					first = first && j > i
				}
			}
			if larger && first {
				want++
			}
		}
		_, r := plan.Parse([]byte(g.body), nil)
		require.Len(t, r.Problems, want, g.body)
		for _, p := range r.Problems {
			require.Equal(t, fault.Cycle, p.Code)
			_, ring, _ := strings.Cut(p.Message, ": ")
			ids := strings.Split(ring, " -> ")
			require.Equal(t, ids[0], ids[len(ids)-1])
			var last int
			for n, id := range ids {
				var i int
				_, err := fmt.Sscanf(id, "s%d", &i)
				require.NoError(t, err)
				if n > 0 {
					require.True(t, g.edges[[2]int{last, i}], "%s in %s", p.Message, g.body)
				} else {
					require.True(t, strings.HasPrefix(p.Path, fmt.Sprintf("/steps/%d/", i)), p.Path)
				}
				last = i
			}
		}
	}
}

func TestCyclePlaces(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"id":"a","tool":"t","depends_on":["b"]},{"id":"b","tool":"t","depends_on":["a"]}`:                               "/steps/0/depends_on/0",
		`{"id":"a","tool":"t","arguments":{"x":[1,"and $ref:b."]}},{"id":"b","tool":"t","depends_on":["a"]}`:              "/steps/0/arguments/x/1",
		`{"id":"a","tool":"t","arguments":{"x":{"$ref":"b"}}},{"id":"b","tool":"t","depends_on":["a"]}`:                   "/steps/0/arguments/x/$ref",
		`{"id":"a","tool":"t","arguments":"{\"y\":{\"x\":\"$ref:b\"}}"},{"id":"b","tool":"t","depends_on":["a"]}`:         "/steps/0/arguments/y/x",
		`{"id":"a","tool":"t","arguments":"{\"y\":1,\"y\":{\"x\":\"$ref:b\"}}"},{"id":"b","tool":"t","depends_on":["a"]}`: "/steps/0/arguments/y/x",
		`{"id":"a","tool":"t","arguments":{"x":"$ref:a.y"}}`:                                                              "/steps/0/arguments/x",
		`{"id":"a","tool":"t","depends_on":["a"],"arguments":{"x":"$ref:a"}}`:                                             "/steps/0/depends_on/0",
	} {
		_, r := plan.Parse([]byte(steps(body)), nil)
		last := r.Problems[len(r.Problems)-1]
		require.Equal(t, fault.Cycle, last.Code)
		require.Equal(t, want, last.Path, body)
	}
}

func TestOffByOneHint(t *testing.T) {
	t.Parallel()
	_, r := plan.Parse([]byte(steps(`{"id":"n0","tool":"t"},{"id":"n1","tool":"t","arguments":{"x":"$ref:n1"}}`)), nil)
	require.Len(t, r.Problems, 1)
	require.Contains(t, r.Problems[0].Hint, `Off by one? The step before it is "n0"`)
}

func TestLongCycleIsShortened(t *testing.T) {
	t.Parallel()
	body := strings.Replace(string(large(10_000)), `"location":"Tokyo"`, `"x":"$ref:s9999"`, 1)
	_, r := plan.Parse([]byte(body), nil)
	require.Len(t, r.Problems, 1)
	require.Contains(t, r.Problems[0].Message, "10000 steps wait for each other: s0 -> s9999 -> s9998 -> ")
	require.Contains(t, r.Problems[0].Message, "-> … 9951 more … ->")
	require.True(t, strings.HasSuffix(r.Problems[0].Message, "s2 -> s1 -> s0"))
	require.Less(t, len(r.Problems[0].Message), 1000)
}
