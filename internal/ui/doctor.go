package ui

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/doctor"
)

// An examination reads much: one serves all who ask within its time, and it goes on though nobody waits for it any more.
const (
	examinedFor   = 30 * time.Second
	examineWithin = time.Minute
)

// checkup is what the doctor says of the account.
type checkup struct {
	conn *nats.Conn
	link *link

	mu   sync.Mutex // who holds it examines
	said *diagnosis
}

// diagnosis is what is not well, and how much is.
type diagnosis struct {
	Findings []doctor.Finding `json:"findings"`
	Well     int              `json:"well"`
	At       time.Time        `json:"at"`
}

// examine looks at all that Stepjet rests on, and mends nothing. It tells of all tenants: so it is for those who see all.
func (c *checkup) examine(_ http.ResponseWriter, r *http.Request) (any, error) {
	if who := principal(r); who.Tenants != nil {
		return nil, fault.New(fault.Permission, "%s sees some tenants, and the doctor looks at all", who.Name).
			WithHint(`a token with "tenants": ["*"] shows it`)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.said != nil && time.Since(c.said.At) < examinedFor {
		return c.said, nil
	}
	ctx, cancel := context.WithTimeout(c.link.now(), examineWithin)
	defer cancel()
	report, err := doctor.Examine(ctx, c.conn, doctor.Options{})
	if err != nil {
		return nil, err
	}
	said := &diagnosis{Findings: []doctor.Finding{}, At: time.Now().UTC()}
	for _, f := range report.Findings {
		if f.Health == doctor.Healthy {
			said.Well++
		} else {
			said.Findings = append(said.Findings, f)
		}
	}
	c.said = said
	return said, nil
}
