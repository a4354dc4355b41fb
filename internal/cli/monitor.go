package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
)

// monitored asks the monitoring of every server named how it flushes, always only where all of them do, and what it
// says of its own health. Without a URL nothing is known.
func (a *app) monitored(ctx context.Context, urls string) (seen doctor.Sync, ailing []string, err error) {
	if urls == "" {
		return doctor.SyncUnknown, nil, nil
	}
	ctx, cancel := a.patience(ctx)
	defer cancel()
	seen = doctor.SyncAlways
	for _, url := range strings.Split(urls, ",") {
		url = strings.TrimRight(strings.TrimSpace(url), "/")
		always, err := syncAlways(ctx, url)
		if err != nil {
			return doctor.SyncUnknown, nil, fault.Wrap(fault.InvalidConfig, err, "reading the monitoring at "+url).
				WithHint("it is the address of nats-server's http or https port, such as http://127.0.0.1:8222")
		}
		if !always {
			seen = doctor.SyncInterval
		}
		wrong, err := health(ctx, url)
		if err != nil {
			return doctor.SyncUnknown, nil, fault.Wrap(fault.InvalidConfig, err, "reading the health at "+url)
		}
		ailing = append(ailing, wrong...)
	}
	return seen, ailing, nil
}

// health returns what a server says is wrong with it. A stream that could not be written to is told nowhere else.
func health(ctx context.Context, url string) (wrong []string, err error) {
	var h struct {
		Errors []struct {
			Error string `json:"error"`
		} `json:"errors"`
		Error string `json:"error"`
	}
	if err := monitor(ctx, url+"/healthz?details=true", &h, http.StatusOK, http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusNotFound); err != nil {
		return nil, err
	}
	if h.Error != "" {
		wrong = append(wrong, h.Error)
	}
	for _, e := range h.Errors {
		wrong = append(wrong, e.Error)
	}
	return wrong, nil
}

// maxMonitor bounds what is read of an answer.
const maxMonitor = 1 << 20

func syncAlways(ctx context.Context, url string) (bool, error) {
	var jsz struct {
		Config *struct {
			SyncAlways bool `json:"sync_always"`
		} `json:"config"`
	}
	if err := monitor(ctx, url+"/jsz", &jsz, http.StatusOK); err != nil {
		return false, err
	}
	if jsz.Config == nil {
		return false, fault.New(fault.InvalidConfig, "it tells nothing of JetStream")
	}
	return jsz.Config.SyncAlways, nil
}

// monitor reads one answer of a server's monitoring.
func monitor(ctx context.Context, url string, out any, statuses ...int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if !slices.Contains(statuses, answer.StatusCode) {
		return fault.New(fault.InvalidConfig, "it answers %s", answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxMonitor)).Decode(out)
}
