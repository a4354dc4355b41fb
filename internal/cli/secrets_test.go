package cli

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const tellTools = `{"tools":[{"name":"tell","inputSchema":{"type":"object"},"exec":{"argv":["sh","-c","printf %s \"$STEPJET_CONTEXT_TOKEN\" | wc -c; echo \"$STEPJET_CONTEXT_TOKEN\" >&2"],"context":["token"]}},
	{"name":"fail","inputSchema":{"type":"object"},"x-orchestration":{"retry":{"max_attempts":1}},"exec":{"argv":["sh","-c","echo \"401 for $STEPJET_CONTEXT_TOKEN\" >&2; exit 1"],"context":["token"]}}]}`

// with runs a command with more variables.
func with(t *testing.T, env []string, data, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := &process{Cmd: exec.Command(binary, args...)}
	p.Stdout, p.Stderr, p.Stdin = &p.out, &p.errs, strings.NewReader(stdin)
	p.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(data), "STEPJET_DATA=" + data, "TMPDIR=" + os.TempDir()}, env...)
	require.NoError(t, p.Start())
	code = p.end(t)
	return p.out.String(), p.errs.String(), code
}

// found returns the files of a folder that hold a text.
func found(t *testing.T, folder, text string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(text)) {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// With a key file a secret reaches its tool, and no file of the server's holds it, whatever became of the run.
func TestSealedSecretsLeaveNoTraceOnDisk(t *testing.T) {
	t.Parallel()
	data, dir := folder(t), t.TempDir()
	keys, tools := filepath.Join(dir, "secrets.key"), filepath.Join(dir, "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(tellTools), 0o600))
	_, stderr, code := execute(t, data, "", "keys", "new", keys)
	require.Zero(t, code, stderr)
	stdout, stderr, code := execute(t, data, "", "keys", "list", keys, "-o", "json")
	require.Zero(t, code, stderr)
	var listed []listedKey
	require.NoError(t, json.Unmarshal([]byte(stdout), &listed))
	require.Len(t, listed, 1)
	raw, err := os.ReadFile(keys)
	require.NoError(t, err)
	require.NotContains(t, stdout, string(raw[bytes.Index(raw, []byte(`"private"`))+12:][:20]))

	const plan = `{"steps":[{"id":"a","tool":"tell"},{"id":"b","tool":"fail"}]}`
	const token = "s3cr3t-of-ann-0123456789"
	run := func(id string, flags ...string) (string, string, int) {
		return with(t, []string{"STEPJET_SECRET_TOKEN=" + token}, data, plan, append([]string{"run", "--tools", tools, "--run", id, "--secret", "token", "-o", "json", "-"}, flags...)...)
	}
	stdout, stderr, code = run("sealed", "--secrets-key", keys)
	require.Equal(t, 3, code, stderr)
	require.Contains(t, stdout, `"a":24`)
	require.Contains(t, stdout, "401 for [secret]")
	require.NotContains(t, stdout+stderr, token)
	require.NotContains(t, stderr, "warning", "nothing stands on the command line")
	require.Empty(t, found(t, data, token))
	_, stderr, code = run("open")
	require.Equal(t, 1, code, "without the file nobody here can open what is sealed to the published key")
	require.Contains(t, stderr, "sealed: a secret is sealed to the key")
	require.Empty(t, found(t, data, token))

	// Without any key it is as it always was.
	other := folder(t)
	_, stderr, code = with(t, nil, other, plan, "run", "--tools", tools, "--secret", "token="+token, "-")
	require.Equal(t, 3, code, stderr)
	require.Contains(t, stderr, "a secret on the command line")
	require.Contains(t, stderr, "no key is published")
	require.NotContains(t, stderr, token)
	require.NotEmpty(t, found(t, other, token))
}

// A retry asks for the secrets anew, by name, and does nothing without them.
func TestARetryAsksForItsSecrets(t *testing.T) {
	t.Parallel()
	data, dir := folder(t), t.TempDir()
	tools := filepath.Join(dir, "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(tellTools), 0o600))
	token := []string{"STEPJET_SECRET_TOKEN=s3cr3t-t0ken"}
	_, stderr, code := with(t, token, data, `{"steps":[{"id":"b","tool":"fail"}]}`, "run", "--tools", tools, "--run", "r", "--secret", "b:token", "--with", "user=ann", "-")
	require.Equal(t, 1, code, stderr)
	stdout, stderr, code := execute(t, data, "", "retry", "r", "--tools", tools)
	require.Equal(t, 2, code, stdout)
	require.Contains(t, stderr, "add --with user=VALUE --secret b:token; or --less-context")
	stdout, stderr, code = with(t, token, data, "", "retry", "r", "--tools", tools, "--secret", "b:token", "--with", "user=ann")
	require.Equal(t, 1, code, stderr)
	require.Contains(t, stdout, "r.2")
	_, stderr, code = execute(t, data, "", "retry", "r", "--tools", tools, "--secret", "hunter2")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "token: STEPJET_SECRET_TOKEN")
	require.NotContains(t, stderr, "STEPJET_SECRET_KEY", "nobody reads that")
	require.NotContains(t, stderr, "hunter2", "it may be the secret, by mistake")
}

func TestKeysRotate(t *testing.T) {
	t.Parallel()
	data, keys := folder(t), filepath.Join(t.TempDir(), "secrets.key")
	_, stderr, code := execute(t, data, "", "keys", "rotate", keys)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "stepjet keys new")
	_, _, code = execute(t, data, "", "keys", "new", keys)
	require.Zero(t, code)
	_, stderr, code = execute(t, data, "", "keys", "new", keys)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "rotate")
	stdout, stderr, code := execute(t, data, "", "keys", "rotate", keys)
	require.Zero(t, code, stderr)
	require.Equal(t, 3, strings.Count(stdout, "\n"), stdout)
	replaced := strings.Fields(stdout)[3]
	stdout, stderr, code = execute(t, data, "", "keys", "rotate", "--keep", "0s", keys)
	require.Zero(t, code, stderr)
	require.Equal(t, 2, strings.Count(stdout, "\n"), "the new key alone: %s", stdout)
	require.NotContains(t, stdout, replaced)
}
