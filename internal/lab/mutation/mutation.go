// Package mutation plants bugs into copies of source files and runs the tests that should notice each: proof that they
// can fail. Nothing of it is in the product: the go command's -overlay puts the changed files in place of the real ones.
// All bugs are in one build, asleep but for the one that the environment names; only what lies outside of a function, or
// in one that recovers, has a build of its own.
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
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
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
	dir, err := os.MkdirTemp("", "stepjet-mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chosen := o.chosen(known)
	all, alone, wrong, err := sleeping(ctx, dir, chosen)
	if err != nil {
		return err
	}
	missed := 0
	var failed []error
	for _, m := range chosen {
		if what, is := wrong[m.name]; is {
			fmt.Printf("FAILED  %s: it doesn't compile: %s\n", m.name, what)
			failed = append(failed, fmt.Errorf("%s was not planted", m.name))
			continue
		}
		r, err := m.plant(ctx, dir, all, slices.Contains(alone, m), known[m.name].By)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Printf("FAILED  %s: %s\n", m.name, err)
			failed = append(failed, fmt.Errorf("%s was not planted", m.name))
			continue
		}
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
		failed = append(failed, fmt.Errorf("%d of %d bugs were noticed by nobody", missed, len(chosen)))
	}
	if len(failed) == 0 {
		fmt.Printf("all %d bugs were caught\n", len(chosen))
	}
	return errors.Join(append(failed, known.write(o))...)
}

// chosen returns the bugs that are planted: package by package of their tests, and those last that all tests of one run for.
func (o Options) chosen(known results) []mutant {
	var all []mutant
	for _, m := range mutants {
		if _, done := known[m.name]; o.wanted(m) && (!o.Missing || !done) {
			all = append(all, m)
		}
	}
	key := func(m mutant) string { return strconv.FormatBool(m.run == "") + m.tests }
	slices.SortStableFunc(all, func(a, b mutant) int { return strings.Compare(key(a), key(b)) })
	return all
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

// plant runs the tests with the bug awake: first the one that caught it the last time, which most often does again, and
// each time a few seeds before many.
func (m mutant) plant(ctx context.Context, dir string, all *build, alone bool, before string) (result, error) {
	with, bug := all, m.name
	if alone {
		own, err := apart(dir, m)
		if err != nil {
			return result{}, err
		}
		defer os.RemoveAll(own.dir)
		with, bug = own, ""
	}
	runs := []string{m.run}
	if strings.HasPrefix(before, "Test") && m.run == "" {
		runs = []string{exactly(before), m.run}
	}
	began := time.Now()
	for _, short := range []bool{true, false} {
		for _, run := range runs {
			by, err := m.caught(ctx, all, with, bug, tests{run: run, short: short})
			if by != "" || err != nil && (len(runs) == 1 || !errors.Is(err, errNoTest)) {
				return result{m, by != "", by, time.Since(began)}, err
			}
		}
	}
	return result{m, false, "", time.Since(began)}, nil
}

// exactly returns the expression that one test matches.
func exactly(test string) string {
	parent, _, _ := strings.Cut(test, "/")
	return "^" + parent + "$"
}

// caught returns the test that fails with the bug and passes without; "" where none does.
func (m mutant) caught(ctx context.Context, all, with *build, bug string, which tests) (string, error) {
	ran := false
	for _, which.of = range strings.Fields(m.tests) {
		limit := most
		if which.run != "" {
			may, err := all.control(ctx, which)
			if errors.Is(err, errNoTest) {
				continue
			}
			if err != nil {
				return "", err
			}
			limit = may
		}
		ran = true
		f, err := with.run(ctx, which, bug, limit)
		if err != nil {
			return "", err
		}
		if f == nil {
			continue
		}
		if which.run == "" && strings.HasPrefix(f.test, "Test") {
			which.run = exactly(f.test)
			_, err = all.control(ctx, which)
		}
		return f.test, err
	}
	if !ran {
		return "", fmt.Errorf("%s of %s: %w", which.run, m.tests, errNoTest)
	}
	return "", nil
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
		return strings.TrimSpace("the time limit " + slowest(out))
	case strings.Contains(out, "panic:"):
		return "a panic"
	}
	return "the test run"
}

// slowest returns the first test that was running when the time was over.
func slowest(out string) string {
	_, list, _ := strings.Cut(out, "running tests:")
	for word := range strings.FieldsSeq(list) {
		if strings.HasPrefix(word, "Test") {
			return "of " + word
		}
		break
	}
	return ""
}
