package task

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// Keys sign and open what clients keep for a server. The first one signs, all of them open: a new key goes in front, and
// the old one is taken out when nothing signed with it is alive. Without a key nothing is signed, which is for a server
// whose clients are one and the same.
type Keys [][]byte

// MinKey is the least length of a key, in bytes.
const MinKey = 16

// ParseKeys reads the keys of a file: one a line, in base64, at least MinKey bytes each; empty lines and those that
// begin with # count for nothing. Errors: InvalidConfig.
func ParseKeys(file []byte) (Keys, error) {
	var keys Keys
	for i, line := range bytes.Split(file, []byte("\n")) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(key) < MinKey {
			return nil, fault.New(fault.InvalidConfig, "line %d is no key", i+1).
				WithHint("a key is %d bytes or more in base64: openssl rand -base64 32", MinKey)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fault.New(fault.InvalidConfig, "there is no key in it").WithHint("make one: openssl rand -base64 32")
	}
	return keys, nil
}

// Owner is whom a handle or a state was given to.
type Owner struct {
	Tenant, Principal string
}

// macSize is the length of a handle's code, in bytes.
const macSize = 16

// mac is the code over some texts under a key. Each is preceded by its length, so that none runs into the next.
func mac(key []byte, purpose string, texts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, t := range append([]string{purpose}, texts...) {
		h.Write([]byte{byte(len(t) >> 24), byte(len(t) >> 16), byte(len(t) >> 8), byte(len(t))})
		h.Write([]byte(t))
	}
	return h.Sum(nil)
}

// verify reports whether one of the keys made a code.
func (k Keys) verify(code []byte, purpose string, texts ...string) bool {
	ok := 0
	for _, key := range k {
		ok |= subtle.ConstantTimeCompare(code, mac(key, purpose, texts...)[:macSize])
	}
	return ok == 1
}

// State is what a client hands back with the answers to what a call asked: which run they are for.
type State struct {
	Run  string `json:"r"`
	Kind Kind   `json:"k"`
	// Arguments is the digest of the call's name and arguments, which are sent again with the answers.
	Arguments string `json:"a"`
	// Until is when the state is of no more use.
	Until time.Time `json:"u"`
	// Named says that the caller named the run, so that it goes on when the caller leaves.
	Named bool `json:"n,omitempty"`
	// Refused counts the times that answers to what the call asked were refused.
	Refused int `json:"f,omitempty"`
}

// Seal encrypts a state for its owner with the first key; there has to be one.
func (k Keys) Seal(s State, o Owner) string {
	plain, _ := json.Marshal(s) // it can be written
	// The nonce follows from all that is sealed, so no nonce is used twice for two states, and none is drawn.
	nonce := mac(k[0], "state nonce", o.Tenant, o.Principal, string(plain))[:nonceSize]
	sealed := stateCipher(k[0]).Seal(nonce, nonce, plain, ownerData(o))
	return base64.RawURLEncoding.EncodeToString(sealed)
}

// Open reads a state that was sealed for an owner; ok is false for one that was made up, changed, sealed for somebody
// else or with a key that is gone, or is too old.
func (k Keys) Open(text string, o Owner, now time.Time) (s State, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(sealed) < nonceSize {
		return s, false
	}
	for _, key := range k {
		plain, err := stateCipher(key).Open(nil, sealed[:nonceSize], sealed[nonceSize:], ownerData(o))
		if err == nil && json.Unmarshal(plain, &s) == nil {
			return s, now.Before(s.Until)
		}
	}
	return s, false
}

const nonceSize = 12

func stateCipher(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(mac(key, "state key"))
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // likewise
	}
	return aead
}

func ownerData(o Owner) []byte { return []byte(o.Tenant + "\x00" + o.Principal) }
