package seal_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/seal"
)

var update = flag.Bool("update", false, "write the vectors anew")

const vectors = "../wire/testdata/sealed.json"

// vector is one value, with all that is needed to make or open it.
type vector struct {
	Tenant  string `json:"tenant"`
	Run     string `json:"run"` // encoded
	Key     string `json:"key"`
	About   string `json:"about"`
	Private string `json:"private"` // base64url, as in a key file
	Public  string `json:"public"`
	ID      string `json:"id"`
	Value   string `json:"value"`
	Sealed  string `json:"sealed"`
}

var b64 = base64.RawURLEncoding

func newKey(t *testing.T) seal.Key {
	t.Helper()
	k, err := seal.NewKey(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	return k
}

// made returns vectors of all kinds. What is sealed differs each time: an X25519 key is made for every value.
func made(t *testing.T) (all []vector) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, seal.Create(file, []seal.Key{newKey(t)}))
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var form struct {
		Keys []struct{ ID, Public, Private string }
	}
	require.NoError(t, json.Unmarshal(raw, &form))
	public, err := seal.ParsePublic(form.Keys[0].Public)
	require.NoError(t, err)
	for _, v := range []vector{
		{Tenant: "acme", Run: "order-42", Key: "token", Value: "s3cr3t-t0ken"}, {Tenant: "default", Run: "order=20=2342", Key: "api.key", Value: "pässwörd\n"},
		{Tenant: "acme", Run: "r", Key: "empty", Value: ""}, {Tenant: "acme", Run: "r", Key: "long", Value: strings.Repeat("0123456789", 20)},
	} {
		v.About = seal.About(v.Tenant, v.Run, v.Key)
		v.ID, v.Public, v.Private = form.Keys[0].ID, form.Keys[0].Public, form.Keys[0].Private
		v.Sealed, err = public.Seal(v.About, v.Value)
		require.NoError(t, err)
		all = append(all, v)
	}
	return all
}

// by opens a value by the steps of RFC 9180, written out: what somebody does whose language has no library for it.
func (v vector) by(t *testing.T) string {
	t.Helper()
	id, rest, _ := strings.Cut(v.Sealed, ".")
	require.Equal(t, v.ID, id)
	raw, err := b64.DecodeString(rest)
	require.NoError(t, err)
	private, err := b64.DecodeString(v.Private)
	require.NoError(t, err)
	own, err := ecdh.X25519().NewPrivateKey(private)
	require.NoError(t, err)
	enc, err := ecdh.X25519().NewPublicKey(raw[:32])
	require.NoError(t, err)
	dh, err := own.ECDH(enc)
	require.NoError(t, err)

	extract := func(suite, salt, label string, ikm []byte) []byte {
		out, err := hkdf.Extract(sha256.New, append([]byte("HPKE-v1"+suite+label), ikm...), []byte(salt))
		require.NoError(t, err)
		return out
	}
	expand := func(suite string, prk []byte, label string, info []byte, n int) []byte {
		labeled := binary.BigEndian.AppendUint16(nil, uint16(n))
		labeled = append(append(labeled, "HPKE-v1"+suite+label...), info...)
		out, err := hkdf.Expand(sha256.New, prk, string(labeled), n)
		require.NoError(t, err)
		return out
	}
	kem, suite := "KEM\x00\x20", "HPKE\x00\x20\x00\x01\x00\x02"
	shared := expand(kem, extract(kem, "", "eae_prk", dh), "shared_secret", append(enc.Bytes(), own.PublicKey().Bytes()...), 32)
	schedule := append([]byte{0}, extract(suite, "", "psk_id_hash", nil)...)
	schedule = append(schedule, extract(suite, "", "info_hash", []byte("stepjet context secret 1"))...)
	secret := extract(suite, string(shared), "secret", nil)
	block, err := aes.NewCipher(expand(suite, secret, "key", schedule, 32))
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	text, err := aead.Open(nil, expand(suite, secret, "base_nonce", schedule, 12), raw[32:], []byte(v.Tenant+"/"+v.Run+"/"+v.Key))
	require.NoError(t, err)
	return string(text)
}

