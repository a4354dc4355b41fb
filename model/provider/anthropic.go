package provider

import (
	"bytes"
	"context"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/stepjet/stepjet/model"
)

const (
	anthropicBase    = "https://api.anthropic.com/"
	anthropicVersion = "2023-06-01"
)

type anthropicAPI struct{ client anthropic.Client }

// newAnthropic makes a client by its options alone: anthropic.NewClient would read the environment and profiles.
func newAnthropic(e model.Endpoint, key string, web *http.Client) api {
	o := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(base(e, anthropicBase)), option.WithHTTPClient(web),
		option.WithMaxRetries(0), option.WithHeader("anthropic-version", anthropicVersion),
	}
	if key != "" {
		o = append(o, option.WithAPIKey(key))
	}
	return &anthropicAPI{anthropic.Client{Options: o}}
}

func (a *anthropicAPI) post(ctx context.Context, body []byte, hook hook) (events, error) {
	var resp *http.Response
	err := a.client.Post(ctx, "v1/messages", body, &resp,
		option.WithHeader("Accept", "text/event-stream"), option.WithMiddleware(hook.behind))
	if err != nil {
		return nil, err
	}
	return &anthropicEvents{ssestream.NewDecoder(resp)}, nil
}

type anthropicEvents struct{ d ssestream.Decoder }

func (e *anthropicEvents) next() (string, []byte, bool) {
	if !e.d.Next() {
		return "", nil, false
	}
	ev := e.d.Event()
	return ev.Type, trimmed(ev.Data), true
}

func (e *anthropicEvents) err() error   { return e.d.Err() }
func (e *anthropicEvents) close() error { return e.d.Close() }

// trimmed takes off the line break that the SDKs leave at the end of an event's data.
func trimmed(data []byte) []byte { return bytes.TrimSuffix(data, []byte("\n")) }
