// Package request renders what a planner is asked: from an agent's definition, what its planner is shown, and what its
// rounds came to, the bytes of the request. It is pure: the same records make the same bytes, whoever renders them.
//
//	l := request.Begin(definition, facts, name)     the loop begins
//	l.Open(facts, messages)                         a round begins
//	l.Request(now)                                  what its planner is sent
//	l.End(round, facts, summary)                    the round is over: its part, to be kept
//	l.Open(facts, messages)                         the next one
//
// Resume goes on with a loop whose parts were kept.
//
// # Growth
//
// The members that never change come first, then the rounds, then what is true of this request alone; so of two
// requests the later one begins with the bytes of the earlier, but for its tail, and a prompt cache knows it. A round
// that is over is rendered once, as a part (package agent/parts); a request names the last part, so that its own
// bytes do not grow with the rounds.
//
// The tools of the head are those of the first round, by name. What is shown later, and what is shown no more, stands
// in the round at which it changed.
//
// # Bounds
//
// A result of more bytes than the definition's result_bytes is a preview. A round has at most half of total_bytes: in
// one that has more, previews are made shorter by halves. Once the rounds have more than total_bytes, the oldest of
// them are cut: their ids, statuses and sizes stay, or a summary in their place, and what people have said. The cut
// is made once, down to half, from the sizes of the parts alone.
//
// # Safety
//
// All that tools, planners and people have written is data: it is copied as JSON or quoted, never interpreted.
// "$ref:a" in a result stays what it is, numbers keep their digits, and what is no JSON becomes a string.
package request
