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

// Forms counts the forms that are open in sessions of the server's own tenant.
func (s *Server) Forms() (n int) {
	s.mu.Lock()
	t := s.tenants[s.cfg.Tenant]
	s.mu.Unlock()
	t.forms.mu.Lock()
	defer t.forms.mu.Unlock()
	for _, all := range t.forms.of {
		n += len(all.forms)
	}
	return n
}
