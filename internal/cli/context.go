package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/wire"
)

// contextFlags are the out-of-band context of a run: what its tools get beside their arguments. They can't be named
// --context, which is the nats command's.
type contextFlags struct {
	values  []string // [step:]key=value
	secrets []string // the same, and the key is secret
	file    string
}

func (f *contextFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.values, "with", nil, "hand `[step:]key=value` to the tools, of all steps or one, beside their arguments")
	fl.StringArrayVar(&f.secrets, "secret", nil, "a secret: `key` (in STEPJET_SECRET_<KEY>, or asked for), key=@env:NAME, key=@file:PATH")
	fl.StringVar(&f.file, "with-file", "", "JSON `file` with more of it: {\"all\": {…}, \"steps\": {\"id\": {…}}, \"secrets\": [\"key\"]}")
}

// contextFile is the form of --with-file.
type contextFile struct {
	All     map[string]string            `json:"all"`
	Steps   map[string]map[string]string `json:"steps"`
	Secrets []string                     `json:"secrets"`
}

// maxContextFile is the most that is read of a file or a variable for the context: more than any context may hold.
const maxContextFile = 64 << 10

// runContext reads the flags; they win over the file. Steps are looked for in p, unless it is nil. No error shows a
// value. Errors: InvalidConfig, and those of wire.NewContext.
func (a *app) runContext(f *contextFlags, p *plan.Plan) (wire.RunContext, error) {
	in, err := a.contextFile(f.file)
	if err != nil {
		return wire.RunContext{}, err
	}
	for _, given := range f.values {
		if _, err := in.set("--with", given, nil); err != nil {
			return wire.RunContext{}, err
		}
	}
	open := false // a value stands on the command line
	for _, given := range f.secrets {
		if !strings.Contains(given, "=") && wire.ValidContextKey(afterStep(given)) {
			given += "=@ask:"
		}
		_, value, _ := strings.Cut(given, "=")
		open = open || !strings.HasPrefix(value, "@env:") && !strings.HasPrefix(value, "@file:") && value != "@ask:"
		key, err := in.set("--secret", given, a.secret)
		if err != nil {
			return wire.RunContext{}, err
		}
		in.Secrets = append(in.Secrets, key)
	}
	if open {
		a.say("%s a secret on the command line is read by whoever lists processes, and stays in the shell's history; write --secret KEY, KEY=@env:NAME or KEY=@file:PATH",
			a.errStyle.yellow("warning:"))
	}
	return in.context(p)
}

