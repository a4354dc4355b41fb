package provider

import (
	"context"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/stepjet/stepjet/model"
)

const openAIBase = "https://api.openai.com/v1/"

type openAI struct{ client openai.Client }

// newOpenAI makes a client by its options alone: openai.NewClient would read the environment.
func newOpenAI(e model.Endpoint, key string, web *http.Client) api {
	o := []option.RequestOption{
		option.WithBaseURL(base(e, openAIBase)), option.WithHTTPClient(web), option.WithMaxRetries(0),
	}
	if key != "" {
		o = append(o, option.WithAPIKey(key))
	}
	return &openAI{openai.Client{Options: o}}
}

// base returns where an API begins, with the slash that paths are joined at.
func base(e model.Endpoint, own string) string {
	if e.BaseURL == "" {
		return own
	}
	return strings.TrimSuffix(e.BaseURL, "/") + "/"
}

func (a *openAI) post(ctx context.Context, body []byte, hook hook) (events, error) {
	var resp *http.Response
	err := a.client.Post(ctx, "chat/completions", body, &resp,
		option.WithHeader("Accept", "text/event-stream"), option.WithMiddleware(hook.behind))
	if err != nil {
		return nil, err
	}
	return &openAIEvents{ssestream.NewDecoder(resp)}, nil
}

type openAIEvents struct{ d ssestream.Decoder }

func (e *openAIEvents) next() (string, []byte, bool) {
	if !e.d.Next() {
		return "", nil, false
	}
	ev := e.d.Event()
	return ev.Type, trimmed(ev.Data), true
}

func (e *openAIEvents) err() error   { return e.d.Err() }
func (e *openAIEvents) close() error { return e.d.Close() }
