//go:build unix

package hosted

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// shell is an exec tool that runs a script; arguments come as $1, $2, … after a "--" of their own.
func shell(t *testing.T, script string, more string, args ...string) *File {
	t.Helper()
	argv := `"/bin/sh","-c",` + strconv.Quote(script) + `,"sh"`
	for _, a := range args {
		name, _, _ := strings.Cut(a, ":")
		argv += `,"{{` + name + `}}"`
	}
	return parse(t, `{"name":"x",`+schemaOf(args...)+`,"exec":{"argv":[`+argv+`]`+more+`}}`)
}

func TestExecOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ script, want string }{
		{`echo '{"a": 1.0}'`, `{"a": 1.0}`},
		{`echo 42`, `42`},
		{`echo hello; echo world`, "hello\nworld"},
		{`printf 'a\r\n\n'`, "a"},
		{`printf ' x'`, " x"},
		{`true`, ""},
		{`echo out; echo err >&2`, "out"},
	} {
		out, err := invoke(context.Background(), shell(t, c.script, ""), `{}`, worker.Info{})
		require.NoError(t, err, c.script)
		require.Equal(t, c.want, string(out.Body), c.script)
		require.False(t, out.Text) // JSON where it is JSON, else a string: the plan language's own rule
	}
}

// An argument is always one element, whatever it holds, and nothing in it is interpreted.
func TestExecArguments(t *testing.T) {
	t.Parallel()
	f := shell(t, `printf '%s|' "$#" "$@"`, "", "a", "n:number", "b:boolean")
	for args, want := range map[string]string{
		`{"a":"x y","n":1.50,"b":true}`:                                    "3|x y|1.50|true|",
		`{"a":"","n":1e3,"b":false}`:                                       "3||1e3|false|",
		`{"a":"; rm -rf $HOME \u0060id\u0060 $(id)\n'\"*","n":0,"b":true}`: "3|; rm -rf $HOME `id` $(id)\n'\"*|0|true|",
		`{"a":"{{n}}","n":7,"b":true}`:                                     "3|{{n}}|7|true|",
		`{"a":"é👍","n":12345678901234567890,"b":true}`:                     "3|é👍|12345678901234567890|true|",
	} {
		out, err := invoke(context.Background(), f, args, worker.Info{})
		require.NoError(t, err)
		require.Equal(t, want, string(out.Body))
	}
	for args, part := range map[string]string{
		`{"a":"-rf","n":1,"b":true}`:      `must not begin with "-"`,
		`{"a":"x","n":-1,"b":true}`:       `must not begin with "-"`,
		`{"a":"a\u0000b","n":1,"b":true}`: "NUL",
		`{"a":{},"n":1,"b":true}`:         "must be a string",
		`{"n":1,"b":true}`:                "missing",
		`{"a":null,"n":1,"b":true}`:       "missing",
	} {
		_, err := invoke(context.Background(), f, args, worker.Info{})
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), args)
		require.ErrorContains(t, err, part)
	}
}

func TestExecDashes(t *testing.T) {
	t.Parallel()
	file := func(argv, more string) *File {
		return parse(t, `{"name":"x",`+schemaOf("a", "b")+`,"exec":{"argv":["/bin/sh","-c","printf '%s|' \"$@\"","sh",`+argv+`]`+more+`}}`)
	}
	for _, c := range []struct{ argv, more, args, want string }{
		{`"{{a}}"`, ``, `{"a":"-x","b":""}`, ""},
		{`"{{a}}{{b}}"`, ``, `{"a":"-x","b":""}`, ""},
		{`"{{a}}{{b}}"`, ``, `{"a":"","b":"-x"}`, ""},
		{`"{{a}}.txt"`, ``, `{"a":"-x","b":""}`, ""},
		{`"{{a}}"`, `,"allow_dash":["a"]`, `{"a":"-x","b":""}`, "-x|"},
		{`"{{b}}"`, `,"allow_dash":["b"]`, `{"a":"","b":"--"}`, "--|"},
		{`"--","{{a}}"`, ``, `{"a":"-x","b":""}`, "--|-x|"},
		{`"{{a}}","--"`, ``, `{"a":"-x","b":""}`, ""},
		{`"--name={{a}}"`, ``, `{"a":"-x","b":""}`, "--name=-x|"},
		{`"{{a}}","{{b}}"`, `,"allow_dash":["a"]`, `{"a":"--","b":"-x"}`, ""}, // an argument that is "--" does not unlock the next
	} {
		out, err := invoke(context.Background(), file(c.argv, c.more), c.args, worker.Info{})
		if c.want == "" {
			require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), c.argv)
			continue
		}
		require.NoError(t, err, c.argv)
		require.Equal(t, c.want, string(out.Body))
	}
}

func TestExecDefaults(t *testing.T) {
	t.Parallel()
	f := parse(t, `{"name":"x","inputSchema":{"type":"object","properties":{"a":{"type":"string","default":"fallback"}}},"exec":{"argv":["/bin/echo","{{a}}"]}}`)
	for args, want := range map[string]string{`{}`: "fallback", `{"a":"given"}`: "given"} {
		out, err := invoke(context.Background(), f, args, worker.Info{})
		require.NoError(t, err)
		require.Equal(t, want, string(out.Body))
	}
}

