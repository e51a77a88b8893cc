// Package explore checks the file queue's protocol by trying every
// interleaving of small models of it. Only tests use it; it knows nothing of
// the code in spool and imports the standard library alone.
//
// There are two models.
//
// The explorer (search.go) walks breadth-first through every state that
// workers, reapers, operations, native and older enqueues, older workers and
// older reapers can reach together, when each system call is one atomic step
// and any process may die between two steps. The directories of a run are a
// State; a process is a small step machine (worker.go, settle.go, finish.go,
// reaper.go, operation.go, enqueue.go, older.go); what must hold is in
// invariants.go. Every rule of the protocol is a switch (rules.go): with all of
// them on no scenario may break an invariant, and with any one off some
// scenario must, or the rule is not needed and the model proves nothing.
//
// The cut model (cutfs.go, cutprogram.go, cutrecover.go) takes one program at a
// time and cuts the power after each of its system calls: each name that was
// not synced may then be old, new or both, each content that was not synced may
// be empty. Recovery runs on every such state and is cut again itself.
//
// Time is left out: wherever the protocol waits for a limit, the models may act
// at once or never. That is more than a real clock allows, so what holds here
// holds for every choice of limits. Steps that no other process can observe are
// merged with a neighbour: taking the lock with the first look under it,
// releasing it with the last change under it. One directory's listing is one
// step (a small directory is read by one getdents under the directory's lock);
// looks into several directories are one step each, in the protocol's order.
//
// # Limits
//
// Archive, prune and quarantine of foreign files are not modelled; neither are
// beats, which are the choice above. Three things the explorer shows not to hold
// where an older reaper takes a claim whose owner lives, and no scenario claims
// them: it may carry a task from claimed back to pending behind a look under the
// lock, so that a native enqueue accepts its id again or a finish publishes a
// follow-up again; and it may put a held task that an operation is just
// canceling into pending. After a power cut that doubles a name (btrfs) a life
// may run twice and is recorded once; its artifact may then be the other run's,
// which the recorded digest shows.
package explore