// The vectors of the protocol, and values made now, are opened by this package and by the steps of the RFC.
func TestVectors(t *testing.T) {
	all := made(t)
	if *update {
		b, err := json.MarshalIndent(all, "", "  ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(vectors, append(b, '\n'), 0o644))
	}
	raw, err := os.ReadFile(vectors)
	require.NoError(t, err)
	var kept []vector
	require.NoError(t, json.Unmarshal(raw, &kept))
	require.Len(t, kept, len(all))
	for _, v := range append(kept, all...) {
		require.Equal(t, v.Value, v.by(t))
		require.Equal(t, v.About, seal.About(v.Tenant, v.Run, v.Key))
		opened, err := v.ring(t).Open(v.About, v.Sealed)
		require.NoError(t, err)
		require.Equal(t, v.Value, opened)
		require.Equal(t, v.ID, seal.KeyOf(v.Sealed))
	}
}

// ring writes a key file by hand and loads it.
func (v vector) ring(t *testing.T) *seal.Keyring {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys.json")
	body := `{"version":1,"keys":[{"id":"` + v.ID + `","created":"2026-11-20T12:00:00Z","private":"` + v.Private + `"}]}`
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	r, err := seal.Load(file)
	require.NoError(t, err)
	require.Equal(t, v.Public, r.Newest().String())
	return r
}

func TestWhatCannotBeOpenedSaysWhy(t *testing.T) {
	t.Parallel()
	mine, other := newKey(t), newKey(t)
	value, err := mine.Public.Seal("acme/r/token", "s3cr3t")
	require.NoError(t, err)
	ring := seal.NewKeyring(mine)
	again, err := mine.Public.Seal("acme/r/token", "s3cr3t")
	require.NoError(t, err)
	require.NotEqual(t, value, again, "equal secrets don't look equal")
	flipped := []byte(value)
	if at := len(flipped) - 5; flipped[at] == 'A' {
		flipped[at] = 'B'
	} else {
		flipped[at] = 'A'
	}
	for name, c := range map[string]struct {
		ring         *seal.Keyring
		about, value string
		says         string
	}{
		"another run":    {ring, "acme/q/token", value, "sealed for another run"},
		"another tenant": {ring, "beta/r/token", value, "sealed for another run"},
		"another key":    {ring, "acme/r/pin", value, "sealed for another run"},
		"changed":        {ring, "acme/r/token", string(flipped), "can't be opened"},
		"no key":         {seal.NewKeyring(other), "acme/r/token", value, "does not hold"},
		"no keys":        {nil, "acme/r/token", value, "holds no keys"},
		"no form":        {ring, "acme/r/token", "s3cr3t", "not of that form"},
		"too short":      {ring, "acme/r/token", mine.Public.ID() + ".c2hvcnQ", "not of that form"},
	} {
		_, err := c.ring.Open(c.about, c.value)
		require.Equal(t, fault.Sealed, fault.CodeOf(err), name)
		require.False(t, fault.As(err).Retryable, name)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "s3cr3t", name)
	}
}

func TestPublicKeysAreText(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	p, err := seal.ParsePublic(" " + k.Public.String() + "\n")
	require.NoError(t, err)
	require.Equal(t, k.Public.ID(), p.ID())
	for _, bad := range []string{"", "x", "stepjet-seal-1:", "stepjet-seal-1:" + strings.Repeat("A", 42), strings.Replace(k.Public.String(), "-1:", "-2:", 1)} {
		_, err := seal.ParsePublic(bad)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), bad)
	}
}

func TestKeyFiles(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secrets.key")
	_, err := seal.Load(file)
	require.ErrorContains(t, err, "stepjet keys new")
	first := newKey(t)
	require.NoError(t, seal.Create(file, []seal.Key{first}))
	require.Equal(t, fault.InvalidConfig, fault.CodeOf(seal.Create(file, []seal.Key{first})), "nothing is written over")
	if runtime.GOOS != "windows" {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.NoError(t, os.Chmod(file, 0o644))
		_, err = seal.Load(file)
		require.ErrorContains(t, err, "chmod 600")
		require.NoError(t, os.Chmod(file, 0o640))
	}
	ring, err := seal.Load(file)
	require.NoError(t, err)

	// A key that was added while the process runs is found when it is needed.
	keys, err := seal.Rotate(ring.Keys(), time.Now(), seal.Keep)
	require.NoError(t, err)
	require.Len(t, keys, 2)
	require.NoError(t, seal.Replace(file, keys))
	value, err := keys[1].Public.Seal("a", "new")
	require.NoError(t, err)
	require.Eventually(t, func() bool { v, err := ring.Open("a", value); return err == nil && v == "new" }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, keys[1].Public.ID(), ring.Newest().ID())
	old, err := first.Public.Seal("a", "old")
	require.NoError(t, err)
	v, err := ring.Open("a", old)
	require.NoError(t, err)
	require.Equal(t, "old", v)
	for _, bad := range []string{"", "{}", `{"version":2,"keys":[{}]}`, `{"version":1,"keys":[]}`, `{"version":1,"keys":[{"id":"x","private":"c2VjcmV0"}]}`} {
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
		_, err := seal.Load(file)
		require.Equal(t, fault.InvalidConfig, fault.CodeOf(err), bad)
	}
}

func TestRotateDropsWhatIsLongReplaced(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).Add(d) }
	keys, err := seal.Rotate(nil, at(0), seal.Keep)
	require.NoError(t, err)
	for _, age := range []time.Duration{24 * time.Hour, 48 * time.Hour} {
		keys, err = seal.Rotate(keys, at(age), seal.Keep)
		require.NoError(t, err)
	}
	require.Len(t, keys, 3)
	keys, err = seal.Rotate(keys, at(24*time.Hour+seal.Keep-time.Second), seal.Keep)
	require.NoError(t, err)
	require.Len(t, keys, 4, "the first was replaced almost so long ago")
	keys, err = seal.Rotate(keys, at(24*time.Hour+seal.Keep), seal.Keep)
	require.NoError(t, err)
	require.Len(t, keys, 4, "the first is gone")
	for _, now := range []time.Time{at(30*time.Hour + seal.Keep), at(0)} { // also by a clock that is behind
		alone, err := seal.Rotate(keys, now, 0)
		require.NoError(t, err)
		require.Len(t, alone, 1, "with 0 no old key is kept, least of all the one that is replaced now")
		require.NotContains(t, ids(keys), alone[0].Public.ID())
	}
}

func ids(keys []seal.Key) (all []string) {
	for _, k := range keys {
		all = append(all, k.Public.ID())
	}
	return all
}