func TestExecStdinAndDir(t *testing.T) {
	t.Parallel()
	const args = `{"a": [1.0, "é"]}`
	out, err := invoke(context.Background(), shell(t, `cat`, `,"stdin":"arguments"`), args, worker.Info{})
	require.NoError(t, err)
	require.Equal(t, args, string(out.Body))
	out, err = invoke(context.Background(), shell(t, `cat`, ``), args, worker.Info{})
	require.NoError(t, err)
	require.Empty(t, out.Body)
	big := `{"a":"` + strings.Repeat("x", 4<<20) + `"}` // a program that doesn't read it all
	_, err = invoke(context.Background(), shell(t, `exit 0`, `,"stdin":"arguments"`), big, worker.Info{})
	require.NoError(t, err)

	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	for field, want := range map[string]string{``: dir, `,"dir":"sub"`: filepath.Join(dir, "sub"), `,"dir":"/"`: "/"} {
		f, err := Parse([]byte(`{"tools":[{"name":"x","exec":{"argv":["/bin/pwd"]`+field+`}}]}`), dir)
		require.NoError(t, err)
		out, err := invoke(context.Background(), f, `{}`, worker.Info{})
		require.NoError(t, err)
		want, err = filepath.EvalSymlinks(want)
		require.NoError(t, err)
		require.Equal(t, want, string(out.Body))
	}
}

func TestExecEnvironment(t *testing.T) {
	t.Setenv("NATS_CREDS", "/secret")
	t.Setenv("NATS_URL", "nats://u:secret@h")
	t.Setenv("STEPJET_TOOLS", "secret")
	t.Setenv("SOME_TOKEN", "secret")
	t.Setenv("PASSED_ON", "value")
	t.Setenv("TZ", "UTC")
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	info := worker.Info{Tenant: "acme", Run: "r\x00 1", Step: "s", Key: "acme/r/7/s", RetriedKey: "acme/q/3/s", Attempt: 2, Trace: wire.Trace{Parent: parent, State: "a=b"}}
	out, err := invoke(context.Background(), parse(t, `{"name":"x","exec":{"argv":["env"],"env":["A=1=2","PASSED_ON","STEPJET_KEY=forged"]}}`), `{}`, info)
	require.NoError(t, err)
	got := map[string]string{}
	for line := range strings.Lines(string(out.Body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	for _, harmless := range []string{"LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "PWD", "SHLVL", "_", "STEPJET_EXEC"} {
		delete(got, harmless)
	}
	require.Equal(t, map[string]string{
		"PATH": os.Getenv("PATH"), "TZ": "UTC", "A": "1=2", "PASSED_ON": "value", "STEPJET_TENANT": "acme", "STEPJET_RUN": "r 1", "STEPJET_STEP": "s",
		"STEPJET_KEY": "acme/r/7/s", "STEPJET_RETRIED_KEY": "acme/q/3/s", "STEPJET_ATTEMPT": "2", "TRACEPARENT": parent, "TRACESTATE": "a=b",
	}, got)
}

func TestExecFailures(t *testing.T) {
	t.Parallel()
	_, err := invoke(context.Background(), shell(t, `echo before >&2; i=0; while [ $i -lt 300 ]; do echo "line $i of the log" >&2; i=$((i+1)); done; printf 'the\001end' >&2; exit 3`, ""), `{}`, worker.Info{})
	e := fault.As(err)
	require.Equal(t, fault.ToolFailed, e.Code)
	require.True(t, e.Retryable)
	require.Contains(t, e.Message, "exit code 3: …")
	require.True(t, strings.HasSuffix(e.Message, "line 299 of the log\nthe\uFFFDend"), e.Message)
	require.NotContains(t, e.Message, "before")
	require.Less(t, len(e.Message), tailLimit+200)
	require.JSONEq(t, `{"exit_code":3}`, string(e.Details))

	_, err = invoke(context.Background(), shell(t, `kill -TERM $$`, ""), `{}`, worker.Info{})
	require.Equal(t, fault.ToolFailed, fault.CodeOf(err))
	require.ErrorContains(t, err, "signal: terminated")

	_, err = invoke(context.Background(), shell(t, `printf '\377\376'`, ""), `{}`, worker.Info{})
	require.Equal(t, fault.ToolTerminal, fault.CodeOf(err))
	require.ErrorContains(t, err, "UTF-8")

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o600))
	for _, argv0 := range []string{"surely-no-such-program", filepath.Join(dir, "absent"), filepath.Join(dir, "plain")} {
		_, err = invoke(context.Background(), parse(t, `{"name":"x","exec":{"argv":["`+argv0+`"]}}`), `{}`, worker.Info{})
		require.Equal(t, fault.ToolTerminal, fault.CodeOf(err), argv0)
		require.NotEmpty(t, fault.As(err).Hint)
	}
	_, err = invoke(context.Background(), shell(t, `echo '{"code":"replan","message":"the branch is\u0001gone","retryable":true}'; exit 4`, ""), `{}`, worker.Info{})
	require.Equal(t, &fault.Error{Code: fault.Replan, Message: "the branch is\uFFFDgone"}, fault.As(err))
	out, err := invoke(context.Background(), shell(t, `echo '{"code":"replan"}'`, ""), `{}`, worker.Info{})
	require.NoError(t, err, "who succeeds asks for nothing")
	require.JSONEq(t, `{"code":"replan"}`, string(out.Body))
	_, err = invoke(context.Background(), shell(t, `true`, "", "a"), `{"a":"`+strings.Repeat("x", 8<<20)+`"}`, worker.Info{})
	require.Equal(t, fault.TooLarge, fault.CodeOf(err))
}

