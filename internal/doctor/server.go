package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stepjet/stepjet/kv"
)

// minServer is the first nats-server that has all that Stepjet uses: scheduled messages came last.
const minServer = "2.12"

// What a message has to hold. Below least, results that go into one record do not fit; below the comfortable, plans and
// histories shrink to what fits.
const (
	leastPayload       = 288 << 10
	comfortablePayload = 1 << 20
)

// account asks JetStream for the account's limits. Where there is no JetStream it fails.
func (d *doctor) account(ctx context.Context) error {
	info, err := d.in.Account(ctx)
	if err != nil {
		return err
	}
	tier := info.Tier
	if t, ok := info.Tiers["R"+strconv.Itoa(max(d.o.Want.Replicas, 1))]; ok { // limits may depend on the replicas
		tier = t
	}
	d.storage = accountStorage{
		used: tier.Store, reserved: tier.ReservedStore, limit: uint64(max(tier.Limits.MaxStore, 0)),
		streams: tier.Streams, maxStreams: tier.Limits.MaxStreams, consumers: tier.Consumers,
		maxConsumers: tier.Limits.MaxConsumers, bytesRequired: tier.Limits.MaxBytesRequired,
	}
	return nil
}

// server looks at the server that the connection leads to.
func (d *doctor) server(context.Context) error {
	version := d.nc.ConnectedServerVersion()
	if older(version, minServer) {
		d.add(Finding{
			Health: Broken, About: "nats-server", Expected: "version " + minServer + " or newer", Found: "version " + version,
			Means: "retries with a pause can't be scheduled, and streams can't be created",
			Fix:   "upgrade nats-server on every node",
		}, nil)
	}
	for _, wrong := range d.o.Ailing {
		d.add(Finding{
			Health: Broken, About: "health", Expected: "a server that is well", Found: wrong,
			Means: "a stream that could not be written to takes nothing more, not even when there is room again; runs wait meanwhile",
			Fix:   "make room on the disk of that server if it is full, then restart it; nothing of Stepjet's needs a restart",
		}, nil)
	}
	found := "nats-server " + version + " at " + d.nc.ConnectedUrlRedacted()
	if cluster := d.nc.ConnectedClusterName(); cluster != "" {
		found += ", cluster " + cluster
	}
	if rtt, err := d.nc.RTT(); err == nil {
		found += fmt.Sprintf(", round trip %v", rtt.Round(10*time.Microsecond))
	}
	d.fine(found)
	return nil
}

// older compares versions by their first two numbers; one that can't be read is not older.
func older(version, than string) bool {
	a, b := strings.SplitN(version, ".", 3), strings.SplitN(than, ".", 3)
	for i := range 2 {
		if i >= len(a) || i >= len(b) {
			return false
		}
		x, err := strconv.Atoi(a[i])
		y, err2 := strconv.Atoi(b[i])
		if err != nil || err2 != nil || x != y {
			return err == nil && err2 == nil && x < y
		}
	}
	return false
}

func (d *doctor) maxPayload(context.Context) error {
	limit := d.nc.MaxPayload()
	f := Finding{
		Expected: "max_payload of 1 MiB or more", Found: "max_payload is " + bytesText(uint64(limit)),
		Fix: "in nats-server.conf: max_payload: 1MB",
	}
	switch {
	case limit < leastPayload:
		f.Health, f.Means = Broken,
			"results of up to 256 KiB do not fit into their records; steps fail with message_too_large"
		d.add(f, nil)
	case limit < comfortablePayload:
		f.Health, f.Means = Notable, "plans over "+bytesText(uint64(limit-kv.Headroom))+" are refused"
		d.add(f, nil)
	}
	d.fine(f.Found)
	return nil
}

// Limits are a matter of note from the first share of them, and a problem from the second.
const noteShare, problemShare = 0.80, 0.95

func (d *doctor) jetStream(context.Context) error {
	a := d.storage
	if a.bytesRequired {
		d.add(Finding{
			Health: Broken, About: "account", Expected: "streams without a size of their own",
			Found: "the account wants max_bytes on every stream",
			Means: "Stepjet's streams can't be created", Fix: "in the account's jetstream limits: max_bytes_required: false",
		}, nil)
	}
	d.share("stored bytes", float64(a.used), float64(a.limit), bytesText(a.used)+" of "+bytesText(a.limit),
		"a full account takes no plans and no results; nothing is lost, everything waits",
		"raise the account's storage limit, or shorten the retention")
	d.share("streams", float64(a.streams), float64(a.maxStreams), fmt.Sprintf("%d of %d", a.streams, a.maxStreams),
		"tools beyond a hundred need another step stream, which can't be created", "raise the account's limit of streams")
	d.share("consumers", float64(a.consumers), float64(a.maxConsumers),
		fmt.Sprintf("%d of %d", a.consumers, a.maxConsumers),
		"every tool and every orchestrator needs consumers", "raise the account's limit of consumers")
	found := "enabled; " + bytesText(a.used) + " stored"
	if a.limit > 0 {
		found += " of " + bytesText(a.limit)
	}
	d.fine(fmt.Sprintf("%s, %d streams, %d consumers", found, a.streams, a.consumers))
	return nil
}

// share reports a limit that is nearly reached. A limit of 0 or less is none.
func (d *doctor) share(about string, used, limit float64, found, means, fix string) {
	f := Finding{About: about, Health: Notable, Expected: "room to spare", Found: found, Means: means, Fix: fix}
	switch {
	case limit <= 0 || used/limit < noteShare:
		return
	case used/limit >= problemShare:
		f.Health = Broken
	}
	d.add(f, nil)
}

// room looks at the limits of the streams themselves.
func (d *doctor) room(context.Context) error {
	limited := 0
	for _, a := range d.assets {
		if a.info == nil || a.info.Config.MaxBytes <= 0 {
			continue
		}
		limited++
		used, limit := a.info.State.Bytes, uint64(a.info.Config.MaxBytes)
		d.share(a.want.Name, float64(used), float64(limit), bytesText(used)+" of "+bytesText(limit),
			"a full stream takes nothing until runs were purged; nothing is lost, everything waits",
			fmt.Sprintf("nats stream edit %s --max-bytes=%d", a.want.Name, 2*limit))
	}
	d.fine(fmt.Sprintf("%d streams have a limit of their own; none is near it", limited))
	return nil
}

// bytesText writes a number of bytes for a person.
func bytesText(n uint64) string {
	const units = "KMGTP"
	if n < 1<<10 {
		return strconv.FormatUint(n, 10) + " B"
	}
	f, i := float64(n)/(1<<10), 0
	for ; f >= 1<<10 && i < len(units)-1; i++ {
		f /= 1 << 10
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + " " + string(units[i]) + "iB"
}
