package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/worker"
)

// secretKey is where the run's out-of-band context holds what events are signed with.
const secretKey = "webhook_secret"

// Subscriber wants to hear of events.
type Subscriber struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Subscribers is what list_subscribers returns.
type Subscribers struct {
	Subscribers []Subscriber `json:"subscribers"`
}

// Event is a call of dispatch_event.
type Event struct {
	Subscriber string          `json:"subscriber"`
	URL        string          `json:"url"`
	Event      json.RawMessage `json:"event"`
}

// Delivery is what dispatch_event returns.
type Delivery struct {
	Subscriber string `json:"subscriber"`
	Status     int    `json:"status"`
	Attempt    int    `json:"attempt"`
}

// dispatcher sends events. Whether and when one is sent again is up to the tool's contract: an error is all it takes.
type dispatcher struct {
	http        *http.Client
	subscribers []Subscriber
}

func (d *dispatcher) list(context.Context, struct {
	EventType string `json:"event_type"`
}) (Subscribers, error) {
	return Subscribers{d.subscribers}, nil
}

func (d *dispatcher) dispatch(ctx context.Context, in Event) (Delivery, error) {
	info, _ := worker.InfoFrom(ctx)
	secret, ok := info.Context.Get(secretKey)
	if !ok {
		return Delivery{}, worker.Terminal(errors.New("the run's context has no " + secretKey))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, bytes.NewReader(in.Event))
	if err != nil {
		return Delivery{}, worker.Terminal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", info.Key) // the same for all attempts
	req.Header.Set("X-Signature", sign(secret, in.Event))
	resp, err := d.http.Do(req)
	if err != nil {
		var about *url.Error
		if errors.As(err, &about) {
			err = about.Err
		}
		return Delivery{}, fmt.Errorf("%s can't be reached: %w", in.Subscriber, err)
	}
	defer resp.Body.Close()
	if err := judge(in.Subscriber, resp); err != nil {
		return Delivery{}, err
	}
	return Delivery{in.Subscriber, resp.StatusCode, info.Attempt}, nil
}

// sign returns the HMAC-SHA256 of a body.
func sign(secret string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// judge says whether an answer is a success, worth another attempt, or final.
func judge(subscriber string, resp *http.Response) error {
	err := fmt.Errorf("%s answered %s", subscriber, resp.Status)
	switch {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return worker.Terminal(err)
	}
	if after, e := strconv.Atoi(resp.Header.Get("Retry-After")); e == nil {
		return worker.RetryAfter(err, time.Duration(after)*time.Second)
	}
	return err // with the contract's backoff
}

// host adds the tools to a worker, under their definitions.
func (d *dispatcher) host(w *worker.Worker, defs []*tool.Definition) {
	worker.Handle(w, "list_subscribers", d.list, worker.DefinedBy(defs...))
	worker.Handle(w, "dispatch_event", d.dispatch, worker.DefinedBy(defs...))
}
