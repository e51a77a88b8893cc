// Package spool keeps a run in a directory, where files and atomic renames are
// all the coordination there is: no daemon, no broker, no database.
//
// The protocol is docs/adr/0002. Two primitives carry everything. A claim is
// one rename of pending/x.json into a directory that only the claimer uses; so
// the path is the token, and a rename out of it checks the token and takes the
// claim in one step. A settle writes the next version of the task beside the
// claim, decides by one rename, and publishes. Every other operation is a
// claim followed by a settle.
//
// Where to look: names.go (what may lie where), claim.go, settle.go, finish.go,
// reap.go, operate.go (the protocol's operations under their own names),
// enqueue*.go (publishing), index*.go and pick*.go (which task is next),
// checkpoint*.go (status.json), view*.go (looking), doctor*.go (checking).
package spool
