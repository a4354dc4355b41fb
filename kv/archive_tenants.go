package kv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// A tenant is declared by its bucket: that it exists is all there is to it, so nothing can disagree with it. Whoever
// declares a tenant waits until all orchestrators know of it.

// Tenants returns the names of the declared tenants, sorted. Errors: Permission for a program that may not list
// streams, and those of the connection.
func (s *Archive) Tenants(ctx context.Context) (all []string, err error) {
	var names map[string]bool
	err = s.retry(ctx, func(ctx context.Context) (err error) {
		names, err = s.names(ctx, subjects.StreamNames, "streams")
		return err
	})
	if err != nil {
		return nil, err
	}
	return declared(names), nil
}

// declared returns the tenants whose buckets are among the names of streams, sorted.
func declared(streams map[string]bool) (all []string) {
	for name := range streams {
		if tenant, ok := subjects.TenantOfBlobs(name); ok {
			all = append(all, tenant)
		}
	}
	slices.Sort(all)
	return all
}

// TenantBucket is what a declared tenant's bucket holds.
type TenantBucket struct {
	Tenant   string    `json:"tenant"`
	Bucket   string    `json:"bucket"`
	Declared time.Time `json:"declared"`
	// Bytes and Messages are those of large values, in chunks and with what the store says of each.
	Bytes    uint64 `json:"bytes"`
	Messages uint64 `json:"messages"`
}

// TenantBucket looks at a tenant's bucket. Errors: NotFound for a tenant that is not declared, Permission.
func (s *Archive) TenantBucket(ctx context.Context, tenant string) (*TenantBucket, error) {
	var info *jetstream.StreamInfo
	err := s.retry(ctx, func(ctx context.Context) error {
		return s.guarded(ctx, subjects.StreamRequest("INFO", tenantStream(tenant)), func(ctx context.Context) error {
			st, err := s.stream(ctx, tenantStream(tenant))
			if err == nil {
				info = st.CachedInfo()
			}
			return err
		})
	})
	if isNoStream(err) || fault.CodeOf(err) == fault.NotReady {
		return nil, fault.New(fault.NotFound, "the tenant %s has no bucket of its own", tenant).WithHint("stepjet tenant add %s", tenant)
	}
	if err != nil {
		return nil, err
	}
	return &TenantBucket{tenant, subjects.BlobsOf(tenant), info.Created, info.State.Bytes, info.State.Msgs}, nil
}

func tenantStream(tenant string) string { return subjects.BlobsStream(subjects.BlobsOf(tenant)) }

// Declare makes the bucket of a tenant, with the settings of the bucket that all others share, and returns once every
// live orchestrator knows of it: what is submitted from then on has its large values there. made is false for a
// tenant that was declared before. Errors: InvalidConfig for what is no tenant, NotReady where Stepjet is not set up,
// Permission; Timeout after ctx, naming an orchestrator that does not know of it.
func (s *Archive) Declare(ctx context.Context, tenant string) (made bool, err error) {
	if !subjects.ValidTenant(tenant) {
		return false, fault.New(fault.InvalidConfig, "%q is no tenant", tenant).WithHint("1 to %d of A-Z a-z 0-9 _ -", subjects.MaxTenant)
	}
	err = s.retry(ctx, func(ctx context.Context) error {
		return s.guarded(ctx, apiPrefix+"STREAM.", func(ctx context.Context) (err error) {
			made, err = s.makeBucket(ctx, tenant)
			return err
		})
	})
	if err != nil {
		return false, err
	}
	return made, s.allKnow(ctx)
}

func (s *Archive) makeBucket(ctx context.Context, tenant string) (made bool, err error) {
	_, err = s.stream(ctx, tenantStream(tenant))
	if err == nil || !isNoStream(err) {
		return false, err
	}
	shared, err := s.stream(ctx, subjects.BlobsStream(""))
	if err != nil {
		return false, err
	}
	own, cfg := s.cfg.blobsConfig(subjects.BlobsOf(tenant)), shared.CachedInfo().Config
	cfg.Name, cfg.Subjects, cfg.AllowRollup = own.Name, own.Subjects, own.AllowRollup // in a deployment of before they are still on
	_, err = s.ensureStream(ctx, cfg)
	return err == nil, err
}

