package server

import "time"

// Shorten makes a server of a test say earlier that a call goes on, and end idle sessions earlier. Zero changes nothing.
func Shorten(c *Config, quiet, session time.Duration) { c.quiet, c.sessionFor = quiet, session }

// Hurry makes a server of a test wait less for the acknowledgement of a plan.
func Hurry(c *Config, submit time.Duration) { c.submit = submit }

// Sessions counts the sessions that the server keeps for its own tenant.
func (s *Server) Sessions() (n int) {
	s.mu.Lock()
	t := s.tenants[s.cfg.Tenant]
	s.mu.Unlock()
	if t != nil {
		for range t.mcp.Sessions() {
			n++
		}
	}
	return n
}
