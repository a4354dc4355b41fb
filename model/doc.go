// Package model turns what a plan or an agent asks of a language model into the request of a provider, and what the
// provider streams back into an answer. It is pure: package model/provider sends and receives, and is a page long.
//
//	request  → Prepare → the body of POST /chat/completions or /messages
//	events   → Reader  → Answer, with what it used and what that costs
//	a status → Failed  → Failure: whether another model or another time may help
//
// # Safety
//
// What stands in a request is data, whatever it looks like: instructions come first and alone into the system prompt,
// and results are quoted as JSON. A provider's answer is bounded before it is read, its arguments are repaired once and
// mechanically at most, and one that was cut off is never completed by guessing. What a model said remains what it said:
// a call whose arguments are no object stands in the answer beside a problem that says so.
//
// # Prompt caches
//
// Of two requests of one conversation the longer begins with the bytes of the shorter: what doesn't change is written
// first, messages last, and each round is appended as it was; but for the marks that Anthropic's cache asks for, which it
// does not compare. A provider's own state (thinking blocks with signatures, reasoning) goes back verbatim to the provider
// and model that it came from, and to no other.
package model
