// Package ledger keeps a ledger: one YAML file that says what came in from each
// source, how far along each item is, who may write now, and what proves that an
// item is closed.
//
// The package has four layers, each of which needs only those before it:
//
//   - the document ([Document], [Map], [Value]): an ordered subset of YAML with
//     byte-exact output, in the older engine's spelling ([Compat]) or in one that
//     every YAML parser reads alike ([Native]);
//   - the rules (lease, upsert, cursor, validate, close, redact, merge), which are
//     functions of a document, an operation and the time, and do no I/O;
//   - the file ([File]), which holds the lock over load, change and write;
//   - the shared branch ([Branch]) and the git merge driver, which run git.
//
// A document is not for concurrent use. A File may be used by many goroutines and
// processes at once.
package ledger
