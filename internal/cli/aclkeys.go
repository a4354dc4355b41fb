package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/acl"
)

// giveKeys returns each user the key of the folder, if one is named; a key that is not there is made.
func (a *app) giveKeys(x *access, sys *acl.System) error {
	if x.keys == "" {
		return nil
	}
	if err := os.MkdirAll(x.keys, 0o700); err != nil {
		return fault.Wrap(fault.InvalidConfig, err, "making the folder of keys")
	}
	sys.Keys = map[string]string{}
	for _, g := range sys.Grants {
		file := filepath.Join(x.keys, g.User+".nk")
		public, err := keyOf(file)
		if err != nil {
			return fault.Wrap(fault.InvalidConfig, err, "the key "+file)
		}
		sys.Keys[g.User] = public
		a.say("%s --nkey %s --inbox-prefix %s", g.User, quote(file), g.Inbox)
	}
	return nil
}

// keyOf returns the public part of the user's key in a file, which is made where it is absent.
func keyOf(file string) (public string, err error) {
	seed, err := os.ReadFile(file)
	var pair nkeys.KeyPair
	switch {
	case err == nil:
		pair, err = nkeys.FromSeed(bytes.TrimSpace(seed))
	case errors.Is(err, fs.ErrNotExist):
		pair, err = newKey(file)
	}
	if err != nil {
		return "", err
	}
	return pair.PublicKey()
}

func newKey(file string) (nkeys.KeyPair, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	return pair, os.WriteFile(file, append(seed, '\n'), 0o600)
}
