// Package kv is the ledger, the step queues, the tool registry, history, members and blobs on JetStream.
package kv

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// Tool is one entry of the registry.
type Tool struct {
	Name       string
	Definition *tool.Definition
	Contract   tool.Contract
	Digest     string
	Shard      int
	Tenants    []string
	AckWait    time.Duration
	Revision   uint64
}

// Register validates and stores a tool's definition.
func (s *Store) Register(ctx context.Context, raw []byte) (Tool, error) { return Tool{}, nil }

// RequestRegister asks an orchestrator to register a tool.
func (s *Store) RequestRegister(ctx context.Context, raw []byte) (Tool, error) { return Tool{}, nil }

// Tools gives all registered tools, by name.
func (s *Store) Tools(ctx context.Context) ([]Tool, error) { return nil, nil }

// Tool gives one tool; NotFound.
func (s *Store) Tool(ctx context.Context, name string) (Tool, error) { return Tool{}, nil }

// WatchTools reports every tool and every change until ctx ends.
func (s *Store) WatchTools(ctx context.Context, each func(t Tool, deleted bool), ready func()) error {
	return nil
}

// Definition gives a definition by its digest; NotFound.
func (s *Store) Definition(ctx context.Context, digest string) (*tool.Definition, error) {
	return nil, nil
}

// CreateHistory writes the finished run once.
func (s *Store) CreateHistory(ctx context.Context, r subjects.Run, doc, head []byte) (stored []byte, created bool, err error) {
	return nil, false, nil
}

// History gives the finished run, read from the leader, its blob read; NotFound.
func (s *Store) History(ctx context.Context, r subjects.Run) (*outcome.Run, error) { return nil, nil }

// HistoryHead is History without reading the blob.
func (s *Store) HistoryHead(ctx context.Context, r subjects.Run) (*outcome.Run, error) {
	return nil, nil
}

// HistoryRuns lists the finished runs of a tenant, ActiveRuns those with a plan record.
func (s *Store) HistoryRuns(ctx context.Context, tenant string) ([]subjects.Run, error) {
	return nil, nil
}
func (s *Store) ActiveRuns(ctx context.Context, tenant string) ([]subjects.Run, error) {
	return nil, nil
}

// PutBlob stores data under name; Blob reads it back and checks size and digest.
func (s *Store) PutBlob(ctx context.Context, name string, data []byte) (*outcome.Handle, error) {
	return nil, nil
}
func (s *Store) Blob(ctx context.Context, h *outcome.Handle) ([]byte, error) { return nil, nil }

// Join keeps a member key alive and reports the live members.
func (s *Store) Join(ctx context.Context, id string, changed func(members []string)) (leave func(), err error) {
	return nil, nil
}

// Delivery is one step handed to a worker.
type Delivery struct {
	Subject   string
	Header    nats.Header
	Data      []byte
	Delivered int
	StreamSeq uint64
}

// Ack says that the step is recorded; InProgress keeps its lease.
func (d *Delivery) Ack() error        { return nil }
func (d *Delivery) InProgress() error { return nil }

// Puller takes a tool's steps, never more than its free slots.
type Puller struct{}

// Pull starts taking steps of t.
func (s *Store) Pull(ctx context.Context, t Tool, slots int, each func(*Delivery)) (*Puller, error) {
	return nil, nil
}

// Release says that one slot is free again.
func (p *Puller) Release() {}

// Drain stops asking; what was sent before is still handed to each.
func (p *Puller) Drain(ctx context.Context) {}
