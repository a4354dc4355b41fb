package bench

import "strings"

// peer is another engine's figures, measured before and elsewhere: a machine of the same kind with two cores, the same
// shapes. Ranges as they were given.
type peer struct {
	name                      string
	flushed                   bool
	chain, fan, diamonds, big string
}

var peers = []peer{
	{"DBOS", false, "0.46", "17.8", "5,500", "233"},
	{"Asynq", false, "1.74", "15.6", "8,300", "197"},
	{"Restate", false, "0.62", "11.8", "6,000", "761"},
	{"DBOS", true, "0.67", "21.6", "4,200", "351"},
	{"Restate", true, "1.02", "13.0", "4,800", "830"},
	{"Asynq", true, "2.12", "46.5", "2,500", "793"},
	{"River", true, "2.3", "164", "1,350", "2,400"},
	{"Temporal, activities", true, "5–53", "390–660", "94–250", "5,300–14,600"},
}

func (f *figures) peers(b *strings.Builder) {
	b.WriteString("## Beside others\n\nThe others' figures were not measured here: they were taken before, on a machine of the same kind with two cores and with the same shapes. ")
	b.WriteString("DBOS and Restate run steps inside the workflow's process; Stepjet dispatches them to workers in another process. Flushed means that what is acknowledged is on the disk.\n")
	table(b, 1, "", "chain, ms a step", "fan-out of 100, ms", "diamonds, steps/s", "2,000 wide, ms")
	for _, flushed := range []bool{false, true} {
		for _, part := range []string{"separate", "embedded", "always", "always-8"} {
			l := f.layout(part)
			if l == nil || l.Layout.Always != flushed {
				continue
			}
			cell := func(prefix string, k key) string {
				if p := l.pair(prefix); p != nil {
					return "**" + number(k.of(p.Stepjet)) + "**"
				}
				return "–"
			}
			row(b, "**Stepjet**, "+strings.ToLower(l.Layout.Title[:1])+l.Layout.Title[1:], cell("chain", stepKey),
				cell("fan-out of 100 with", runKey),
				cell("diamonds of 7, 64", rateKey), cell("fan-out of 2000 with", runKey))
		}
		for _, p := range peers {
			if p.flushed != flushed {
				continue
			}
			name := p.name
			if flushed {
				name += ", flushed"
			}
			row(b, name, p.chain, p.fan, p.diamonds, p.big)
		}
	}
}