// gone waits until a process has ended; one that is no child of ours may stay a zombie for a while where nobody reaps.
func gone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil {
			_, state, _ := strings.Cut(string(stat), ") ")
			return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
		}
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}, 2*time.Minute, 5*time.Millisecond)
}

func pidFrom(t *testing.T, path string) int {
	t.Helper()
	var pid int
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(raw), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(raw)))
		return err == nil
	}, 2*time.Minute, 5*time.Millisecond)
	return pid
}

// A program that never ends is killed with all its children, and so is one whose run was cancelled.
func TestExecNeverReturns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	const script = `echo about to hang >&2; sleep 1000 & echo $! > "$1"; trap '' TERM; wait; wait`
	begin := time.Now()
	_, err := invoke(context.Background(), shell(t, script, `,"timeout_ms":300`, "f"), `{"f":"`+file+`"}`, worker.Info{})
	e := fault.As(err)
	require.Equal(t, fault.Timeout, e.Code)
	require.True(t, e.Retryable)
	require.Contains(t, e.Message, "300ms")
	require.Contains(t, e.Message, "about to hang")
	require.Less(t, time.Since(begin), 20*time.Second)
	gone(t, pidFrom(t, file))

	file = filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(context.Background())
	done := make(chan error)
	f := shell(t, script, ``, "f")
	go func() {
		_, err := invoke(ctx, f, `{"f":"`+file+`"}`, worker.Info{})
		done <- err
	}()
	child := pidFrom(t, file)
	cancel(worker.ErrCancelled)
	require.ErrorIs(t, <-done, worker.ErrCancelled)
	gone(t, child)
}

func TestExecPrintsMegabytes(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	_, err := invoke(context.Background(), shell(t, `while :; do echo 0123456789012345678901234567890123456789; done`, `,"output_limit_bytes":300000`), `{}`, worker.Info{})
	e := fault.As(err)
	require.Equal(t, fault.TooLarge, e.Code)
	require.False(t, e.Retryable)
	require.Contains(t, e.Message, "300000 bytes")
	require.Contains(t, e.Hint, "output_limit_bytes")
	require.Less(t, time.Since(begin), 30*time.Second)

	out, err := invoke(context.Background(), shell(t, `printf 12345`, `,"output_limit_bytes":5`), `{}`, worker.Info{})
	require.NoError(t, err)
	require.Equal(t, "12345", string(out.Body))
	_, err = invoke(context.Background(), shell(t, `printf 123456`, `,"output_limit_bytes":5`), `{}`, worker.Info{})
	require.Equal(t, fault.TooLarge, fault.CodeOf(err))

	// What goes to standard error is no output: only its end is kept, and the program may go on.
	out, err = invoke(context.Background(), shell(t, `head -c 5000000 /dev/zero >&2; echo done`, ``), `{}`, worker.Info{})
	require.NoError(t, err)
	require.Equal(t, "done", string(out.Body))
}

// A program that leaves a child behind doesn't keep the step from ending, nor the child alive.
func TestExecLeavesAChildBehind(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pid")
	begin := time.Now()
	out, err := invoke(context.Background(), shell(t, `sleep 1000 & echo $! > "$1"; echo done`, ``, "f"), `{"f":"`+file+`"}`, worker.Info{})
	require.NoError(t, err)
	require.Equal(t, "done", string(out.Body))
	require.Less(t, time.Since(begin), 60*time.Second)
	gone(t, pidFrom(t, file))
}

func TestCaptureAndTail(t *testing.T) {
	t.Parallel()
	full := 0
	c := &capture{limit: 4, full: func() { full++ }}
	_, err := c.Write([]byte("abcd"))
	require.NoError(t, err)
	for range 2 {
		_, err = c.Write([]byte("e"))
		require.ErrorIs(t, err, errFull)
	}
	require.Equal(t, 1, full)
	require.Zero(t, c.data.Cap(), "what was kept is given back")

	for _, writes := range [][]string{{"abc"}, {"abc", "de"}, {"abcdefgh"}, {"ab", "cdefgh", "i"}, {"", "a"}, {"abcde"}, {"abcdef"}} {
		all := strings.Join(writes, "")
		tl := &tail{limit: 5}
		for _, w := range writes {
			n, err := tl.Write([]byte(w))
			require.NoError(t, err)
			require.Equal(t, len(w), n)
		}
		want := all
		if len(all) > 5 {
			want = "…" + all[len(all)-5:]
		}
		require.Equal(t, want, tl.String())
	}
}
