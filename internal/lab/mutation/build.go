package mutation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A test that goes on for longer than it may is stopped: one that is known to pass, once it took this many times as long.
// What it waits for at most a minute it has the time to say.
const (
	patience = 6
	least    = 90 * time.Second
	most     = 10 * time.Minute
)

// build is a set of changed sources, and the programs of the tests that were built of them. Most bugs are asleep in one
// build: what takes the time is to compile and link, not to run the tests that should notice.
type build struct {
	dir      string
	replaced map[string]string // files of the module by what stands in their place
	programs map[string]string // by the packages that they test
	passed   map[tests]time.Duration
}

func newBuild(dir string) (*build, error) {
	made, err := os.MkdirTemp(dir, "build-")
	return &build{made, map[string]string{}, map[string]string{}, map[tests]time.Duration{}}, err
}

// together returns a build with the bugs asleep in it, and those that need one of their own.
func together(dir string, bugs []mutant) (*build, []mutant, error) {
	b, err := newBuild(dir)
	if err != nil {
		return nil, nil, err
	}
	var alone []mutant
	ofFile, ofDir := map[string][]mutant{}, map[string][]mutant{}
	for _, m := range bugs {
		ofFile[m.file] = append(ofFile[m.file], m)
		ofDir[filepath.Dir(m.file)] = append(ofDir[filepath.Dir(m.file)], m)
	}
	for file, of := range ofFile {
		text, left, err := weave(file, of)
		alone = append(alone, left...)
		if err := errors.Join(err, b.replace(file, text)); err != nil {
			return nil, nil, err
		}
	}
	for at, of := range ofDir {
		text, err := switches(at, of)
		if err := errors.Join(err, b.replace(filepath.Join(at, "planted_bugs.go"), text)); err != nil {
			return nil, nil, err
		}
	}
	return b, alone, b.write()
}

// sleeping returns such a build without the bugs that do not compile, and what is wrong with these by their names.
func sleeping(ctx context.Context, dir string, bugs []mutant) (*build, []mutant, map[string]string, error) {
	wrong := map[string]string{}
	for {
		b, alone, err := together(dir, bugs)
		if err != nil || len(bugs) == 0 {
			return b, alone, wrong, err
		}
		out, err := b.compile(ctx, bugs)
		if err == nil || ctx.Err() != nil {
			return b, alone, wrong, ctx.Err()
		}
		whole := len(bugs)
		bugs = slices.DeleteFunc(slices.Clone(bugs), func(m mutant) bool {
			_, text, named := strings.Cut(out, m.name+".go:")
			if named {
				wrong[m.name], _, _ = strings.Cut(text, "\n")
			}
			return named
		})
		if len(bugs) == whole {
			return nil, nil, nil, fmt.Errorf("what the bugs are planted into doesn't compile: %w\n%s", err, out)
		}
	}
}

// compile compiles what the bugs are in, with them asleep in it, and returns what the compiler says.
func (b *build) compile(ctx context.Context, bugs []mutant) (string, error) {
	args := []string{"build", "-overlay", b.overlay(), "-o", os.DevNull}
	dirs := map[string]bool{}
	for _, m := range bugs {
		dirs["./"+filepath.Dir(m.file)] = true
	}
	out, err := exec.CommandContext(ctx, "go", append(args, slices.Sorted(maps.Keys(dirs))...)...).CombinedOutput()
	return string(out), err
}

// apart returns a build with one bug, which is awake.
func apart(dir string, m mutant) (*build, error) {
	b, err := newBuild(dir)
	if err != nil {
		return nil, err
	}
	source, err := m.mutated()
	return b, errors.Join(err, b.replace(m.file, source), b.write())
}

func (b *build) replace(file, text string) error {
	place, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	b.replaced[place] = filepath.Join(b.dir, fmt.Sprint(len(b.replaced), ".go"))
	return os.WriteFile(b.replaced[place], []byte(text), 0o600)
}

func (b *build) overlay() string { return filepath.Join(b.dir, "overlay.json") }

func (b *build) write() error {
	text, err := json.Marshal(map[string]any{"Replace": b.replaced})
	if err != nil {
		return err
	}
	return os.WriteFile(b.overlay(), text, 0o600)
}

// program returns the program that tests a package, built once.
func (b *build) program(ctx context.Context, of string) (string, error) {
	if b.programs[of] == "" {
		name := filepath.Join(b.dir, strings.ReplaceAll(strings.TrimPrefix(of, "./"), "/", "-")+".test")
		out, err := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", b.overlay(), "-o", name, of).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%s doesn't compile: %w\n%s", of, err, out)
		}
		b.programs[of] = name
	}
	return b.programs[of], nil
}

// failure is what went wrong in tests: the first that failed, and what they wrote.
type failure struct{ test, out string }

// tests are those of a package whose names match run, all for none; random ones have few seeds where they are short.
type tests struct {
	of, run string
	short   bool
}

func (t tests) String() string { return fmt.Sprintf("%q of %s", t.run, t.of) }

// run runs tests with one bug awake, or none. It returns nil where they passed.
func (b *build) run(ctx context.Context, which tests, bug string, limit time.Duration) (*failure, error) {
	program, err := b.program(ctx, which.of)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, program, "-test.failfast", "-test.paniconexit0", "-test.timeout", limit.String(), "-test.run", which.run,
		"-test.short="+strconv.FormatBool(which.short))
	c.Dir, c.Env = which.of, append(os.Environ(), planted+"="+bug)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil || err != nil && !errors.As(err, &exit):
		return nil, errors.Join(err, ctx.Err())
	case err != nil:
		return &failure{firstFailure(string(out)), string(out)}, nil
	case which.run != "" && strings.Contains(string(out), "no tests to run"):
		return nil, errNoTest
	}
	return nil, nil
}

var errNoTest = errors.New("no test has such a name")

// control returns how long tests may take that pass with no bug awake: what fails anyway would catch nothing.
func (b *build) control(ctx context.Context, which tests) (time.Duration, error) {
	took, known := b.passed[which]
	if !known {
		began := time.Now()
		f, err := b.run(ctx, which, "", most)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", which, err)
		}
		if f != nil {
			return 0, fmt.Errorf("%s: %s fails without the bug, too:\n%s", which, f.test, f.out)
		}
		took = time.Since(began)
		b.passed[which] = took
	}
	return min(most, max(least, patience*took)), nil
}
