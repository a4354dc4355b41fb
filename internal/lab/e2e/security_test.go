package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/internal/embedded"
	"github.com/stepjet/stepjet/outcome"
)

// secured runs a server with a configuration of its own.
func secured(t *testing.T, text string) (url string) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "nats.conf")
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	_, url = server(t, func(o *embedded.Options) { o.ConfigFile = conf })
	return url
}

// runsWith has all three programs connect with some flags, and a plan run.
func runsWith(t *testing.T, url string, flags ...string) {
	t.Helper()
	begin(t, url, "orchestrator", flags...).says("ready")
	begin(t, url, "toolworker", flags...).says("ready")
	succeeds(t, url, onePlan, flags...)
}

func succeeds(t *testing.T, url, plan string, flags ...string) {
	t.Helper()
	code, out, said := once(t, url, "stepjet", append([]string{"run", "-o", "json", planFile(t, plan)}, flags...)...)
	require.Zero(t, code, said)
	var o outcome.Outcome
	require.NoError(t, json.Unmarshal([]byte(out), &o))
	require.Equal(t, outcome.Succeeded, o.Status)
}

// fails has every program refused, with an error of a code that says why.
func fails(t *testing.T, url, code string, says string, flags ...string) {
	t.Helper()
	for _, p := range [][]string{{"orchestrator", "--wait-for-nats=0"}, {"toolworker", "--wait-for-nats=0"}, {"stepjet", "run", planFile(t, onePlan)}, {"stepjet", "list"}} {
		exit, _, said := once(t, url, p[0], append(p[1:], flags...)...)
		require.NotZero(t, exit)
		require.Contains(t, said, code, "%v %v", p, flags)
		require.Regexp(t, says, said, "%v %v", p, flags)
	}
}

func TestTLSInEveryProgram(t *testing.T) {
	t.Parallel()
	ca, strangers := newAuthority(t), newAuthority(t)
	cert, key := ca.sign("server")
	url := secured(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q }\n", cert, key))
	runsWith(t, url, "--tls-ca", ca.file)
	fails(t, url, "no_connection", "certificate signed by unknown authority", "--tls-ca", strangers.file)
	fails(t, url, "no_connection", "certificate signed by unknown authority")
	fails(t, url, "invalid_config", "no such file", "--tls-ca", ca.file+".absent")
}

func TestClientCertificatesInEveryProgram(t *testing.T) {
	t.Parallel()
	ca, strangers := newAuthority(t), newAuthority(t)
	cert, key := ca.sign("server")
	own, ownKey := ca.sign("program")
	theirs, theirKey := strangers.sign("stranger")
	url := secured(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", cert, key, ca.file))
	runsWith(t, url, "--tls-ca", ca.file, "--tls-cert", own, "--tls-key", ownKey)
	fails(t, url, "no_connection", "certificate", "--tls-ca", ca.file)
	fails(t, url, "no_connection", "certificate", "--tls-ca", ca.file, "--tls-cert", theirs, "--tls-key", theirKey)
	fails(t, url, "invalid_config", "tls-key", "--tls-ca", ca.file, "--tls-cert", own)
}

// seedFile makes a key pair and gives the file of its seed.
func seedFile(t *testing.T) (file, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	seed, err := pair.Seed()
	require.NoError(t, err)
	public, err = pair.PublicKey()
	require.NoError(t, err)
	file = filepath.Join(t.TempDir(), "user.nk")
	require.NoError(t, os.WriteFile(file, seed, 0o600))
	return file, public
}

func TestNKeysInEveryProgram(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.sign("server")
	seed, public := seedFile(t)
	other, _ := seedFile(t)
	url := secured(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q }\nauthorization { users: [ { nkey: %s } ] }\n", cert, key, public))
	runsWith(t, url, "--tls-ca", ca.file, "--nkey", seed)
	fails(t, url, "permission", "refuses these credentials", "--tls-ca", ca.file, "--nkey", other)
	fails(t, url, "permission", "refuses these credentials", "--tls-ca", ca.file)
	fails(t, url, "invalid_config", "no such file", "--tls-ca", ca.file, "--nkey", seed+".absent")
	fails(t, url, "invalid_config", "nkey", "--tls-ca", ca.file, "--nkey", ca.file)
}

// operator is one of NATS: it signs accounts, which sign users.
type operator struct {
	t       *testing.T
	account nkeys.KeyPair
	conf    string
}

// newOperator makes an operator with one account that has JetStream, and the configuration of a server that trusts it.
func newOperator(t *testing.T) *operator {
	t.Helper()
	pair := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		p, err := create()
		require.NoError(t, err)
		public, err := p.PublicKey()
		require.NoError(t, err)
		return p, public
	}
	op, opKey := pair(nkeys.CreateOperator)
	_, sysKey := pair(nkeys.CreateAccount)
	account, accountKey := pair(nkeys.CreateAccount)
	claims := jwt.NewOperatorClaims(opKey)
	claims.SystemAccount = sysKey
	signed, err := claims.Encode(op)
	require.NoError(t, err)
	system, err := jwt.NewAccountClaims(sysKey).Encode(op)
	require.NoError(t, err)
	ac := jwt.NewAccountClaims(accountKey)
	ac.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	own, err := ac.Encode(op)
	require.NoError(t, err)
	return &operator{t: t, account: account, conf: fmt.Sprintf(
		"operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s: %s\n%s: %s\n}\n", signed, sysKey, sysKey, system, accountKey, own)}
}

