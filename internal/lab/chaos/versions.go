package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// The versions of Stepjet that a scenario can mix. Version "" is this program.
const (
	// versionOld is the source as it was at oldCommit.
	versionOld = "old"
	// versionBefore is the source as it was at beforeCommit.
	versionBefore = "before"
	// versionFirst is the source as it was at firstCommit.
	versionFirst = "first"
	// versionUnsealed is the source as it was at unsealedCommit.
	versionUnsealed = "unsealed"
	// versionNewer is today's source, whose messages say a higher minor version and carry fields that today's don't
	// know.
	versionNewer = "newer"
)

// oldCommit is where the old version is built from. Its harness has to give a run the same work as today's, so it moves
// on when package reference makes other plans of the same seeds.
var oldCommit = past{commit: "64d9119", harness: "./internal/chaos/cmd"}

// beforeCommit is what an upgrade by the documented procedure begins with, and goes back to. It moves on as oldCommit does.
var beforeCommit = past{commit: "c98c035", harness: harness}

// firstCommit is one that knows what runs need, and of the plan language nothing but its first version.
var firstCommit = past{commit: "add7a183", harness: harness}

// unsealedCommit is the last that knew nothing of sealed secrets.
var unsealedCommit = past{commit: "57dfac7", harness: "./internal/chaos/cmd"}

// past is a commit, and the program that plays the roles in it.
type past struct{ commit, harness string }

// laterField is what the newer version adds to objects.
const laterField = `"later_field":{"x":[1.0]}`

// harness is today's program that plays the roles.
const harness = "./cmd/lab"

// buildVersions builds the versions named in dir, and gives the command of each.
func buildVersions(ctx context.Context, dir string, names []string) (map[string][]string, error) {
	commands := map[string][]string{}
	top, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		program := filepath.Join(dir, name)
		commands[name] = []string{program}
		switch name {
		case versionOld:
			err = buildOld(ctx, top, dir, program, oldCommit)
		case versionBefore:
			err = buildOld(ctx, top, dir, program, beforeCommit)
		case versionFirst:
			err = buildOld(ctx, top, dir, program, firstCommit)
		case versionUnsealed:
			err = buildOld(ctx, top, dir, program, unsealedCommit)
		case versionNewer:
			err = buildNewer(ctx, top, dir, program)
		}
		if err != nil {
			return nil, err
		}
	}
	return commands, nil
}

// BuildOrchestrator builds the orchestrator of a commit in a folder, and returns the program.
func BuildOrchestrator(ctx context.Context, dir, commit string) (program string, err error) {
	top, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "orchestrator")
	return program, buildOld(ctx, top, dir, program, past{commit: commit, harness: "./cmd/orchestrator"})
}

func buildOld(ctx context.Context, top, dir, program string, p past) error {
	tree := filepath.Join(dir, p.commit)
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return err
	}
	archive := filepath.Join(dir, p.commit+".tar")
	if _, err := output(ctx, top, "git", "archive", "-o", archive, p.commit); err != nil {
		return err
	}
	if _, err := output(ctx, tree, "tar", "-xf", archive); err != nil {
		return err
	}
	_, err := output(ctx, tree, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, p.harness)
	return err
}

// edit changes a file of today's source to what it might be in a newer version: each old, which stands there once, to
// new.
type edit struct{ file, old, new string }

// newerSource adds a field to whatever is written as an object, and a header to whatever has headers.
var newerSource = []edit{
	{"subjects/headers.go", `const Version = "1"`, `const Version = "1.1"`},
	{"wire/version.go", "// Kind is a kind of message.", `// Later is a field of a newer version.
func Later(b []byte) []byte {
	if len(b) < 3 || b[0] != '{' || strings.Contains(string(b), LaterField) {
		return b
	}
	return append([]byte("{"+LaterField+","), b[1:]...)
}

const LaterField = ` + "`" + laterField + "`" + `

// Kind is a kind of message.`},
	{"wire/version.go", "func Versioned() nats.Header { return nats.Header{",
		`func Versioned() nats.Header { return nats.Header{"Stepjet-Later": {"x"}, `},
	{"wire/header.go", "	h.Header[subjects.HeaderVersion] = ourVersion\n",
		"	h.Header[subjects.HeaderVersion] = ourVersion\n	h.Header[\"Stepjet-Later\"] = []string{\"x\"}\n"},
	{"wire/result.go", "		body, err := json.Marshal(r.Error)\n",
		"		body, err := json.Marshal(r.Error)\n		body = Later(body)\n"},
	{"wire/start.go", "	body, err := s.body()\n", "	body, err := s.body()\n	body = Later(body)\n"},
	{"wire/stop.go", "	return Versioned(), body\n", "	return Versioned(), Later(body)\n"},
	{"orchestrator/lifecycle_finish.go", "	\"github.com/stepjet/stepjet/subjects\"\n",
		"	\"github.com/stepjet/stepjet/subjects\"\n	\"github.com/stepjet/stepjet/wire\"\n"},
	{"orchestrator/lifecycle_finish.go", "		stands, err := lc.stand(ctx, view.id, view.bucket(), doc)\n", `		if doc.Outcome != nil {
			var later outcome.Outcome
			_ = later.UnmarshalJSON(wire.Later(doc.Outcome.JSON()))
			doc.Outcome = &later
		}
		stands, err := lc.stand(ctx, view.id, view.bucket(), doc)
`},
	{"kv/registry.go", "	msg := &nats.Msg{Subject: toolSubject(t.Name), Header: wire.EntryHeader(body), Data: body}\n",
		"	msg := &nats.Msg{Subject: toolSubject(t.Name), Header: wire.EntryHeader(body), Data: wire.Later(body)}\n"},
	{"kv/archive.go", "	body := doc.JSON()\n", "	body := wire.Later(doc.JSON())\n"},
	{"wire/dead.go", "VersionedBy(d.Blob), d.JSON()", "VersionedBy(d.Blob), Later(d.JSON())"},
	{"wire/claim.go", "	body, _ := json.Marshal(c) ", "	body, _ := json.Marshal(c)\n	body = Later(body) "},
}

// overlaid returns the changed files of newerSource.
func overlaid(top string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range newerSource {
		text, ok := files[e.file]
		if !ok {
			var err error
			if text, err = os.ReadFile(filepath.Join(top, e.file)); err != nil {
				return nil, err
			}
		}
		if n := bytes.Count(text, []byte(e.old)); n != 1 {
			return nil, fault.New(fault.Internal, "what the newer version changes stands %d times in %s, not once: %q", n,
				e.file, e.old)
		}
		files[e.file] = bytes.Replace(text, []byte(e.old), []byte(e.new), 1)
	}
	return files, nil
}

func buildNewer(ctx context.Context, top, dir, program string) error {
	files, err := overlaid(top)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	for name, text := range files {
		changed := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return err
		}
		replace[filepath.Join(top, name)] = changed
	}
	overlay := filepath.Join(dir, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err == nil {
		_, err = output(ctx, top, "go", "build", "-buildvcs=false", "-overlay", overlay, "-o", program, harness)
	}
	return err
}

// output runs a command of the build, and gives what it printed.
func output(ctx context.Context, dir string, argv ...string) (string, error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var stderr bytes.Buffer
	c.Dir, c.Stderr = dir, &stderr
	out, err := c.Output()
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, strings.Join(argv, " ")+": "+stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}