// allKnow waits until every live orchestrator knows the declared tenants as they are.
func (s *Archive) allKnow(ctx context.Context) error {
	behind := ""
	for {
		all, err := s.Tenants(ctx)
		if err == nil {
			behind, err = s.behindOn(ctx, tenantsDigest(all))
		}
		switch {
		case err == nil && behind == "":
			return nil
		case err != nil && fault.CodeOf(err) != fault.Timeout:
			return err
		}
		if !s.pause(ctx, declaredEvery/4) {
			return fault.New(fault.Timeout, "the orchestrator %s does not say that it knows of the tenant's bucket", behind).
				WithHint("upgrade all orchestrators: one of before puts large values of all tenants into %s", subjects.BlobsBucket)
		}
	}
}

// behindOn names a live orchestrator that knows other tenants than those of a digest; empty for none.
func (s *Archive) behindOn(ctx context.Context, digest string) (id string, err error) {
	lost, err := s.readAll(ctx, subjects.BucketStream(subjects.MembersBucket), memberPrefix+">", func(e Entry) {
		if operation(e.Header) == "" && first(e.Header, jetstream.MarkerReasonHeader) == "" && wire.ParseMember(e.Data).Tenants != digest {
			id = strings.TrimPrefix(e.Subject, memberPrefix)
		}
	})
	if lost && err == nil {
		id = "that was to be asked"
	}
	return id, err
}

// Undeclare removes a tenant's bucket with all that it holds. Runs that are going on must be over: their values would
// be gone, and what is still to be stored would have no place. Errors: NotFound for a tenant that is not declared,
// Permission.
func (s *Archive) Undeclare(ctx context.Context, tenant string) error {
	if _, err := s.TenantBucket(ctx, tenant); err != nil {
		return err
	}
	return s.retry(ctx, func(ctx context.Context) error {
		return s.guarded(ctx, apiPrefix+"STREAM.", func(ctx context.Context) error {
			err := s.js.DeleteStream(ctx, tenantStream(tenant))
			if isNoStream(err) {
				return nil
			}
			return err
		})
	})
}

// Which tenants are declared is asked once a second, since no run may wait for a request about its tenant. An
// orchestrator says in its member key which ones it knows, and whoever declares a tenant waits until all keys say so.
// Who stood still has no key, and nobody waits for it: what it knows may be from before the declaration, and it must not
// start a run by that. So what was heard counts for a plan only if
//
//   - the question was asked after the own key had begun to stand as it stands now, without a gap, and
//   - the plan was stored while the key was sure to stand.
//
// For all other plans it is asked anew. Both is told from times of servers: those at which the key was stored, as they
// come back with it, and that of the plan. No clock of this process has a say, which may stand still with it.
//
// Why no plan that is submitted after Declare returned starts with the bucket of all tenants. Say that an answer
// without the tenant was used for one:
//
//   - Where it was asked for this plan, the plan was there before the question, and the bucket before the plan: the
//     answer would have it.
//   - Else the question was asked before the bucket was made, or the answer would have it; and Declare read the keys
//     after that and before the plan was stored. All that while the own key stood: so Declare saw it, and returned only
//     once it said that the tenant is known. Then it was known when the plan was judged, for what is heard from a later
//     question never gives way to an earlier one.
//
// And a process that stands still after it had its answer, and writes the start much later? It does so for a plan that
// was submitted before Declare returned, of which nothing is promised. Another start may stand by then, or the plan may
// be gone: then the create is refused. Whichever stands names the bucket that owners and workers use.

