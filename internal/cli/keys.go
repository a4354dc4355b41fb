package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/seal"
)

// keys loads what opens secrets, for what runs in this process; nil where none is named.
func (a *app) keys() (*seal.Keyring, error) {
	if a.flags.secrets.File == "" {
		a.flags.secrets.File = a.env.Getenv(config.SecretsKeySetting.Env)
	}
	return a.flags.secrets.Load()
}

func (a *app) keysCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "keys",
		Short: "Make and replace the keys that secrets of runs are sealed to",
		Long: `Secrets of a run (--secret) are sealed to a key where the orchestrators publish one: then only who
holds the key file can read them, that is the orchestrators and the workers. Give both the file:

  stepjet keys new secrets.key
  toolworker --secrets-key secrets.key        all workers first
  orchestrator --secrets-key secrets.key      it publishes the newest key of the file

To replace the key: "keys rotate", hand the file to all workers, which read it again by
themselves, then to the orchestrators, and start these anew. docs/security.md says more.`,
		Example: "  stepjet keys new secrets.key\n  stepjet keys rotate secrets.key",
		Args:    knownCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.keysNewCommand(), a.keysListCommand(), a.keysRotateCommand())
	return c
}

func (a *app) keysNewCommand() *cobra.Command {
	return &cobra.Command{
		Use: "new FILE", Short: "Make a key file with one key", Example: "  stepjet keys new secrets.key", Args: exactly("FILE"),
		RunE: a.work(func(_ *cobra.Command, args []string) error {
			key, err := seal.NewKey(a.now())
			if err == nil {
				err = seal.Create(args[0], []seal.Key{key})
			}
			if err != nil {
				return err
			}
			return a.printKeys(args[0], []seal.Key{key})
		}),
	}
}

func (a *app) keysListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list FILE", Short: "List the keys of a file, without what is private of them", Example: "  stepjet keys list secrets.key -o json", Args: exactly("FILE"),
		RunE: a.work(func(_ *cobra.Command, args []string) error {
			ring, err := seal.Load(args[0])
			if err != nil {
				return err
			}
			return a.printKeys(args[0], ring.Keys())
		}),
	}
}

func (a *app) keysRotateCommand() *cobra.Command {
	var keep time.Duration
	c := &cobra.Command{
		Use: "rotate FILE", Short: "Add a new key to a file, and drop those that were replaced long ago",
		Long: `Adds a new key, to which secrets are sealed once an orchestrator was started with the file. The
old ones stay, since what was sealed to them is still to be opened: a run lasts 168 h at most.
With --keep 0s the new key is the only one: for a file that others have got hold of.`,
		Example: "  stepjet keys rotate secrets.key", Args: exactly("FILE"),
		RunE: a.work(func(_ *cobra.Command, args []string) error {
			ring, err := seal.Load(args[0])
			if err != nil {
				return err
			}
			keys, err := seal.Rotate(ring.Keys(), a.now(), keep)
			if err == nil {
				err = seal.Replace(args[0], keys)
			}
			if err != nil {
				return err
			}
			return a.printKeys(args[0], keys)
		}),
	}
	c.Flags().DurationVar(&keep, "keep", seal.Keep, "keep a key for this `duration` after it was replaced: 168h and the retention of runs")
	return c
}

// listedKey is a key as it may be shown.
type listedKey struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Public  string    `json:"public"`
	Newest  bool      `json:"newest,omitempty"`
}

func (a *app) printKeys(file string, keys []seal.Key) error {
	list := make([]listedKey, len(keys))
	for i, k := range keys {
		list[i] = listedKey{k.Public.ID(), k.Created, k.Public.String(), i == len(keys)-1}
	}
	if a.json() {
		return a.printJSON(list)
	}
	var t table
	t.add(plain("KEY"), plain("CREATED"), plain("PUBLIC"))
	for _, k := range list {
		t.add(plain(k.ID), plain(k.Created.Format(time.RFC3339)), plain(k.Public))
	}
	t.write(a.stdout, "", 0)
	a.say("%s: secrets are sealed to %s once an orchestrator was started with --secrets-key %s", file, list[len(list)-1].ID, quote(file))
	return nil
}
