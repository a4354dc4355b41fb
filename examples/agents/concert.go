package main

import (
	"context"
	"fmt"
)

// concert has a hall, performances in it, and concerts of them.
func (h hosting) concert() {
	h.tool("get_hall", "Returns the hall of a city.", []string{"city string"},
		func(_ context.Context, in object) (any, error) {
			return object{"name": fmt.Sprintf("the hall of %s", in["city"])}, nil
		})
	h.tool("find_performance", "Finds a performance in a hall.", []string{"composer string", "hall string"},
		func(_ context.Context, in object) (any, error) {
			return object{"work": fmt.Sprintf("%s in %s", in["composer"], in["hall"])}, nil
		})
	h.tool("create_concert", "Puts a concert together.", []string{"works array"},
		func(_ context.Context, in object) (any, error) { return object{"works": in["works"]}, nil })
}
