// Package provider asks language models over HTTP, with the SDKs of OpenAI and Anthropic: these know addresses, headers
// and the framing of streams. What is sent and what comes back is made and read by package model, byte by byte.
//
// # Safety
//
// A key is read from the environment or a file when a Caller is made, goes into one header, and is taken out of
// whatever a provider writes; responses that refuse a key are not quoted at all. The variables by which the SDKs
// configure themselves (OPENAI_BASE_URL, ANTHROPIC_API_KEY and their like) are not read. No redirect is followed.
//
// # Liveness
//
// A call ends with its context; a stream that is silent for idle_ms or over its limit of bytes is cut. Nothing is tried
// again here: a step is, by its contract, and holds no slot in between.
package provider
