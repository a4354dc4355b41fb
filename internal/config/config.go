// Package config holds the settings that all of Stepjet's programs share: how to reach NATS, and how to log.
//
// A setting comes from its flag, else from its environment variable, else it has its default. The two ways to name a
// server, a URL and a context of the nats command, are one choice: what a flag chooses is not mixed with what the
// environment says of the other.
package config

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
)

// Setting ties a flag to the environment variable that stands in for it.
type Setting struct{ Flag, Env string }

// NATS are the settings of the connection.
type NATS struct {
	// URL is one server or several, separated by commas; empty: that of the context, or nats://127.0.0.1:4222.
	URL string
	// Creds is a file of user credentials, NKey a file with an nkey seed.
	Creds, NKey string
	// Context is a context of the nats command.
	Context string
	// CA, Cert and Key are PEM files.
	CA, Cert, Key string
	// InboxPrefix is what the subjects of answers begin with; empty: _INBOX.
	InboxPrefix string
	// Wait is how long a program waits for a server when it starts.
	Wait time.Duration
}

// Logging says what is logged, and how.
type Logging struct {
	// Format is "text" or "json".
	Format string
	// Level is "debug", "info", "warn" or "error".
	Level string
}

// natsSettings are in the order of the flags.
var natsSettings = []Setting{
	{"url", "NATS_URL"}, {"context", "NATS_CONTEXT"}, {"creds", "NATS_CREDS"}, {"nkey", "NATS_NKEY"},
	{"tls-ca", "NATS_CA"}, {"tls-cert", "NATS_CERT"}, {"tls-key", "NATS_KEY"},
	{"inbox-prefix", "NATS_INBOX_PREFIX"},
}

var logSettings = []Setting{{"log-format", "STEPJET_LOG_FORMAT"}, {"log-level", "STEPJET_LOG_LEVEL"}}

// Flags declares the flags of the connection.
func (n *NATS) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&n.URL, "url", "",
		"NATS server, or several separated by commas (env NATS_URL; default nats://127.0.0.1:4222)")
	fs.StringVar(&n.Context, "context", "", "context of the nats command (env NATS_CONTEXT)")
	fs.StringVar(&n.Creds, "creds", "", "file of user credentials (env NATS_CREDS)")
	fs.StringVar(&n.NKey, "nkey", "", "file with an nkey seed (env NATS_NKEY)")
	fs.StringVar(&n.CA, "tls-ca", "", "PEM file of the authorities to trust (env NATS_CA)")
	fs.StringVar(&n.Cert, "tls-cert", "", "PEM file of the client certificate (env NATS_CERT)")
	fs.StringVar(&n.Key, "tls-key", "", "PEM file of the client certificate's key (env NATS_KEY)")
	fs.StringVar(&n.InboxPrefix, "inbox-prefix", "",
		"what the subjects of answers begin with (env NATS_INBOX_PREFIX; default _INBOX)")
}

// WaitFlag declares how long a daemon waits for a server, whichever of both was started first.
func (n *NATS) WaitFlag(fs *pflag.FlagSet) {
	fs.DurationVar(&n.Wait, waitSetting.Flag, time.Minute,
		"how long to wait for a NATS server at the start; 0: not at all (env "+waitSetting.Env+")")
}

var waitSetting = Setting{"wait-for-nats", "STEPJET_WAIT_FOR_NATS"}

// Flags declares the flags of the log.
func (l *Logging) Flags(fs *pflag.FlagSet) {
	fs.StringVar(&l.Format, "log-format", "text", "text or json (env STEPJET_LOG_FORMAT)")
	fs.StringVar(&l.Level, "log-level", "info", "debug, info, warn or error (env STEPJET_LOG_LEVEL)")
}

// Lookup reads an environment variable, as os.LookupEnv does.
type Lookup func(name string) (value string, ok bool)

// FromEnvironment sets each flag that was not given from its variable, where that is there and not empty. The error has
// code invalid_config and names the variable.
func FromEnvironment(fs *pflag.FlagSet, env Lookup, settings ...Setting) error {
	if env == nil {
		env = os.LookupEnv
	}
	for _, s := range settings {
		value, ok := env(s.Env)
		if !ok || value == "" || fs.Changed(s.Flag) {
			continue
		}
		if err := fs.Set(s.Flag, value); err != nil {
			return fault.Wrap(fault.InvalidConfig, err, "reading the environment variable "+s.Env)
		}
	}
	return nil
}

// FromEnvironment fills in what the flags left open, and checks the whole. Errors have code invalid_config.
func (n *NATS) FromEnvironment(fs *pflag.FlagSet, env Lookup) error {
	given := map[string]bool{}
	for _, s := range natsSettings {
		given[s.Flag] = fs.Changed(s.Flag)
	}
	var open []Setting
	for _, s := range natsSettings {
		switch {
		case given["context"]: // a context is a whole answer
		case s.Flag == "context" && given["url"]:
		case s.Flag == "creds" && given["nkey"], s.Flag == "nkey" && given["creds"]:
		default:
			open = append(open, s)
		}
	}
	if fs.Lookup(waitSetting.Flag) != nil {
		open = append(open, waitSetting)
	}
	if err := FromEnvironment(fs, env, open...); err != nil {
		return err
	}
	if n.Creds != "" && n.NKey != "" {
		return fault.New(fault.InvalidConfig, "credentials and an nkey are given; one connection takes one of them").
			WithHint("--creds and NATS_CREDS, or --nkey and NATS_NKEY")
	}
	if (n.Cert == "") != (n.Key == "") {
		return fault.New(fault.InvalidConfig, "a client certificate and its key belong together").
			WithHint("give both --tls-cert and --tls-key")
	}
	return nil
}

// Options returns what kv.Connect takes. name is shown by the server's monitoring.
func (n NATS) Options(name string, log *slog.Logger) kv.ConnectOptions {
	return kv.ConnectOptions{
		URL: n.URL, Creds: n.Creds, NKey: n.NKey, Context: n.Context, CA: n.CA, Cert: n.Cert, Key: n.Key,
		InboxPrefix: n.InboxPrefix, Name: name, Logger: log, Wait: n.Wait,
	}
}

// FromEnvironment fills in what the flags left open, and checks the whole. Errors have code invalid_config.
func (l *Logging) FromEnvironment(fs *pflag.FlagSet, env Lookup) error {
	if err := FromEnvironment(fs, env, logSettings...); err != nil {
		return err
	}
	l.Format, l.Level = strings.ToLower(l.Format), strings.ToLower(l.Level)
	if err := oneOf("log-format", l.Format, "text", "json"); err != nil {
		return err
	}
	return oneOf("log-level", l.Level, "debug", "info", "warn", "error")
}

func oneOf(flag, value string, words ...string) error {
	if slices.Contains(words, value) {
		return nil
	}
	return fault.New(fault.InvalidConfig, "--%s is %q", flag, value).
		WithHint("%s", fmt.Sprintf("it is one of %s", strings.Join(words, ", ")))
}
