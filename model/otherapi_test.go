package model_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/model"
)

// A model that speaks another's form of API is not called that one's, and where it is stands in no error.
func TestAnErrorSaysWhoseAPIItIs(t *testing.T) {
	t.Parallel()
	of := func(e model.Endpoint) string {
		return model.Failed(model.Model{Endpoint: e, Name: "qwen3"}, http.StatusInternalServerError, nil, nil, "").Fault().Message
	}
	require.Contains(t, of(model.Endpoint{Provider: model.OpenAI}), `the model "qwen3" (openai) `)
	local := of(model.Endpoint{Provider: model.OpenAI, BaseURL: "http://ollama.internal:11434/v1"})
	require.Contains(t, local, `the model "qwen3" (an API of the form of openai) `)
	require.NotContains(t, local, "ollama.internal")
}
