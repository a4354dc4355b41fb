package kv_test
import ("testing";"time";"github.com/stepjet/stepjet/kv")
func TestZZ(t *testing.T){
	s := setup(t, kv.Config{})
	tool := register(t, s, "tool", 2)
	_, got := pull(t, s, tool, 10)
	a, b, c := attempt("tool", "a"), attempt("tool", "b"), attempt("tool", "c")
	for _, x := range []kv.Dispatch{{Attempt:a},{Attempt:b},{Attempt:c}} { dispatch(t, s, x) }
	receive(t, got, "a"); receive(t, got, "b")
	t0:=time.Now()
	s.PurgeAttempt(within(t, 5*time.Second), a, tool.Shard)
	t.Log("purged", time.Since(t0))
	for time.Since(t0)<14*time.Second { 
		select { case d:=<-got: t.Log("got", d.Subject, time.Since(t0)); return
		case <-time.After(500*time.Millisecond): t.Log(pendingAcks(t,s,tool)) } }
}
