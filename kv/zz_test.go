package kv
import ("testing";"time";"context";"sync";"fmt";"errors"
"github.com/nats-io/nats.go/jetstream"
"github.com/stepjet/stepjet/internal/natstest")
func TestZZ(t *testing.T){
	servers := natstest.StartCluster(t, 3)
	var wg sync.WaitGroup
	for i, srv := range servers { nc := natstest.Connect(t, srv)
	wg.Go(func(){
		js,_ := jetstream.New(nc)
		cfg := Config{Replicas:3}.withDefaults()
		for _, sc := range []jetstream.StreamConfig{cfg.historyConfig(), cfg.toolsConfig(), cfg.membersConfig(), cfg.stepsConfig(0), cfg.ledgerConfig(0,1)} {
			for try:=0;;try++ {
			t0:=time.Now()
			ctx, c := context.WithTimeout(context.Background(), 2*time.Second)
			_, err := js.Stream(ctx, sc.Name); c()
			d1 := time.Since(t0); t0=time.Now()
			var err2 error
			if errors.Is(err, jetstream.ErrStreamNotFound) {
			ctx, c = context.WithTimeout(context.Background(), 2*time.Second)
			_, err2 = js.CreateStream(ctx, sc); c() }
			fmt.Println(i, sc.Name, try, "info", d1.Round(time.Millisecond), err, "create", time.Since(t0).Round(time.Millisecond), err2)
			if err==nil||err2==nil {break}
			}
		}
	})}
	wg.Wait()
}
