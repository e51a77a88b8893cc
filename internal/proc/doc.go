// Package proc starts processes and makes sure that they end.
//
// A process started here is the leader of a tree: itself and whatever it
// starts. When the leader exits, is stopped or runs out of time, the whole
// tree goes with it: TERM, a grace, KILL. Every wait is bounded, whatever the
// tree does: ignore signals, leave its session, hold a pipe open, exit first.
//
// How surely a tree can be caught depends on the machine; Level tells.
//
//   - cgroup v2: the kernel keeps the list of members, and kills them in one
//     step. Nothing escapes but a process that may write to cgroupfs itself.
//   - process group + subreaper: the leader has a group of its own, and
//     processes that lose their parent become children of this process, where
//     a mark in their environment says which tree they are of. A process that
//     leaves the group, loses its parent and clears its environment escapes.
//   - process group: no /proc; what leaves the group escapes.
//
// Trees of a process that was killed itself are ended by CleanStale, which the
// next one calls when it starts.
//
// The package knows nothing of tasks. It needs Linux.
package proc
