package acl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// TestAForgedAcknowledgementRemovesNothingOfOthers: a worker may acknowledge steps of its tool, and writes the number
// of the message that it acknowledges itself.
func TestAForgedAcknowledgementRemovesNothingOfOthers(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {witness: true}, "one account": {oneAccount: true, witness: true}}, func(t *testing.T, s *system) {
		waiting := s.populate()
		nc := s.witness()
		before := s.all(nc)
		var scheduled, sentinel bool
		worker := s.trespass("worker-search")
		for m := range before {
			if m.stream != subjects.StepsStream(0) {
				continue
			}
			scheduled = scheduled || strings.HasPrefix(m.subject, "sched.")
			sentinel = sentinel || m.subject == subjects.Sentinel(0)
			for _, word := range []string{"+ACK", "+TERM", "-NAK", "+WPI", "+NXT", "+ACK"} {
				for _, form := range []string{"$JS.ACK.STEPS_0.search.1.%d.1.1.0", "$JS.ACK._.HASH.STEPS_0.search.1.%d.1.1.0"} {
					require.NoError(t, worker.Publish(fmt.Sprintf(form, m.sequence), []byte(word)))
				}
			}
		}
		require.True(t, scheduled && sentinel, "there is something to remove")
		_, err := worker.Request(subjects.UserInfo, nil, 5e9) // the server is through with what came before
		require.NoError(t, err)
		after := s.all(nc)
		for m := range before {
			require.True(t, after[m] || m.stream != subjects.StepsStream(0), "%s was removed", m.subject)
		}
		s.orchestrate(1)
		s.host("worker-crm_2Fget-fetch", "crm/get", "fetch")
		o, err := waiting.Wait(s.ctx())
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, o.Status)
	})
}
