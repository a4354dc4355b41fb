// Package parts is the form in which the rounds of an agent reach its planner. A request that held all rounds would
// grow with each of them, and what is sent over n rounds with n². So a round that is over is rendered once, as a part
// that never changes, and a request names the last part alone:
//
//	part 0  {"before": null, "round": 0, "from": 0, "head": {…}, "entry": {…}}
//	part 1  {"before": {"name", "sha256"}, "round": 1, "from": 0, "entry": {…}}
//	request {"part": {"name", "sha256"}, "messages": […], …}
//
// Who is sent a request reads parts back until one is known, and puts it together: the head's members, "rounds" with
// the entries, and the request's own members. Keeper does that, and keeps parts for the requests to come.
//
// A planner whose contract says so finds a small last part in its request, as "content" beside the name and the digest
// (Carry): the part may not be stored yet then. All others are stored before a request is sent that leads to them.
//
// # Cuts
//
// A part with "head" or "head_in" begins anew: "cut" stands in the place of the rounds before "from", and those from
// there on stand whole. It is the newest such part that counts, so that between two of them no byte of a request
// changes but at its end. "head_in" names the part whose head is still the request's.
//
// # Safety
//
// A part counts for what its digest says, whoever wrote it and wherever it was read from; each names the digest of the
// one before, so that a request which names one part names all. Parts are read by names of the same agent of the same
// run alone: a forged request brings nobody else's bytes into a prompt.
package parts
