package catalog

import (
	"fmt"
	"strings"

	"github.com/stepjet/stepjet/tool"
)

// hints tells a tool's contract to a model: what it has to know to write a good plan, and nothing else. Stepjet itself
// keeps limits and order, so a plan need not.
func hints(d *tool.Definition) string {
	c, err := d.Contract()
	if err != nil {
		return ""
	}
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case c.Mode == tool.SequentialOnly:
		add("runs one call at a time")
	case c.Limit < tool.DefaultLimit:
		add("runs at most %d calls at a time", c.Limit)
	}
	for _, dep := range c.DependsOn {
		if len(dep.RequiredFields) == 0 {
			add("takes the result of a %s step", dep.Tool)
			continue
		}
		add("takes %s from a %s step", strings.Join(dep.RequiredFields, ", "), dep.Tool)
	}
	if b := c.Batch; b != nil {
		add("takes up to %d items in one call as %q; calls with the arguments of one item are gathered into such calls by themselves", b.MaxItems, b.Argument)
	}
	if c.AtMostOnce {
		add("is never tried again")
	}
	if d.Annotations.Destructive() {
		add("changes or deletes what is there")
	}
	return strings.Join(all, "; ")
}
