package plan_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// fanOut is a step that returns a list, and n steps that take one item each.
func fanOut(n int, path func(i int) string) string {
	list := []string{`{"id":"list","tool":"t"}`}
	for i := range n {
		list = append(list, fmt.Sprintf(`{"id":"s%d","tool":"t","arguments":{"v":"$ref:list%s"}}`, i, path(i)))
	}
	return steps(strings.Join(list, ","))
}

// items is a list in an object behind something long.
func items(n int) []byte {
	return []byte(`{"before":"` + strings.Repeat("x", 20_000) + `","deep":{"list":[ ` +
		repeat(n, `{"n":%d,"tags":["a",{"b":[1,2]}],"text":"some text, with \"quotes\" and [brackets]"}`) + ` ]}}`)
}

// A resolver gives the same as the plan itself, in whatever order the steps come.
func TestResolverAgreesWithPlan(t *testing.T) {
	t.Parallel()
	const n = 400
	r := rand.New(rand.NewPCG(1, 2))
	p := parsed(t, fanOut(n, func(int) string {
		return []string{
			fmt.Sprintf(".deep.list[%d].n", r.IntN(n+50)), fmt.Sprintf(".deep.list.%d", r.IntN(n)), fmt.Sprintf(".deep.list[%d].tags[1].b", r.IntN(n)),
			".deep.nope", ".deep.list", fmt.Sprintf(".deep.list[%d].n.x || 7", r.IntN(n)), ".before.x", fmt.Sprintf(".deep[%d]", r.IntN(n)),
		}[r.IntN(8)]
	}))
	body := items(n)
	result := func(int) ([]byte, bool) { return body, true }
	resolver := p.NewResolver()
	for _, step := range append(r.Perm(n+1), r.Perm(n+1)...) {
		want, err := p.Arguments(step, result)
		got, fail := resolver.Arguments(step, result)
		require.Equal(t, string(want), string(got))
		require.Equal(t, err, fail)
	}
}

// Even results that change under its hands, which they must not, can't make it read beyond them.
func TestResolverSurvivesChangingResults(t *testing.T) {
	t.Parallel()
	p := parsed(t, fanOut(1000, func(i int) string { return fmt.Sprintf(".deep.list[%d].n", i) }))
	body := items(1000)
	resolver := p.NewResolver()
	r := rand.New(rand.NewPCG(3, 4))
	for range 1000 {
		require.NotPanics(t, func() {
			_, _ = resolver.Arguments(1+r.IntN(1000), func(int) ([]byte, bool) { return body[:r.IntN(len(body))], true })
		})
	}
}

func BenchmarkFanOut(b *testing.B) {
	const n = 9_000
	p := parsed(b, fanOut(n, func(i int) string { return fmt.Sprintf(".deep.list[%d].n", i) }))
	body := items(n)
	result := func(int) ([]byte, bool) { return body, true }
	b.ReportAllocs()
	for b.Loop() {
		r := p.NewResolver()
		for step := 1; step <= n; step++ {
			if _, err := r.Arguments(step, result); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/step")
}

func ExamplePlan_NewResolver() {
	p, _ := plan.Parse([]byte(`{"steps": [
		{"id": "list", "tool": "search"},
		{"id": "first", "tool": "fetch", "arguments": {"id": "$ref:list.ids[0]"}},
		{"id": "second", "tool": "fetch", "arguments": {"id": "$ref:list.ids[1]"}}
	]}`), nil)
	run := p.NewResolver() // one for the run, so that a long list is read once
	for step := 1; step <= 2; step++ {
		args, err := run.Arguments(step, func(int) ([]byte, bool) { return []byte(`{"ids": ["x", "y"]}`), true })
		fmt.Println(string(args), err == nil)
	}
	// Output:
	// {"id": "x"} true
	// {"id": "y"} true
}

// What is picked out of a large result is copied, the result is not: a reference to its last item allocates the
// arguments and a place for each 32 items before it.
func TestAReferenceIntoALargeResultCopiesOnlyWhatItNames(t *testing.T) { // not parallel: it counts what this process allocates
	const n = 20_000
	p := parsed(t, fanOut(1, func(int) string { return fmt.Sprintf(".deep.list[%d].n", n-1) }))
	body := items(n)
	require.Greater(t, len(body), 1<<20)
	result := func(int) ([]byte, bool) { return body, true }
	allocated := func(arguments func(int, func(int) ([]byte, bool)) ([]byte, *fault.Error)) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got, err := arguments(1, result)
		runtime.ReadMemStats(&after)
		require.Nil(t, err)
		require.Equal(t, fmt.Sprintf(`{"v":%d}`, n-1), string(got))
		return after.TotalAlloc - before.TotalAlloc
	}
	const places = n / 32 * 4 * 4 // four bytes each, and a slice that grows is allocated some times over
	require.Less(t, allocated(p.Arguments), uint64(places+1<<10))
	require.Less(t, allocated(p.NewResolver().Arguments), uint64(places+1<<10))
}
