package agent

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
)

// condition is an expression over facts.
type condition struct {
	x    *expression.Expression
	refs []reference
}

// sight finds what a reference is to; ok is false where there is nothing.
type sight func(r reference) (json []byte, ok bool)

// compile reads a condition in which some words are known.
func compile(text string, words []string) (*condition, *fault.Error) {
	x, err := expression.Compile(text, func(s string, i int) (int, string) {
		if s[i] != '$' {
			return 0, ""
		}
		_, end, why := readReference(s, i+1, words)
		return end, why
	})
	if err != nil {
		return nil, err
	}
	c := &condition{x: x}
	for _, written := range x.References() {
		r, _, _ := readReference(written, 1, words)
		c.refs = append(c.refs, r)
	}
	return c, nil
}

// made compiles a condition that this package wrote itself.
func made(text string) *condition {
	c, err := compile(text, factWords)
	if err != nil {
		panic(err) // bounds of names and lists keep it within an expression's
	}
	return c
}

// meets reports whether an object is taken: there is no condition, or it holds.
func (c *condition) meets(look sight) bool {
	if c == nil {
		return true
	}
	holds, err := c.holds(look)
	return holds && err == nil
}

// holds decides the condition. What can't be decided doesn't hold, and err says why.
func (c *condition) holds(look sight) (bool, *fault.Error) {
	return c.x.True(func(i int) ([]byte, bool) { return look(c.refs[i]) }, expression.ConditionLimits)
}
