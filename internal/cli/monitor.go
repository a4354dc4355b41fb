package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
)

// flushing asks the monitoring of every server named how it flushes: always only where all of them do. Without a URL it
// is not known.
func (a *app) flushing(ctx context.Context, urls string) (kv.Sync, error) {
	if urls == "" {
		return kv.SyncUnknown, nil
	}
	ctx, cancel := a.patience(ctx)
	defer cancel()
	seen := kv.SyncAlways
	for _, url := range strings.Split(urls, ",") {
		always, err := syncAlways(ctx, strings.TrimRight(strings.TrimSpace(url), "/"))
		if err != nil {
			return kv.SyncUnknown, fault.Wrap(fault.InvalidConfig, err, "reading the monitoring at "+url).
				WithHint("it is the address of nats-server's http or https port, such as http://127.0.0.1:8222")
		}
		if !always {
			seen = kv.SyncInterval
		}
	}
	return seen, nil
}

// maxMonitor bounds what is read of an answer.
const maxMonitor = 1 << 20

func syncAlways(ctx context.Context, url string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/jsz", nil)
	if err != nil {
		return false, err
	}
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return false, fault.New(fault.InvalidConfig, "it answers %s", answer.Status)
	}
	var jsz struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxMonitor)).Decode(&jsz); err != nil {
		return false, err
	}
	if jsz.Config == nil {
		return false, fault.New(fault.InvalidConfig, "it tells nothing of JetStream")
	}
	return jsz.Config.SyncAlways, nil
}
