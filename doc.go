// Package beeyard is the domain of beeyard in words: tasks, claims,
// checkpoints, the rules that move them, and the ports that stores implement.
// It does no I/O and reads no clock, so every rule here is a function that a
// test can ask directly.
//
// Read in this order: [Task] (what is to be done), [State] and [Judge] (what
// may happen to it now, and why not), [Claim] and [Token] (who may act),
// [Settlement] and [Task.Settle] (how a claim ends), [Checkpoint] (where the
// workflow stands), [Run] (what a store offers).
//
// Package open opens a run by path or URL; packages spool and postgres are the
// stores; package worker drains them.
package beeyard
