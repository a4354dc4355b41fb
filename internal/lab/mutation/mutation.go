// Package mutation plants one bug at a time into a copy of a source file and runs the tests that should notice: proof
// that they can fail. Nothing of it is in the product: the go command's -overlay puts the changed file in place of the
// real one for one build.
//
//	go run ./cmd/lab mutants                    # all of them
//	go run ./cmd/lab mutants --only ack,claim   # those whose names hold one of these words
//	go run ./cmd/lab mutants --report docs/mutations.md --results bench/mutations.json --missing
//
// What came of each is kept in a file at once, so that a run that was broken off goes on with --missing, and the report
// is of all of them, whenever each was planted.
package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options say which bugs are planted and where it is written what came of them.
type Options struct {
	// Only plants bugs whose names hold one of these words, separated by commas; empty: all.
	Only string
	// Report is the file of the table; empty: none.
	Report string
	// Results is the file that keeps what came of each bug; the table is of all that it holds. Empty: none.
	Results string
	// Missing plants only bugs that the file of results says nothing of.
	Missing bool
}

// wanted reports whether a bug is among those asked for.
func (o Options) wanted(m mutant) bool {
	return o.Only == "" || slices.ContainsFunc(strings.Split(o.Only, ","), func(word string) bool { return strings.Contains(m.name, word) })
}

// Run plants bugs, in the module's root. Its error says which were noticed by nobody.
func Run(ctx context.Context, o Options) error {
	known, err := readKept(o.Results)
	if err != nil {
		return err
	}
	planted, missed := 0, 0
	for _, m := range mutants {
		if _, done := known[m.name]; !o.wanted(m) || o.Missing && done {
			continue
		}
		r, err := m.plant(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		planted++
		if !r.caught {
			missed++
		}
		fmt.Println(r)
		known[m.name] = r.kept()
		if err := known.write(o); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bugs were noticed by nobody", missed, planted)
	}
	fmt.Printf("all %d bugs were caught\n", planted)
	return known.write(o)
}

// result is what the tests said of one bug.
type result struct {
	mutant
	caught bool
	by     string // the first test that failed
	took   time.Duration
}

func (r result) String() string {
	if r.caught {
		return fmt.Sprintf("caught  %-40s by %s, %s", r.name, r.by, r.took.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("MISSED  %-40s %s", r.name, r.took.Round(100*time.Millisecond))
}

// mutated returns the source of the mutant's file with the bug in it.
func (m mutant) mutated() (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("what it changes stands %d times in %s, not once: bring the list of bugs up to date", n, m.file)
	}
	return strings.Replace(string(source), m.old, m.new, 1), nil
}

// plant builds with the bug in place and runs the tests.
func (m mutant) plant(ctx context.Context) (result, error) {
	source, err := m.mutated()
	if err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp("", "stepjet-mutation-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, m.file, source)
	if err != nil {
		return result{}, err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "./"+filepath.Dir(m.file)).CombinedOutput(); err != nil {
		return result{}, fmt.Errorf("the bug doesn't compile: %w\n%s", err, out)
	}
	args := []string{"test", "-overlay", overlay, "-count=1", "-failfast", "-timeout", "4m"}
	if m.run != "" {
		args = append(args, "-run", m.run)
	}
	began := time.Now()
	out, err := exec.CommandContext(ctx, "go", append(args, strings.Fields(m.tests)...)...).CombinedOutput()
	r := result{mutant: m, caught: err != nil, took: time.Since(began)}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		return r, errors.Join(err, ctx.Err())
	}
	if r.caught {
		r.by = firstFailure(string(out))
		err = m.control(ctx, r.by)
	}
	return r, err
}

// control runs the test that failed without the bug: what fails anyway has caught nothing.
func (m mutant) control(ctx context.Context, test string) error {
	if !strings.HasPrefix(test, "Test") {
		test = m.run
	}
	parent, _, _ := strings.Cut(test, "/")
	args := append([]string{"test", "-count=1", "-timeout", "4m", "-run", "^" + parent + "$"}, strings.Fields(m.tests)...)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s fails without the bug, too: %w\n%s", test, err, out)
	}
	return nil
}

func writeOverlay(dir, file, source string) (string, error) {
	changed := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(changed, []byte(source), 0o600); err != nil {
		return "", err
	}
	place, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(map[string]any{"Replace": map[string]string{place: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, b, 0o600)
}

// firstFailure returns the name of the first test that failed, or how the run ended.
func firstFailure(out string) string {
	for line := range strings.Lines(out) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); found {
			name, _, _ = strings.Cut(name, " ")
			return name
		}
	}
	switch {
	case strings.Contains(out, "panic: test timed out"):
		return "the time limit"
	case strings.Contains(out, "panic:"):
		return "a panic"
	}
	return "the test run"
}
