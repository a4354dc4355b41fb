package config_test

import (
	"fmt"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/kv"
)

func read(args []string, env map[string]string) (config.NATS, config.Logging, error) {
	var n config.NATS
	var l config.Logging
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	n.Flags(fs)
	l.Flags(fs)
	if err := fs.Parse(args); err != nil {
		return n, l, err
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	if err := n.FromEnvironment(fs, lookup); err != nil {
		return n, l, err
	}
	return n, l, l.FromEnvironment(fs, lookup)
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	all := map[string]string{"NATS_URL": "nats://env", "NATS_CONTEXT": "env", "NATS_CREDS": "env.creds", "NATS_CA": "ca", "NATS_CERT": "cert", "NATS_KEY": "key",
		"STEPJET_LOG_FORMAT": "JSON", "STEPJET_LOG_LEVEL": "debug"}
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		want config.NATS
	}{
		{"defaults", nil, nil, config.NATS{}},
		{"environment", nil, all, config.NATS{URL: "nats://env", Context: "env", Creds: "env.creds", CA: "ca", Cert: "cert", Key: "key"}},
		{"flags", []string{"--url", "a,b", "--creds", "c", "--tls-ca", "x"}, all, config.NATS{URL: "a,b", Creds: "c", CA: "x", Cert: "cert", Key: "key"}},
		{"a context is a whole answer", []string{"--context", "prod"}, all, config.NATS{Context: "prod"}},
		{"context and url", []string{"--context", "prod", "--url", "u"}, all, config.NATS{Context: "prod", URL: "u"}},
		{"nkey replaces credentials", []string{"--nkey", "n"}, map[string]string{"NATS_CREDS": "c"}, config.NATS{NKey: "n"}},
		{"credentials replace the nkey", []string{"--creds", "c"}, map[string]string{"NATS_NKEY": "n"}, config.NATS{Creds: "c"}},
		{"empty variables are absent", nil, map[string]string{"NATS_URL": ""}, config.NATS{}},
		{"an empty flag is given", []string{"--url", ""}, map[string]string{"NATS_URL": "u"}, config.NATS{}},
	} {
		n, _, err := read(c.args, c.env)
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, n, c.name)
	}
	_, l, err := read(nil, all)
	require.NoError(t, err)
	require.Equal(t, config.Logging{Format: "json", Level: "debug"}, l)
	_, l, err = read([]string{"--log-level", "warn"}, all)
	require.NoError(t, err)
	require.Equal(t, config.Logging{Format: "json", Level: "warn"}, l)
	_, l, err = read(nil, nil)
	require.NoError(t, err)
	require.Equal(t, config.Logging{Format: "text", Level: "info"}, l)
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		env  map[string]string
		part string
	}{
		{[]string{"--creds", "c", "--nkey", "n"}, nil, "one of them"},
		{nil, map[string]string{"NATS_CREDS": "c", "NATS_NKEY": "n"}, "one of them"},
		{[]string{"--tls-cert", "c"}, nil, "belong together"},
		{nil, map[string]string{"NATS_KEY": "k"}, "belong together"},
		{[]string{"--log-format", "xml"}, nil, "text, json"},
		{nil, map[string]string{"STEPJET_LOG_LEVEL": "loud"}, "debug, info, warn, error"},
	} {
		_, _, err := read(c.args, c.env)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), "%v %v", c.args, c.env)
		require.ErrorContains(t, err, c.part)
	}
}

func TestFromEnvironmentNamesTheVariable(t *testing.T) {
	t.Parallel()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	slots := fs.Int("slots", 3, "")
	env := map[string]string{"SLOTS": "many"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	err := config.FromEnvironment(fs, lookup, config.Setting{Flag: "slots", Env: "SLOTS"})
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
	require.ErrorContains(t, err, "SLOTS")
	env["SLOTS"] = "7"
	require.NoError(t, config.FromEnvironment(fs, lookup, config.Setting{Flag: "slots", Env: "SLOTS"}))
	require.Equal(t, 7, *slots)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	n := config.NATS{URL: "u", Creds: "c", NKey: "n", Context: "x", CA: "a", Cert: "b", Key: "k"}
	require.Equal(t, kv.ConnectOptions{URL: "u", Creds: "c", NKey: "n", Context: "x", CA: "a", Cert: "b", Key: "k", Name: "me"}, n.Options("me", nil))
}

func ExampleNATS() {
	var n config.NATS
	fs := pflag.NewFlagSet("program", pflag.ContinueOnError)
	n.Flags(fs)
	_ = fs.Parse([]string{"--creds", "me.creds"})
	env := map[string]string{"NATS_URL": "nats://example.com", "NATS_CREDS": "other.creds"}
	err := n.FromEnvironment(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	fmt.Println(n.URL, n.Creds, err)
	// Output: nats://example.com me.creds <nil>
}
