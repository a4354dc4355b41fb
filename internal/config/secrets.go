package config

import (
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/seal"
)

// SecretsKey is the file of private keys that open the secrets of runs.
type SecretsKey struct{ File string }

// SecretsKeySetting ties its flag to its variable.
var SecretsKeySetting = Setting{"secrets-key", "STEPJET_SECRETS_KEY"}

// Flag declares its flag.
func (s *SecretsKey) Flag(fs *pflag.FlagSet) {
	fs.StringVar(&s.File, SecretsKeySetting.Flag, "",
		"`file` of keys that open sealed secrets: stepjet keys (env STEPJET_SECRETS_KEY)")
}

// Load reads the file; nil where none is named. Errors: those of seal.Load.
func (s *SecretsKey) Load() (*seal.Keyring, error) {
	if s.File == "" {
		return nil, nil
	}
	return seal.Load(s.File)
}
