package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

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