// keyStands is how long a member's key is sure to be there after it was stored. The rest of its time is for servers
// whose clocks differ: one stores the keys, others store plans.
const keyStands = memberTTL - time.Second

// tenants are those that are declared, as an orchestrator last heard.
type tenants struct {
	mu    sync.Mutex
	known map[string]bool
	asked uint64 // how often that was asked
	heard uint64 // which of those is known
	// stored is when the server last stored the own key, and before how many questions had been asked when it began to
	// stand as it stands now.
	stored time.Time
	before uint64

	turn chan struct{} // of those that have to ask: one asks for all that wait
}

// ask returns the number of a question that is about to be asked.
func (t *tenants) ask() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked++
	return t.asked
}

// hear takes the answer to a question, unless that to a later one was heard before: two may be on their way at once, and
// who has heard of a tenant, and told others so, must not forget it again.
func (t *tenants) hear(question uint64, names []string) {
	known := make(map[string]bool, len(names))
	for _, name := range names {
		known[name] = true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if question > t.heard {
		t.known, t.heard = known, question
	}
}

// stands takes that a server stored the own key, and when. If the key before it may have expired by then, or the time
// went back, because another server leads, there may have been a gap: what was asked before counts no more.
func (t *tenants) stands(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if since := at.Sub(t.stored); since < 0 || since >= keyStands {
		t.before = t.asked
	}
	t.stored = at
}

// questions returns how many were asked so far.
func (t *tenants) questions() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.asked
}

// of reports whether a tenant is declared; ok is false where what was heard does not count. It does if it was asked
// after so many questions, those that were asked when somebody came with a plan that was stored at a time.
func (t *tenants) of(tenant string, submitted time.Time, questions uint64) (declared, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ok = t.heard > questions || t.heard > t.before && submitted.Before(t.stored.Add(keyStands))
	return t.known[tenant], ok
}

// digest says which tenants are known, for others to compare; empty for none.
func (t *tenants) digest() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return tenantsDigest(slices.Sorted(maps.Keys(t.known)))
}

func tenantsDigest(sorted []string) string {
	if len(sorted) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(sorted, " ")))
	return hex.EncodeToString(sum[:8])
}

// BucketOf returns the bucket for the large values of a run that starts now, whose plan the ledger stored at a time,
// submitted; empty for that of all tenants that are not declared. It asks only where what was heard does not count,
// which it does for all plans while the own member key is renewed (Join). Errors: those of Tenants.
func (s *Archive) BucketOf(ctx context.Context, tenant string, submitted time.Time) (string, error) {
	questions := s.tenants.questions()
	declared, ok := s.tenants.of(tenant, submitted, questions)
	if !ok {
		select {
		case s.tenants.turn <- struct{}{}:
			defer func() { <-s.tenants.turn }()
		case <-ctx.Done():
			return "", Fault(context.Cause(ctx))
		}
		if declared, ok = s.tenants.of(tenant, submitted, questions); !ok { // nobody asked while this one waited
			if err := s.learnTenants(ctx); err != nil {
				return "", err
			}
			declared, _ = s.tenants.of(tenant, submitted, questions)
		}
	}
	if !declared {
		return "", nil
	}
	return subjects.BlobsOf(tenant), nil
}

// learnTenants asks once which tenants are declared.
func (s *Archive) learnTenants(ctx context.Context) error {
	question := s.tenants.ask()
	all, err := s.Tenants(ctx)
	if err != nil {
		return err
	}
	s.tenants.hear(question, all)
	return nil
}

// declaredEvery is how often an orchestrator asks which tenants are declared.
const declaredEvery = time.Second

// followTenants asks again and again. What can't be asked leaves what was known.
func (s *Archive) followTenants() {
	for s.pause(s.ctx, declaredEvery) {
		if err := s.learnTenants(s.ctx); err != nil && s.ctx.Err() == nil {
			s.cfg.Logger.Debug("can't ask which tenants are declared; it is asked again", "error", err)
		}
	}
}
