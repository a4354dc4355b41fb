package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/subjects"
)

// secrets looks whether the secrets of runs are sealed, and whether who has to open them holds the key.
func (d *doctor) secrets(ctx context.Context) error {
	key, err := d.s.Registry.SealingKey(ctx)
	const start = "stepjet keys new secrets.key; start workers, then orchestrators, with --secrets-key secrets.key"
	switch code := fault.CodeOf(err); {
	case code == fault.NotFound || code == fault.NotReady:
		d.add(Finding{
			Health: Healthy, Found: "not sealed, since no key is published: they lie in the ledger and the step queues as they are",
			Means: "who may look at a tenant's active runs can read them", Fix: start,
		}, nil)
		return nil
	case code == fault.Internal && err != nil:
		d.add(Finding{Health: Broken, Expected: "a key that secrets are sealed to", Found: fault.As(err).Message,
			Means: "no run with secrets can be submitted", Fix: start}, nil)
		return nil
	case code == fault.NewerVersion:
		d.add(Finding{
			Health: Notable, Expected: "a key that this version can read", Found: fault.As(err).Message,
			Means: "programs of this version submit no run with secrets", Fix: "upgrade them, and this program",
		}, nil)
		return nil
	case err != nil:
		return err
	}
	if d.o.HoldsKey != nil && !d.o.HoldsKey(key.ID) {
		d.add(Finding{
			Health: Broken, Expected: "a key file with the key that is published",
			Found: "secrets are sealed to " + key.ID + ", which the file does not hold",
			Means: "steps fail with sealed at workers with this file",
			Fix:   "hand out the orchestrators' file; stepjet keys list FILE shows what one holds",
		}, nil)
	}
	if d.keys != nil && !slices.Contains(strings.Split(*d.keys, ","), key.ID) {
		d.add(Finding{
			Health: Broken, Expected: "orchestrators that hold the key " + key.ID, Found: "one that answers does not",
			Means: "it can't take secrets out of the errors of workers that leave them in",
			Fix:   "start it with the key file of the others: --secrets-key FILE",
		}, nil)
	}
	if err := d.keylessWorkers(ctx, key.ID); err != nil {
		return err
	}
	d.fine("sealed to " + key.ID + ", made " + key.Created.Format(time.DateOnly))
	return nil
}

// keylessWorkers asks the orchestrators which workers said, when they registered, that they do not hold the key. Each
// knows of those that it answered; a worker that is idle is heard of by all in some minutes.
func (d *doctor) keylessWorkers(ctx context.Context, key string) error {
	asked, all := map[string]bool{}, map[string]kv.Keyless{}
	for range min(4*d.members, maxPings) {
		var who struct {
			Member  string
			Keyless []kv.Keyless
		}
		if d.ask(ctx, subjects.PingSubject, &who) != nil {
			return nil // the check of orchestrators says it
		}
		asked[who.Member] = true
		for _, w := range who.Keyless {
			if w.Heard.After(all[w.Worker].Heard) {
				all[w.Worker] = w
			}
		}
		if len(asked) == d.members {
			break
		}
	}
	if len(all) == 0 {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all))[:min(len(all), maxNamed)] {
		names = append(names, fmt.Sprintf("%s (%s, heard of at %s)", text.Clip(name, 80), all[name].Tool,
			all[name].Heard.Format("15:04:05")))
	}
	if len(all) > maxNamed {
		names = append(names, fmt.Sprintf("and %d more", len(all)-maxNamed))
	}
	d.add(Finding{
		Health: Notable, Expected: "workers that hold the key " + key,
		Found: text.Count(len(all), "worker") + " without it: " + strings.Join(names, ", "),
		Means: "steps with secrets that they take fail with sealed",
		Fix:   "start them with the orchestrators' key file: --secrets-key FILE",
	}, nil)
	return nil
}

// maxPings bounds how often orchestrators are asked, of which any may answer.
const maxPings = 40
