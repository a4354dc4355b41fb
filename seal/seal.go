// Package seal encrypts the secrets of a run's context to a key that workers and orchestrators hold, and opens them
// there. What lies in JetStream's files, travels through the server, or is read by whoever may look at plans, is then
// of no use.
//
// It is HPKE (RFC 9180) in base mode, one message for each value: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM,
// with the info string Info and the additional data of About, so that a value of one run is none in another. A sealed
// value is "<key id>.<base64url of enc and ciphertext>"; docs/protocol.md has the form and vectors for other languages.
//
// Base mode says nothing of who sealed: anybody may, to anybody's public key. A submitter vouches for its plan by being
// allowed to publish it.
package seal

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// Info is what the context of HPKE is bound to: this use, and the version of its form.
const Info = "stepjet context secret 1"

// About returns the additional data of a value: whose run it is of (the run id as it is encoded in subjects), and its
// key in the context.
func About(tenant, run, key string) string { return tenant + "/" + run + "/" + key }

const (
	publicMark = "stepjet-seal-1:"
	encSize    = 32
	overhead   = encSize + 16
)

var b64 = base64.RawURLEncoding

func kem() hpke.KEM { return hpke.DHKEM(ecdh.X25519()) }

// Public is a key that secrets are sealed to. It need not be kept secret, but must not be forged.
type Public struct {
	id  string
	key hpke.PublicKey
}

// ParsePublic reads the text form of a public key: "stepjet-seal-1:" and its 32 bytes in base64url. The error has the
// code invalid_config.
func ParsePublic(text string) (*Public, error) {
	coded, ok := strings.CutPrefix(strings.TrimSpace(text), publicMark)
	raw, err := b64.DecodeString(coded)
	if !ok || err != nil || len(raw) != encSize {
		return nil, fault.New(fault.InvalidConfig, "this is no public key for secrets").
			WithHint("it begins with %s; stepjet keys list FILE prints it", publicMark)
	}
	key, err := kem().NewPublicKey(raw)
	if err != nil {
		return nil, fault.Wrap(fault.InvalidConfig, err, "reading a public key for secrets")
	}
	return &Public{keyID(raw), key}, nil
}

// keyID names a key: the first 8 bytes of the SHA-256 of the public key, in hex.
func keyID(public []byte) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:8])
}

// ID returns the key's id, as it stands in what is sealed to it.
func (p *Public) ID() string { return p.id }

// String returns the text form.
func (p *Public) String() string { return publicMark + b64.EncodeToString(p.key.Bytes()) }

// Seal encrypts a value to the key, bound to what it is about.
func (p *Public) Seal(about, value string) (string, error) {
	enc, sender, err := hpke.NewSender(p.key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(Info))
	if err == nil {
		enc, err = sealed(enc, sender, about, value)
	}
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "sealing a secret")
	}
	return p.id + "." + b64.EncodeToString(enc), nil
}

func sealed(enc []byte, sender *hpke.Sender, about, value string) ([]byte, error) {
	text, err := sender.Seal([]byte(about), []byte(value))
	return append(enc, text...), err
}

// KeyOf returns the id of the key that a value is sealed to; "" where it is not of that form.
func KeyOf(value string) string {
	id, rest, ok := strings.Cut(value, ".")
	if raw, err := b64.DecodeString(rest); !ok || err != nil || len(raw) < overhead {
		return ""
	}
	return id
}
