package subjects

import (
	"strconv"
	"strings"
)

// ItemToken returns the step token of the i-th item of a for_each: S=i. No step id holds "=".
func ItemToken(step string, item int) string { return step + "=" + strconv.Itoa(item) }

// SplitItem reads a step token: the step's id, and the item's number where it is one.
func SplitItem(token string) (step string, item int, isItem bool) {
	step, number, isItem := strings.Cut(token, "=")
	if !isItem {
		return token, 0, false
	}
	item, err := strconv.Atoi(number)
	if err != nil || item < 0 || strconv.Itoa(item) != number {
		return token, 0, false
	}
	return step, item, true
}
