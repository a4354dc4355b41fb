package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/model"
)

// A word names a model, where it is and by which key; what is missing is said with what to do about it.
func TestAModelThatIsNamedInAWord(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		word         string
		env          map[string]string
		id, name, at string
		form, key    string
		says, hint   string
	}{
		{word: "ollama:qwen3:4b", id: "qwen3:4b", name: "qwen3-4b", form: "openai", at: "http://127.0.0.1:11434/v1"},
		{word: "ollama:a", env: map[string]string{"OLLAMA_HOST": "box"}, id: "a", name: "a", form: "openai", at: "http://box:11434/v1"},
		{word: "ollama:a", env: map[string]string{"OLLAMA_HOST": "box:80/"}, id: "a", name: "a", form: "openai", at: "http://box:80/v1"},
		{word: "ollama:a", env: map[string]string{"OLLAMA_HOST": "https://box"}, id: "a", name: "a", form: "openai", at: "https://box/v1"},
		{word: "openai:gpt-5-mini", env: map[string]string{"OPENAI_API_KEY": "k"}, id: "gpt-5-mini", name: "gpt-5-mini", form: "openai", key: "OPENAI_API_KEY"},
		{word: "openai:m", env: map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}, id: "m", name: "m", form: "openai", at: "http://127.0.0.1:8000/v1"},
		{word: "anthropic:c.5", env: map[string]string{"ANTHROPIC_BASE_URL": "http://gate", "ANTHROPIC_API_KEY": " k "}, id: "c.5", name: "c-5", form: "anthropic", at: "http://gate", key: "ANTHROPIC_API_KEY"},
		{word: "openai:m", says: "openai:m needs a key, and the environment variable OPENAI_API_KEY is not set", hint: "ollama:MODEL"},
		{word: "anthropic:m", env: map[string]string{"ANTHROPIC_API_KEY": " "}, says: "ANTHROPIC_API_KEY is not set", hint: "key_file"},
		{word: "openai:m", env: map[string]string{"OPENAI_BASE_URL": "localhost:8000"}, says: "OPENAI_BASE_URL: it is no http or https URL", hint: "http://127.0.0.1:8000/v1"},
		{word: "gpt-5", says: `"gpt-5" names no model; write ollama:MODEL`, hint: "models file"},
		{word: "ollama:", says: "names no model"},
		{word: "", says: "names no model"},
	} {
		c, err := model.Named(x.word, func(name string) (string, bool) { v, set := x.env[name]; return v, set })
		if x.says != "" {
			require.ErrorContains(t, err, x.says, x.word)
			require.Equal(t, fault.InvalidConfig, fault.CodeOf(err))
			require.Contains(t, fault.As(err).Hint, x.hint)
			continue
		}
		require.NoError(t, err, x.word)
		for _, asked := range []string{"", "large", x.name} { // whichever a planner of an agent names
			m, err := c.Model(asked)
			require.NoError(t, err)
			require.Equal(t, []string{x.id, x.name, x.form, x.at, x.key}, []string{m.ID, m.Name, m.Provider, m.BaseURL, m.KeyEnv}, x.word)
		}
	}
}
