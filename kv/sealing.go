package kv

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// SealingKey is the public key that submitters seal the secrets of their runs to, as orchestrators publish it in the
// registry.
type SealingKey struct {
	ID      string    `json:"id"`
	Public  string    `json:"public"` // its text form
	Created time.Time `json:"created"`
}

// Keyless is a worker that registered a tool, and said that it does not hold the key that secrets are sealed to.
type Keyless struct {
	Worker string    `json:"worker"`
	Tool   string    `json:"tool"`
	Heard  time.Time `json:"heard"`
}

var sealingSubject = subjects.BucketSubject(subjects.ToolsBucket, subjects.SealingKey)

// SealingKey gives the key that is published; NotFound where there is none. Other errors: NewerVersion, and
// those of Read.
func (s *Store) SealingKey(ctx context.Context) (SealingKey, error) {
	k, _, err := s.sealingKey(ctx)
	return k, err
}

// sealingKey also gives what the next write has to expect.
func (s *Store) sealingKey(ctx context.Context) (k SealingKey, revision uint64, err error) {
	e, err := s.Read(ctx, sealingSubject)
	if err != nil {
		return k, 0, err
	}
	if operation(e.Header) != "" {
		return k, e.Seq, fault.New(fault.NotFound, "the key that secrets are sealed to was removed")
	}
	if !wire.KnownPlan(e.Header) {
		return k, e.Seq, wire.Newer("the registry's key for secrets")
	}
	if err := json.Unmarshal(e.Data, &k); err != nil || k.Public == "" {
		return k, e.Seq, fault.New(fault.Internal, "the registry's key for secrets can't be read").
			WithHint("an orchestrator that is started with --secrets-key writes it anew")
	}
	return k, e.Seq, nil
}

// PublishSealingKey publishes a key, unless that which is there was made later: of orchestrators that are given files of
// different ages the newest counts, whoever comes first. It gives what is published then. Only orchestrators have the right.
func (s *Store) PublishSealingKey(ctx context.Context, k SealingKey) (SealingKey, error) {
	body, err := json.Marshal(k)
	if err != nil {
		return k, fault.Wrap(fault.Internal, err, "writing a key")
	}
	for {
		there, revision, err := s.sealingKey(ctx)
		switch code := fault.CodeOf(err); {
		case code == "" && (there.ID == k.ID || there.Created.After(k.Created)):
			return there, nil
		case code != "" && code != fault.NotFound && code != fault.Internal:
			return k, err
		}
		// A doctor that does not know of it would take a version that it knows for a mistake, and remove it.
		h := nats.Header{subjects.HeaderVersion: {subjects.SealedVersion}}
		_, err = s.put(ctx, &nats.Msg{Subject: sealingSubject, Header: h, Data: body}, jetstream.WithExpectLastSequencePerSubject(revision))
		if err == nil {
			return k, nil
		}
		if apiCode(err) != codeWrongLastSequence { // somebody else wrote meanwhile
			return k, s.explain(ctx, err)
		}
	}
}
