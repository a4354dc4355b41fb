package mcp

import (
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/serve/files"
	"github.com/stepjet/stepjet/mcp/selector"
	"github.com/stepjet/stepjet/mcp/server"
	"github.com/stepjet/stepjet/mcp/task"
)

// config reads the files and settings that flags name.
func (f *flags) config() (cfg server.Config, err error) {
	cfg = server.Config{TaskAfter: f.taskAfter, Hold: f.hold, Retention: f.retention, Origins: f.origins}
	if cfg.MaxResult, err = size(f.maxResult); err != nil {
		return cfg, err
	}
	if f.expose != "" {
		some, err := selector.Parse(f.expose)
		if err != nil {
			return cfg, err
		}
		cfg.Expose = &some
	}
	err = files.Read("--key-file", f.keys, func(b []byte) (err error) {
		cfg.Keys, err = task.ParseKeys(b)
		return err
	})
	if err != nil {
		return cfg, err
	}
	err = files.Read("--auth", f.auth, func(b []byte) (err error) {
		cfg.Auth, err = server.ParseAuth(b)
		return err
	})
	if err != nil {
		return cfg, err
	}
	cfg.Context, err = f.contextRules()
	return cfg, err
}

func (f *flags) contextRules() (r server.ContextRules, err error) {
	r.Keys = f.context
	for _, text := range f.contextClaims {
		claim, key, ok := strings.Cut(text, "=")
		if !ok || claim == "" || key == "" {
			return r, fault.New(fault.InvalidConfig, "--context-claim %q", text).WithHint("claim=key, such as sub=user")
		}
		if r.Claims == nil {
			r.Claims = map[string]string{}
		}
		r.Claims[claim] = key
	}
	for _, text := range f.contextHeaders {
		header, key, ok := strings.Cut(text, "=")
		key, secret := strings.CutSuffix(key, ":secret")
		if !ok || header == "" || key == "" {
			return r, fault.New(fault.InvalidConfig, "--context-header %q", text).WithHint("Header=key, or Header=key:secret")
		}
		r.Headers = append(r.Headers, server.ContextHeader{Header: header, Key: key, Secret: secret})
	}
	return r, nil
}

// units are those of sizes.
var units = []struct {
	name  string
	bytes int
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"B", 1}, {"", 1}}

// size reads a number of bytes: 49152, 48KiB.
func size(text string) (int, error) {
	for _, u := range units {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(number)); err == nil && n > 0 && n <= 1<<30/u.bytes {
				return n * u.bytes, nil
			}
			break
		}
	}
	return 0, fault.New(fault.InvalidConfig, "--max-result %q", text).WithHint("a size, such as 48KiB")
}
