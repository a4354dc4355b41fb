package kv

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
)

// secrets looks whether the secrets of runs are sealed, and whether who has to open them holds the key.
func (d *doctor) secrets(ctx context.Context) error {
	key, err := d.s.SealingKey(ctx)
	const start = "stepjet keys new secrets.key; start workers, then orchestrators, with --secrets-key secrets.key"
	switch code := fault.CodeOf(err); {
	case code == fault.NotFound || code == fault.NotReady:
		d.add(Finding{
			Health: Healthy, Found: "not sealed, since no key is published: they lie in the ledger and the step queues as they are",
			Means: "who may look at a tenant's active runs can read them", Fix: start,
		}, nil)
		return nil
	case code == fault.Internal && err != nil:
		d.add(Finding{Health: Broken, Expected: "a key that secrets are sealed to", Found: fault.As(err).Message, Means: "no run with secrets can be submitted", Fix: start}, nil)
		return nil
	case err != nil:
		return err
	}
	if d.o.HoldsKey != nil && !d.o.HoldsKey(key.ID) {
		d.add(Finding{
			Health: Broken, Expected: "a key file with the key that is published", Found: "secrets are sealed to " + key.ID + ", which the file does not hold",
			Means: "steps fail with sealed at workers with this file", Fix: "hand out the orchestrators' file; stepjet keys list FILE shows what one holds",
		}, nil)
	}
	if d.keys != nil && !slices.Contains(strings.Split(*d.keys, ","), key.ID) {
		d.add(Finding{
			Health: Broken, Expected: "orchestrators that hold the key " + key.ID, Found: "one that answers does not",
			Means: "it can't take secrets out of the errors of workers that leave them in", Fix: "start it with the key file of the others: --secrets-key FILE",
		}, nil)
	}
	d.fine("sealed to " + key.ID + ", made " + key.Created.Format(time.DateOnly))
	return nil
}