func (a *app) contextFile(name string) (in contextFile, err error) {
	in = contextFile{All: map[string]string{}, Steps: map[string]map[string]string{}}
	if name == "" {
		return in, nil
	}
	raw, err := a.readFile(name, maxContextFile)
	if err != nil {
		return in, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if dec.Decode(&in) != nil || dec.More() { // the reason could show a part of a value
		return in, fault.New(fault.InvalidConfig, "%s holds no context", shown(name)).
			WithHint(`write {"all": {"key": "value"}, "steps": {"id": {"key": "value"}}, "secrets": ["key"]}; every value is a string`)
	}
	if in.All == nil {
		in.All = map[string]string{}
	}
	if in.Steps == nil {
		in.Steps = map[string]map[string]string{}
	}
	return in, nil
}

// set takes one [step:]key=value; read, where it isn't nil, gives the value that the text stands for.
func (c *contextFile) set(flag, given string, read func(key, value string) (string, error)) (key string, err error) {
	name, value, ok := strings.Cut(given, "=")
	if !ok {
		return "", usage(errors.New(flag + ": write key=value, or step:key=value")) // it may be the secret alone: not shown
	}
	step, key, one := strings.Cut(name, ":")
	if !one {
		step, key = "", name
	}
	switch {
	case wire.ValidContextKey(key):
	case read != nil: // what stands before the "=" may be a part of the secret
		return "", usage(fmt.Errorf("%s: what stands before = is no key: 1 to %d of A-Z a-z 0-9 _ . -", flag, wire.MaxContextKey))
	default:
		return "", usage(fmt.Errorf("%s: %q is no key: 1 to %d of A-Z a-z 0-9 _ . -", flag, text.Clip(key, 80), wire.MaxContextKey))
	}
	if read != nil {
		if value, err = read(key, value); err != nil {
			return "", err
		}
	}
	if !one {
		c.All[key] = value
		return key, nil
	}
	if c.Steps[step] == nil {
		c.Steps[step] = map[string]string{}
	}
	c.Steps[step][key] = value
	return key, nil
}

// secret reads a value that may stand elsewhere than on the command line.
func (a *app) secret(key, value string) (string, error) {
	if name, ok := strings.CutPrefix(value, "@env:"); ok {
		if value = a.env.Getenv(name); value == "" {
			return "", fault.New(fault.InvalidConfig, "the variable %s, for the secret %s, is not set", name, key)
		}
		return value, nil
	}
	if value == "@ask:" {
		return a.ask(key)
	}
	name, ok := strings.CutPrefix(value, "@file:")
	if !ok {
		return value, nil
	}
	raw, err := a.readFile(name, maxContextFile)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r"), nil
}

func (c *contextFile) context(p *plan.Plan) (r wire.RunContext, err error) {
	if r.All, err = wire.NewContext(c.All, c.Secrets...); err != nil {
		return r, err
	}
	for _, id := range slices.Sorted(maps.Keys(c.Steps)) {
		if p != nil {
			if _, ok := p.Index(id); !ok {
				return r, noSuchStep(p, id)
			}
		}
		one, err := wire.NewContext(c.Steps[id], c.Secrets...)
		if err != nil {
			return r, err
		}
		if r.Steps == nil {
			r.Steps = map[string]wire.Context{}
		}
		r.Steps[id] = one
	}
	return r, nil
}

// noSuchStep says that context was given for a step that the plan hasn't got.
func noSuchStep(p *plan.Plan, id string) error {
	f := fault.New(fault.InvalidConfig, "context is given for the step %q, which the plan hasn't got", text.Clip(id, 80))
	for i := range p.Steps {
		if strings.EqualFold(p.Steps[i].ID, id) {
			return f.WithHint("did you mean %q?", p.Steps[i].ID)
		}
	}
	return f.WithHint("write step:key=value with a step's id, or key=value for all steps")
}

// afterStep cuts the step off a key that is given for one.
func afterStep(name string) string {
	if _, key, one := strings.Cut(name, ":"); one {
		return key
	}
	return name
}

// secretVariable returns the variable that holds a secret which is named by its key alone.
func secretVariable(key string) string { return wire.ContextVariable("STEPJET_SECRET_", key) }

// ask returns a secret that is named by its key alone: from its variable, or from whoever sits at the terminal.
func (a *app) ask(key string) (string, error) {
	name := secretVariable(key)
	if value := a.env.Getenv(name); value != "" {
		return value, nil
	}
	in, ok := a.env.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		// What was named is not shown: it may be the secret itself, by mistake.
		return "", usage(errors.New("--secret: a key alone has its value in the variable STEPJET_SECRET_ and the key in capitals (token: STEPJET_SECRET_TOKEN), which is not set, " +
			"and there is no terminal to ask at; write key=@env:NAME or key=@file:PATH"))
	}
	_, _ = fmt.Fprintf(a.stderr, "%s: ", key)
	value, err := term.ReadPassword(int(in.Fd()))
	_, _ = fmt.Fprintln(a.stderr)
	switch {
	case err != nil:
		return "", fault.Wrap(fault.InvalidConfig, err, "reading the secret "+key)
	case len(value) == 0:
		return "", usage(errors.New("--secret " + key + ": nothing was typed"))
	}
	return string(value), nil
}

// tellIfOpen says that secrets are about to be stored as they are.
func (a *app) tellIfOpen(ctx context.Context, s *session, c wire.RunContext) {
	if !c.HasSecrets() {
		return
	}
	if key, err := s.client.SealingKey(ctx); key == "" && err == nil { // an error comes again when the plan is sent
		a.say("%s no key is published, so the secrets lie in the server's files as they are; stepjet keys --help", a.errStyle.yellow("note:"))
	}
}

// again words, for the command line, that a retry lacks context.
func again(err error) error {
	missing := client.Missing(err)
	if len(missing) == 0 {
		return err
	}
	flags := make([]string, len(missing))
	for i, k := range missing {
		name := k.Key
		if k.Step != "" {
			name = k.Step + ":" + k.Key
		}
		if flags[i] = "--with " + name + "=VALUE"; k.Secret {
			flags[i] = "--secret " + name
		}
	}
	f := *fault.As(err)
	return f.WithHint("add %s; or --less-context to do without", strings.Join(flags, " "))
}
