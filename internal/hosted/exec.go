package hosted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// lingering is how long a program that has ended, or was killed, may keep its output open through a child that left its
// process group. Then the pipes are closed.
const lingering = 2 * time.Second

// program is an exec tool.
type program struct {
	name     string // of the tool
	argv     []template
	dash     map[string]bool // arguments that may begin an element with "-"
	defaults map[string]json.RawMessage
	stdin    bool
	timeout  time.Duration // 0: that of the contract
	limit    int64         // of standard output, in bytes
	env      []string
	context  []string // keys of the run's context to pass on
	dir      string
}

// call runs the program once. It returns only when the program has ended or was killed.
func (p *program) call(parent context.Context, args json.RawMessage, info worker.Info) (worker.Output, error) {
	argv, err := p.arguments(args)
	if err != nil {
		return worker.Output{}, err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if p.timeout > 0 {
		var done context.CancelFunc
		ctx, done = context.WithTimeoutCause(ctx, p.timeout, p.late())
		defer done()
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = slices.Concat(p.env, infoEnv(info), contextEnv(p.context, info.Context)), p.dir,
		lingering
	if p.stdin {
		cmd.Stdin = bytes.NewReader(args)
	}
	stdout := &capture{limit: p.limit, full: func() { cancel(p.tooLarge()) }}
	stderr := &tail{limit: tailLimit, clean: wire.NewRedactor(info.Context)}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	isolate(cmd)
	left := newFamily(cmd)
	err = left.run(cmd)
	killGroup(cmd) // what the program left running
	left.end()     // and what left its group
	return p.output(ctx, parent, err, stdout, stderr)
}

// output judges how the program ended: by its output limit, by itself where it succeeded, by the caller, by its
// timeout, and else by its exit code. A program that succeeded but left a child holding its output has succeeded.
func (p *program) output(ctx, parent context.Context, err error, stdout *capture, stderr *tail) (worker.Output, error) {
	var late *fault.Error
	switch {
	case stdout.over:
		return worker.Output{}, p.tooLarge()
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
	case parent.Err() != nil:
		return worker.Output{}, context.Cause(parent)
	case errors.As(context.Cause(ctx), &late):
		return worker.Output{}, withTail(late, stderr)
	default:
		if e := wire.AsksToReplan(stdout.data.Bytes()); e != nil {
			e.Message, e.Hint = printable(e.Message), printable(e.Hint)
			return worker.Output{}, e
		}
		return worker.Output{}, p.failed(err, stderr)
	}
	out := bytes.TrimRight(stdout.data.Bytes(), "\r\n")
	if !utf8.Valid(out) {
		return worker.Output{}, fault.New(fault.ToolTerminal, "the program of %q printed bytes that are not UTF-8", p.name).
			WithHint("let it print text or JSON; encode binary data, for example as base64")
	}
	return worker.Output{Body: out}, nil
}

func (p *program) late() *fault.Error {
	return fault.New(fault.Timeout, "the program of %q ran for longer than its timeout of %s and was killed", p.name,
		p.timeout).
		WithHint("timeout_ms of its exec entry is the limit")
}

func (p *program) tooLarge() *fault.Error {
	return fault.New(fault.TooLarge, "the program of %q printed more than its limit of %d bytes and was killed", p.name,
		p.limit).
		WithHint("let it print less, or raise output_limit_bytes (%d at most)", maxOutput)
}

// failed is the error of a program that could not be started, or that ended badly.
func (p *program) failed(err error, stderr *tail) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		e := fault.New(fault.ToolFailed, "the program of %q ended with %s", p.name, exit) // a signal
		if code := exit.ExitCode(); code >= 0 {
			e = fault.New(fault.ToolFailed, "the program of %q ended with exit code %d", p.name, code)
			e.Details = json.RawMessage(fmt.Sprintf(`{"exit_code":%d}`, code))
		}
		return withTail(e, stderr)
	}
	switch {
	case errors.Is(err, syscall.E2BIG):
		return fault.New(fault.TooLarge, "the arguments are too large for a command line").
			WithHint("pass them by standard input: \"stdin\": \"arguments\"")
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		e := fault.Wrap(fault.ToolTerminal, err, "starting the program of "+strconv.Quote(p.name))
		return e.WithHint("install it on the worker, or correct argv and dir")
	}
	return fault.Wrap(fault.ToolFailed, err, "running the program of "+strconv.Quote(p.name))
}

func withTail(e *fault.Error, stderr *tail) error {
	text := strings.TrimSpace(stderr.String())
	if text == "" {
		return e
	}
	out := *e
	out.Message += ": " + text
	return &out
}

// arguments fills in the command line. Nothing put in can become another element, the program, or an option.
func (p *program) arguments(raw json.RawMessage) ([]string, error) {
	args, err := readArguments(raw, p.defaults)
	if err != nil {
		return nil, err
	}
	argv, options := make([]string, len(p.argv)), true
	for i, t := range p.argv {
		if argv[i], err = t.expand(args.must); err != nil {
			return nil, err
		}
		if strings.IndexByte(argv[i], 0) >= 0 {
			return nil, fault.New(fault.InvalidArguments, "element %d of the command line would hold a NUL byte", i)
		}
		if name := t.leading(); options && name != "" && !p.dash[name] && strings.HasPrefix(argv[i], "-") {
			return nil, fault.New(fault.InvalidArguments,
				"the argument %q must not begin with \"-\": the program could take it for an option", name).
				WithHint("it is %s", strconv.Quote(text.Cut(argv[i], 40)))
		}
		if len(t.names()) == 0 && argv[i] == "--" {
			options = false
		}
	}
	return argv, nil
}

// infoEnv tells the program about its step; a call for many steps has none.
func infoEnv(info worker.Info) []string {
	if info.Key == "" {
		return nil
	}
	env := []string{
		"STEPJET_TENANT=" + info.Tenant, "STEPJET_RUN=" + info.Run, "STEPJET_STEP=" + info.Step,
		"STEPJET_KEY=" + info.Key, "STEPJET_ATTEMPT=" + strconv.Itoa(info.Attempt),
	}
	if info.RetriedKey != "" {
		env = append(env, "STEPJET_RETRIED_KEY="+info.RetriedKey)
	}
	trace := info.Trace.Valid()
	if trace.Parent != "" {
		env = append(env, "TRACEPARENT="+trace.Parent)
	}
	if trace.State != "" {
		env = append(env, "TRACESTATE="+trace.State)
	}
	for i, e := range env { // a run id may be any bytes, an environment may not hold NUL
		env[i] = strings.ReplaceAll(e, "\x00", "")
	}
	return env
}
