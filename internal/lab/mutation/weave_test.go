package mutation

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const sample = `package sample

type box[T any] struct{ of T }

func (box[T]) twice(n int, _ string) int { return 2 * n }

func sum(first int, others ...int) (total int) {
	total = first
	for _, n := range others {
		total += n
	}
	return total
}

func pick[T any](a, b T) T {
	return a
}

var limit = 3

func set(_, n int) {
	limit = n
}

func safe(f func()) (fell bool) {
	defer func() { fell = recover() != nil }()
	f()
	return false
}
`

const sampleTest = `package sample

import "testing"

func TestSum(t *testing.T) {
	if sum(1, 2, 3) != 6 {
		t.Fatal("sum")
	}
}

func TestRest(t *testing.T) {
	set(1, 4)
	if (box[int]{}).twice(2, "") != 4 || pick("a", "b") != "a" || limit != 4 || !safe(func() { panic("") }) {
		t.Fatal("rest")
	}
}

func TestSeeds(t *testing.T) {
	if !testing.Short() && sum(1) != 1 {
		t.Fatal("many")
	}
}

func TestSlow(t *testing.T) {
	for range sum(0) {
		select {}
	}
}

func TestRed(t *testing.T) { t.Fatal("always") }
`

// sampleModule makes the module above the directory that one is in.
func sampleModule(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module sample\n\ngo 1.24\n", "sample.go": sample, "sample_test.go": sampleTest,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(".", name), []byte(text), 0o600))
	}
}

// TestBugsSleepInOneBuild: whatever a function is like, a bug in it is awake alone when it is named, and none otherwise.
func TestBugsSleepInOneBuild(t *testing.T) {
	sampleModule(t)
	dir, ctx := t.TempDir(), context.Background()
	bug := func(name, from, to, run string) mutant {
		return mutant{name, "", "sample.go", from, to, ".", run}
	}
	bugs := []mutant{
		bug("sum-less", "total += n", "total -= n", "Sum"),
		bug("sum-first", "total = first", "", ""),
		bug("method", "2 * n", "3 * n", "Rest"),
		bug("generic", "return a\n", "return b\n", "Rest"),
		bug("nothing-returned", "	limit = n\n", "", "Rest"),
		bug("recovers", "recover() != nil", "recover() == nil", "Rest"),
		bug("outside", "var limit = 3", "var limit = 4", "Rest"),
	}
	all, alone, err := together(dir, bugs)
	require.NoError(t, err)
	require.Equal(t, bugs[5:], alone)
	for i, m := range bugs {
		r, err := m.plant(ctx, dir, all, i >= 5, "")
		require.NoError(t, err, m.name)
		want := map[string]string{"Sum": "TestSum", "": "TestSum", "Rest": "TestRest"}[m.run]
		if m.name == "outside" {
			want = "" // the test sets it first
		}
		require.Equal(t, want, r.by, m.name)
	}

	// The test that caught a bug before is the first to run: this one would not be reached otherwise.
	later := bug("sum-less", "total += n", "total -= n", "")
	r, err := later.plant(ctx, dir, all, false, "TestSum")
	require.NoError(t, err)
	require.Equal(t, "TestSum", r.by)
	r, err = later.plant(ctx, dir, all, false, "TestThatIsNoMore")
	require.NoError(t, err)
	require.Equal(t, "TestSum", r.by)

	// A few seeds are tried before many.
	often := bug("sum-first", "total = first", "", "Seeds")
	r, err = often.plant(ctx, dir, all, false, "")
	require.NoError(t, err)
	require.Equal(t, "TestSeeds", r.by)

	// What fails anyway has caught nothing, and what no test is named by is not missed.
	_, err = bug("sum-less", "", "", "Red").plant(ctx, dir, all, false, "")
	require.ErrorContains(t, err, "TestRed fails without the bug, too")
	_, err = bug("sum-less", "", "", "Nothing").plant(ctx, dir, all, false, "")
	require.ErrorIs(t, err, errNoTest)
}

// TestTimeIsLimited: a bug that a test hangs with is caught once the test took much longer than it does without.
func TestTimeIsLimited(t *testing.T) {
	sampleModule(t)
	all, _, err := together(t.TempDir(), []mutant{{"for-ever", "", "sample.go", "total = first", "total = 1", ".", "Slow"}})
	require.NoError(t, err)
	f, err := all.run(context.Background(), tests{of: ".", run: "Slow"}, "for-ever", time.Second)
	require.NoError(t, err)
	require.Equal(t, "the time limit of TestSlow", f.test)
}

// TestABugThatIsNoGo: what does not compile is told by the bug's name, and takes no other with it.
func TestABugThatIsNoGo(t *testing.T) {
	sampleModule(t)
	all, _, wrong, err := sleeping(context.Background(), t.TempDir(), []mutant{
		{"no-name", "", "sample.go", "total = first", "total = last", ".", "Sum"},
		{"sum-less", "", "sample.go", "total += n", "total -= n", ".", "Sum"},
	})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"no-name": "8: undefined: last"}, wrong)
	f, err := all.run(context.Background(), tests{of: ".", run: "Sum"}, "sum-less", time.Minute)
	require.NoError(t, err)
	require.Equal(t, "TestSum", f.test)
}
