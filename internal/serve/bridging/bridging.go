// Package bridging is what the programs that bridge MCP servers have in common: flags and variables.
package bridging

import (
	"github.com/spf13/pflag"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/config"
	"github.com/stepjet/stepjet/mcp/bridge"
)

// Settings are what flags and environment say of MCP servers.
type Settings struct{ bridge.Options }

// Flags declares the flags.
func (s *Settings) Flags(fs *pflag.FlagSet) {
	s.FileFlags(fs)
	fs.BoolVar(&s.TrustFirstUse, "trust-first-use", false,
		"agree to tools of MCP servers that the lock doesn't know yet (env STEPJET_TRUST_FIRST_USE)")
}

// FileFlags declares those that say which servers are meant.
func (s *Settings) FileFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.File, "mcp", "", "`file` of MCP servers to host, such as .mcp.json (env STEPJET_MCP)")
	fs.StringVar(&s.Lock, "mcp-lock", "",
		"`file` of what was agreed to (env STEPJET_MCP_LOCK; default: mcp.lock beside that file)")
	fs.StringSliceVar(&s.Allow, "mcp-allow", nil,
		"only this `command` may start an MCP server (env STEPJET_MCP_ALLOW; default: any)")
}

// FromEnvironment takes what no flag says from the environment; nil is that of the process.
func (s *Settings) FromEnvironment(fs *pflag.FlagSet, env config.Lookup) error {
	all := []config.Setting{
		{Flag: "mcp", Env: "STEPJET_MCP"}, {Flag: "mcp-lock", Env: "STEPJET_MCP_LOCK"},
		{Flag: "mcp-allow", Env: "STEPJET_MCP_ALLOW"},
	}
	if fs.Lookup("trust-first-use") != nil {
		all = append(all, config.Setting{Flag: "trust-first-use", Env: "STEPJET_TRUST_FIRST_USE"})
	}
	if err := config.FromEnvironment(fs, env, all...); err != nil {
		return err
	}
	if s.File == "" && (s.Lock != "" || len(s.Allow) > 0 || s.TrustFirstUse) {
		return fault.New(fault.InvalidConfig,
			"there is no file of MCP servers that --mcp-lock, --mcp-allow or --trust-first-use could be about").
			WithHint("name one: --mcp .mcp.json")
	}
	s.Lookup = env
	return nil
}