// creds returns a file with the credentials of a new user.
func (o *operator) creds() string {
	o.t.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(o.t, err)
	public, err := pair.PublicKey()
	require.NoError(o.t, err)
	user, err := jwt.NewUserClaims(public).Encode(o.account)
	require.NoError(o.t, err)
	seed, err := pair.Seed()
	require.NoError(o.t, err)
	text, err := jwt.FormatUserConfig(user, seed)
	require.NoError(o.t, err)
	file := filepath.Join(o.t.TempDir(), "user.creds")
	require.NoError(o.t, os.WriteFile(file, text, 0o600))
	return file
}

func TestCredentialFilesInEveryProgram(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.sign("server")
	op := newOperator(t)
	url := secured(t, fmt.Sprintf("tls { cert_file: %q, key_file: %q }\n", cert, key)+op.conf)
	runsWith(t, url, "--tls-ca", ca.file, "--creds", op.creds())
	fails(t, url, "permission", "refuses these credentials", "--tls-ca", ca.file, "--creds", newOperator(t).creds())
	fails(t, url, "invalid_config", "no such file", "--tls-ca", ca.file, "--creds", ca.file+".absent")
	fails(t, url, "invalid_config", "credentials", "--tls-ca", ca.file, "--creds", ca.file)
}

// TestThePrintedSystemRuns does what docs/security.md says: print the configuration, start a server with it, and each
// program with the key and the inbox prefix of its user.
func TestThePrintedSystemRuns(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	tools := filepath.Join(t.TempDir(), "tools.json")
	require.NoError(t, os.WriteFile(tools, []byte(`{"tools":[{"builtin":"echo"}]}`), 0o600))
	code, conf, said := once(t, "", "stepjet", "acl", "system", "--tenant", "acme", "--tenant", "beta", "--tool", "echo", "--keys", keys)
	require.Zero(t, code, said)
	_, again, _ := once(t, "", "stepjet", "acl", "system", "--tenant", "acme", "--tenant", "beta", "--tool", "echo", "--keys", keys)
	require.Equal(t, conf, again, "keys that are there are used")
	url := secured(t, conf)
	as := func(user string) []string {
		return []string{"--nkey", filepath.Join(keys, user+".nk"), "--inbox-prefix", "_INBOX." + user}
	}
	begin(t, url, "orchestrator", as("orchestrator")...).says("ready")
	begin(t, url, "toolworker", append(as("worker-echo"), "--tools", tools)...).says("ready")
	acme := append(as("agent-acme"), "--tenant", "acme")
	succeeds(t, url, onePlan, append(acme, "--run", "r")...)
	code, out, said := once(t, url, "stepjet", append([]string{"get", "r"}, append(as("viewer-acme"), "--tenant", "acme")...)...)
	require.Zero(t, code, said)
	require.Contains(t, out, "succeeded")
	code, _, said = once(t, url, "stepjet", append([]string{"get", "r"}, append(as("agent-beta"), "--tenant", "acme")...)...)
	require.NotZero(t, code)
	require.Contains(t, said, "permission: ")
	require.Contains(t, said, "notify.acme.")
	code, _, said = once(t, url, "stepjet", append([]string{"submit", planFile(t, onePlan)}, append(as("viewer-acme"), "--tenant", "acme")...)...)
	require.NotZero(t, code)
	require.Regexp(t, `permission: .*plan\.submit\.acme\.`, said)
	code, _, said = once(t, url, "stepjet", append([]string{"list"}, "--tenant", "acme", "--nkey", filepath.Join(keys, "agent-acme.nk"))...)
	require.NotZero(t, code, "without its inbox prefix a program hears no answers")
	require.Contains(t, said, "permission: ")
	require.Contains(t, said, "_INBOX.")
	require.NotContains(t, strings.ToLower(conf), "seed")

	// What takes two roles says so, and who else may what is left to do.
	operator := as("operator")
	save := []string{"templates", "save", "one", "--from", "r"}
	for _, user := range [][]string{acme, operator} {
		code, _, said = once(t, url, "stepjet", append(save, user...)...)
		require.NotZero(t, code)
		require.Contains(t, said, "permission: ")
		require.Contains(t, said, "hint: who sees the run writes the template: add --print > FILE; an operator of the cluster applies it: stepjet templates apply FILE")
	}
	code, out, said = once(t, url, "stepjet", append(append(save, "--print"), acme...)...)
	require.Zero(t, code, said)
	code, _, said = once(t, url, "stepjet", append([]string{"templates", "apply", planFile(t, out)}, operator...)...)
	require.Zero(t, code, said)
	helper := planFile(t, `{"name":"helper","inputSchema":{"type":"object"},"agent":{"planner":{"tool":"echo"},"instructions":"x","tools":["one"],"max_rounds":1}}`)
	run := append([]string{"agents", "run", "helper", "--input", `{}`}, acme...)
	code, _, said = once(t, url, "stepjet", append(run, "--apply", helper)...)
	require.NotZero(t, code)
	require.Contains(t, said, "permission: ")
	require.Contains(t, said, "hint: an operator of the cluster registers agents: stepjet agents apply FILE; then run it without --apply")
	code, _, said = once(t, url, "stepjet", append([]string{"agents", "apply", helper}, operator...)...)
	require.Zero(t, code, said)
	code, _, said = once(t, url, "stepjet", append(run, "--model", "ollama:m")...)
	require.NotZero(t, code)
	require.Contains(t, said, "permission: ")
	require.Contains(t, said, "hint: a worker of that tool hosts a model: modelworker --models FILE, with the credentials of stepjet acl worker; then run the agent without --model")
	_, _, said = once(t, url, "stepjet", run...)
	require.Contains(t, said, "the planner  echo", "it is asked, whatever its answer is good for")
}
