package config_test

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/kv"
)

func readStore(args []string, env map[string]string) (config.Store, error) {
	var s config.Store
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Flags(fs)
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	return s, s.FromEnvironment(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
}

func TestTheDurabilityDial(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		env  map[string]string
		want kv.Config
		sync doctor.Sync
	}{
		{nil, nil, kv.Config{StepsAsync: true}, doctor.SyncUnknown},
		{[]string{"--durability", "default"}, nil, kv.Config{Replicas: 1, StepsAsync: true}, doctor.SyncUnknown},
		{[]string{"--durability", "always"}, nil, kv.Config{Replicas: 1, StepsAsync: true}, doctor.SyncAlways},
		{[]string{"--durability", "always", "--shards", "8"}, nil, kv.Config{Replicas: 1, Shards: 8, StepsAsync: true}, doctor.SyncAlways},
		{[]string{"--durability", "always", "--steps", "sync"}, nil, kv.Config{Replicas: 1}, doctor.SyncAlways},
		{[]string{"--durability", "always", "--replicas", "3"}, nil, kv.Config{Replicas: 3}, doctor.SyncAlways},
		{[]string{"--durability", "replicated"}, nil, kv.Config{Replicas: 3}, doctor.SyncUnknown},
		{[]string{"--durability", "replicated", "--replicas", "5"}, nil, kv.Config{Replicas: 5}, doctor.SyncUnknown},
		{[]string{"--steps", "async"}, nil, kv.Config{StepsAsync: true}, doctor.SyncUnknown},
		{nil, map[string]string{
			"STEPJET_DURABILITY": "replicated", "STEPJET_SHARDS": "4", "STEPJET_RETENTION": "1h", "STEPJET_ACK_WAIT": "5s", "STEPJET_LEDGER_MAX_BYTES": "9", "STEPJET_NATS_CLUSTER": "eu",
		}, kv.Config{Replicas: 3, Shards: 4, Retention: time.Hour, AckWait: 5 * time.Second, LedgerMaxBytes: 9, Cluster: "eu"}, doctor.SyncUnknown},
		{[]string{"--durability", "default"}, map[string]string{"STEPJET_DURABILITY": "always", "STEPJET_REPLICAS": "3"}, kv.Config{Replicas: 3}, doctor.SyncUnknown},
	} {
		s, err := readStore(c.args, c.env)
		require.NoError(t, err, "%v %v", c.args, c.env)
		require.Equal(t, c.want, s.Config(), "%v %v", c.args, c.env)
		require.Equal(t, c.sync, s.Sync(), "%v %v", c.args, c.env)
	}
}

func TestDurabilityThatContradictsItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		part string
	}{
		{[]string{"--durability", "paranoid"}, "--durability"},
		{[]string{"--durability", "replicated", "--replicas", "1"}, "contradict"},
		{[]string{"--durability", "replicated", "--steps", "async"}, "one replica only"},
		{[]string{"--replicas", "3", "--steps", "async"}, "one replica only"},
		{[]string{"--replicas", "2"}, "--replicas is 2"},
		{[]string{"--shards", "3"}, "--shards is 3"},
		{[]string{"--shards", "-1"}, "--shards is -1"},
		{[]string{"--steps", "later"}, "--steps"},
	} {
		_, err := readStore(c.args, nil)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), "%v", c.args)
		require.ErrorContains(t, err, c.part)
		require.NotEmpty(t, fault.As(err).Hint, "%v", c.args)
	}
	_, err := readStore(nil, map[string]string{"STEPJET_REPLICAS": "many"})
	require.ErrorContains(t, err, "STEPJET_REPLICAS")
}

func TestTheDialAlone(t *testing.T) {
	t.Parallel()
	var s config.Store
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.DurabilityFlag(fs)
	env := map[string]string{"STEPJET_DURABILITY": "always", "STEPJET_REPLICAS": "3"}
	require.NoError(t, s.FromEnvironment(fs, func(name string) (string, bool) { v, ok := env[name]; return v, ok }))
	require.Equal(t, kv.Config{Replicas: 1, StepsAsync: true}, s.Config(), "what is not declared is not read")
}
